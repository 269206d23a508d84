"""The head that finds the antecedents of most mentions of one kind."""

from __future__ import annotations

from dataclasses import dataclass, fields

from headscope.studies.shared._chosen_head import shown


@dataclass(frozen=True, kw_only=True)
class AntecedentHead:
    """The head that answers most questions of one kind right.

    Shares lie between 0 and 1; NaN, or None, where there is nothing to tell.

    Args:
        kind: of the mentions that ask: all, pronoun, proper, nominal, or a group of passages.
        candidates: one of `CANDIDATES`.
        count: how many questions.
        layer: of the head that is best on all documents, measured on them too, as published numbers
            are.
        head: its number.
        accuracy: share of questions that it answers right.
        low: lower end of the interval over documents.
        high: its upper end.
        nearest: share that taking the nearest mention answers right.
        head_match: the nearest with the same head word, where there is one.
        sieves: see `headscope.linguistics.sieves`.
        held_out_layer: of the head that is best on one half of the documents, most often over all
            splits.
        held_out_head: its number.
        held_out_count: how many questions are measured in each split: all, each by the head of the
            other half.
        held_out_accuracy: share of these that what was chosen on the other half answers right, mean
            over splits.
        held_out_low: lower end of its interval over documents, the choices held fixed.
        held_out_high: upper end.
        held_out_spread: standard deviation of the share over splits.
        held_out_chosen: how often that head was chosen, of two choices a split.
        held_out_above: how far the chosen heads are above the nearest mention, mean over splits.
        held_out_above_low: lower end of the interval of that difference over documents.
        held_out_above_high: upper end.
        held_out_above_spread: standard deviation of the difference over splits.
        held_out_nearest: share that the nearest mention answers right.
        p: of the chosen heads not being above the nearest mention, paired t-test over documents.
        p_corrected: the same, corrected for all kinds tried.
    """

    kind: str
    candidates: str
    count: int
    layer: int
    head: int
    accuracy: float
    low: float
    high: float
    nearest: float
    head_match: float
    sieves: float
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
    held_out_nearest: float
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


FIELDS = tuple(field.name for field in fields(AntecedentHead))
