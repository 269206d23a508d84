"""One attention layer of one text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.errors import RecordError
from headscope.record._checks import check_finite, check_floats, check_weights, frozen, is_on_disk
from headscope.record._contributions import Contributions
from headscope.record._mask import Mask
from headscope.record._recompute import scores_of, softmax_of
from headscope.record._rotary import Rotary
from headscope.record._statistics import Statistics

Floating = Float[np.ndarray, "..."]


@dataclass(frozen=True, kw_only=True, eq=False)
class Layer:
    """What the heads of one layer computed: the weights, or queries and keys from which they follow exactly.

    Weights are ``softmax(soft_cap(queries . keys * scale) + bias)`` over the visible keys and the sinks.

    Args:
        layer: number of the layer in the model, from 0.
        weights: ``[head query key]``, rows sum to 1, or to less where there are sinks.
        queries: ``[head query feature]``, after positions are applied.
        keys: ``[kv_head key feature]``, after positions are applied; several heads may share one.
        values: ``[kv_head key feature]``.
        queries_before: ``[head query feature]``, before positions are applied; kept on request.
        keys_before: ``[kv_head key feature]``, the same of keys.
        value_norms: ``[head key]``, ``||f(x_j)||``: how long what each token adds is where it is looked at in full,
            its value times the head's part of the output projection.
        contributions: what each token adds to the layer's output over all heads, where it was kept.
        scale: what scores are multiplied by.
        visible: a `Mask`, or ``[query key]`` with True where the query may look; None where everything is visible.
        bias: ``[head query key]`` or ``[1 query key]``, added to the scores (relative positions, ALiBi).
        soft_cap: scores become ``soft_cap * tanh(score / soft_cap)`` before the bias is added.
        sinks: ``[head]``, one more logit in each row's softmax that belongs to no token.
        statistics: what the heads do row by row, where the weights themselves are not kept.
        rotary: how positions turned queries and keys, where they did.
        turned: why ``rotary`` does not tell what positions did; empty where it does, or where they did nothing.
        norm: class of the norm that queries and keys went through before positions; empty where there is none.
        latent: width of the latent vectors that keys and values were made of (multi-head latent attention).
        module: name of the attention module in the model.
        projection: name of the output projection, found by watching; empty where something stands in between.
        route: how it was captured: ``"interface"`` (of transformers) or ``"operators"`` (of torch).
        verified: largest difference between the layer output recomputed from this layer and the model's own.
        changes: what was done to the layer on purpose, in words (see `headscope.intervene`); rows may then sum to less
            than 1, or to 0 where a head's output was replaced.

    Raises:
        RecordError: where the arrays do not fit together or hold what weights cannot be.
    """

    layer: int
    weights: np.ndarray | None = None
    queries: np.ndarray | None = None
    keys: np.ndarray | None = None
    values: np.ndarray | None = None
    queries_before: np.ndarray | None = None
    keys_before: np.ndarray | None = None
    value_norms: np.ndarray | None = None
    contributions: Contributions | None = None
    scale: float = 1.0
    visible: Mask | Any = None
    bias: np.ndarray | None = None
    soft_cap: float | None = None
    sinks: np.ndarray | None = None
    statistics: Statistics | None = None
    rotary: Rotary | None = None
    turned: str = ""
    norm: str = ""
    latent: int | None = None
    module: str = ""
    projection: str = ""
    route: str = ""
    verified: float | None = None
    changes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ARRAYS:
            array = getattr(self, name)
            if array is not None:
                object.__setattr__(self, name, frozen(np.asanyarray(array)))
                self._check_axes(name)
        if self.visible is not None and not isinstance(self.visible, Mask):
            object.__setattr__(self, "visible", Mask.of(self.visible))
        if self.weights is None and self.statistics is None:
            self._queries_and_keys()
        self._check_shapes()
        self._check_values()

    @property
    def heads(self) -> int:
        """Number of heads."""
        return self.size_of_all[0]

    @property
    def kv_heads(self) -> int:
        """Number of key/value heads: fewer than heads where heads share their keys and values."""
        for array in (self.keys, self.values):
            if array is not None:
                return array.shape[0]
        return self.heads

    @property
    def size(self) -> tuple[int, int]:
        """Number of queries and of keys."""
        return self.size_of_all[1:]

    @property
    def size_of_all(self) -> tuple[int, int, int]:
        """Number of heads, of queries and of keys: the shape of the weights."""
        if self.weights is not None:
            heads, queries, keys = self.weights.shape
            return heads, queries, keys
        if self.statistics is not None and (self.queries is None or self.keys is None):
            return self.statistics.heads, *self.statistics.size
        queries, keys = self._queries_and_keys()
        return queries.shape[0], queries.shape[1], keys.shape[1]

    @property
    def kind(self) -> str:
        """``full``, ``causal`` (all that came before), ``sliding`` (the nearest few), ``chunked`` or ``masked``."""
        return "full" if self.visible is None else self.visible.kind

    @property
    def kv_head_of(self) -> Int[np.ndarray, " head"]:
        """The key/value head that each head uses."""
        return np.arange(self.heads) // (self.heads // self.kv_heads)

    @property
    def dead(self) -> Bool[np.ndarray, " query"]:
        """True for queries that may look at nothing: their rows are all zero."""
        return np.zeros(self.size[0], bool) if self.visible is None else self.visible.dead

    def weights_of(self, head: int | None = None) -> Floating:
        """Weights of one head ``[query key]``, or of all ``[head query key]``: kept ones, or recomputed in float64.

        Raises:
            RecordError: where there is no such head, or a file holds what weights cannot be.
        """
        chosen = self._chosen(head)
        if self.weights is None:
            found = softmax_of(self._scores(chosen), None if self.sinks is None else self.sinks[chosen])
        else:
            found = self.weights[chosen]
            if is_on_disk(self.weights):
                found = np.array(found)
                check_weights(found, self._name("weights"), sinks=self._may_be_less, dead=self.dead)
        return found if head is None else found[0]

    def scores_of(self, head: int | None = None) -> Floating:
        """What goes into the softmax, ``[query key]`` or ``[head query key]``; -inf where the query may not look.

        Raises:
            RecordError: where queries and keys were not kept.
        """
        found = self._scores(self._chosen(head))
        return found if head is None else found[0]

    def contributions_of(self, kind: str = "attention") -> Floating:
        """What each key adds to each query over all heads, ``[query key]``: a map of `Contributions`.

        Raises:
            RecordError: where it was not kept, or this layer was refused; the message says why.
        """
        if self.contributions is None:
            raise RecordError(f"Layer {self.layer} holds no contributions; capture with keep='norms'")
        try:
            return self.contributions.of(kind)
        except RecordError as error:
            raise RecordError(f"Layer {self.layer}: {error}") from None

    def head_contributions_of(self, head: int | None = None) -> Floating:
        """``||a f(x_j)||`` of one head ``[query key]``, or of all ``[head query key]``: weights times value norms.

        Source: Kobayashi et al. 2020, section 2.

        Raises:
            RecordError: where value norms were not kept, or there is no such head.
        """
        chosen = self._chosen(head)
        if self.value_norms is None:
            reason = None if self.contributions is None else self.contributions.missing.get("attention")
            raise RecordError(
                f"Layer {self.layer} holds no value norms; {reason or 'capture with keep=' + repr('norms')}"
            )
        if is_on_disk(self.value_norms):
            check_finite(self.value_norms, self._name("value_norms"))
        found = self.weights_of(head) * (
            self.value_norms[chosen][0] if head is not None else self.value_norms[:, None, :]
        )
        return found

    def before_positions(self) -> tuple[Floating, Floating]:
        """Queries ``[head query feature]`` and keys ``[kv_head key feature]`` before positions were applied to them.

        As the model made them where these were kept (``keep="before"``), otherwise turned back in float64.

        Raises:
            RecordError: where queries and keys were not kept, or cannot be turned back.
        """
        if self.queries_before is not None and self.keys_before is not None:
            return self.queries_before, self.keys_before
        queries, keys = self._queries_and_keys()
        if self.turned:
            raise RecordError(
                f"Layer {self.layer}: {self.turned}, so that they cannot be turned back; capture with keep=('qk', "
                "'before'), which keeps them as the model made them, where that can be seen"
            )
        if self.rotary is None:
            return queries, keys
        return self.rotary.turned(queries, back=True), self.rotary.turned(keys, back=True)

    def _queries_and_keys(self) -> tuple[np.ndarray, np.ndarray]:
        if self.queries is None or self.keys is None:
            kept = "neither weights nor" if self.weights is None else "weights but no"
            raise RecordError(
                f"Layer {self.layer} holds {kept} queries and keys; capture with keep='qk' or keep='auto'"
            )
        return self.queries, self.keys

    def _scores(self, chosen: slice) -> Floating:
        queries, keys = self._queries_and_keys()
        shared = self.kv_head_of[chosen]
        for name, array, part in (("queries", queries, chosen), ("keys", keys, shared)):
            if is_on_disk(array):
                check_finite(array[part], self._name(name))
        bias = self.bias if self.bias is None or self.bias.shape[0] == 1 else self.bias[chosen]
        if bias is not None and is_on_disk(bias):
            check_finite(bias, self._name("bias"))
        return scores_of(
            queries[chosen],
            keys[shared],
            scale=self.scale,
            soft_cap=self.soft_cap,
            bias=bias,
            visible=None if self.visible is None else self.visible.dense(),
        )

    @property
    def _may_be_less(self) -> bool:
        """Whether rows may sum to less than 1."""
        return self.sinks is not None or bool(self.changes)

    def _chosen(self, head: int | None) -> slice:
        if head is None:
            return slice(None)
        if not 0 <= head < self.heads:
            raise RecordError(f"Layer {self.layer} has heads 0 to {self.heads - 1}, not {head}")
        return slice(head, head + 1)

    def _name(self, array: str) -> str:
        return f"{array} of layer {self.layer}"

    def _check_axes(self, name: str) -> None:
        shape, axes = getattr(self, name).shape, ARRAYS[name]
        if len(shape) != len(axes.split()):
            raise RecordError(f"{self._name(name)} has shape {shape}; wanted are the axes [{axes}]")

    def _check_shapes(self) -> None:
        heads, (queries, keys) = self.heads, self.size
        if heads % max(1, self.kv_heads):
            raise RecordError(f"Layer {self.layer}: {heads} heads cannot share {self.kv_heads} key/value heads evenly")
        wanted = {
            "weights": (heads, queries, keys),
            "queries": (heads, queries, _width(self.queries)),
            "keys": (self.kv_heads, keys, _width(self.queries if self.queries is not None else self.keys)),
            "values": (self.kv_heads, keys, _width(self.values)),
            "queries_before": (heads, queries, _width(self.queries_before)),
            "keys_before": (self.kv_heads, keys, _width(self.keys_before)),
            "value_norms": (heads, keys),
            "sinks": (heads,),
        }
        for name, shape in wanted.items():
            if getattr(self, name) is not None:
                check_floats(getattr(self, name), self._name(name), shape, ARRAYS[name])
        if self.bias is not None:
            check_floats(self.bias, self._name("bias"), (self.bias.shape[0], queries, keys), ARRAYS["bias"])
            if self.bias.shape[0] not in (1, heads):
                raise RecordError(f"{self._name('bias')} has {self.bias.shape[0]} heads; give 1 or {heads}")
        if self.statistics is not None and (self.statistics.heads, *self.statistics.size) != (heads, queries, keys):
            raise RecordError(
                f"{self._name('statistics')} are of {self.statistics.heads} heads and {self.statistics.size} queries "
                f"and keys, but the arrays of {heads} heads and {(queries, keys)}"
            )
        if self.contributions is not None and self.contributions.size not in (None, (queries, keys)):
            raise RecordError(
                f"{self._name('contributions')} are of {self.contributions.size} queries and keys, but the arrays of "
                f"{(queries, keys)}"
            )
        if self.visible is not None and self.visible.shape != (queries, keys):
            raise RecordError(
                f"{self._name('visible')} has shape {self.visible.shape}, but [query key] is {(queries, keys)}"
            )

    def _check_values(self) -> None:
        for name in ARRAYS.keys() - {"weights"}:
            array = getattr(self, name)
            if array is not None and not is_on_disk(array):
                check_finite(array, self._name(name))
        if self.weights is not None and not is_on_disk(self.weights):
            check_weights(self.weights, self._name("weights"), sinks=self._may_be_less, dead=self.dead)


ARRAYS = {
    "weights": "head query key",
    "queries": "head query feature",
    "keys": "kv_head key feature",
    "values": "kv_head key feature",
    "queries_before": "head query feature",
    "keys_before": "kv_head key feature",
    "value_norms": "head key",
    "bias": "head query key",
    "sinks": "head",
}
"""The arrays that a layer may hold beside its mask, and their axes."""


def _width(array: np.ndarray | None) -> int:
    return -1 if array is None else array.shape[-1]
