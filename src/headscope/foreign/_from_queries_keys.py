"""A record from queries and keys that nothing stands against: what engines and dumps keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from headscope.errors import RecordError, is_whole, listed
from headscope.record import NOTHING, HeldHeads, Layer, Mask, ModelFacts, Record, Rotary, Stack
from headscope.record.bare_arrays import Pieces, parse_array, parse_tokens

ASKED = (
    "rotary is what positions did to these queries and keys: 'applied' where they were turned "
    "already (as in vLLM's attention), the base of the frequencies (rope_theta, such as 10000.0) "
    "or a headscope.record.Rotary to turn them here, 'none' for a model without rotary positions"
)


def from_queries_keys(  # noqa: PLR0913 - what scores need, and what only the user knows
    queries: Any,
    keys: Any,
    tokens: Pieces,
    *,
    rotary: Any = None,
    scale: float | None = None,
    soft_cap: float | None = None,
    causal: bool = True,
    window: int | Mapping[int, int] | None = None,
    positions: Sequence[int] | None = None,
    heads: Mapping[int, Sequence[int]] | Sequence[int] | None = None,
    of: tuple[int, int] | None = None,
    model: str = "",
    verified: float | None = None,
) -> Record:
    """A record from queries and keys with nothing to check them against, such as those that an
    engine kept of chosen layers and heads.

    Weights are ``softmax(soft_cap(q . k * scale))`` over the keys that a query sees. What is given
    decides them, and a wrong scale or state of the positions gives other weights that look as good:
    the record is marked "unverified" wherever it is shown.

    Args:
        queries: ``[head query feature]`` of each layer by its number, a dictionary; or one array
            ``[layer head query feature]`` or a list, of layers from 0 on.
        keys: ``[kv_head key feature]`` in the same form; fewer heads than queries where these share
            them.
        tokens: of the keys.
        rotary: what positions did to queries and keys: ``"applied"``, they were turned already;
            a number, the base by which they are turned here (features ``i`` and ``i + half``, as
            LLaMA); a `headscope.record.Rotary`, for other ways; ``"none"``, there are no rotary
            positions.
        scale: what products are multiplied by; by default ``1 / sqrt(features)``. The
            mark names it.
        soft_cap: scores become ``soft_cap * tanh(score / soft_cap)``.
        causal: whether a query sees the keys up to its own place alone.
        window: how many of these it sees, the last; or this by number of the layer.
        positions: places of the queries among the keys, rising, where not all were kept; by default
            the last ones.
        heads: true numbers of the heads that the arrays are of, where not all were kept; or these
            by number of the layer.
        of: how many heads and key/value heads a layer has in the model, where not all were kept.
        model: what to call the model.
        verified: largest difference to the model's own outputs, where you have measured it; None
            for a record that is marked.

    Raises:
        RecordError: where arrays do not fit each other or the tokens, or something is missing.

    Example:
        >>> some = {5: np.ones((2, 3, 8), np.float32)}
        >>> record = from_queries_keys(some, some, ["a", "b", "c"], rotary="applied")
        >>> record["self"].weights(layer=5, head=1)[1].tolist()
        [0.5, 0.5, 0.0]
    """
    for name, number in (("scale", scale), ("soft_cap", soft_cap), ("verified", verified)):
        told = isinstance(number, Real) and not isinstance(number, bool) and 0 <= number < np.inf
        if number is not None and not (told and (number > 0 or name == "verified")):
            wanted = "the difference you measured" if name == "verified" else "a number above 0"
            raise RecordError(f"{name} is {number!r}; give {wanted}, or leave it out")
    asked, seen = (_by_layer(each, name) for each, name in ((queries, "queries"), (keys, "keys")))
    if set(asked) != set(seen):
        raise RecordError(
            f"queries are of layers {sorted(asked)}, and keys of {sorted(seen)}; give both of each"
        )
    of_keys = parse_tokens(tokens)
    places = _places(positions, next(iter(asked.values())).shape[1], len(of_keys))
    layers: list[Layer] = []
    for number in sorted(asked):
        held = _held(number, heads, of, len(asked[number]))
        pair = _fitting(number, asked[number], seen[number], held=held)
        own, other = pair
        if (own.shape[1], other.shape[1]) != (len(places), len(of_keys)):
            raise RecordError(
                f"Layer {number} has {own.shape[1]} queries and {other.shape[1]} keys; give "
                f"{len(of_keys)} keys, one for each token, and {len(places)} queries: positions= "
                "names their tokens"
            )
        width = window.get(number) if isinstance(window, Mapping) else window
        layers.append(
            Layer(
                layer=number,
                held_heads=held,
                scale=own.shape[2] ** -0.5 if scale is None else float(scale),
                soft_cap=soft_cap,
                visible=_visible(places, len(of_keys), width) if causal else None,
                verified=verified,
                verified_against=NOTHING if verified is None else "",
                **_turned(pair, places, rotary),
            )
        )
    whole = len(places) == len(of_keys)
    of_queries = of_keys if whole else of_keys.take(places.tolist())
    stack = Stack(name="self", query=of_queries, key=of_keys, layers=tuple(layers))
    return Record(stacks={"self": stack}, model=ModelFacts(name=model))


def _by_layer(given: Any, name: str) -> dict[int, np.ndarray]:
    """Arrays ``[head token feature]`` by number of the layer."""
    layers = given if isinstance(given, Mapping) else dict(enumerate(listed(given, name)))
    if not layers or not all(map(is_whole, layers)):
        raise RecordError(f"{name} are of layers {list(layers)}; give {{number: array}}")
    return {at: parse_array(each, f"{name} of layer {at}") for at, each in layers.items()}


def _places(positions: Any, queries: int, keys: int) -> np.ndarray:
    if positions is None:
        return np.arange(max(0, keys - queries), keys)
    places = np.array([each for each in listed(positions, "positions") if is_whole(each)], int)
    if len(places) != len(positions) or (np.diff(places) <= 0).any() or (places[-1:] >= keys).any():
        raise RecordError(f"positions are {positions!r:.60}; give rising places below {keys}")
    return places


def _held(number: int, heads: Any, of: Any, count: int) -> HeldHeads | None:
    """Which heads of the model arrays are of; None for all."""
    own = heads.get(number) if isinstance(heads, Mapping) else heads
    if own is None:
        return None
    told = isinstance(of, Sequence) and len(of) == 2 and all(map(is_whole, of))
    if not told or len(own) != count:
        raise RecordError(
            f"heads of layer {number} are {list(own)}, and its queries have {count}; give the "
            "number of each, and of=(heads, kv_heads), how many the layer has in the model"
        )
    return HeldHeads(tuple(own), *of)


def _fitting(
    number: int, queries: np.ndarray, keys: np.ndarray, *, held: HeldHeads | None
) -> tuple[np.ndarray, np.ndarray]:
    """Queries, and the keys that their heads use."""
    if held is not None and len(keys) == held.kv_heads:
        keys = keys[list(held.kv_numbers)]
    shared = len(keys) == len(held.kv_numbers) if held else len(queries) % max(1, len(keys)) == 0
    if not shared or queries.shape[2] != keys.shape[2]:
        raise RecordError(
            f"queries of layer {number} have shape {queries.shape}, and keys {keys.shape}; give "
            "[head query feature] and [kv_head key feature], with as many features, and heads that "
            "share key/value heads evenly"
        )
    return queries, keys


def _rotary(given: Any, features: int) -> Rotary | None:
    """The rotation that is left to do."""
    if isinstance(given, Rotary) or str(given) in ("applied", "none"):
        return given if isinstance(given, Rotary) else None
    if not isinstance(given, Real) or not 1 < given < np.inf:
        raise RecordError(f"rotary is {given!r}; {ASKED}")
    if features % 2:
        raise RecordError(
            f"rotary is {given!r}, and queries and keys have {features} features, which are no "
            "pairs; give an even number of them, or a headscope.record.Rotary that turns some"
        )
    frequencies = float(given) ** -(np.arange(0, features, 2) / features)
    return Rotary(frequencies=frequencies, style="halves")


def _turned(pair: tuple[Any, Any], places: np.ndarray, given: Any) -> dict[str, Any]:
    """Queries and keys after positions, by the names of `Layer`, and what turned them."""
    (queries, keys), rotary = pair, _rotary(given, pair[0].shape[2])
    # A rotation of a layer says where each token stands by its number among all.
    known = rotary if queries.shape[1] == keys.shape[1] else None
    if rotary is not None:
        whole = np.zeros((len(queries), *keys.shape[1:]))
        whole[:, places] = queries
        queries = rotary.turned(whole)[:, places].astype(queries.dtype)
        keys = rotary.turned(keys).astype(keys.dtype)
    turned = "" if known or given == "none" else "positions were applied, and not said how"
    return {"queries": queries, "keys": keys, "rotary": known, "turned": turned}


def _visible(places: np.ndarray, keys: int, window: int | None) -> Mask:
    if window is not None and not is_whole(window, 1):
        raise RecordError(f"window is {window!r}; give how many keys a query sees, from 1 on")
    starts = np.zeros(len(places), int) if window is None else np.maximum(places + 1 - window, 0)
    runs = np.stack([starts, places + 1], axis=1)
    return Mask(keys=keys, runs=runs, firsts=np.arange(len(places) + 1))
