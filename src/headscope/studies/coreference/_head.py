"""The head that finds the antecedents of most mentions of one kind."""

from __future__ import annotations

from dataclasses import dataclass

from headscope.studies.shared._chosen_head import ChosenHead, fields_of


@dataclass(frozen=True, kw_only=True)
class AntecedentHead(ChosenHead):
    """The head that answers most questions of one kind right; see `ChosenHead` for its numbers. The
    question is what a mention means; the rule without a head takes the nearest mention.

    Args:
        kind: of the mentions that ask: all, pronoun, proper, nominal, or a group of passages.
        candidates: one of `CANDIDATES`.
        nearest: share that taking the nearest mention answers right.
        head_match: the nearest with the same head word, where there is one.
        sieves: see `headscope.linguistics.sieves`.
        held_out_nearest: share that the nearest mention answers right.
    """

    kind: str
    candidates: str
    nearest: float
    head_match: float
    sieves: float
    held_out_nearest: float


FIELDS = fields_of(AntecedentHead, ("kind", "candidates"))
