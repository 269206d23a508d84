"""Which heads of a model the attention on a picture is the mean of."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from headscope.errors import RecordError
from headscope.record import Stack

Cell = tuple[int, int]
"""Layer and head."""


@dataclass(frozen=True)
class HeadChoice:
    """Heads that were asked for.

    Args:
        layers: numbers; None for all.
        numbers: of heads, in each of the layers; None for all.
        cells: layer and head of each, in place of both.
    """

    layers: tuple[int, ...] | None = None
    numbers: tuple[int, ...] | None = None
    cells: tuple[Cell, ...] = ()

    def of(self, stack: Stack) -> tuple[Cell, ...]:
        """Layer and head of those that were asked for.

        Raises:
            RecordError: where the model does not have one of them.
        """
        there = {(layer.layer, head) for layer in stack for head in layer.head_numbers}
        asked = self.cells or self._cells_in(there)
        missing = next((cell for cell in asked if cell not in there), None)
        if missing is not None:
            raise RecordError(
                f"The model has no head {missing[0]}-{missing[1]} among those kept; stack "
                f"{stack.name!r} has layers {_range({layer for layer, _ in there})} and heads "
                f"{_range({head for _, head in there})}"
            )
        return tuple(dict.fromkeys(asked))

    def _cells_in(self, there: Collection[Cell]) -> tuple[Cell, ...]:
        layers = self.layers
        if layers is None:
            layers = tuple(sorted({layer for layer, _ in there}))
        asked: list[Cell] = []
        for layer in layers:
            heads = self.numbers
            if heads is None:
                # A layer that does not exist has one head that does not exist, so that this is
                # reported.
                heads = tuple(sorted(head for at, head in there if at == layer)) or (0,)
            asked += [(layer, head) for head in heads]
        return tuple(asked)


def parse_choice(layers: Any, heads: Any) -> HeadChoice:
    """Heads as they are given: numbers, pairs of layer and head, or ``"12-7"``.

    Raises:
        RecordError: where they are none of these, a list is empty, or pairs stand among layers.
    """
    wanted = None if layers is None else tuple(_parsed(layer)[-1] for layer in _listed(layers))
    if heads is None:
        return HeadChoice(wanted)
    given = [_parsed(head) for head in _listed(heads)]
    cells = [head for head in given if len(head) == 2]
    if not cells:
        return HeadChoice(wanted, tuple(head[0] for head in given))
    if wanted is not None or len(cells) < len(given):
        raise RecordError(
            "heads holds pairs of layer and head; leave out layers and heads without a layer"
        )
    return HeadChoice(cells=tuple((head[0], head[1]) for head in cells))


def _listed(given: Any) -> list[Any]:
    listed = [given] if isinstance(given, int | str) else list(given)
    if not listed:
        raise RecordError("layers or heads is an empty list; give numbers, or leave it out for all")
    return listed


def _parsed(head: Any) -> Sequence[int]:
    """The number of a head, or layer and head."""
    parts = head
    if isinstance(head, str):
        parts = head.split("-")
    elif isinstance(head, int):
        parts = [head]
    try:
        numbers = [int(part) for part in parts]
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) in (1, 2):
        return numbers
    raise RecordError(f"Expected a head such as 7, (12, 7) or '12-7', got {head!r}")


def _range(numbers: Collection[int]) -> str:
    return f"{min(numbers)} to {max(numbers)}"
