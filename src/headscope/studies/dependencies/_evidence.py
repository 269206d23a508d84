"""Dependency relations as labels of heads, for the viewer and for whatever else reads labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headscope.errors import RecordError
from headscope.evidence import Statistic
from headscope.linguistics import DIRECTIONS, OFFSETS
from headscope.patterns import AttentionMaps, Heads, Pattern, Tally

if TYPE_CHECKING:
    from headscope.studies.dependencies._head import RelationHead
    from headscope.studies.dependencies._result import Relations
    from headscope.studies.dependencies._tally import AllSentences

LOOKS = {
    DIRECTIONS[0]: "looks from the dependent to its head",
    DIRECTIONS[1]: "looks from the head to its dependent",
}
SOURCE = "Clark et al. 2019, section 4.2; mean over sentences of the share of words"


def heads_of(relations: Relations, *, least: int, threshold: float) -> Heads:
    """Every relation as a label of every head, see `Relations.as_heads`.

    Raises:
        RecordError: where no relation has so many words.
    """
    shown = [
        each
        for each in relations.heads_of()
        if each.count >= least and each.relation in relations.named
    ]
    if not shown:
        raise RecordError(f"No relation has {least} words or more; ask for fewer with least=")
    # What chance gives on these sentences: a label must do better than random weights can.
    levels = None
    if relations.control is not None:
        levels = {each.relation: relations.control.best(each.relation).accuracy for each in shown}
    return Heads(
        _tally_of(relations, shown, threshold),
        confidence=relations.confidence,
        correction=relations.correction,
        levels=levels,
    )


def _tally_of(relations: Relations, shown: list[RelationHead], threshold: float) -> Tally:
    """What was counted of each relation in each sentence, as patterns of heads are counted."""
    patterns = tuple(
        Pattern(
            name=each.relation,
            says=LOOKS[each.direction],
            source=SOURCE,
            threshold=threshold,
            score=_counted,
        )
        for each in shown
    )
    tally = Tally(patterns, stack=relations.stack)
    tally.cells, tally.model = list(relations.cells), relations.model
    values = np.full((relations.sentences, len(tally.rows), len(relations.cells)), np.nan)
    for each in shown:
        row = tally.rows.index(each.relation)
        values[:, row], baseline = _shares(relations.corpus, each)
        values[:, tally.rows.index(f"{each.relation}:position")] = baseline[:, None]
    tally.statistic = Statistic(values.shape[1:], tally.rows)
    documents = [relations._read[name].document for name in relations.names]
    for name, of, document in zip(relations.names, values, documents, strict=True):
        tally.statistic.update(name, of, group=document)
        tally.shown[name] = name
    return tally


def _shares(corpus: AllSentences, each: RelationHead) -> tuple[np.ndarray, np.ndarray]:
    """``[sentence head]`` and, of the best offset, ``[sentence]``: share of the words of a
    relation; NaN for none.
    """
    words = corpus.groups[each.relation]
    sentence, count = corpus.sentence_of[words], len(corpus.sizes)
    hits = corpus.hits("max")[DIRECTIONS.index(each.direction)][:, words]
    offsets = corpus.offset_hits("max")[OFFSETS.index(each.offset)][words]
    # The offset is one more row below the heads; add.at counts every word of a sentence.
    sums = np.zeros((count, len(hits) + 1))
    np.add.at(sums, sentence, np.concatenate([hits, offsets[None]]).T.astype(np.float64))
    wholes = np.bincount(sentence, minlength=count)[:, None]
    shares = np.divide(sums, wholes, out=np.full(sums.shape, np.nan), where=wholes > 0)
    return shares[:, :-1], shares[:, -1]


# A pattern must say how it is scored; these come with their scores, and no text can add to them.
def _counted(maps: AttentionMaps) -> np.ndarray:
    raise RecordError("A relation needs a treebank; it cannot be scored on a text without its tree")
