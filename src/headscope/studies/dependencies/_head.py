"""The head that names the head of most words of one relation."""

from __future__ import annotations

from dataclasses import dataclass

from headscope.studies.shared._chosen_head import ChosenHead, fields_of


@dataclass(frozen=True, kw_only=True)
class RelationHead(ChosenHead):
    """The head that names the head of most words of one relation; see `ChosenHead` for its numbers.
    The question is which word is the head of a word; the rule without a head is a fixed offset.

    Args:
        relation: which words; also all, all but punctuation, and of these all but the root.
        score: one of `SCORES`.
        stanford: the relation of the Penn Treebank that is next to it.
        direction: who looks at whom.
        offset: the best fixed offset on all sentences.
        baseline: share of words whose head is there.
        held_out_direction: who looks at whom.
        held_out_offset: the best offset on one half, most often.
        held_out_baseline: share of words whose head is at the offset of the other half, mean over
            splits.
    """

    relation: str
    score: str
    stanford: str
    direction: str
    offset: int
    baseline: float
    held_out_direction: str | None
    held_out_offset: int | None
    held_out_baseline: float


FIELDS = fields_of(RelationHead, ("relation", "score", "stanford"))
