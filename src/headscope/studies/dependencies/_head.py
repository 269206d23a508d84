"""The head that names the head of most words of one relation."""

from __future__ import annotations

from dataclasses import dataclass, fields

from headscope.studies.shared._chosen_head import shown


@dataclass(frozen=True, kw_only=True)
class RelationHead:
    """The head that names the head of most words of one relation.

    Shares lie between 0 and 1; NaN, or None, where there is nothing to tell.

    Args:
        relation: which words; also all, all but punctuation, and of these all but the root.
        score: one of `SCORES`.
        stanford: the relation of the Penn Treebank that is next to it.
        count: how many words.
        layer: of the head that is best on all sentences, measured on them too, as published numbers
            are.
        head: its number.
        direction: who looks at whom.
        accuracy: share of words whose head it names.
        low: lower end of the interval over documents; sentences where these are not known.
        high: its upper end.
        offset: the best fixed offset on all sentences.
        baseline: share of words whose head is there.
        held_out_layer: of the head that is best on one half of the documents, most often over all
            splits.
        held_out_head: its number.
        held_out_direction: who looks at whom.
        held_out_count: how many words are measured in each split: all of them, each by the head of
            the other half.
        held_out_accuracy: share of these whose head is named by what was chosen on the other half,
            mean over splits.
        held_out_low: lower end of its interval over documents, the choices held fixed.
        held_out_high: upper end.
        held_out_spread: standard deviation of the share over splits.
        held_out_chosen: how often that head was chosen, of two choices a split.
        held_out_above: how far the chosen heads are above the chosen offset, mean over splits.
        held_out_above_low: lower end of the interval of that difference over documents.
        held_out_above_high: upper end.
        held_out_above_spread: standard deviation of the difference over splits.
        held_out_offset: the best offset on one half, most often.
        held_out_baseline: share of words whose head is at the offset of the other half, mean over
            splits.
        p: of the chosen heads not being above the chosen offsets, paired t-test over documents.
        p_corrected: the same, corrected for all relations tried.
    """

    relation: str
    score: str
    stanford: str
    count: int
    layer: int
    head: int
    direction: str
    accuracy: float
    low: float
    high: float
    offset: int
    baseline: float
    held_out_layer: int | None
    held_out_head: int | None
    held_out_direction: str | None
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
    held_out_offset: int | None
    held_out_baseline: float
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


FIELDS = tuple(field.name for field in fields(RelationHead))
