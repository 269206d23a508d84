"""What a page shows when it opens, and what it holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import inf
from numbers import Integral, Real
from typing import Any, TypedDict, get_args

from headscope.comparison import Comparison, Effect
from headscope.errors import PageError
from headscope.linguistics import Sentence
from headscope.patterns import Heads
from headscope.record import Record, Stack, Tokens
from headscope.views._token_words import token_positions
from headscope.views.contract import (
    Filter,
    HeadMeasure,
    HeadOrder,
    KindName,
    Layout,
    LinkDirection,
    LinkWords,
    NeuronOrder,
    NeuronVector,
    PageSelection,
    Pinned,
    Quantity,
    TextDirection,
    Theme,
    TileStyle,
    ViewName,
)


class PageOptions(TypedDict, total=False):
    """Options of `view`; each is also a part of the page's address, and of the call that the page
    shows.
    """

    view: ViewName
    """``"overview"``, ``"head"``, ``"model"``, ``"matrix"``, ``"text"``, ``"neuron"``, ``"pair"``,
    ``"scatter"`` where there is evidence, or ``"compare"``. By default the overview; the head view
    where heads, tokens or a quantity are chosen, and the tray where there is one.
    """
    stack: str
    """Stack that is shown first; by default the first one."""
    layer: int
    """Layer that is shown first; by default the first one."""
    heads: int | Sequence[int]
    """Heads that are shown first; by default all, or one where all would be slow."""
    head: int
    """One head that is shown first; the same as ``heads=[head]``."""
    query: int | str | Sequence[int | str]
    """Query tokens that are pinned: positions from 0, or words such as ``"cat"`` that stand there
    once.
    """
    key: int | str | Sequence[int | str]
    """Key tokens that are pinned: positions from 0, or words such as ``"cat"`` that stand there
    once.
    """
    pinned: Pinned
    """Whether several pinned tokens are shown by the ``"mean"`` (default) or the ``"sum"`` of what
    they have.
    """
    words: bool
    """Whether the pieces of a word are joined: the sum over the word that is looked at, the mean
    over the word that looks. By default not.
    """
    mean_layers: Sequence[int]
    """Layers of which the mean is shown together with ``layer``; by default that layer alone."""
    quantity: Quantity
    """``"weight"`` (default), ``"score"`` for what goes into the softmax, ``"contribution"`` for
    weight times value norm, or another that the record has or ``quantities`` gives.
    """
    quantities: Mapping[str, Any]
    """Further quantities to show, by name: for each layer of the record's stack, or for each stack
    by name such a list, an array ``[query key]`` for all heads together or ``[head query key]``, or
    None where a layer has none.
    """
    comparison: Comparison | Effect
    """What `headscope.compare` or `headscope.effect` found, of which the record is the second; give
    it to `view` in place of the record.
    """
    filter: Filter
    """For a sentence pair: ``"ab"`` for queries of the first text and keys of the second, and so
    on.
    """
    hide_special: bool
    """Whether special tokens are hidden; by default not."""
    sinks: bool
    """Whether keys that take most of the mass are kept; else the rest is renormalised. By default
    kept.
    """
    top_percent: int
    """Percent of each row's attention that is drawn as lines, the strongest first,
    1 to 100; by default as much as is quickly drawn."""
    evidence: Heads
    """What `headscope.heads` found, over this text or over many: labels, measures and the map of
    heads go into the page.
    """
    order: HeadOrder
    """How the overview orders heads: ``"layer"`` (default), ``"kind"``, or ``"sharpness"``."""
    kind: KindName
    """Kind whose heads stand out in the overview, such as ``"next"``; by default all."""
    measure: HeadMeasure
    """What colours a head that is too small for a matrix: ``"kind"`` (default), ``"sharpness"``,
    ``"special"`` ...
    """
    layout: Layout
    """Tokens of the head view in two ``"columns"`` or two ``"rows"``; ``"auto"`` (default) takes
    rows for Chinese and Japanese.
    """
    label: str
    """Pattern whose heads stand out, such as ``"next"``; by default all. This and all below need
    evidence.
    """
    min_score: int
    """Percent that the score of a label must reach for its head to stand out, 0 (default) to
    100.
    """
    sort: str
    """Measure or pattern by which the model view sorts heads, such as ``"entropy"``, highest first;
    ``"-entropy"`` for the lowest first. By default layer and head.
    """
    x: str
    """Measure of the scatter from left to right, or ``"map"`` for the map of heads."""
    y: str
    """Measure of the scatter from bottom to top."""
    links: Sentence | Sequence[Link]
    """Gold links to compare heads with: a `headscope.linguistics.Sentence`, of whose text the
    record is, or any others as ``(dependent tokens, head tokens, label)``, tokens being positions,
    one or several.
    """
    tiles: TileStyle
    """How the model view draws heads: ``"matrices"`` (default), or ``"lines"``, which need tiles of
    80 pixels.
    """
    direction: TextDirection
    """Whether the text view shows what tokens ``"received"`` (default) or what they have
    ``"given"``.
    """
    neurons: NeuronOrder
    """View neuron: ``"model"`` (default) as the model has them, ``"ranked"`` by what they add,
    ``"pairs"`` as rotary positions turn them, or ``"hidden"`` for lines between words.
    """
    vector: NeuronVector
    """View neuron: of the pair that is looked at, the ``"product"`` (default), the ``"query"`` or
    the ``"key"`` is enlarged with its numbers; ``"hidden"`` for no pair.
    """
    zoom: Sequence[float]
    """Part of the matrix that is seen: its first query, its first key, and how many keys; by
    default all of it.
    """
    stretch: bool
    """Whether the colours of the matrix end at its largest weight; by default at 1."""
    per_head: bool
    """Whether the list beside a view names the strongest tokens of each head; by default of their
    mean.
    """
    link_direction: LinkDirection
    """Gold links: ``"dep->head"`` (default) for what dependents look at, or ``"head->dep"``."""
    link_words: LinkWords
    """Words of the list of gold links: ``"both"`` (default), ``"hits"`` or ``"misses"``."""
    tray: Sequence[str | Mapping[str, Any]]
    """Up to six pictures that stand beside each other in view compare, each a line or a dict of
    options: ``"2-0"``, ``"2-0,3 view=matrix"``, ``"7-3 query=store"``, ``{"layer": 7, "head": 3,
    "query": "store"}``.
    """
    beside: Sequence[Record] | Mapping[str, Record]
    """Further records, of another text or another model, whose heads the tray shows beside those of
    this one: they are called ``b``, ``c`` ..., or as a mapping names them, and a picture of one is
    ``"2-0 record=b"``.
    """
    linked: bool
    """Whether pointing at a token of one of these points at it in all; by default it does."""
    theme: Theme
    """``"light"``, ``"dark"``, or ``"auto"`` (default) for what the reader's system says."""
    title: str
    """Title of the page; by default the text."""
    include_layers: Sequence[int]
    """Layers that the page holds; by default all."""
    include_heads: Sequence[int]
    """Heads that the page holds; by default all."""


Link = tuple[int | Sequence[int], int | Sequence[int], str]
"""The tokens of a dependent, those of its head, and how the link is called."""
CHOICES = {
    "view": ViewName,
    "filter": Filter,
    "order": HeadOrder,
    "kind": KindName,
    "tiles": TileStyle,
    "direction": TextDirection,
    "neurons": NeuronOrder,
    "vector": NeuronVector,
    "link_direction": LinkDirection,
    "link_words": LinkWords,
    "theme": Theme,
    "measure": HeadMeasure,
    "pinned": Pinned,
    "layout": Layout,
}
OF_HEADS = (
    "heads",
    "query",
    "key",
    "pinned",
    "mean_layers",
    "layout",
    "quantity",
    "filter",
    "hide_special",
    "sinks",
    "top_percent",
    "comparison",
)
"""Options that say something of the head view; where one is given, the page opens on that."""
QUICK = 2**25
"""Weights of a layer up to which all heads are shown at first."""


def check_options(options: Any) -> None:
    """Raise where an option is unknown or has a value that no page knows.

    Raises:
        PageError: naming the option, what was given and what there is.
    """
    for name in options:
        if name not in PageOptions.__annotations__:
            raise PageError(
                f"view has no option {name!r}; there are {', '.join(PageOptions.__annotations__)}"
            )
    for name, choice in CHOICES.items():
        known = get_args(choice)
        if name in options and options[name] not in known:
            listed = ", ".join(map(repr, known[:-1]))
            raise PageError(f"{name} must be {listed} or {known[-1]!r}, not {options[name]!r}")
    _check_head(options)
    percent = options.get("top_percent", 100)
    if not isinstance(percent, int) or not 1 <= percent <= 100:
        raise PageError(f"top_percent must be a whole number from 1 to 100, not {percent!r}")
    _check_zoom(options.get("zoom"))
    least = options.get("min_score", 0)
    if not isinstance(least, int) or not 0 <= least <= 100:
        raise PageError(f"min_score must be a whole number from 0 to 100 (percent), not {least!r}")
    if not isinstance(options.get("evidence"), Heads | None):
        given = type(options["evidence"]).__name__
        raise PageError(
            f"evidence must be what headscope.heads found, not a {given}; give "
            "evidence=hs.heads(records)"
        )
    if not isinstance(options.get("comparison"), Comparison | Effect | None):
        given = type(options["comparison"]).__name__
        raise PageError(
            f"comparison must be what headscope.compare or effect found, not a {given}; give that "
            "to view"
        )


def _check_zoom(zoom: Any) -> None:
    if zoom is None:
        return
    numbers = list(zoom) if isinstance(zoom, Sequence) and not isinstance(zoom, str) else []
    valid = all(
        isinstance(number, Real) and not isinstance(number, bool) and 0 <= number < inf
        for number in numbers
    )
    if len(numbers) != 3 or not valid or not numbers[2]:
        raise PageError(
            f"zoom must be the first query, the first key and how many keys are seen, not {zoom!r}"
        )


def _check_head(options: Any) -> None:
    if "head" not in options:
        return
    if "heads" in options:
        raise PageError(
            f"head={options['head']!r} and heads={options['heads']!r} were both given; give one "
            "of them"
        )
    if not isinstance(options["head"], Integral):
        raise PageError(
            f"head={options['head']!r}: head is one number; give several as heads=[0, 3]"
        )


def first_selection(
    record: Record, options: PageOptions, held: dict[str, list[int]]
) -> PageSelection:
    """What the page shows first.

    Args:
        record: what the page shows.
        options: checked by `check_options`.
        held: the layers that the page holds, by stack.
    """
    stack = record[options.get("stack", next(iter(held)))]
    if stack.name not in held:
        raise PageError(f"stack={stack.name!r} is shown first, but include_layers= leaves it out")
    heads = held_heads(stack, held[stack.name], options.get("include_heads"))
    return {
        "view": options.get("view") or _opening(options),
        "stack": stack.name,
        "layer": _layer(stack, options.get("layer"), held[stack.name]),
        "heads": _heads(
            stack, [options["head"]] if "head" in options else options.get("heads"), heads
        ),
        "query": _tokens("query", options.get("query", ()), stack.query),
        "key": _tokens("key", options.get("key", ()), stack.key),
        "pinned": options.get("pinned", "mean"),
        "words": options.get("words", False),
        "mean_layers": _mean_layers(stack, options.get("mean_layers", ()), held[stack.name]),
        "quantity": options.get("quantity", "weight"),
        "filter": options.get("filter", "all"),
        "hide_special": options.get("hide_special", False),
        "sinks": options.get("sinks", True),
        "top_percent": options.get("top_percent"),
        "order": options.get("order", "layer"),
        "kind": options.get("kind"),
        "measure": options.get("measure", "kind"),
        "layout": options.get("layout", "auto"),
        "label": options.get("label"),
        "min_score": options.get("min_score", 0),
        "sort": options.get("sort"),
        "x": options.get("x"),
        "y": options.get("y"),
        "tiles": options.get("tiles", "matrices"),
        "direction": options.get("direction", "received"),
        "neurons": options.get("neurons", "model"),
        "vector": options.get("vector", "product"),
        "zoom": None
        if options.get("zoom") is None
        else [float(number) for number in options["zoom"]],
        "stretch": bool(options.get("stretch", False)),
        "per_head": bool(options.get("per_head", False)),
        "link_direction": options.get("link_direction", "dep->head"),
        "link_words": options.get("link_words", "both"),
        "tray": [],
        "linked": bool(options.get("linked", True)),
        "theme": options.get("theme", "auto"),
    }


def _opening(options: PageOptions) -> ViewName:
    """The view that a page opens on where none is chosen."""
    if options.get("tray"):
        return "compare"
    return "head" if set(OF_HEADS) & set(options) else "overview"


def held_layers(record: Record, numbers: Sequence[int] | None) -> dict[str, list[int]]:
    """The layers that go into the page, by stack; stacks without any of them are left out."""
    if numbers is None:
        return {name: [layer.layer for layer in stack] for name, stack in record.stacks.items()}
    known = {layer.layer for stack in record.stacks.values() for layer in stack}
    if set(numbers) - known or not numbers:
        raise PageError(
            f"include_layers={list(numbers)}: this record has the layers {sorted(known)}; choose "
            "at least one of them"
        )
    found = {
        name: [layer.layer for layer in stack if layer.layer in numbers]
        for name, stack in record.stacks.items()
    }
    return {name: layers for name, layers in found.items() if layers}


def held_heads(stack: Stack, layers: Collection[int], numbers: Sequence[int] | None) -> list[int]:
    """The heads of a stack that go into the page: those that one of these layers holds."""
    there = sorted({head for layer, head in stack.held_heads if layer in layers})
    if numbers is None:
        return there
    _check_numbers("include_heads", numbers, there, f"stack {stack.name!r} has heads")
    return sorted(set(numbers))


def _layer(stack: Stack, wanted: int | None, held: list[int]) -> int:
    if wanted is None:
        return held[0]
    if wanted not in held:
        stack.layer(wanted)
        raise PageError(f"layer={wanted} is shown first, but include_layers= leaves it out")
    return wanted


def _heads(stack: Stack, wanted: Any, held: list[int]) -> list[int] | None:
    if isinstance(wanted, Integral):
        wanted = [int(wanted)]
    if wanted is None:
        quick = len(held) * len(stack.query) * len(stack.key) <= QUICK
        return None if quick else held[:1]
    there = sorted({head for _, head in stack.held_heads})
    _check_numbers("heads", wanted, there, f"stack {stack.name!r} has heads")
    if set(wanted) - set(held):
        raise PageError(
            f"heads={list(wanted)} are shown first, but include_heads= leaves some of them out"
        )
    return sorted(set(wanted))


def _mean_layers(stack: Stack, wanted: Sequence[int], held: Collection[int]) -> list[int]:
    if wanted:
        _check_numbers(
            "mean_layers", wanted, held, f"of stack {stack.name!r} the page holds layers"
        )
    return sorted(set(wanted))


def _tokens(side: str, wanted: Any, tokens: Tokens) -> list[int]:
    numbers = token_positions(side, wanted, tokens.pieces, (tokens.labels, tokens.continues))
    if numbers:
        _check_numbers(side, numbers, range(len(tokens)), f"there are the {side} tokens")
    return sorted(set(numbers))


def _check_numbers(name: str, given: Any, known: Collection[int], there_are: str) -> None:
    if isinstance(given, str) or not given or set(given) - set(known):
        shown = repr(given) if isinstance(given, str) else list(given)
        raise PageError(f"{name}={shown}: {there_are} {_listed(known)}; choose at least one")


def _listed(numbers: Collection[int]) -> str:
    if list(numbers) == list(range(len(numbers))):
        return f"0 to {len(numbers) - 1}"
    return ", ".join(map(str, numbers))
