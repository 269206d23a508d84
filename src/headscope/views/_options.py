"""What a page shows when it opens, and what it holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypedDict, get_args

from headscope.comparison import Comparison, Effect
from headscope.errors import PageError
from headscope.linguistics import Sentence
from headscope.patterns import Heads
from headscope.record import Record, Stack
from headscope.views._contract import Filter, PageSelection, Quantity, Theme, ViewName


class PageOptions(TypedDict, total=False):
    """Options of `view`; each is also a part of the page's address, and of the call that the page shows."""

    view: ViewName
    """``"head"`` (default), ``"model"``, ``"matrix"``, ``"text"``, ``"neuron"``, ``"pair"``, or ``"scatter"`` where
    there is evidence."""
    stack: str
    """Stack that is shown first; by default the first one."""
    layer: int
    """Layer that is shown first; by default the first one."""
    heads: Sequence[int]
    """Heads that are shown first; by default all, or one where all would be slow."""
    head: int
    """One head that is shown first; the same as ``heads=[head]``."""
    query: int | Sequence[int]
    """Query tokens that are pinned."""
    key: int | Sequence[int]
    """Key tokens that are pinned."""
    quantity: Quantity
    """``"weight"`` (default), ``"score"`` for what goes into the softmax, ``"contribution"`` for weight times value
    norm, or another that the record has or ``quantities`` gives."""
    quantities: Mapping[str, Any]
    """Further quantities to show, by name: for each layer of the record's stack, or for each stack by name such a
    list, an array ``[query key]`` for all heads together or ``[head query key]``, or None where a layer has none."""
    comparison: Comparison | Effect
    """What `headscope.compare` or `headscope.effect` found, of which the record is the second; give it to `view` in
    place of the record."""
    filter: Filter
    """For a sentence pair: ``"ab"`` for queries of the first text and keys of the second, and so on."""
    mute: bool
    """Whether special tokens are left out; by default not."""
    sinks: bool
    """Whether keys that take most of the mass are kept; else the rest is renormalised. By default kept."""
    share: int
    """Percent of each row's mass that is drawn as lines, 1 to 100; by default as much as is quickly drawn."""
    evidence: Heads
    """What `headscope.heads` found, over this text or over many: labels, measures and the map of heads go into the
    page."""
    label: str
    """Pattern whose heads stand out, such as ``"next"``; by default all. This and all below need evidence."""
    least: int
    """Percent that the score of a label must reach for its head to stand out, 0 (default) to 100."""
    sort: str
    """Measure or pattern by which the model view sorts heads, such as ``"entropy"``, highest first; ``"-entropy"`` for
    the lowest first. By default layer and head."""
    x: str
    """Measure of the scatter from left to right, or ``"map"`` for the map of heads."""
    y: str
    """Measure of the scatter from bottom to top."""
    links: Sentence | Sequence[Link]
    """Gold links to compare heads with: a `headscope.linguistics.Sentence`, of whose text the record is, or any others
    as ``(dependent tokens, head tokens, label)``, tokens being positions, one or several."""
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
CHOICES = {"view": ViewName, "filter": Filter, "theme": Theme}
QUICK = 2**25
"""Weights of a layer up to which all heads are shown at first."""


def check_options(options: Any) -> None:
    """Raise where an option is unknown or has a value that no page knows.

    Raises:
        PageError: naming the option, what was given and what there is.
    """
    for name in options:
        if name not in PageOptions.__annotations__:
            raise PageError(f"view has no option {name!r}; there are {', '.join(PageOptions.__annotations__)}")
    for name, choice in CHOICES.items():
        known = get_args(choice)
        if name in options and options[name] not in known:
            listed = ", ".join(map(repr, known[:-1]))
            raise PageError(f"{name} must be {listed} or {known[-1]!r}, not {options[name]!r}")
    if "head" in options and "heads" in options:
        raise PageError(f"head={options['head']!r} and heads={options['heads']!r} were both given; give one of them")
    share = options.get("share", 100)
    if not isinstance(share, int) or not 1 <= share <= 100:
        raise PageError(f"share must be a whole number from 1 to 100 (percent), not {share!r}")
    least = options.get("least", 0)
    if not isinstance(least, int) or not 0 <= least <= 100:
        raise PageError(f"least must be a whole number from 0 to 100 (percent), not {least!r}")
    if not isinstance(options.get("evidence"), Heads | None):
        given = type(options["evidence"]).__name__
        raise PageError(f"evidence must be what headscope.heads found, not a {given}; give evidence=hs.heads(records)")
    if not isinstance(options.get("comparison"), Comparison | Effect | None):
        given = type(options["comparison"]).__name__
        raise PageError(f"comparison must be what headscope.compare or effect found, not a {given}; give that to view")


def first_selection(record: Record, options: PageOptions, held: dict[str, list[int]]) -> PageSelection:
    """What the page shows first.

    Args:
        record: what the page shows.
        options: checked by `check_options`.
        held: the layers that the page holds, by stack.
    """
    stack = record[options.get("stack", next(iter(held)))]
    if stack.name not in held:
        raise PageError(f"stack={stack.name!r} is shown first, but include_layers= leaves it out")
    heads = held_heads(stack, options.get("include_heads"))
    return {
        "view": options.get("view", "head"),
        "stack": stack.name,
        "layer": _layer(stack, options.get("layer"), held[stack.name]),
        "heads": _heads(stack, [options["head"]] if "head" in options else options.get("heads"), heads),
        "query": _tokens("query", options.get("query", ()), len(stack.query)),
        "key": _tokens("key", options.get("key", ()), len(stack.key)),
        "quantity": options.get("quantity", "weight"),
        "filter": options.get("filter", "all"),
        "mute": options.get("mute", False),
        "sinks": options.get("sinks", True),
        "share": options.get("share"),
        "label": options.get("label"),
        "least": options.get("least", 0),
        "sort": options.get("sort"),
        "x": options.get("x"),
        "y": options.get("y"),
        "theme": options.get("theme", "auto"),
    }


def held_layers(record: Record, numbers: Sequence[int] | None) -> dict[str, list[int]]:
    """The layers that go into the page, by stack; stacks without any of them are left out."""
    if numbers is None:
        return {name: [layer.layer for layer in stack] for name, stack in record.stacks.items()}
    known = {layer.layer for stack in record.stacks.values() for layer in stack}
    if set(numbers) - known or not numbers:
        raise PageError(
            f"include_layers={list(numbers)}: this record has the layers {sorted(known)}; choose at least one of them"
        )
    found = {name: [layer.layer for layer in stack if layer.layer in numbers] for name, stack in record.stacks.items()}
    return {name: layers for name, layers in found.items() if layers}


def held_heads(stack: Stack, numbers: Sequence[int] | None) -> list[int]:
    """The heads of a stack that go into the page."""
    if numbers is None:
        return list(range(stack.heads))
    _check_numbers("include_heads", numbers, range(stack.heads), f"stack {stack.name!r} has heads")
    return sorted(set(numbers))


def _layer(stack: Stack, wanted: int | None, held: list[int]) -> int:
    if wanted is None:
        return held[0]
    if wanted not in held:
        stack.layer(wanted)
        raise PageError(f"layer={wanted} is shown first, but include_layers= leaves it out")
    return wanted


def _heads(stack: Stack, wanted: Sequence[int] | None, held: list[int]) -> list[int] | None:
    if wanted is None:
        quick = len(held) * len(stack.query) * len(stack.key) <= QUICK
        return None if quick else held[:1]
    _check_numbers("heads", wanted, range(stack.heads), f"stack {stack.name!r} has heads")
    if set(wanted) - set(held):
        raise PageError(f"heads={list(wanted)} are shown first, but include_heads= leaves some of them out")
    return sorted(set(wanted))


def _tokens(side: str, wanted: int | Sequence[int], count: int) -> list[int]:
    numbers = [wanted] if isinstance(wanted, int) else list(wanted)
    if numbers:
        _check_numbers(side, numbers, range(count), f"there are the {side} tokens")
    return sorted(set(numbers))


def _check_numbers(name: str, given: Sequence[int], known: Collection[int], there_are: str) -> None:
    if not given or set(given) - set(known):
        raise PageError(f"{name}={list(given)}: {there_are} 0 to {len(known) - 1}; choose at least one")
