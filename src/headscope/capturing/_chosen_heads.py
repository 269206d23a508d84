"""Heads chosen with ``capture(heads=...)``; all others are not kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from headscope.errors import CaptureError

HOW = (
    "give pairs of layer and head, heads=[(12, 7), (3, 0)], or with the stack first, "
    "heads=[('cross', 3, 0)]"
)


class NoSuchHeadsError(CaptureError):
    """Heads that the model does not have, whatever its input is."""


@dataclass(frozen=True)
class ChosenHeads:
    """The heads of ``capture(heads=...)``.

    Args:
        heads: for each head the name of its stack, where one was given, its layer and its number.
    """

    heads: tuple[tuple[str | None, int, int], ...]

    def of_layer(self, layer: int, stack: str, *, most: int) -> tuple[int, ...]:
        """Numbers of the chosen heads of a layer with so many heads, ascending."""
        heads = {
            head for name, number, head in self.heads if number == layer and name in (None, stack)
        }
        return tuple(sorted(head for head in heads if head < most))

    def may_be(self, layer: int, *, most: int) -> set[tuple[int, ...]]:
        """All choices of heads that are possible for a layer whose stack is not known yet."""
        # The empty name means any stack that is not named by one of the heads.
        stacks = {name or "" for name, _, _ in self.heads} | {""}
        return {heads for stack in stacks if (heads := self.of_layer(layer, stack, most=most))}

    def check(self, there: Mapping[str, Mapping[int, int]]) -> None:
        """Raise where one of the heads does not exist.

        Args:
            there: the number of heads of each layer, by stack.

        Raises:
            NoSuchHeadsError: naming it, and the layers or heads that there are.
        """
        for name, layer, head in self.heads:
            given = f"heads={[(layer, head) if name is None else (name, layer, head)]}"
            if name is not None and name not in there:
                raise NoSuchHeadsError(
                    f"{given}: this model has the stacks {', '.join(map(repr, there))}"
                )
            stacks = list(there.values()) if name is None else [there[name]]
            counts = [layers[layer] for layers in stacks if layer in layers]
            if not counts:
                numbers = sorted(set().union(*stacks))
                raise NoSuchHeadsError(
                    f"{given}: there are the layers {', '.join(map(str, numbers))}"
                )
            # A head without a stack is looked for in all stacks, and must exist in at least one.
            if head >= max(counts):
                raise NoSuchHeadsError(f"{given}: layer {layer} has heads 0 to {max(counts) - 1}")


def parse_heads(given: Any) -> ChosenHeads | None:
    """The option ``heads``; None where all are kept.

    Raises:
        CaptureError: where it is not a list of layers and heads.
    """
    if given is None:
        return None
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise CaptureError(f"heads={given!r}: {HOW}")
    heads = tuple(_parsed(each) for each in given)
    if not heads:
        raise CaptureError(f"heads=[] would keep nothing; {HOW}")
    return ChosenHeads(heads)


def _parsed(given: Any) -> tuple[str | None, int, int]:
    # A string can be iterated like a pair, but holds letters and not numbers.
    is_listed = isinstance(given, Iterable) and not isinstance(given, str | bytes)
    parts = list(given) if is_listed else []
    stack = parts.pop(0) if len(parts) == 3 and isinstance(parts[0], str) else None
    if len(parts) != 2 or not all(map(_is_number, parts)):
        raise CaptureError(f"heads holds {given!r}: {HOW}")
    return stack, int(parts[0]), int(parts[1])


def _is_number(given: Any) -> bool:
    """Whether this is a whole number of at least 0; NumPy's integers are accepted."""
    # True is an integer in Python, and would mean layer or head 1.
    return isinstance(given, Integral) and not isinstance(given, bool) and given >= 0
