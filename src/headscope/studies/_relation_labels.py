"""Relations as labels of heads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from headscope.errors import RecordError
from headscope.linguistics import DIRECTIONS, OFFSETS
from headscope.patterns import AttentionMaps, Heads, Pattern, Tally

if TYPE_CHECKING:
    from headscope.studies.relations import RelationHead, Relations

COMMON = 100
"""How many words a relation has that is a label of heads."""
LOOKS = {
    DIRECTIONS[0]: "looks from the dependent to its head",
    DIRECTIONS[1]: "looks from the head to its dependent",
}


def labelled(relations: Relations, least: int | None, threshold: float) -> Heads:
    """See `Relations.as_heads`."""
    fewest = min(COMMON, max(1, relations.words // 20)) if least is None else least
    shown = []
    for each in relations.heads_of():
        if each.count >= fewest and each.relation in relations.named:
            shown.append(each)
    if not shown:
        raise RecordError(f"No relation has {fewest} words or more; ask for fewer with least=")
    # What chance gives on these sentences: a label must do better than random weights can.
    levels: dict[str, float] = {}
    if relations.control is not None:
        levels = {each.relation: relations.control.best(each.relation).accuracy for each in shown}
    tally = _tally_of(relations, shown, threshold, levels)
    return Heads(tally, confidence=relations.confidence, correction=relations.correction)


def _tally_of(
    relations: Relations, shown: list[RelationHead], threshold: float, levels: Mapping[str, float]
) -> Tally:
    """The share of the words of each relation in each document, as a tally of patterns."""
    source = "Clark et al. 2019, section 4.2; mean over documents of the share of words"
    patterns = tuple(
        Pattern(
            name=each.relation,
            says=LOOKS[each.direction],
            source=source,
            threshold=threshold,
            score=_counted,
        )
        for each in shown
    )
    sums, tally = relations.sums, Tally(patterns, stack=relations.how["stack"], levels=levels)
    values = np.full((len(sums.rows), len(tally.rows), len(relations.cells)), np.nan)
    for each in shown:
        wholes = sums[f"asked/{each.relation}"][:, None]
        hits = sums[f"hits/max/{each.relation}"].reshape(len(wholes), len(DIRECTIONS), -1)
        offset = sums[f"rules/max/{each.relation}"][:, OFFSETS.index(each.offset), None]
        right = {"": hits[:, DIRECTIONS.index(each.direction)], ":position": offset}
        for row, parts in right.items():
            nothing = np.full(parts.shape, np.nan)
            shares = np.divide(parts, wholes, out=nothing, where=wholes > 0)
            values[:, tally.rows.index(f"{each.relation}{row}")] = shares
    facts = {"heads": [list(cell) for cell in relations.cells], "model": relations.model}
    for name, of in zip(sums.rows, values, strict=True):
        tally.add(name, of, facts)
    return tally


# A pattern must say how it is scored; these come with their scores, and no text can add to them.
def _counted(maps: AttentionMaps) -> np.ndarray:
    raise RecordError("A relation needs a treebank; it cannot be scored on a text without its tree")
