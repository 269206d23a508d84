"""What README and docs tell readers to type is there: commands parse, and names are public."""

import ast
import importlib
import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page, *languages):
    return [
        text
        for language, text in FENCE.findall(page.read_text(encoding="utf-8"))
        if language in languages
    ]


def commands():
    for page in PAGES:
        for block in blocks(page, "sh", ""):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words[:1] == ["headscope"]:
                    yield pytest.param(words[1:], id=f"{page.stem}: {' '.join(words)}")


def names():
    """Names that are taken from ``hs``, and modules and names that are imported from headscope, in
    Python blocks.
    """
    for page in PAGES:
        for block in blocks(page, "python"):
            for node in ast.walk(ast.parse(block)):
                if (
                    isinstance(node, ast.Attribute)
                    and isinstance(node.value, ast.Name)
                    and node.value.id == "hs"
                ):
                    yield page.stem, "headscope", node.attr
                if (
                    isinstance(node, ast.ImportFrom)
                    and node.module.partition(".")[0] == "headscope"
                ):
                    yield from ((page.stem, node.module, each.name) for each in node.names)


@pytest.mark.parametrize("words", list(commands()))
def test_commands_parse(words):
    pytest.importorskip("cyclopts", reason="needs the extra cli")
    from headscope.cli._main import app

    command, *_ = app.parse_args(words, exit_on_error=False, print_error=False)
    assert command.__name__ == words[0]


@pytest.mark.parametrize(("page", "module", "name"), sorted(set(names())))
def test_names_are_there(page, module, name):
    # A package that another one holds is there once it is imported.
    there = hasattr(importlib.import_module(module), name) or find_spec(f"{module}.{name}")
    assert there, f"{page}.md takes {name} from {module}"
