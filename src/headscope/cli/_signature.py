"""Commands made from the signatures of public functions: types, defaults and choices of options are
read from their source, and the help is the first sentence about the argument in the docstring. No
library that such a function needs is imported for it.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

from cyclopts import Parameter, convert
from cyclopts.validators import Number

from headscope.cli._asked import GROUPS, ONE_TEXT, SHORT, Request
from headscope.views.figure_options import FigureOptions
from headscope.views.options import PageOptions

SOURCE = Path(__file__).parents[2]
ARGUMENT = re.compile(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", re.MULTILINE)
SENTENCE = re.compile(r".+?(?=\.\s+[A-Z`]|\.?$)")
CHOICES = re.compile(r"Literal\[([^][]+)\]")
WITH_DEFAULT = re.compile(r"Annotated\[(.+?), Default\(.*")
CODE = re.compile(r"``(.+?)``|`(.+?)`")
PLAIN_TYPES = {
    "bool": bool,
    "os.PathLike[str]": Path,
    "str": str,
    "Sequence[int]": tuple[int, ...],
    "int": int,
    "float": float,
}
"""By how it is written in an annotation."""
LIMITS = {
    "max_new_tokens": Number(gte=1),
    "temperature": Number(gt=0),
    "top_p": Number(gt=0, lte=1),
    "max_tokens": Number(gte=1),
    "seconds": Number(gt=0),
}
"""Numbers that an option may be."""
FIELDS = inspect.signature(Request, eval_str=True).parameters


class Argument(NamedTuple):
    """What the source holds about one argument: its type, its default and its first sentence."""

    type: Any
    default: Any
    help: str


class Shared:
    """Options that mean the same in many functions, most of which take them among ``**options``."""

    stack: str | None = None
    """Attention stack of the model, such as decoder or cross; by default the first."""
    confidence: float | None = None
    """Confidence level of the intervals; 0.95 by default."""
    alpha: float | None = None
    """Significance level, over all tests together; 0.05 by default."""
    correction: Literal["holm", "benjamini-hochberg"] | None = None
    """Correction for multiple tests: holm (default) controls the family-wise error rate,
    benjamini-hochberg the false discovery rate.
    """
    random_weights: bool | None = None
    """Repeat with the same architecture and random weights, as a baseline."""
    seed: int | None = None
    """Random seed."""
    max_new_tokens: int | None = None
    """Maximum number of tokens to generate; by default that of the model's own generation_config,
    or 32.
    """
    do_sample: bool | None = None
    """Sample tokens instead of taking the most probable one."""
    temperature: float | None = None
    """Sampling temperature: above 1 more random, below 1 less."""
    top_p: float | None = None
    """Sample from the most probable tokens that together have this probability."""


@dataclass(eq=False)
class Command:
    """A function of the command line, most of whose options are read from elsewhere.

    Args:
        function: of the command; its parameter ``asked`` is a `Request`, and its ``**options`` are
            what the command was given of the options of the sources.
        sources: functions or classes as ``package:name``; an option is that of the first of them
            that has it.
        takes: names of the options, with ``given=python`` where the name is another in Python,
            ``+`` before a switch that is on by default, and ``!`` behind a field of `Request` that
            must be given. What the function's own docstring has about one is its help.
        group: of the options of the sources in the help.
    """

    function: Callable[..., Any]
    sources: Sequence[str]
    takes: str
    group: str

    def __post_init__(self) -> None:
        words = self.takes.replace("+", "").replace("!", "").split()
        self.names = {each.split("=")[0]: each.split("=")[-1] for each in words}
        for name in ("__name__", "__doc__", "__module__"):
            setattr(self, name, getattr(self.function, name))
        self.__annotations__ = {}

    @cached_property
    def __signature__(self) -> inspect.Signature:
        told = dict(ARGUMENT.findall(inspect.getdoc(self.function) or ""))
        listed = []
        for parameter in inspect.signature(self.function, eval_str=True).parameters.values():
            if parameter.name not in ("asked", "options"):
                help_ = " ".join(told.get(parameter.name, "").split())
                place = place_of(parameter.name)
                kind = Annotated[parameter.annotation, _told(help_, parameter.default, **place)]
                listed.append(parameter.replace(annotation=kind))
        known: dict[str, Argument] = {}
        for source in (*reversed(self.sources), f"{__name__}:Shared"):
            known |= options_of(*source.split(":"))
        fields, words = options_of(Request.__module__, "Request"), self.takes.split()
        for given, name in self.names.items():
            option = fields[given] if given in FIELDS else known[name]
            help_ = " ".join(told.get(given, option.help).split())
            if given in FIELDS:
                listed.append(_field(given, help_, is_needed=f"{given}!" in words))
                continue
            is_on = {"default": True} if f"+{given}" in self.takes else {}
            option = option._replace(help=help_, **is_on)
            listed.append(_parameter(given, option, group=self.group))
        return inspect.Signature(sorted(listed, key=lambda each: each.kind))

    def __call__(self, *args: Any, **given: Any) -> Any:
        """Run the command with its options by their names in Python; those not given are left out,
        so that the defaults of the function hold.
        """
        held = {name: given.pop(name) for name in FIELDS if name in given}
        options = {python: given.pop(name, None) for name, python in self.names.items()}
        options = {name: value for name, value in options.items() if value is not None}
        if "asked" not in inspect.signature(self.function).parameters:
            return self.function(*args, **given, **options)
        if self.takes.startswith(ONE_TEXT):
            held |= dict(zip(("text", "text_b"), args, strict=False))
            args = ()
        asked = Request(**held)
        if {"plot", "workers"} <= self.names.keys():
            asked.check(folder=True)
        return self.function(*args, asked=asked, **given, **options)


def _parameter(name: str, option: Argument, group: str) -> inspect.Parameter:
    kind: Any = option.type | None if option.default is None else option.type
    more: Any = {"group": group} if group else {}
    told = _told(option.help, option.default, validator=LIMITS.get(name), **more | place_of(name))
    if any("-" in str(choice) for choice in get_args(option.type)):
        told = Parameter.combine(told, Parameter(converter=hyphenated))
    by_name = inspect.Parameter.KEYWORD_ONLY
    kind = Annotated[kind, told]
    return inspect.Parameter(name, by_name, default=option.default, annotation=kind)


def _field(name: str, help_: str, *, is_needed: bool) -> inspect.Parameter:
    """A field of `Request`; those that are texts are given by their place."""
    each = FIELDS[name]
    place = each.POSITIONAL_ONLY if name in ("text", "text_b") else each.KEYWORD_ONLY
    default = each.empty if is_needed else each.default
    kind = Annotated[each.annotation, _told(help_, default, **place_of(name))]
    return each.replace(kind=place, default=default, annotation=kind)


def place_of(name: str) -> dict[str, Any]:
    """The group of an option in the help, and its short form, where it has one."""
    known = {"group": GROUPS.get(name), "alias": SHORT.get(name)}
    return {what: value for what, value in known.items() if value is not None}


def _told(help_: str, default: Any, **more: Any) -> Parameter:
    """What cyclopts is told of an option: a default that its help names is not shown again, and
    what turns it off is offered where it is on.
    """
    more |= {"show_default": False} if "default" in help_ else {}
    more |= {"negative_bool": "no-"} if default is True else {}
    return Parameter(help=help_, **more)


def made_from(*sources: str, takes: str = "", group: str = "") -> Callable[..., Command]:
    """Make a `Command` of a function."""
    return lambda function: Command(function, sources, takes, group)


@cache
def options_of(module: str, name: str) -> dict[str, Argument]:
    """The arguments of a function, or the fields of a class, with those of its bases and those of
    ``**options``, by name.

    Args:
        module: that defines or imports it.
        name: of the function or class.
    """
    module, node = _definition(module, name)
    options: dict[str, Argument] = {}
    if isinstance(node, ast.ClassDef):
        for base in node.bases:
            options |= options_of(module, ast.unparse(base))
        told = _arguments(node)
        for field, below in zip(node.body, [*node.body[1:], None], strict=True):
            if isinstance(field, ast.FunctionDef) and field.name == "__init__":
                options |= _of_function(field, module, told)
            elif isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                text = told.get(field.target.id) or _text_of(below)
                # What `Request` says is written for the help.
                text = text if name == Request.__name__ else _sentence(text)
                kind, value = _type_of(field.annotation, module), _value(field.value, module)
                options[field.target.id] = Argument(kind, value, text)
    elif isinstance(node, ast.FunctionDef):
        options |= _of_function(node, module, _arguments(node))
    return options


def _of_function(node: ast.FunctionDef, module: str, told: dict[str, str]) -> dict[str, Argument]:
    options: dict[str, Argument] = {}
    more = node.args.kwarg.annotation if node.args.kwarg else None
    if isinstance(more, ast.Subscript) and isinstance(more.slice, ast.Name):
        options |= options_of(module, more.slice.id)
    positional = [*node.args.posonlyargs, *node.args.args]
    lacking: list[ast.expr | None] = [None] * (len(positional) - len(node.args.defaults))
    defaults = [*lacking, *node.args.defaults, *node.args.kw_defaults]
    for each, default in zip([*positional, *node.args.kwonlyargs], defaults, strict=True):
        kind, value = _type_of(each.annotation, module), _value(default, module)
        options[each.arg] = Argument(kind, value, _sentence(told.get(each.arg, "")))
    return options


@cache
def _statements(module: str) -> dict[str, ast.AST | str]:
    """What a module defines, by name: the statement, or the module that it is imported from."""
    path = SOURCE.joinpath(*module.split("."))
    stub, file = path / "__init__.pyi", path.with_suffix(".py")
    if path.is_dir():
        file = stub if stub.exists() else path / "__init__.py"
    named: dict[str, ast.AST | str] = {}
    body = ast.parse(file.read_text(encoding="utf-8")).body
    checked = [inner for node in body if isinstance(node, ast.If) for inner in node.body]
    for node in body + checked:
        if isinstance(node, ast.ImportFrom):
            origin = f"{module}.{node.module}" if node.level else node.module or ""
            named |= {each.asname or each.name: origin for each in node.names}
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            named[node.name] = node
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            named[node.targets[0].id] = node.value
    return named


def _definition(module: str, name: str) -> tuple[str, ast.AST | None]:
    """Where a name is defined, and its statement; None outside of this package."""
    statement = _statements(module).get(name)
    if not isinstance(statement, str):
        return module, statement
    return _definition(statement, name) if statement.startswith("headscope") else (module, None)


def _type_of(annotation: ast.AST | None, module: str) -> Any:
    """The type of an option: of a union the first of `PLAIN_TYPES` that it has."""
    written = "" if annotation is None else ast.unparse(annotation)
    texts = WITH_DEFAULT.sub(r"\1", written).split(" | ")
    for text in texts:
        defined = _definition(module, text)[1]
        choices = CHOICES.fullmatch(text if defined is None else ast.unparse(defined))
        if choices:
            return Literal.__getitem__(ast.literal_eval(choices[1]))
    return next((kind for word, kind in PLAIN_TYPES.items() if word in texts), str)


def _value(node: ast.AST | None, module: str) -> Any:
    """A default that is written out, or the value of a constant; None for any other."""
    if isinstance(node, ast.Name):
        module, node = _definition(module, node.id)
    try:
        return ast.literal_eval(node) if isinstance(node, ast.expr) else None
    except ValueError:
        return None


def _text_of(below: ast.AST | None) -> str:
    is_text = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
    return str(below.value.value) if is_text else ""


def _arguments(node: ast.ClassDef | ast.FunctionDef) -> dict[str, str]:
    """The text of a docstring about each argument."""
    _, _, below = (ast.get_docstring(node) or "").partition("Args:\n")
    return dict(ARGUMENT.findall(below.partition("\n\n")[0]))


def _sentence(text: str) -> str:
    """The first sentence of a docstring as a line of help."""
    sentence = SENTENCE.match(CODE.sub(_without_quotes, " ".join(text.split())))
    line = sentence[0] if sentence else ""
    # A word of code keeps its small letter.
    first = line[:1] if text.startswith("`") else line[:1].upper()
    return f"{first}{line[1:]}." if line else ""


def _without_quotes(mark: re.Match[str]) -> str:
    code = mark[1] or mark[2]
    return code.strip('"') or code


def hyphenated(kind: Any, tokens: Sequence[Any]) -> Any:
    """A name that may be written with hyphens or underscores: next-word, next_word; called by
    cyclopts. The function of a file of the user's own, own.py:my_task, stays as it is.
    """
    if ":" not in tokens[0].value:
        tokens = [token.evolve(value=token.value.replace("_", "-")) for token in tokens]
    return convert(kind, tokens)


def plain_help(text: str) -> str:
    """The docstring of an option as a line of help: without markup, and with the command-line names
    of other options.
    """
    known = PageOptions.__annotations__.keys() | FigureOptions.__annotations__

    def shown(mark: re.Match[str]) -> str:
        code = mark[1] or mark[2]
        return f"--{code.replace('_', '-')}" if code in known else _without_quotes(mark)

    return CODE.sub(shown, text)
