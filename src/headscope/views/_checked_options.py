"""Checked options: what a page shows when it opens, and which layers and heads it holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import inf
from numbers import Integral, Real
from typing import Any

from headscope.comparison import Comparison, Effect
from headscope.errors import PageError, check_option_names
from headscope.patterns import Heads
from headscope.record import Record, Stack
from headscope.views.figure_options import FigureOptions
from headscope.views.options import MOVED_VIEWS, PLAIN, PageOptions, StartOptions, declared

OBJECTS: Mapping[str, tuple[Any, str, str]] = {
    "evidence": (Heads, "what headscope.heads found", "give evidence=hs.heads(records)"),
    "comparison": (Comparison | Effect, "what hs.compare or effect found", "give that to view"),
    "title": (str, "text", "give title='...'"),
    "quantities": (Mapping, "arrays by name", "give quantities={'name': arrays}"),
}
"""What options of objects must be, and what to give."""


def check_options(options: Any) -> None:
    """Raise where an option is unknown, or has a value that no page accepts.

    Raises:
        PageError: naming the option, what was given and what there is.
    """
    for name in options:
        if name in FigureOptions.__annotations__ and name not in PageOptions.__annotations__:
            drawn = f"hs.figure(record, {name}={options[name]!r})"
            raise PageError(f"A page has no {name}; figures have it: {drawn}")
    check_option_names("view", options, PageOptions.__annotations__, PageError)
    for name, option in {**declared(StartOptions), **PLAIN}.items():
        value = options.get(name)
        if value is not None and (name != "view" or value not in tuple(MOVED_VIEWS)):
            option.check(value, PageError)
    check_head(options)
    _check_zoom(options.get("zoom"))
    for name, (kinds, what, advice) in OBJECTS.items():
        if not isinstance(options.get(name), kinds | None):
            given = type(options[name]).__name__
            raise PageError(f"{name} must be {what}, not a {given}; {advice}")


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
        raise PageError(f"zoom must be the first query, the first key and a count, not {zoom!r}")


def check_head(options: Any) -> None:
    """Raise where one head and several were given, or one that is not a number."""
    head = options.get("head", 0)
    if "head" in options and "heads" in options:
        raise PageError(f"head={head!r} and heads={options['heads']!r}: give one of them")
    if not isinstance(head, Integral):
        raise PageError(f"head={head!r}: head is one number; give several as heads=[0, 3]")


def held_layers(record: Record, wanted: Any) -> dict[str, list[int]]:
    """Numbers of the layers that go into the page, by stack; stacks without any are left out."""
    layers = {name: [layer.layer for layer in stack] for name, stack in record.stacks.items()}
    if wanted is None:
        return layers
    # A number is refused only if no stack has it: an encoder may be deeper than its decoder.
    known = sorted(set().union(*layers.values()))
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


def listed_numbers(given: Any, every: Collection[int]) -> list[Any]:
    """What an option of several numbers was given, as a list: one number, several, or True for all
    of them; what is none of these is the only element, for the check to refuse.
    """
    if given is None or isinstance(given, bool):
        return list(every) if given else []
    if isinstance(given, str) or not hasattr(given, "__len__"):
        return [int(given) if isinstance(given, Integral) else given]
    return list(given)


def check_numbers(name: str, given: Any, known: Collection[int], there_are: str) -> None:
    """Raise where numbers are not some of those that there are.

    Raises:
        PageError: saying what was given, and what there is.
    """
    if not given or any(each not in known for each in given):
        raise PageError(f"{name}={list(given)}: {there_are} {listed(known)}; choose at least one")


def listed(numbers: Collection[int]) -> str:
    """Numbers in words: from the first to the last where they are all of these."""
    if list(numbers) == list(range(len(numbers))):
        return f"0 to {len(numbers) - 1}"
    return ", ".join(map(str, numbers))
