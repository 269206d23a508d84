"""Checked options: what a page shows when it opens, and which layers and heads it holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import inf
from numbers import Integral, Real
from typing import Any, cast

from headscope.comparison import Comparison, Effect
from headscope.errors import PageError
from headscope.patterns import Heads
from headscope.record import Record, Stack, Tokens
from headscope.views._token_words import token_positions
from headscope.views.figure_options import FigureOptions
from headscope.views.options import (
    DEFAULTS,
    MOVED_VIEWS,
    NUMBERS_OF,
    PLAIN,
    Option,
    PageOptions,
    PageSelection,
    StartOptions,
    ViewName,
    declared,
)

OF_HEADS = (
    "heads",
    "query",
    "key",
    "pinned",
    "layout",
    "quantity",
    "filter",
    "hide_special",
    "sinks",
    "comparison",
)
"""Options that belong to the head view; where one of them is given, the page opens on that view."""
OBJECTS: Mapping[str, tuple[Any, str, str]] = {
    "evidence": (Heads, "what headscope.heads found", "give evidence=hs.heads(records)"),
    "comparison": (
        Comparison | Effect,
        "what headscope.compare or effect found",
        "give that to view",
    ),
    "quantities": (Mapping, "arrays by name", "give quantities={'name': arrays}"),
}
"""What options of objects must be, and what to give."""
QUICK = 2**25
"""Number of weights in a layer up to which all its heads are shown at first."""


def check_options(options: Any) -> None:
    """Raise where an option is unknown, or has a value that no page accepts.

    Raises:
        PageError: naming the option, what was given and what there is.
    """
    for name in options:
        if name in PageOptions.__annotations__:
            continue
        if name in FigureOptions.__annotations__:
            drawn = f"hs.figure(record, {name}={options[name]!r})"
            raise PageError(f"A page has no {name}; figures have it: {drawn}")
        raise PageError(
            f"view has no option {name!r}; there are {', '.join(PageOptions.__annotations__)}"
        )
    for name, option in {**declared(StartOptions), **PLAIN}.items():
        if name in options:
            _check_plain(option, options[name])
    _check_head(options)
    _check_zoom(options.get("zoom"))
    for name, (kinds, what, advice) in OBJECTS.items():
        if not isinstance(options.get(name), kinds | None):
            given = type(options[name]).__name__
            raise PageError(f"{name} must be {what}, not a {given}; {advice}")


def _check_plain(option: Option, given: Any) -> None:
    """Raise where a value is not one that the option accepts."""
    # None means "not given" only for options whose default is None.
    if given is None and option.default is not None and option.default.value is None:
        return
    name, choices = option.name, option.choices
    if name == "view" and given in tuple(MOVED_VIEWS):
        return
    if choices and given not in choices:
        listed = ", ".join(map(repr, choices[:-1]))
        raise PageError(f"{name} must be {listed} or {choices[-1]!r}, not {given!r}")
    if option.default is None or option.default.between is None:
        return
    low, high = option.default.between
    if not isinstance(given, int) or not low <= given <= high:
        raise PageError(f"{name} must be a whole number from {low} to {high}, not {given!r}")


def _check_zoom(zoom: Any) -> None:
    if zoom is None:
        return
    numbers = list(zoom) if isinstance(zoom, Sequence) and not isinstance(zoom, str) else []
    # A bool counts as a number in Python. NaN fails here too: it compares as false to everything.
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
    """The selection with which a page opens.

    Args:
        record: the record that the page shows.
        options: options that `check_options` has accepted.
        held: numbers of the layers that the page holds, by stack.
    """
    stack = record[options.get("stack", next(iter(held)))]
    if stack.name not in held:
        raise PageError(f"stack={stack.name!r} is shown first, but include_layers= leaves it out")
    layers = held[stack.name]
    heads = held_heads(stack, layers, options.get("include_heads"))
    plain = {
        name: _plain(option, options.get(name))
        for name, option in PLAIN.items()
        if name not in NUMBERS_OF
    }
    given = {name: options.get(name) for name in NUMBERS_OF}
    if "head" in options:
        given["heads"] = [options["head"]]
    chosen = {name: _kept_numbers(name, given[name], stack, heads) for name in NUMBERS_OF}
    # All heads of a long text would make the first picture slow: it then opens with one of them.
    if given["heads"] is None and len(heads) * len(stack.query) * len(stack.key) > QUICK:
        chosen["heads"] = heads[:1]
    kept = {
        "view": options.get("view") or _opening(options),
        "stack": stack.name,
        "layer": _layer(stack, options.get("layer"), layers),
        **plain,
        **chosen,
        # The lines of the tray are checked when the page knows all of its records.
        "tray": [],
        **MOVED_VIEWS.get(str(options.get("view")), {}),
    }
    return cast(PageSelection, kept)


def _plain(option: Option, given: Any) -> Any:
    """The value of an option as a page keeps it: the default where none is given, and booleans and
    lists as JSON has them.
    """
    if given is None:
        given = DEFAULTS[option.name]
    # NumPy's booleans and tuples of its numbers are accepted, but JSON has neither.
    if option.type is bool:
        return bool(given)
    if isinstance(given, Sequence) and not isinstance(given, str):
        return [float(number) for number in given]
    return given


def _opening(options: PageOptions) -> ViewName:
    """The view that a page opens on where none is chosen."""
    if options.get("tray"):
        return "compare"
    return "head" if set(OF_HEADS) & set(options) else "overview"


def held_layers(record: Record, wanted: Any) -> dict[str, list[int]]:
    """Numbers of the layers that go into the page, by stack; stacks without any are left out."""
    layers = {name: [layer.layer for layer in stack] for name, stack in record.stacks.items()}
    if wanted is None:
        return layers
    # A number is refused only if no stack has it: an encoder may be deeper than its decoder.
    known = sorted({number for numbers in layers.values() for number in numbers})
    wanted = listed_numbers(wanted, known)
    check_numbers("include_layers", wanted, known, "this record has the layers")
    held = {name: [each for each in own if each in wanted] for name, own in layers.items()}
    return {name: numbers for name, numbers in held.items() if numbers}


def held_heads(stack: Stack, layers: Collection[int], wanted: Any) -> list[int]:
    """Numbers of the heads of a stack that go into the page: those that one of the layers holds."""
    known = sorted({head for layer, head in stack.held_heads if layer in layers})
    if wanted is None:
        return known
    wanted = listed_numbers(wanted, known)
    check_numbers("include_heads", wanted, known, f"stack {stack.name!r} has heads")
    return sorted(set(wanted))


def _layer(stack: Stack, wanted: int | None, held: list[int]) -> int:
    if wanted is None:
        return held[0]
    if wanted not in held:
        # Raises for a layer that the record lacks, and lists those that it has.
        stack.layer(wanted)
        raise PageError(f"layer={wanted} is shown first, but include_layers= leaves it out")
    return wanted


def _kept_numbers(name: str, wanted: Any, stack: Stack, held: list[int]) -> list[int] | None:
    """Numbers of the heads or tokens that an option names; its default where it is not given.

    Args:
        name: name of the option.
        wanted: the value that was given, or None.
        stack: the stack that is shown first.
        held: numbers of its heads that the page holds.
    """
    kind = NUMBERS_OF[name]
    if wanted is None:
        default = DEFAULTS[name]
        return None if default is None else list(default)
    if kind == "heads":
        return _heads(name, stack, wanted, held)
    return _tokens(name, wanted, stack.query if kind == "query" else stack.key)


def _heads(name: str, stack: Stack, wanted: Any, held: list[int]) -> list[int]:
    known = sorted({head for _, head in stack.held_heads})
    wanted = listed_numbers(wanted, known)
    check_numbers(name, wanted, known, f"stack {stack.name!r} has heads")
    if set(wanted) - set(held):
        raise PageError(
            f"{name}={list(wanted)} are shown first, but include_heads= leaves some of them out"
        )
    return sorted(set(wanted))


def listed_numbers(given: Any, every: Collection[int]) -> list[Any]:
    """What an option of several numbers was given, as a list: one number, several, or True for all
    of them; what is none of these is the only element, for the check to refuse.
    """
    if given is None or isinstance(given, bool):
        return list(every) if given else []
    if isinstance(given, str) or not hasattr(given, "__len__"):
        return [int(given) if isinstance(given, Integral) else given]
    return list(given)


def _tokens(name: str, wanted: Any, tokens: Tokens) -> list[int]:
    numbers = token_positions(name, wanted, tokens.pieces, tokens.labels, words=tokens.whole_words)
    if numbers:
        there_are = f"there are the {NUMBERS_OF[name]} tokens"
        check_numbers(name, numbers, range(len(tokens)), there_are)
    return sorted(set(numbers))


def check_numbers(name: str, given: Any, known: Collection[int], there_are: str) -> None:
    """Raise where numbers are not some of those that there are.

    Raises:
        PageError: saying what was given, and what there is.
    """
    if not given or any(each not in known for each in given):
        raise PageError(f"{name}={list(given)}: {there_are} {_listed(known)}; choose at least one")


def _listed(numbers: Collection[int]) -> str:
    if list(numbers) == list(range(len(numbers))):
        return f"0 to {len(numbers) - 1}"
    return ", ".join(map(str, numbers))
