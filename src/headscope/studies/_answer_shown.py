"""An answer about a picture, as it is printed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.results import TextTable

if TYPE_CHECKING:
    from headscope.studies.answer import PictureAnswer

MOST_HEADS = 5
"""Heads in the table of those that look at the picture most."""
SAYS = {
    "share": "part of the attention of the row that wrote the word that falls on the picture, "
    "mean over the chosen heads",
    "even": "the same, were the row even over all tokens",
    "sinks": "part of the share that sinks have",
    "most at": "row and column of the patch with most attention, sinks left out",
}


def columns_of(answer: PictureAnswer) -> dict[str, list[Any]]:
    """A line for each word of the answer, one list for each column."""
    # The patch with most attention, sinks left out where that was asked for.
    values = answer.values()
    most = np.where(np.isnan(values), -1.0, values).argmax(axis=-1).tolist()
    places = [answer.places[patch] for patch in most]
    return {
        "word": [word.text for word in answer.words],
        "tokens": [len(word.tokens) for word in answer.words],
        "probability": list(answer.word_probabilities),
        "share": answer.word_shares.tolist(),
        "even": answer.word_even.tolist(),
        "sinks": answer.word_sinks.tolist(),
        "picture": [answer.picture_of[patch] for patch in most],
        "row": [row for row, _ in places],
        "column": [column for _, column in places],
    }


def summary_of(answer: PictureAnswer) -> str:
    """What was answered, how much attention the picture got, and what was left out."""
    begin = f"Asked “{answer.question}”, {answer.model} answered “{answer.text.strip()}”."
    if not answer.words:
        return f"{begin} There is no word in it."
    shares = answer.word_shares
    most = int(shares.argmax())
    sentence = (
        f"{begin} Its words gave {_percent(shares.mean())} of their attention to the picture "
        f"({heads_in_words(answer)}; even attention would give {_percent(answer.word_even.mean())})"
    )
    if len(answer.words) > 1:
        sentence += f", most for “{answer.words[most].text}” ({_percent(shares[most])})"
    return f"{sentence}. {sinks_in_words(answer)}"


def heads_in_words(answer: PictureAnswer) -> str:
    """Which heads the numbers are the mean of."""
    layers = sorted({layer for layer, _ in answer.chosen})
    by_layer = {layer: {head for at, head in answer.chosen if at == layer} for layer in layers}
    there = np.isfinite(answer.shares).all(axis=0)
    counts = dict(zip(answer.layers, there.sum(axis=-1).tolist(), strict=True))
    where = f"layer {layers[0]}" if len(layers) == 1 else f"layers {_numbers(layers)}"
    if all(len(by_layer[layer]) == counts[layer] for layer in layers):
        return f"all heads of {'all layers' if len(layers) == len(counts) else where}"
    if len(answer.chosen) == 1:
        return "head {}-{}".format(*answer.chosen[0])
    heads = by_layer[layers[0]]
    if all(each == heads for each in by_layer.values()):
        return f"head{'s' * (len(heads) > 1)} {_numbers(heads)} of {where}"
    return f"heads {', '.join(f'{layer}-{head}' for layer, head in answer.chosen)}"


def sinks_in_words(answer: PictureAnswer) -> str:
    """How many patches are sinks, what they had, and whether they are left out."""
    count = int(answer.is_sink.sum())
    if not count:
        return "No patch is a sink."
    had = _percent(answer.word_attention[:, answer.is_sink].sum() / answer.word_shares.sum())
    done = "kept" if answer.keep_sinks else "left out"
    if count == 1:
        sinks = f"1 patch of {len(answer.places)} is a sink"
    else:
        sinks = f"{count} patches of {len(answer.places)} are sinks"
    return f"{sinks} with {had} of the attention on the picture, {done}."


def blocks_of(answer: PictureAnswer) -> list[TextTable | str]:
    """The words, the heads that look at the pictures most, and crops."""
    if not answer.words:
        return []
    columns = answer.columns()
    rows = [("word", "probability", "share", "even", "sinks", "most at")]
    for number in range(len(answer.words)):
        picture = f"p{columns['picture'][number]} " if len(answer.grids) > 1 else ""
        rows.append(
            (
                columns["word"][number],
                f"{columns['probability'][number]:.2f}",
                *(_percent(columns[name][number]) for name in ("share", "even", "sinks")),
                f"{picture}r{columns['row'][number]}c{columns['column'][number]}",
            )
        )
    table = TextTable.of_rows(rows, says=SAYS, align="right")
    return [table, _heads_table(answer), *_crops(answer)]


def _heads_table(answer: PictureAnswer) -> TextTable:
    shares = answer.head_shares()
    order = np.argsort(-np.nan_to_num(shares, nan=-1.0), axis=None, kind="stable")[:MOST_HEADS]
    rows = [("head", "share")]
    for layer, head in zip(*np.unravel_index(order, shares.shape), strict=True):
        rows.append((f"{answer.layers[layer]}-{head}", _percent(shares[layer, head])))
    return TextTable.of_rows(rows, title="The heads that look at the picture most", align="right")


def _crops(answer: PictureAnswer) -> list[str]:
    if len(answer.grids) == answer.given:
        return []
    return [
        f"{answer.given} picture{'s' * (answer.given > 1)} given; the model read "
        f"{len(answer.grids)} (crops), numbered p0, p1 ..."
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _numbers(numbers: Sequence[int] | set[int]) -> str:
    """Numbers in a row, those that follow each other as a range: 0 to 3, 7."""
    listed = sorted(numbers)
    parts = []
    for _, run in itertools.groupby(enumerate(listed), key=lambda pair: pair[1] - pair[0]):
        members = [number for _, number in run]
        if len(members) > 2:
            parts.append(f"{members[0]} to {members[-1]}")
        else:
            parts.extend(map(str, members))
    return ", ".join(parts)
