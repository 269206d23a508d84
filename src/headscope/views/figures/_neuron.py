"""View neuron: how one query's weights are computed, feature by feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.record import Layer
from headscope.views.figures import charts
from headscope.views.figures._frame import heading
from headscope.views.figures._numbers import Units, joined, largest_of
from headscope.views.figures._plan import FigurePlan
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import percent, short_score, short_weight

PITCH, GAP = 1.3, 1.2
"""Height of a row and gap between columns, in units of the font size."""
TALLEST, WIDE = 190.0, 110.0
"""Height of all rows, and width from which on bars need less of it, in millimetres."""
CELLS = {False: 0.38, True: 0.66}
"""Share of the width that the features have."""
ORDERS = {
    "model": "in the model's order",
    "ranked": "by contribution to the score margin of the attended keys",
    "pairs": "in the pairs that rotary positions turn, fastest first",
}


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


def draw_neuron(sheet: Sheet, plan: FigurePlan) -> list[str]:
    """Query, keys, their products, and the dot product, score and weight that follow."""
    style, tokens, em = plan.style, plan.stack.key, plan.style.em
    layer = plan.shown.layers[plan.layer.layer][0]
    neurons = neurons_of(layer, plan.heads[0], plan.query or 0, plan.shown.units)
    order = ordered(neurons, layer, plan.options.get("neurons", "model"))
    heading(sheet, plan, plan.where)
    both = style.score_scale(max(largest_of(neurons.query), largest_of(neurons.keys)))
    products = style.score_scale(largest_of(neurons.products))
    # The query's features stand above those of the keys, apart from them by an empty row.
    names = [sheet.token_name(tokens, token) for token in range(len(tokens))]
    look: dict[str, Any] = {"names": ["query q", "", *names]}
    look["high"] = min(PITCH * em, TALLEST / (len(tokens) + 2))
    empty, panels = np.zeros(len(order)), []
    for title, scale, query, keys in (
        ("key k", both, neurons.query[order], neurons.keys),
        ("q × k", products, empty, neurons.products),
    ):
        values = np.concatenate([[query, empty], keys[:, order]])
        cells: dict[str, Any] = {"framed": False, "below": [""] * len(order), **look}
        panels.append(charts.Cells(note=title, values=values, scale=scale, **cells))
    signs = {False: (style.positive, "bar"), True: (style.negative, "bar")}
    weights = dict.fromkeys(signs, (plan.colour, "bar"))
    for title, values, looks, written in (
        ("q · k", neurons.dots, signs, short_score),
        ("score", neurons.scores, signs, short_score),
        ("weight", neurons.weights, weights, short_weight),
    ):
        rows = [charts.Row({}), charts.Row({})]
        for value in values.tolist():
            words, seen = short_weight(value) * (looks is weights), not np.isnan(value)
            rows.append(charts.Row({value < 0: (value,)} if seen else {}, words * seen))
        look["ends"], look["written"] = charts.ends_of(rows), written
        panels.append(charts.RowMarks(note=title, rows=rows, looks=looks, **look))
    charts.draw_panels(sheet, panels, least=1.0, gap=GAP, cells=CELLS[sheet.width > WIDE])
    masked = bool(np.isnan(neurons.scores).any())
    charts.colour_bar(sheet, both, "q, k", masked=masked)
    charts.colour_bar(sheet, products, "q × k")
    return _notes(plan, neurons)


def neurons_of(layer: Layer, head: int, query: int, units: Units | None = None) -> Neurons:
    """The numbers of one query of a head; of a word the means over its pieces.

    Args:
        layer: of the record.
        head: its number.
        query: a token, or a word where words are drawn.
        units: the words of queries and of keys, where they are.

    Raises:
        RecordError: where queries and keys were not kept.
    """
    scores = joined(layer.scores_of(head)[None], units, scores=True)[0, query]
    weights = joined(layer.weights_of(head)[None], units)[0, query]
    if not layer.has("queries") or not layer.has("keys"):
        raise RecordError(
            f"Layer {layer.layer} keeps no queries and keys; capture with keep='qk' or keep='auto'"
        )
    looking = np.asarray(layer.part("queries", head), np.float64)
    keys = np.asarray(layer.part("keys", int(layer.kv_head_of[head])), np.float64)
    if units is not None:
        looking, keys = (
            np.stack([rows[list(run)].mean(axis=0) for run in words.tokens])
            for rows, words in zip((looking, keys), units, strict=True)
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


def _notes(plan: FigurePlan, neurons: Neurons) -> list[str]:
    layer, of_words = plan.shown.layers[plan.layer.layer][0], plan.shown.units is not None
    few, shares = min(4, len(neurons.query)), neurons.carried
    # A sum that is 0.8 up to rounding counts as 0.8.
    enough = int(np.searchsorted(shares, 0.8 - 1e-9)) + 1
    cap = "" if layer.soft_cap is None else f", capped at {layer.soft_cap:g}"
    formula = f"score = q · k × {layer.scale:.3g}{cap}{' + bias' * layer.has('bias')}"
    shared = layer.heads // layer.kv_heads
    return [
        f"{len(neurons.query)} features, {ORDERS[plan.options.get('neurons', 'model')]}",
        f"the strongest {few} carry {percent(shares[few - 1])} of the score margin of the attended "
        "keys",
        f"80 % needs {enough}",
        f"{formula}{', as mean over pairs of pieces' * of_words}",
        f"weight = softmax of the scores{' of pieces' * of_words}",
        f"keys of key/value head {plan.heads[0] // shared}" * (shared > 1),
        "keys that the query may not look at are masked" * bool(np.isnan(neurons.scores).any()),
    ]
