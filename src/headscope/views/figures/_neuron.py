"""View neuron: how one query's weights are computed, feature by feature."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.record import Layer
from headscope.views.figures import charts
from headscope.views.figures._frame import (
    closing,
    heading,
    named_every,
)
from headscope.views.figures._numbers import Combined, largest_of
from headscope.views.figures._plan import FigurePlan
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import POINT, percent, short_score, short_weight

PITCH = 1.3
TALLEST = 190.0
WIDEST_NAME = 0.18
GAP = 0.8
QUERY_HEIGHT = 1.2
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


@dataclass(frozen=True)
class NeuronLayout:
    """Positions of rows and columns, in millimetres: names, two pictures, three columns of bars."""

    names: float
    picture: float
    bar: float
    gap: float
    top: float
    pitch: float
    keys: int

    def left(self, column: int) -> float:
        """Left edge of a picture (0, 1) or of a column of bars (2, 3, 4)."""
        bars = max(0, column - 2)
        return (
            self.names + (column - bars) * (self.picture + self.gap) + bars * (self.bar + self.gap)
        )

    @property
    def bottom(self) -> float:
        """Where the rows end."""
        return self.top + self.keys * self.pitch


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
    layer = of_tokens(plan)
    neurons = neurons_of(layer, plan.heads[0], plan.query or 0, plan.shown.combined)
    style = plan.style
    y = heading(sheet, plan, plan.where)
    table, high = _table(sheet, plan, y), QUERY_HEIGHT * style.em
    both = style.score_scale(max(largest_of(neurons.query), largest_of(neurons.keys)))
    products = style.score_scale(largest_of(neurons.products))
    order = ordered(neurons, layer, plan.neurons)
    for column, words in enumerate(("key k", "q × k", "q · k", "score", "weight")):
        sheet.note(table.left(column), table.top - 0.8 * style.em, words)
    # The query's features stand above those of the keys.
    sheet.note(table.names - 0.4 * style.em, y + high / 2, "query q", anchor="right")
    row = both.rgb(neurons.query[None, order])
    sheet.cells(row, at=(table.names, y), size=(table.picture, high), framed=False)
    for column, (scale, values) in enumerate(((both, neurons.keys), (products, neurons.products))):
        size, hidden = (table.picture, table.bottom - table.top), np.isnan(values)
        at = (table.left(column), table.top)
        sheet.cells(scale.rgb(values[:, order]), at=at, size=size, hidden=hidden, framed=False)
    tokens = plan.stack.key
    size, every = sheet.naming(table.pitch, len(tokens))
    for token in range(0, len(tokens), every):
        name = sheet.fitted(sheet.shown(tokens.labels[token]), WIDEST_NAME * sheet.width, size)
        colour = style.muted if tokens.special[token] else style.ink
        at = (table.names - 0.4 * style.em, table.top + (token + 0.5) * table.pitch)
        sheet.text(*at, name, size=size, colour=colour, anchor="right")
    _signed_bars(sheet, table, neurons.dots, table.left(2))
    _signed_bars(sheet, table, neurons.scores, table.left(3))
    _weights(sheet, plan, table, neurons.weights)
    y, hidden = table.bottom + 1.5 * style.em, bool(np.isnan(neurons.scores).any())
    if sheet.width > BESIDE:
        half = sheet.width / 2
        charts.colour_bar(sheet, both, "q, k", y=y, span=(0.0, half), masked=hidden)
        y = charts.colour_bar(sheet, products, "q × k", y=y, span=(1.1 * half, sheet.width))
    else:
        y = charts.colour_bar(sheet, both, "q, k", y=y, masked=hidden)
        y = charts.colour_bar(sheet, products, "q × k", y=y)
    closing(sheet, plan, y, [*_notes(plan, neurons), named_every(every)])


def of_tokens(plan: FigurePlan) -> Layer:
    """The layer of the record, whose queries and keys are those of tokens."""
    return plan.shown.combined.layers[plan.layer.layer][0]


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
    looking = looking[query]
    hidden = ~np.isfinite(scores)
    products = np.where(hidden[:, None], np.nan, looking * keys)
    return Neurons(
        query=looking,
        keys=np.where(hidden[:, None], np.nan, keys),
        products=products,
        dots=products.sum(axis=1),
        scores=np.where(hidden, np.nan, scores),
        weights=np.where(hidden, np.nan, np.asarray(weights, np.float64)),
    )


def _table(sheet: Sheet, plan: FigurePlan, y: float) -> NeuronLayout:
    style, tokens = plan.style, plan.stack.key
    pitch, gap = min(PITCH * style.em, TALLEST / len(tokens)), GAP * style.em
    size, _ = sheet.naming(pitch)
    widest = max(sheet.width_of(sheet.shown(label), size) for label in tokens.labels)
    widest = min(WIDEST_NAME * sheet.width, widest)
    names = max(widest, sheet.width_of("query q", style.small)) + 0.4 * style.em
    rest = sheet.width - names - 4 * gap
    bar = max(0.11 * rest, 2.3 * sheet.width_of("−0.0", style.small))
    top = y + QUERY_HEIGHT * style.em + 1.6 * style.em
    return NeuronLayout(names, (rest - 3 * bar) / 2, bar, gap, top, pitch, len(tokens))


def _weights(sheet: Sheet, plan: FigurePlan, table: NeuronLayout, weights: np.ndarray) -> None:
    """A bar for each weight, with its number where it fits."""
    style, left, pitch = plan.style, table.left(4), table.pitch
    room = table.bar - sheet.width_of("<.001", style.small) - 0.3 * style.em
    size = min(style.small, sheet.naming(pitch)[0])
    largest, is_numbered = largest_of(weights) or 1.0, pitch > 0.9 * size * POINT
    for key, weight in enumerate(weights):
        if np.isnan(weight):
            continue
        y, length = table.top + (key + 0.5) * pitch, room * weight / largest
        sheet.rect(left, y - 0.28 * pitch, length, 0.56 * pitch, fill=plan.colour)
        if is_numbered:
            at = (left + length + 0.3 * style.em, y)
            sheet.text(*at, short_weight(weight), size=size, colour=style.muted)
    sheet.line((left, left), (table.top, table.bottom), colour=style.faint, line=0.4)


def _signed_bars(sheet: Sheet, table: NeuronLayout, values: np.ndarray, left: float) -> None:
    style = sheet.style
    low, high = min(0.0, float(np.nanmin(values))), max(0.0, float(np.nanmax(values)))
    per = table.bar / ((high - low) or 1.0)
    zero = left - low * per
    for key, value in enumerate(values):
        if np.isnan(value):
            continue
        y = table.top + (key + 0.5) * table.pitch
        fill = style.positive if value >= 0 else style.negative
        x = zero + min(0.0, value) * per
        sheet.rect(x, y - 0.28 * table.pitch, abs(value) * per, 0.56 * table.pitch, fill=fill)
    sheet.line((zero, zero), (table.top, table.bottom), colour=style.faint, line=0.4)
    for value in (low, high):
        if abs(value) > 0.15 * (high - low):
            x, y = zero + value * per, table.bottom + 0.55 * style.em
            anchor = "left" if value < 0 else "right"
            sheet.note(x, y, short_score(value), anchor=anchor)


def _notes(plan: FigurePlan, neurons: Neurons) -> Iterator[str]:
    layer = of_tokens(plan)
    formula = f"score = q · k × {layer.scale:.3g}"
    if layer.soft_cap is not None:
        formula += f", capped at {layer.soft_cap:g}"
    if layer.has("bias"):
        formula += " + bias"
    yield f"{len(neurons.query)} features, {ORDERS[plan.neurons]}"
    few = min(4, len(neurons.query))
    # A sum that is 0.8 up to rounding counts as 0.8.
    enough = int(np.searchsorted(neurons.carried, 0.8 - 1e-9)) + 1
    yield (
        f"the strongest {few} carry {percent(neurons.carried[few - 1])} of the score "
        "margin of the attended keys"
    )
    yield f"80 % needs {enough}"
    of_words = plan.shown.combined.words is not None
    yield f"{formula}, as mean over pairs of pieces" if of_words else formula
    yield f"weight = softmax of the scores{' of pieces' if of_words else ''}"
    if layer.kv_heads < layer.heads:
        yield f"keys of key/value head {plan.heads[0] // (layer.heads // layer.kv_heads)}"
    if np.isnan(neurons.scores).any():
        yield "keys that the query may not look at are masked"
