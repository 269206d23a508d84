"""What the study of norms counts of one text."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from headscope.measures import spearman, token_class
from headscope.record import Layer, Stack, Tokens

CLASSES = ("cls", "sep", "first", "stop", "other")
"""Kobayashi's classes of tokens ([CLS], [SEP], "." or ",", other) and, where it is none of these,
the first token.
"""
MIXINGS = ("weights", "attention", "residual", "output")
"""Attn-W, Attn-N, AttnRes-N, AttnResLn-N."""
ALL = "all"
BY = ("weight", "norm")
ROWS = (
    *(f"share by {by}: {name}" for by in BY for name in CLASSES),
    *(f"length of f: {name}" for name in CLASSES),
    *(f"spearman: {name}" for name in (*CLASSES, ALL)),
    *(f"mixing {kind}: {name}" for kind in MIXINGS for name in (*CLASSES, ALL)),
    "expansion",
    *(f"spearman within heads: {name}" for name in (*CLASSES, ALL)),
)
"""The rows of values; see `norm_study`."""

Classes = dict[str, Bool[np.ndarray, " token"]]


def classes_of(tokens: Tokens) -> Classes:
    """The tokens of each class; every token is in one."""
    classes = {name: token_class(tokens, name) for name in ("cls", "sep", "first", "stop")}
    # In one class each: a full stop that begins a text counts as the first token, and a [CLS] that
    # does so as a [CLS].
    classes["stop"] = classes["stop"] & ~classes["first"]
    classes["first"] = classes["first"] & ~classes["cls"] & ~classes["sep"]
    classes["other"] = ~np.any(list(classes.values()), axis=0)
    return {name: classes[name] for name in CLASSES}


def values_of(stack: Stack) -> Float[np.ndarray, "row column"]:
    """The rows of one text; a column for each layer and one for all layers together."""
    keys, queries = classes_of(stack.key), classes_of(stack.query)
    values_of_text = np.full((len(ROWS), len(stack) + 1), np.nan)
    ranked: list[tuple[np.ndarray, np.ndarray]] = []
    for column, layer in enumerate(stack):
        if not layer.has("value_norms"):
            continue
        weights = np.asarray(layer.weights_of(), np.float64)
        lengths = np.asarray(layer.value_norms, np.float64)
        ranked.append((_looked_at(weights, layer), lengths))
        values = _shares(weights, lengths, keys) | _lengths(lengths, keys)
        values |= _agreement([ranked[-1]], keys)
        values |= _within_heads(ranked[-1], keys)
        values |= _mixing(layer, weights, queries, is_self=stack.query == stack.key)
        values_of_text[:, column] = [values[row] for row in ROWS]
    whole = [~np.isnan(row[:-1]) for row in values_of_text]
    values_of_text[:, -1] = [
        row[:-1][known].mean() if known.any() else np.nan
        for row, known in zip(values_of_text, whole, strict=True)
    ]
    # Ranks of all layers together are taken anew: a mean of rank correlations is none.
    for row, value in _agreement(ranked, keys).items():
        values_of_text[ROWS.index(row), -1] = value
    return values_of_text


def _shares(
    weights: Float[np.ndarray, "head query key"],
    lengths: Float[np.ndarray, "head key"],
    keys: Classes,
) -> dict[str, float]:
    """Mean over heads and queries of the share that each class has in a row, by weight and by
    norm.
    """
    shares = {}
    for by, maps in zip(BY, (weights, weights * lengths[:, None]), strict=True):
        sums = maps.sum(-1)
        for name, chosen in keys.items():
            share = np.divide(
                maps[..., chosen].sum(-1), sums, out=np.zeros_like(sums), where=sums > 0
            )
            shares[f"share by {by}: {name}"] = (
                float(share[sums > 0].mean()) if (sums > 0).any() else np.nan
            )
    return shares


def _lengths(lengths: Float[np.ndarray, "head key"], keys: Classes) -> dict[str, float]:
    return {
        f"length of f: {name}": float(lengths[:, chosen].mean()) if chosen.any() else np.nan
        for name, chosen in keys.items()
    }


def _looked_at(
    weights: Float[np.ndarray, "head query key"], layer: Layer
) -> Float[np.ndarray, "head key"]:
    """Mean weight that each key gets from the queries that may look at it."""
    if layer.visible.is_full:
        return weights.mean(axis=1)
    # Under a causal mask early keys are seen by more queries; a plain mean would rank them higher.
    seeing = np.maximum(layer.visible.dense().sum(axis=0), 1)
    return weights.sum(axis=1) / seeing


def _agreement(ranked: list[tuple[np.ndarray, np.ndarray]], keys: Classes) -> dict[str, float]:
    """Spearman of weight and length over all heads and tokens of a class, in all layers given."""
    ranks = {}
    for name, chosen in (*keys.items(), (ALL, np.ones_like(keys["other"]))):
        pairs = [
            np.concatenate([pair[part][:, chosen].ravel() for pair in ranked] or [[]])
            for part in (0, 1)
        ]
        ranks[f"spearman: {name}"] = spearman(pairs[0], pairs[1]) if len(pairs[0]) > 2 else np.nan
    return ranks


def _within_heads(pair: tuple[np.ndarray, np.ndarray], keys: Classes) -> dict[str, float]:
    """Spearman of weight and length over the tokens of a class in each head by itself, mean over
    heads.
    """
    ranks = {}
    for name, chosen in (*keys.items(), (ALL, np.ones_like(keys["other"]))):
        each = [np.nan]
        if chosen.sum() > 2:
            looked_at, lengths = (of[:, chosen] for of in pair)
            each = [spearman(*head) for head in zip(looked_at, lengths, strict=True)]
        known = [value for value in each if not np.isnan(value)]
        ranks[f"spearman within heads: {name}"] = float(np.mean(known)) if known else np.nan
    return ranks


def _mixing(
    layer: Layer, weights: np.ndarray, queries: Classes, *, is_self: bool
) -> dict[str, float]:
    added = layer.contributions
    ratios = {
        kind: None if added is None else getattr(added, f"mixing_{kind}") for kind in MIXINGS[1:]
    }
    if is_self:
        mean = weights.mean(axis=0)
        ratios["weights"] = mean.sum(-1) - np.diagonal(mean)
    mixing: dict[str, float] = {"expansion": np.nan}
    if added is not None and added.expansion is not None:
        mixing["expansion"] = added.expansion
    for kind in MIXINGS:
        ratio = ratios.get(kind)
        for name, chosen in (*queries.items(), (ALL, np.ones(len(queries["other"]), bool))):
            there = ratio is not None and chosen.any()
            mixing[f"mixing {kind}: {name}"] = (
                float(np.asarray(ratio)[chosen].mean()) if there else np.nan
            )
    return mixing
