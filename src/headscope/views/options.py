"""The options of a page, each declared once: its name, its type, its default, and what it does.

Everything that needs an option reads it from here: `headscope.view` and its checks, the address and
the Python call of a page (through the generated contract), the options and the help of ``headscope
view`` and ``headscope serve``. So a new option is an entry in one of these classes, and the code in
the browser that uses it. This module imports nothing that takes time, because the command line
reads it for its help.

An option whose kept form equals the given form is in `PlainOptions`. Options that name tokens or
heads are kept in another form (``"cat"`` is kept as a position): their two forms are in
`GivenNumbers` and `KeptNumbers`, and `Default.of` is how one is converted into the other.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from types import GenericAlias, MappingProxyType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

if TYPE_CHECKING:
    from headscope.comparison import Comparison, Effect
    from headscope.linguistics import Sentence
    from headscope.patterns import Heads
    from headscope.record import Record

ViewName = Literal["overview", "head", "matrix", "text", "neuron", "compare"]
"""All heads; one head as lines, as a matrix, on its text, or by its neurons; heads side by side."""
MOVED_VIEWS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "model": {"view": "overview", "tiles": "lines"},
        "pair": {"view": "head"},
        "scatter": {"view": "overview", "order": "kind"},
    }
)
"""What a page shows for the names of views that are drawn only for print."""
Quantity = str
"""weight, score, or the name of one of the page's further quantities."""
Filter = Literal["all", "aa", "ab", "ba", "bb"]
Theme = Literal["auto", "light", "dark"]
TileStyle = Literal["matrices", "lines"]
TextDirection = Literal["received", "given"]
NeuronOrder = Literal["model", "ranked", "pairs", "hidden"]
NeuronVector = Literal["product", "query", "key", "hidden"]
LinkDirection = Literal["dep->head", "head->dep"]
LinkWords = Literal["both", "hits", "misses"]
KindName = Literal["next", "previous", "same", "own", "near", "broad", "resting", "none"]
"""What a head does on the shown text; in the order in which they are listed."""
HeadOrder = Literal["layer", "kind", "sharpness"]
Numbers = Literal["heads", "query", "key"]
"""What the numbers of an option count: heads, or tokens among queries or among keys."""
Pinned = Literal["mean", "sum"]
Layout = Literal["auto", "columns", "rows"]
Link = tuple[int | Sequence[int], int | Sequence[int], str]
"""The tokens of a dependent, the tokens of its head, and the name of the link."""


@dataclass(frozen=True)
class Default:
    """The default of an option, and facts about it that its type does not state.

    Args:
        value: the default.
        between: the smallest and the largest number that it accepts.
        off: name on the command line that switches it off, where it is on by default.
        picture: whether each picture of the tray has its own value.
        of: what its numbers count, where it names heads or tokens.
    """

    value: Any
    between: tuple[int, int] | None = None
    off: str = ""
    picture: bool = False
    of: Numbers | None = None


class StartOptions(TypedDict, total=False):
    """Options of the first view of a page; their defaults depend on the record."""

    view: ViewName
    """View that is shown first: by default ``"overview"``; ``"head"`` where heads, tokens or a
    quantity are chosen, and ``"compare"`` where there is a tray or several heads.
    """
    stack: str
    """Stack that is shown first, such as ``"cross"``; by default the first one."""
    layer: int
    """Layer that is shown first; by default the first one."""


class GivenNumbers(TypedDict, total=False):
    """Heads and tokens as a caller names them."""

    heads: int | Sequence[int]
    """Heads that are shown first; by default all, or one where all would be slow."""
    head: int
    """One head that is shown first; the same as ``heads`` with one number."""
    query: int | str | Sequence[int | str]
    """Query tokens that are pinned: positions from 0, or words such as ``"cat"`` that stand there
    once.
    """
    key: int | str | Sequence[int | str]
    """Key tokens that are pinned: positions from 0, or words such as ``"cat"`` that stand there
    once.
    """


class KeptNumbers(TypedDict):
    """Heads and tokens as a page keeps them."""

    heads: Annotated[list[int] | None, Default(None, of="heads")]
    """Numbers in the model; None for all heads."""
    query: Annotated[list[int], Default((), picture=True, of="query")]
    """Pinned query tokens."""
    key: Annotated[list[int], Default((), picture=True, of="key")]
    """Pinned key tokens."""


class PinnedOptions(TypedDict, total=False):
    """What is put together of pinned tokens."""

    pinned: Annotated[Pinned, Default("mean")]
    """Whether several pinned tokens are shown by the ``"mean"`` (default) or the ``"sum"`` of what
    they have.
    """


class MeanOptions(TypedDict, total=False):
    """What is put together before it is drawn, of a page and of a figure."""

    words: Annotated[bool, Default(False)]
    """Join the pieces of a word: the sum over the word that is attended to, the mean over the word
    that looks.
    """


class DrawnOptions(TypedDict, total=False):
    """What is drawn, of a page and of a figure."""

    quantity: Annotated[Quantity, Default("weight", picture=True)]
    """What is shown: ``"weight"`` (default), ``"score"`` for what goes into the softmax,
    ``"contribution"`` for weight times value norm, or another that the record has or ``quantities``
    gives.
    """
    filter: Annotated[Filter, Default("all", picture=True)]
    """For a sentence pair: ``"ab"`` for queries of the first text and keys of the second, and so
    on; by default ``"all"``.
    """
    hide_special: Annotated[bool, Default(False, picture=True)]
    """Hide special tokens such as [CLS] and [SEP]."""
    sinks: Annotated[bool, Default(True, off="--exclude-sinks", picture=True)]
    """Whether sinks, keys that take most of the attention, are kept (default); else they are
    excluded and the rest is renormalised.
    """


class ViewOptions(TypedDict, total=False):
    """What single views have."""

    order: Annotated[HeadOrder, Default("layer")]
    """How the overview orders heads: by ``"layer"`` and number (default), by ``"kind"``, or by
    ``"sharpness"``, the largest weight of a row.
    """
    kind: Annotated[KindName | None, Default(None)]
    """Kind whose heads stand out in the overview, such as ``"next"``; by default all."""
    layout: Annotated[Layout, Default("auto")]
    """Tokens of the head view in two ``"columns"`` or two ``"rows"``; ``"auto"`` (default) takes
    rows for Chinese and Japanese.
    """
    tiles: Annotated[TileStyle, Default("matrices")]
    """How the overview draws heads: ``"matrices"`` (default), or ``"lines"`` in tiles of 80 pixels
    or more.
    """
    direction: Annotated[TextDirection, Default("received", picture=True)]
    """Whether the text view shows what tokens ``"received"`` (default) or what they have
    ``"given"``.
    """
    neurons: Annotated[NeuronOrder, Default("model", picture=True)]
    """View neuron: ``"model"`` (default) as the model has them, ``"ranked"`` by what they add,
    ``"pairs"`` as rotary positions turn them, or ``"hidden"`` for lines between words.
    """
    vector: Annotated[NeuronVector, Default("product")]
    """View neuron: of the chosen pair, the ``"product"`` (default), the ``"query"`` or
    the ``"key"`` is enlarged with its numbers; ``"hidden"`` for no pair.
    """
    zoom: Annotated[Sequence[float] | None, Default(None)]
    """Part of the matrix that is seen: its first query, its first key, and how many keys; by
    default all of it.
    """
    link_direction: Annotated[LinkDirection, Default("dep->head")]
    """Gold links: ``"dep->head"`` (default) for what dependents attend to, or ``"head->dep"``."""
    link_words: Annotated[LinkWords, Default("both")]
    """Words of the list of gold links: ``"both"`` (default), ``"hits"`` or ``"misses"``."""
    shown_record: Annotated[str, Default("")]
    """Which record is shown where there are several: one of ``beside`` by its name, such as
    ``"b"``; by default the record itself.
    """
    theme: Annotated[Theme, Default("auto")]
    """Colours: ``"light"``, ``"dark"``, or ``"auto"`` (default) for what the reader's system
    says.
    """


class PlainOptions(PinnedOptions, MeanOptions, DrawnOptions, ViewOptions, total=False):
    """What a page keeps as it is given; None stands for the default."""


class KeptTray(TypedDict):
    """The compare tray as a page keeps it."""

    tray: Annotated[list[str], Default(())]
    """Pictures that view compare shows side by side, six at most: layer and heads, and what is
    not as usual, such as ``2-0 view=matrix query=3``.
    """


class PageSelection(StartOptions, KeptNumbers, PlainOptions, KeptTray):
    """What a page shows; all of it is there."""


class HeldOptions(TypedDict, total=False):
    """What a page holds besides the record, and can be written in a line."""

    tray: Sequence[str | Mapping[str, Any]]
    """Up to six pictures that stand side by side in view compare, each a line or a dict of
    options: ``"2-0"``, ``"2-0,3 view=matrix"``, ``"7-3 query=store"``, ``{"layer": 7, "head": 3,
    "query": "store"}``.
    """
    title: str
    """Title of the page; by default the text."""
    include_layers: int | Sequence[int]
    """Layers that the page holds; by default all."""
    include_heads: int | Sequence[int]
    """Heads that the page holds; by default all."""


class ObjectOptions(TypedDict, total=False):
    """What a page holds besides the record, as objects; a command line names files of them."""

    quantities: Mapping[str, Any]
    """Further quantities to show, by name: for each layer of the record's stack, or for each stack
    by name such a list, an array ``[query key]`` for all heads together or ``[head query key]``, or
    None where a layer has none. ``{(layer, head): number}`` is one number for a head, 0 for heads
    that are not named.
    """
    comparison: Comparison | Effect
    """What `headscope.compare` or `headscope.effect` found, of which the record is the second; give
    it to `view` in place of the record.
    """
    evidence: Heads
    """What `headscope.heads` found, over this text or over many: labels, measures and the map of
    heads go into the page.
    """
    links: Sentence | Sequence[Link]
    """Gold links to compare heads with: a `headscope.linguistics.Sentence`, of whose text the
    record is, or any others as ``(dependent tokens, head tokens, label)``, tokens being positions,
    one or several.
    """
    beside: Sequence[Record] | Mapping[str, Record]
    """Further records, of another text or another model, whose heads the tray shows next to those
    of this one: they are called ``b``, ``c`` ..., or as a mapping names them, and a picture of one
    is ``"2-0 record=b"``.
    """


class WrittenOptions(StartOptions, GivenNumbers, PlainOptions, HeldOptions, total=False):
    """All options that can be written in a line: those of a command."""


class PageOptions(WrittenOptions, ObjectOptions, total=False):
    """Options of `view`; those of what is shown first are also parts of the page's address, and of
    the call that the page shows.
    """


KINDS: Mapping[type, tuple[type, str]] = {
    bool: (object, "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "a text"),
}
"""The class of values of each type, with NumPy's numbers, and its name in an error."""


@dataclass(frozen=True)
class Option:
    """The declaration of one option.

    Args:
        name: its name in Python.
        type: its type, without `Default`.
        help: what it does, from the docstring.
        default: its default; None where the default depends on the record.
    """

    name: str
    type: Any
    help: str
    default: Default | None

    @property
    def choices(self) -> tuple[str, ...]:
        """All values that it accepts; empty where they cannot be listed."""
        parts = (self.type, *get_args(self.type))
        return tuple(word for one in parts if get_origin(one) is Literal for word in get_args(one))

    def check(self, value: Any, raises: type[Exception]) -> None:
        """Raise where this is not a value of the option; lists, which name what a record has, are
        checked where it is known.
        """
        fits, words = self._fits(value)
        if not fits and get_origin(self.written) is not list:
            raise raises(f"{self.name} must be {words}, not {value!r}")

    def _fits(self, value: Any) -> tuple[bool, str]:
        if self.choices:
            return value in self.choices, f"one of {', '.join(map(repr, self.choices))}"
        kinds = [kind for kind in KINDS if kind in (self.type, *get_args(self.type))]
        # True and False are integers in Python, but not for a reader of the error.
        is_bool = type(value).__name__ in ("bool", "bool_")
        fits = isinstance(value, tuple(KINDS[kind][0] for kind in kinds))
        fits = fits and is_bool == (kinds == [bool])
        if self.default is not None and self.default.between is not None:
            low, high = self.default.between
            return fits and low <= value <= high, f"a number from {low} to {high}"
        return fits, " or ".join(KINDS[kind][1] for kind in kinds)

    @property
    def written(self) -> Any:
        """The type of the value on a command line or in a request: a list of words or numbers where
        several can be given, and never None. A token is a word, which may be a position.
        """
        is_union = get_origin(self.type) in (Union, UnionType)
        parts = get_args(self.type) if is_union else (self.type,)
        # `int | Sequence[int]` becomes a list: one number is then a list of one. The second check
        # excludes Literal, which has arguments too, but whose origin is no class.
        for part in parts:
            if get_args(part) and isinstance(get_origin(part), type):
                item = get_args(part)[0]
                return GenericAlias(list, item if item in (int, float) else str)
        if self.choices:
            return Literal.__getitem__(self.choices)
        return str if str in parts else parts[0]


@cache
def declared(kind: type) -> Mapping[str, Option]:
    """The options that a class declares, by name, those of its bases first.

    Args:
        kind: a class of options whose annotations can be read without the types of `ObjectOptions`.
    """
    options: dict[str, Option] = {}
    helps: dict[str, str] = {}
    # Python keeps no docstrings of fields, and of a TypedDict no bases before 3.12: both are read
    # from the source of the file.
    module = sys.modules[kind.__module__]
    bases, own = _written(module.__file__ or "").get(kind.__name__, ((), {}))
    for base in bases:
        if base != "TypedDict":
            helps |= {name: option.help for name, option in declared(vars(module)[base]).items()}
    helps |= own
    for name, annotation in get_type_hints(kind, include_extras=True).items():
        is_annotated = hasattr(annotation, "__metadata__")
        inner, *more = get_args(annotation) if is_annotated else (annotation,)
        default = next((each for each in more if isinstance(each, Default)), None)
        options[name] = Option(name, inner, helps[name], default)
    return MappingProxyType(options)


@cache
def _written(file: str) -> Mapping[str, tuple[tuple[str, ...], Mapping[str, str]]]:
    """Of each class in a file, its bases, and the docstring below each field as one line."""
    written = {}
    for kind in ast.parse(Path(file).read_text(encoding="utf-8")).body:
        if not isinstance(kind, ast.ClassDef):
            continue
        helps: dict[str, str] = {}
        bases = tuple(base.id for base in kind.bases if isinstance(base, ast.Name))
        written[kind.name] = bases, helps
        for field, below in zip(kind.body, kind.body[1:], strict=False):
            match field, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    helps[name] = " ".join(text.split())
    return written


PLAIN = declared(PlainOptions)
"""Options that a page keeps as they are given."""
DEFAULTS: Mapping[str, Any] = {
    name: option.default.value
    for name, option in declared(PageSelection).items()
    if option.default is not None
}
"""Default of each option, except for the view, the first stack and the first layer."""
PICTURE_OPTIONS: tuple[str, ...] = tuple(
    name
    for name, option in declared(PageSelection).items()
    if option.default is not None and option.default.picture
)
"""Options that each picture of the tray has for itself, besides its layer and heads."""
NUMBERS_OF: Mapping[str, Numbers] = {
    name: option.default.of
    for name, option in declared(PageSelection).items()
    if option.default is not None and option.default.of is not None
}
"""What the numbers of each option count that names heads or tokens."""
TOKEN_OPTIONS: Mapping[str, Numbers] = {
    name: of for name, of in NUMBERS_OF.items() if of in ("query", "key")
}
"""The options that name tokens, by position or by word."""
