"""Messages, help and docs say things in plain technical English, in the words of the field."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
AVOIDED = {
    r"\b[Tt]ells? (what|which|how|whether|where)\b": "say Measure, Find, Compare, Check",
    r"\bguess": "say predict, predicted tokens, language-modelling head",
    r"\bhand(s|ed)? on\b": "say output, pass on",
    r"\b(cannot|can|could not) be told\b": "say is unknown, cannot be distinguished",
    r"\b(is|are|was|were) (not )?told\b": "say report, detect, is known",
    r"\b[Ww]anted (is|are)\b": "say Expected ..., got ...",
    r"\bgiven was\b": "say Expected ..., got ...",
    r"\bin the mean\b": "say on average",
    r"\banew\b": "say again",
    r"\blet go\b": "say unpin, close",
    r"\ball the same\b": "say anyway",
    r"\bbelong together\b": "say which are compared, aligned",
    r"\bthat it has not\b": "say unknown, lists the available ones",
    r"\bas many as asked for\b": "say reached max_new_tokens",
    r"\bsets? the attended keys apart\b": "say score margin",
    r"\bkeeps any false\b": "say controls the family-wise error rate",
    r"\bOf the (intervals|random numbers)\b": "say Confidence level, Random seed",
    r"\bOf what is kept\b": "say Precision of the stored arrays",
    r"\bset beside\b": "say compare",
    r"\bof which each\b": "say each of them",
    r"\bis not there\b": "say does not exist",
    r"\bfault of headscope\b": "say bug in headscope",
    r"\bg(o|oes|one) on with\b": "say continue, resume",
    r"\b(kept|stands?|stood) beside\b": "say is shown next to, is saved next to, is reported with",
    r"\b(is|are|was|were) set apart\b": "say compared, distinguished",
    r"\b(is|are|was|were) wanted\b": "say Expected ..., got ...; is needed",
    r"\bwhat (it |they )?(is|was|were) asked\b": "say the question, the task",
    r"\bfrom all others\b": "say identifier",
    r"\btold (by|of|on)\b": "say follows from, is detected by, is measured on",
    r"\btells? (of|them|it|the|nothing|one)\b": "say gives, shows, separates, describes",
    r"\bsays (?!no to)[a-z]": "say reports, returns, shows, holds, names",
    r"\bhow (it|this|that|which) is said\b": "say reported, shown",
    r"\bheeds?\b": "say depends on",
}
ANY_AVOIDED = re.compile("|".join(AVOIDED))
QUOTED = {("docs/compare.md", "(*might*, *surgeon*, *if*, *told*)")}


def said(text):
    """Words of the list in a text, with what to say instead."""
    found = []
    if not ANY_AVOIDED.search(text):
        return found
    for pattern, instead in AVOIDED.items():
        found += [f"{match[0]!r}: {instead}" for match in re.finditer(pattern, text)]
    return found


def strings_of(path):
    """The strings of a module that users may see, with their lines: all but docstrings."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    documents = {
        id(statement.value)
        for node in nodes
        if isinstance(getattr(node, "body", None), list)
        for statement in getattr(node, "body", ())
        if isinstance(statement, ast.Expr)
    }
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "x" for part in node.values]
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and id(node) not in documents:
            yield node.lineno, str(node.value)


def test_messages_are_in_the_words_of_the_field():
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {each}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        for line, text in strings_of(path)
        for each in said(text)
    ]
    assert not wrong, "\n".join(wrong)


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_are_in_the_words_of_the_field(page):
    text = page.read_text(encoding="utf-8")
    for name, quoted in QUOTED:
        if page.relative_to(ROOT).as_posix() == name:
            text = text.replace(quoted, "")
    wrong = said(text)
    assert not wrong, "\n".join(wrong)


def public_docstrings():
    """The docstrings of what packages export: functions, classes, their methods and properties."""
    for package in sorted(
        path.parent.name for path in (ROOT / "src/headscope").glob("*/__init__.py")
    ):
        module = importlib.import_module(f"headscope.{package}")
        for name in getattr(module, "__all__", ()):
            public = getattr(module, name)
            if inspect.isroutine(public):
                yield f"{package}.{name}", inspect.getdoc(public) or ""
            if not inspect.isclass(public):
                continue
            yield f"{package}.{name}", inspect.getdoc(public) or ""
            for member, value in vars(public).items():
                function = getattr(value, "fget", getattr(value, "__func__", value))
                if not member.startswith("_") and inspect.isroutine(function):
                    yield f"{package}.{name}.{member}", inspect.getdoc(function) or ""


def test_public_docstrings_are_in_the_words_of_the_field():
    texts = {place: " ".join(text.split()) for place, text in public_docstrings()}
    assert len(texts) > 700
    wrong = [f"{place}: {each}" for place, text in texts.items() for each in said(text)]
    assert not wrong, "\n".join(wrong)


def test_help_is_in_the_words_of_the_field():
    from headscope.cli._main import app

    texts = {}
    for command in app:
        if command.startswith("-"):
            continue
        texts[command] = f"{app[command].help}\n{app[command].help_epilogue}"
        for argument in app[command].assemble_argument_collection(parse_docstring=True):
            texts[f"{command} {argument.name}"] = argument.parameter.help or ""
    assert len(texts) > 200
    wrong = [f"{place}: {each}" for place, text in texts.items() for each in said(text)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "text", ["Tell what heads do", "wanted are three axes", "drawn anew", "a study to go on with"]
)
def test_a_word_of_the_list_is_found(text):
    assert said(text)
