"""What every head, and every rule, answers right in one passage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from headscope.linguistics import Passage
from headscope.linguistics.mentions import mention_answers, rule_hits

CANDIDATES = ("mentions", "words")
"""What a mention chooses among: the heads of its candidates, or all other words of the passage."""
ALL = "all"


@dataclass(frozen=True)
class PassageHits:
    """What is right in one passage: questions, the rules and all heads."""

    document: str
    kinds: tuple[tuple[str, ...], ...]
    rules: Bool[np.ndarray, "rule question"]
    heads: Bool[np.ndarray, "candidates head question"]


def answers_of(passage: Passage, maps: Float[np.ndarray, "head word word"]) -> PassageHits:
    """What the maps of all heads, from word to word, say of the questions of a passage."""
    groups = (passage.group,) if passage.group else ()
    kinds = tuple((ALL, each.mention.kind, *groups) for each in passage.questions or ())
    return PassageHits(passage.document, kinds, rule_hits(passage), _head_hits(passage, maps))


def _head_hits(
    passage: Passage, maps: Float[np.ndarray, "head word word"]
) -> Bool[np.ndarray, "candidates head question"]:
    questions = passage.questions or ()
    hits = np.zeros((len(CANDIDATES), len(maps), len(questions)), bool)
    for number, question in enumerate(questions):
        # A copy, in which the mention's own word is taken out of the choice among all words.
        row = maps[:, question.mention.head].copy()
        right = np.array(question.right)
        hits[0, :, number] = right[mention_answers(row, question)]
        row[:, question.mention.head] = -1
        pairs = zip(question.candidates, question.right, strict=True)
        heads = [each.head for each, is_right in pairs if is_right]
        hits[1, :, number] = np.isin(row.argmax(axis=1), heads)
    return hits
