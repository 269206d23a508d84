"""The best head on all texts, and the one that was chosen on half of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any


def shown(layer: int | None, head: int | None) -> str:
    """A head as printed, layer first, both from 0."""
    return "-" if layer is None else f"{layer}-{head}"


@dataclass(frozen=True, kw_only=True)
class ChosenHead:
    """The best head of one kind of question: on all documents, and held out.

    Shares lie between 0 and 1; NaN, or None, where there is nothing to tell.

    Args:
        count: how many questions.
        layer: of the head that is best on all documents, measured on them too, as published numbers
            are.
        head: its number.
        accuracy: share of questions that it answers right.
        low: lower end of the interval over documents; texts where these are not known.
        high: its upper end.
        held_out_layer: of the head that is best on one half of the documents, most often over all
            splits.
        held_out_head: its number.
        held_out_count: how many questions are measured in each split: all, each by the head of the
            other half.
        held_out_accuracy: share of these that what was chosen on the other half answers right, mean
            over splits.
        held_out_low: lower end of its interval over documents, which allows for the choice.
        held_out_high: upper end.
        held_out_spread: standard deviation of the share over splits.
        held_out_chosen: how often that head was chosen, of two choices a split.
        held_out_above: how far the chosen heads are above the rule that takes no head, mean over
            splits.
        held_out_above_low: lower end of the interval of that difference over documents.
        held_out_above_high: upper end.
        held_out_above_spread: standard deviation of the difference over splits.
        p: of the chosen heads not being above the rule, see `headscope.evidence.choice.chosen`.
        p_corrected: the same, corrected for everything that was asked.
    """

    count: int
    layer: int
    head: int
    accuracy: float
    low: float
    high: float
    held_out_layer: int | None
    held_out_head: int | None
    held_out_count: int
    held_out_accuracy: float
    held_out_low: float
    held_out_high: float
    held_out_spread: float
    held_out_chosen: float
    held_out_above: float
    held_out_above_low: float
    held_out_above_high: float
    held_out_above_spread: float
    p: float
    p_corrected: float

    @property
    def place(self) -> str:
        """The head as printed, layer first, both from 0."""
        return shown(self.layer, self.head)

    @property
    def held_out_place(self) -> str:
        """The head that was chosen on the other half, as printed."""
        return shown(self.held_out_layer, self.held_out_head)


def fields_of(kind: type[ChosenHead], first: Sequence[str]) -> tuple[str, ...]:
    """Names of the columns of a kind of head: those that say what was asked first."""
    # Fields of a class that inherits come after those that it inherits, which tell less.
    names = [field.name for field in fields(kind)]
    return (*first, *(name for name in names if name not in first))


def places_of(cells: Sequence[tuple[int, int]], best: int, held: int | None) -> dict[str, Any]:
    """Layer and head by their names in results, of two numbers in ``cells``; None where none was
    chosen.
    """
    layer, head = cells[best]
    held_layer, held_head = (None, None) if held is None else cells[held]
    return {"layer": layer, "head": head, "held_out_layer": held_layer, "held_out_head": held_head}


def columns_of(
    fields: Sequence[str], listed: Sequence[Any], twins: Sequence[Any] | None
) -> dict[str, list[Any]]:
    """Heads as a table, one list for each column.

    Args:
        fields: names of the columns.
        listed: a line each.
        twins: the same of a model with random weights, for ``random_accuracy`` and
            ``random_held_out_accuracy``.
    """
    columns = {name: [getattr(each, name) for each in listed] for name in fields}
    if twins is not None:
        for name in ("accuracy", "held_out_accuracy"):
            columns[f"random_{name}"] = [getattr(each, name) for each in twins]
    return columns
