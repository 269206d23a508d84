"""What another library kept of a layer, and the proof that its parts belong together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from headscope.errors import RecordError
from headscope.record import ROW_SUM_TOLERANCE, Layer, check_finite
from headscope.record.recompute import scores_of, softmax_of

TOLERANCE = 1e-4
HALF_TOLERANCE = 3e-2
"""As `headscope.capture` allows: of a weight, or of the largest output."""
SAME = ("layer", "route", "weights", "queries", "keys", "values", "visible", "bias", "sinks")
"""Fields that a layer has as they are."""
FAR = 10
"""How many times nearer a fitted scale or a mask with holes must come than a likely one, so as not
to follow noise.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerArrays:
    """What a library kept of one layer: axes already ours, the parts not yet compared with each
    other.

    Args:
        name: what to call the layer in messages.
        layer: its number.
        route: the library, for `Layer.route`.
        weights: ``[head query key]``.
        queries: ``[head query feature]``, after positions are applied.
        keys: ``[kv_head key feature]``, after positions are applied.
        values: ``[kv_head key feature]``.
        output: ``[head query feature]``, weights times values, before the output projection.
        scores: ``[head query key]``, what is taken to have gone into the softmax; believed only if
            it gives the weights.
        scales: what scores may have been multiplied by; the first that fits best is taken.
        soft_cap: as in `Layer`.
        bias: as in `Layer`.
        sinks: as in `Layer`.
        visible: the mask as in `Layer`, where it is known; otherwise it is found in the weights.
        half: whether any part was computed in half precision.
    """

    name: str
    layer: int
    route: str
    weights: np.ndarray | None = None
    queries: np.ndarray | None = None
    keys: np.ndarray | None = None
    values: np.ndarray | None = None
    output: np.ndarray | None = None
    scores: np.ndarray | None = None
    scales: tuple[float, ...] = ()
    soft_cap: float | None = None
    bias: np.ndarray | None = None
    sinks: np.ndarray | None = None
    visible: np.ndarray | None = None
    half: bool = False

    @property
    def tolerance(self) -> float:
        """How far recomputed weights may be from the kept ones."""
        return HALF_TOLERANCE if self.half else TOLERANCE


def layer_of(kept: LayerArrays) -> Layer:
    """The layer, after its parts were found to agree: queries and keys with weights, weights and
    values with output.

    Raises:
        RecordError: where they do not, naming the difference.
    """
    for name in ("weights", "queries", "keys", "values", "output"):
        if getattr(kept, name) is not None:
            check_finite(getattr(kept, name), f"{name} of {kept.name}")
    if kept.queries is not None and kept.keys is not None:
        kept = _explained(kept)
    elif kept.weights is not None:
        kept = replace(kept, queries=None, keys=None, visible=_likeliest_mask(kept))
    else:
        raise RecordError(
            f"{kept.name} holds neither weights nor queries and keys; save the attention weights"
        )
    parts: dict[str, Any] = {name: getattr(kept, name) for name in SAME} | _verified(kept)
    scale = kept.scales[0] if kept.scales else 1.0
    return Layer(scale=scale, module=kept.name, soft_cap=kept.soft_cap, **parts)


def _explained(kept: LayerArrays) -> LayerArrays:
    """With the scale, the mask and, if needed, the bias under which queries and keys give the
    weights.
    """
    best, difference = _best_trial(kept)
    if difference <= kept.tolerance:
        return best
    biased = _with_position_bias(kept)
    if biased is not None:
        return biased
    what = "weights" if kept.weights is not None else "output"
    raise RecordError(
        f"{kept.name}: softmax(queries . keys) differs from the {what} kept with them by "
        f"{difference:.2g} (allowed {kept.tolerance:.0g}). Either the values were changed on the "
        "way, or the model does something to queries, keys or scores that the library did not "
        "keep (positions, norms, a bias, a sink); leave queries and keys out to keep the weights "
        "alone"
    )


def _best_trial(kept: LayerArrays) -> tuple[LayerArrays, float]:
    """The scale and mask that come nearest to the weights, and how far off they are."""
    best, difference, least = kept, np.inf, np.inf
    for trial, unlikely in _trials(kept):
        away = _difference(trial)
        if away * FAR**unlikely < least:
            best, difference, least = trial, away, away * FAR**unlikely
        # Likely trials come first; one that fits this well need not be compared with the rest.
        if away <= kept.tolerance / FAR**2:
            break
    return best, difference


def _with_position_bias(kept: LayerArrays) -> LayerArrays | None:
    """With the bias by position that explains the weights; None where there is none."""
    if kept.scores is None or kept.bias is not None:
        return None
    for trial, _ in _trials(kept):
        bias = position_bias(kept.scores, _capped(trial), trial.visible, half=kept.half)
        if bias is not None and _difference(replace(trial, bias=bias)) <= kept.tolerance:
            return replace(trial, bias=bias)
    return None


def _trials(kept: LayerArrays) -> Iterator[tuple[LayerArrays, int]]:
    """One scale and one mask each, the likely ones first; and how many of the two are unlikely."""
    masks = _masks(kept)
    for index, mask in enumerate(masks):
        for scale in kept.scales:
            yield _with_sinks(replace(kept, scales=(scale,), visible=mask)), int(index > 0)
    for scale in _fitted(kept):
        for index, mask in enumerate(masks):
            yield _with_sinks(replace(kept, scales=(scale,), visible=mask)), 1 + int(index > 0)


def _with_sinks(kept: LayerArrays) -> LayerArrays:
    """With the one logit of each head that makes its rows fall short of 1 as they do, if they
    do.
    """
    if kept.weights is None or kept.sinks is not None:
        return kept
    total = kept.weights.sum(axis=-1, dtype=np.float64)
    if (total > 1 - ROW_SUM_TOLERANCE).all():
        return kept
    scores = _capped(kept)
    scores = scores if kept.visible is None else np.where(kept.visible, scores, -np.inf)
    # With Z = sum_j exp(score_j) a row sums to Z / (Z + exp(sink)), so that the sink is
    # log Z + log(missing / total). Every row of a head gives the same number but for rounding.
    top = scores.max(axis=-1)
    log_z = top + np.log(np.exp(scores - top[..., None]).sum(axis=-1))
    missing = np.maximum(1 - total, 1e-12)
    sinks = log_z + np.log(missing / np.maximum(total, 1e-12))
    # The row that shares most evenly between keys and sink says it most exactly.
    clearest = np.argmax(total * missing, axis=-1)[:, None]
    chosen = np.take_along_axis(sinks, clearest, axis=-1)[:, 0]
    return replace(kept, sinks=chosen.astype(np.float32))


def _masks(kept: LayerArrays) -> list[np.ndarray | None]:
    """The masks that the weights allow; a weight may be zero because it is masked, or because it is
    too small.
    """
    if kept.visible is not None:
        return [kept.visible]
    shape = _size(kept)
    # Fewer queries than keys are the last of a text: the last query sees the last key.
    causal = np.tril(np.ones(shape, bool), k=shape[1] - shape[0])
    if kept.weights is None:
        return [None, causal]
    # Heads share one mask: what one of them looks at, none is forbidden.
    seen: np.ndarray = np.any(kept.weights != 0, axis=0)
    if not seen.any(axis=1).all():
        query = int(np.argmin(seen.any(axis=1)))
        raise RecordError(
            f"{kept.name}: query {query} gives weight to no key at all; for padding, say where "
            "the tokens are, such as positions=slice(2, None) after two of padding"
        )
    if seen.all():
        return [None]
    if shape[0] > 1 and not (seen & ~causal).any():
        return [causal] if (seen == causal).all() else [causal, seen]
    return [None, seen]


def _likeliest_mask(kept: LayerArrays) -> np.ndarray | None:
    """The mask, where there are no queries and keys to try it on: stray zeros are taken for small
    weights.
    """
    widest, *others = _masks(kept)
    for mask in others:
        alone = Layer(layer=kept.layer, weights=kept.weights, visible=mask, sinks=kept.sinks)
        if alone.kind == "sliding":
            return mask
    return widest


def _size(kept: LayerArrays) -> tuple[int, int]:
    if kept.weights is not None:
        return kept.weights.shape[1], kept.weights.shape[2]
    return np.asarray(kept.queries).shape[1], np.asarray(kept.keys).shape[1]


def _fitted(kept: LayerArrays) -> tuple[float, ...]:
    """The scale by which ``q . k`` comes nearest to the kept scores, for models with one of their
    own (Gemma 2).
    """
    if kept.scores is None or kept.weights is None:
        return ()
    products = _capped(replace(kept, scales=(1.0,), soft_cap=None))
    seen = (kept.weights > 0) & np.isfinite(kept.scores)
    x, y = products[seen], kept.scores[seen].astype(np.float64)
    if kept.soft_cap is not None:
        # Near the cap tanh is flat: turning it round would blow up the rounding of the scores.
        inside = np.abs(y) < 0.99 * kept.soft_cap
        x, y = x[inside], kept.soft_cap * np.arctanh(y[inside] / kept.soft_cap)
    # Least squares of y = fit * x, a line through zero.
    fit = float(x @ y / (x @ x)) if x.any() else 0.0
    return (fit,) if fit > 0 else ()


def _capped(kept: LayerArrays) -> np.ndarray:
    """Scores from queries and keys before bias and mask, ``[head query key]``."""
    queries, keys = kept.queries, kept.keys
    if (
        queries is None
        or keys is None
        or queries.shape[0] % keys.shape[0]
        or queries.shape[2] != keys.shape[2]
    ):
        shapes = [None if array is None else array.shape for array in (queries, keys)]
        raise RecordError(
            f"{kept.name}: queries {shapes[0]} and keys {shapes[1]} do not fit together; "
            "expected [head query feature] and [kv_head key feature]"
        )
    scores = scores_of(
        queries, _shared(keys, queries.shape[0]), scale=kept.scales[0], soft_cap=kept.soft_cap
    )
    for name in ("weights", "scores", "visible"):
        array = getattr(kept, name)
        if array is not None:
            ours = scores.shape[-array.ndim :]
            _check_same(
                ours, array.shape, f"{kept.name}: queries and keys give", f"{name} were kept"
            )
    return scores


def _recomputed(kept: LayerArrays) -> np.ndarray:
    scores = _capped(kept) if kept.bias is None else _capped(kept) + kept.bias
    if kept.visible is not None:
        scores = np.where(kept.visible, scores, -np.inf)
    return softmax_of(scores, kept.sinks)


def _difference(kept: LayerArrays) -> float:
    """Largest difference of the recomputed weights from the kept ones, or else of the output in
    units of its size.
    """
    weights = _recomputed(kept)
    if kept.weights is not None:
        return float(np.abs(weights - kept.weights).max())
    if kept.values is None or kept.output is None:
        raise RecordError(
            f"{kept.name} holds queries and keys, but nothing to check them against; save the "
            "attention weights, or values and the output of the heads"
        )
    return _away(replace(kept, weights=weights)) / max(float(np.abs(kept.output).max()), 1e-30)


def _verified(kept: LayerArrays) -> dict[str, Any]:
    """Largest difference of weights times values from the output, where they were kept, as
    arguments of a `Layer`.
    """
    if kept.values is None or kept.output is None:
        return {}
    away, largest = _away(kept), float(np.abs(kept.output).max())
    # "not <=" and no ">": a NaN, which compares as False, must be refused as well.
    if not away <= kept.tolerance * largest:
        raise RecordError(
            f"{kept.name}: weights times values differ from the output of the heads by {away:.2g} "
            f"(allowed {kept.tolerance * largest:.1g}). Either the values were changed on the "
            "way, or the model does something to them afterwards (a gate, a norm); leave the "
            "output out to keep the weights unverified"
        )
    limit = kept.tolerance * largest
    return {"verified": away, "verified_against": "attention output", "verified_limit": limit}


def _away(kept: LayerArrays) -> float:
    weights = _recomputed(kept) if kept.weights is None else kept.weights
    values = np.asarray(kept.values, np.float64)
    if weights.shape[0] % values.shape[0] or weights.shape[2] != values.shape[1]:
        raise RecordError(f"{kept.name}: weights {weights.shape} do not fit values {values.shape}")
    ours = weights.astype(np.float64) @ _shared(values, weights.shape[0])
    output = np.asarray(kept.output)
    _check_same(
        ours.shape, output.shape, f"{kept.name}: weights times values are", "outputs were kept"
    )
    return float(np.abs(ours - output).max())


def _check_same(ours: tuple[int, ...], theirs: tuple[int, ...], before: str, after: str) -> None:
    if ours != theirs:
        raise RecordError(
            f"{before} {ours}, but {theirs} {after}; are they of the same layer and text?"
        )


def _shared(array: np.ndarray, heads: int) -> np.ndarray:
    """``[kv_head ...]`` to ``[head ...]``: neighbouring heads share."""
    return np.repeat(array, heads // array.shape[0], axis=0)


FEWEST = 4
"""Fewest queries to find one in: with fewer, anything looks like it."""
EXACT = 1e-5
HALF_EXACT = 1e-2
"""How far steps along one diagonal may be apart, in units of the largest score; for scores of half
precision.
"""


def position_bias(
    scores: Float[np.ndarray, "head query key"],
    ours: Float[np.ndarray, "head query key"],
    visible: Bool[np.ndarray, "query key"] | None,
    *,
    half: bool = False,
) -> Float[np.ndarray, "head query key"] | None:
    """What was added to our scores, or None where it is no function of the distance from query to
    key.

    A constant in a row does not change the softmax, so that what must depend on the distance alone
    is the step from one key to the next.

    Args:
        scores: what went into the softmax.
        ours: what follows from queries and keys.
        visible: where the query may look; None for everywhere.
        half: whether the scores were computed in half precision.
    """
    _, queries, keys = scores.shape
    seen = np.ones((queries, keys), bool) if visible is None else visible
    if queries < FEWEST or not np.isfinite(scores[:, seen]).all():
        return None
    bias = np.where(seen, scores.astype(np.float64), 0.0) - np.where(seen, ours, 0.0)
    # A step is known only where the query sees both keys.
    steps, both = np.diff(bias, axis=2), seen[:, 1:] & seen[:, :-1]
    allowed = (HALF_EXACT if half else EXACT) * float(np.abs(scores[:, seen]).max())
    # Along a diagonal the distance from query to key is the same, and so must be the step.
    for offset in range(1 - queries, keys - 1):
        along = np.diagonal(steps, offset, 1, 2)[:, np.diagonal(both, offset)]
        if along.size and float(np.ptp(along, axis=1).max()) > allowed:
            return None
    return bias.astype(np.float32)
