"""View neuron: how one query's weights are computed, feature by feature."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.record import Layer
from headscope.views.figures import charts
from headscope.views.figures._frame import closing, heading, named_every
from headscope.views.figures._numbers import Combined, largest_of
from headscope.views.figures._plan import FigurePlan
from headscope.views.figures._sheet import Box, Sheet
from headscope.views.figures._style import POINT, percent, short_score, short_weight

PITCH, GAP, QUERY_HEIGHT = 1.3, 0.8, 1.2
"""Height of a row, gap between columns and height of the query, in units of the font size."""
ORDERS = {
    "model": "in the model's order",
    "ranked": "by contribution to the score margin of the attended keys",
    "pairs": "in the pairs that rotary positions turn, fastest first",
}
BESIDE = 110.0
"""Width in millimetres from which the two colour bars are side by side."""


@dataclass(frozen=True, eq=False)
class Neurons:
    """The numbers of one query with all keys of a head; NaN where the query may not look.

    Args:
        query: axes feature.
        keys: axes key, feature.
        products: axes key, feature; query times key.
        dots: axes key; the sum of the products.
        scores: axes key; after scale, soft cap and bias.
        weights: axes key; softmax of the scores.
    """

    query: Float[np.ndarray, " feature"]
    keys: Float[np.ndarray, "key feature"]
    products: Float[np.ndarray, "key feature"]
    dots: Float[np.ndarray, " key"]
    scores: Float[np.ndarray, " key"]
    weights: Float[np.ndarray, " key"]

    @property
    def added(self) -> Float[np.ndarray, " feature"]:
        """What each feature adds to the score margin of the attended keys, up to the scale.

        This is its part of q . k as a mean over the keys by weight, less its plain mean over the
        visible keys.
        """
        seen = ~np.isnan(self.weights)
        return (self.weights[seen] - 1 / max(1, seen.sum())) @ self.products[seen]

    @property
    def carried(self) -> Float[np.ndarray, " count"]:
        """The share of all that is added, by magnitude, in the strongest 1, 2, 3 ... features."""
        sizes = np.sort(np.abs(self.added))[::-1]
        return np.cumsum(sizes) / (sizes.sum() or 1.0)


def ordered(neurons: Neurons, layer: Layer, order: str) -> np.ndarray:
    """The order of the features: as in the model, by what they add, or by rotary pairs."""
    if order == "ranked":
        return np.argsort(-np.abs(neurons.added), kind="stable")
    if order == "pairs" and layer.rotary is not None:
        turned = np.stack(layer.rotary.pairs, axis=1).ravel()
        # Some models rotate only a part of the features; the others follow the pairs.
        return np.concatenate([turned, np.setdiff1d(np.arange(len(neurons.query)), turned)])
    return np.arange(len(neurons.query))


def draw_neuron(sheet: Sheet, plan: FigurePlan) -> None:
    """Query, keys, their products, and the dot product, score and weight that follow."""
    style, tokens, em = plan.style, plan.stack.key, plan.style.em
    layer = plan.shown.combined.layers[plan.layer.layer][0]
    neurons = neurons_of(layer, plan.heads[0], plan.query or 0, plan.shown.combined)
    order = ordered(neurons, layer, plan.options.get("neurons", "model"))
    y = heading(sheet, plan, plan.where)
    # Names, two pictures and three columns of bars.
    pitch, gap = min(PITCH * em, 190.0 / len(tokens)), GAP * em
    size, every = sheet.naming(pitch, len(tokens))
    widest = max(sheet.width_of(sheet.token_name(tokens, at), size) for at in range(len(tokens)))
    names = max(min(0.18 * sheet.width, widest), sheet.width_of("query q", style.small)) + 0.4 * em
    rest = sheet.width - names - 4 * gap
    bar = max(0.11 * rest, 2.3 * sheet.width_of("−0.0", style.small))
    # The query's features stand above those of the keys.
    picture, high = (rest - 3 * bar) / 2, QUERY_HEIGHT * em
    lefts = names + np.cumsum([0.0, picture + gap, picture + gap, bar + gap, bar + gap])
    top, tall = y + high + 1.6 * em, len(tokens) * pitch
    for left, words in zip(lefts, ("key k", "q × k", "q · k", "score", "weight"), strict=True):
        sheet.note(left, top - 0.8 * em, words)
    both = style.score_scale(max(largest_of(neurons.query), largest_of(neurons.keys)))
    products = style.score_scale(largest_of(neurons.products))
    sheet.note(names - 0.4 * em, y + high / 2, "query q", anchor="right")
    row = both.rgb(neurons.query[None, order])
    sheet.cells(row, at=(names, y), size=(picture, high), framed=False)
    of_keys = (both, neurons.keys), (products, neurons.products)
    for left, (scale, values) in zip(lefts, of_keys, strict=False):
        look = {"at": (left, top), "size": (picture, tall), "hidden": np.isnan(values)}
        sheet.cells(scale.rgb(values[:, order]), framed=False, **look)
    for token in range(0, len(tokens), every):
        at = (names - 0.4 * em, top + (token + 0.5) * pitch)
        sheet.name(tokens, token, at, 0.18 * sheet.width, size=size, anchor="right")
    _bars(sheet, neurons.dots, (lefts[2], top, bar, tall))
    _bars(sheet, neurons.scores, (lefts[3], top, bar, tall))
    box = (lefts[4], top, bar, tall)
    _bars(sheet, neurons.weights, box, plan.colour, size=min(style.small, size))
    y, masked, half = top + tall + 1.5 * em, bool(np.isnan(neurons.scores).any()), sheet.width / 2
    is_wide = sheet.width > BESIDE
    spans = [(0.0, half), (1.1 * half, sheet.width)] if is_wide else [None, None]
    below = charts.colour_bar(sheet, both, "q, k", y=y, span=spans[0], masked=masked)
    y = y if is_wide else below
    y = charts.colour_bar(sheet, products, "q × k", y=y, span=spans[1])
    closing(sheet, plan, y, [*_notes(plan, neurons), named_every(every)])


def neurons_of(layer: Layer, head: int, query: int, combined: Combined | None = None) -> Neurons:
    """The numbers of one query of a head; of a word the means over its pieces.

    Args:
        layer: of the record.
        head: its number.
        query: a token, or a word where words are drawn.
        combined: whether they are.

    Raises:
        RecordError: where queries and keys were not kept.
    """
    of = combined or Combined(layers={layer.layer: (layer,)}, words=None, heads=())
    scores = of.of(layer, lambda each: each.scores_of(head)[None], scores=True)[0, query]
    weights = of.of(layer, lambda each: each.weights_of(head)[None])[0, query]
    if not layer.has("queries") or not layer.has("keys"):
        raise RecordError(
            f"Layer {layer.layer} keeps no queries and keys; capture with keep='qk' or keep='auto'"
        )
    looking = np.asarray(layer.part("queries", head), np.float64)
    keys = np.asarray(layer.part("keys", int(layer.kv_head_of[head])), np.float64)
    if of.words is not None:
        looking, keys = (
            np.stack([rows[list(run)].mean(axis=0) for run in words.tokens])
            for rows, words in zip((looking, keys), of.words, strict=True)
        )
    hidden = ~np.isfinite(scores)
    products = np.where(hidden[:, None], np.nan, looking[query] * keys)
    return Neurons(
        query=looking[query],
        keys=np.where(hidden[:, None], np.nan, keys),
        products=products,
        dots=products.sum(axis=1),
        scores=np.where(hidden, np.nan, scores),
        weights=np.where(hidden, np.nan, np.asarray(weights, np.float64)),
    )


def _bars(
    sheet: Sheet, values: np.ndarray, box: Box, colour: str = "", *, size: float = 0.0
) -> None:
    """A bar for each number; a weight is written beside its bar where it fits, and of scores, which
    have the colours of signs, both ends below.
    """
    style, (left, top, wide, tall), pitch, bars = sheet.style, box, box[3] / len(values), []
    for value in values.tolist():
        words = short_weight(value) if colour and pitch > 0.9 * size * POINT else ""
        fill = colour or (style.positive if value >= 0 else style.negative)
        bars.append(charts.Bar("", (value,), words, fill))
    room = wide - (sheet.width_of("<.001", style.small) + 0.3 * style.em) * bool(colour)
    axes, (low, high) = sheet.axes((left, top, room, tall)), charts.ends_of(bars)
    axes.set_xlim(low, high)
    axes.axvline(0.0, color=style.faint, linewidth=0.4, clip_on=False)
    charts.draw_bars(sheet, bars, axes, (left, top, room, tall), size=size)
    for value, anchor in () if colour else ((low, "left"), (high, "right")):
        if abs(value) > 0.15 * (high - low):
            place = (left + (value - low) / (high - low) * room, top + tall + 0.55 * style.em)
            sheet.note(*place, short_score(value), anchor=anchor)


def _notes(plan: FigurePlan, neurons: Neurons) -> Iterator[str]:
    layer = plan.shown.combined.layers[plan.layer.layer][0]
    formula = f"score = q · k × {layer.scale:.3g}"
    if layer.soft_cap is not None:
        formula += f", capped at {layer.soft_cap:g}"
    if layer.has("bias"):
        formula += " + bias"
    yield f"{len(neurons.query)} features, {ORDERS[plan.options.get('neurons', 'model')]}"
    few = min(4, len(neurons.query))
    carried = percent(neurons.carried[few - 1])
    yield f"the strongest {few} carry {carried} of the score margin of the attended keys"
    # A sum that is 0.8 up to rounding counts as 0.8.
    yield f"80 % needs {int(np.searchsorted(neurons.carried, 0.8 - 1e-9)) + 1}"
    of_words = plan.shown.combined.words is not None
    yield f"{formula}, as mean over pairs of pieces" if of_words else formula
    yield f"weight = softmax of the scores{' of pieces' if of_words else ''}"
    if layer.kv_heads < layer.heads:
        yield f"keys of key/value head {plan.heads[0] // (layer.heads // layer.kv_heads)}"
    if np.isnan(neurons.scores).any():
        yield "keys that the query may not look at are masked"
