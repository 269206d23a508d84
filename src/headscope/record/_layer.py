"""One attention layer of one text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.errors import RecordError
from headscope.record import _checks, recompute
from headscope.record._facts import AGAINST, NOTHING
from headscope.record._mask import Mask
from headscope.record._statistics import Contributions, Statistics
from headscope.record._stored import Array, RebuiltWhenCopied, array_field, held, part_of
from headscope.record.rotary import Rotary

if TYPE_CHECKING:  # pyright cannot follow a name for one of jaxtyping's types
    Floating: TypeAlias = np.ndarray
else:
    Floating = Float[np.ndarray, "..."]


@dataclass(frozen=True, kw_only=True, eq=False)
class Layer(RebuiltWhenCopied):
    """What the heads of one layer computed: the weights, or queries and keys from which they follow
    exactly.

    Weights are ``softmax(soft_cap(queries . keys * scale) + bias)`` over the visible keys and the
    sinks.

    Args:
        layer: number of the layer in the model, from 0.
        held_heads: which heads the arrays are of, where not all were kept (``capture(heads=...)``);
            None for all. Arrays have one row for each head that was kept then, and one for each
            key/value head that these use; every method takes the number that a head has in the
            model, and refuses heads that were not kept.
        weights: ``[head query key]``, rows sum to 1, or to less where there are sinks.
        queries: ``[head query feature]``, after positions are applied.
        keys: ``[kv_head key feature]``, after positions are applied; several heads may share one.
        values: ``[kv_head key feature]``.
        queries_before: ``[head query feature]``, before positions are applied; kept on request.
        keys_before: ``[kv_head key feature]``, the same of keys.
        value_norms: ``[head key]``, ``||f(x_j)||``: how long what each token adds is where it is
            looked at in full, its value times the head's part of the output projection.
        contributions: what each token adds to the layer's output over all heads, where it was kept.
        scale: what scores are multiplied by.
        visible: a `Mask`, or ``[query key]`` with True where the query may look; None is taken for
            a mask under which everything is visible.
        bias: ``[head query key]`` or ``[1 query key]``, added to the scores (relative positions,
            ALiBi).
        soft_cap: scores become ``soft_cap * tanh(score / soft_cap)`` before the bias is added.
        partial: whether rows were cut before they came here (the largest weights of each, a sparse
            form): they may sum to less than 1, and what is missing was not kept.
        sinks: ``[head]``, one more logit in each row's softmax that belongs to no token.
        statistics: what the heads do row by row, where the weights themselves are not kept.
        rotary: how positions turned queries and keys, where they did.
        turned: why ``rotary`` does not describe what positions did; empty where it does, or where
            they did nothing.
        norm: class of the norm that queries and keys went through before positions; empty where
            there is none.
        latent: width of the latent vectors that keys and values were made of (multi-head latent
            attention).
        module: name of the attention module in the model.
        projection: name of the output projection, found by watching; empty where something stands
            in between.
        route: how it was captured: ``"interface"`` (of transformers) or ``"operators"`` (of torch).
        verified: largest difference between what was recomputed from this layer and the model's
            own.
        verified_against: what that was: the ``"layer output"``, after the output projection; the
            ``"attention output"``, weights times values, where no output projection was seen; or
            ``"itself"``, where these weights times these values are all that was seen. Empty where
            it is not known.
        verified_limit: up to which difference the layer passes: 1e-4 of the largest value, 3e-2 in
            half precision.
        changes: what was done to the layer on purpose, in words (see `headscope.intervene`); rows
            may then sum to less than 1, or to 0 where a head's output was replaced.

    Raises:
        RecordError: where the arrays do not fit together or hold what weights cannot be.
    """

    layer: int
    held_heads: _checks.HeldHeads | None = None
    weights: Array | None = array_field()
    queries: Array | None = array_field()
    keys: Array | None = array_field()
    values: Array | None = array_field()
    queries_before: Array | None = array_field()
    keys_before: Array | None = array_field()
    value_norms: Array | None = array_field()
    contributions: Contributions | None = None
    scale: float = 1.0
    visible: Mask | Any = None
    bias: Array | None = array_field()
    soft_cap: float | None = None
    sinks: Array | None = array_field()
    partial: bool = False
    statistics: Statistics | None = None
    rotary: Rotary | None = None
    turned: str = ""
    norm: str = ""
    latent: int | None = None
    module: str = ""
    projection: str = ""
    route: str = ""
    verified: float | None = None
    verified_against: str = ""
    verified_limit: float | None = None
    changes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        fields = vars(self)
        kept = [name for name in _checks.ARRAYS if fields[name] is not None]
        for name in kept:
            fields[name] = _checks.frozen(fields[name])
            self._check_axes(name)
        if self.visible is not None and not isinstance(self.visible, Mask):
            object.__setattr__(self, "visible", Mask.of(self.visible))
        if not self.has("weights") and self.statistics is None:
            self._check_kept()
        # Only now is there a size, which follows from arrays whose axes were checked.
        if self.visible is None:
            object.__setattr__(self, "visible", Mask.full(*self.size))
        if self.verified_against not in AGAINST:
            known = ", ".join(map(repr, AGAINST))
            raise RecordError(f"verified_against is one of {known}, not {self.verified_against!r}")
        _checks.check_shapes(self, kept)
        _checks.check_values(self, kept)

    def __repr__(self) -> str:
        """A line that lists what there is and what is kept of it."""
        heads, (queries, keys) = self.heads, self.size
        kept = [name for name in _checks.ARRAYS if self.has(name)]
        shared = f" on {self.kv_heads} key/value heads" if self.kv_heads < heads else ""
        held_here = ", ".join(kept) or "statistics"
        of = ""
        if self.held_heads is not None:
            of = f" of head {', '.join(map(str, self.held_heads.numbers))}"
        return (
            f"<Layer {self.layer}: {heads} heads{shared}, {queries} x {keys}, {self.kind}; holds "
            f"{held_here}{of}{', unverified' * (self.verified_against == NOTHING)}>"
        )

    @property
    def heads(self) -> int:
        """Number of heads of the layer in the model; see `head_numbers` for those that the record
        holds.
        """
        return self._kept_size[0] if self.held_heads is None else self.held_heads.heads

    @property
    def head_numbers(self) -> tuple[int, ...]:
        """Numbers of the heads that the record holds: all, or those of ``capture(heads=...)``."""
        return tuple(range(self.heads)) if self.held_heads is None else self.held_heads.numbers

    @property
    def kv_heads(self) -> int:
        """Number of key/value heads: fewer than heads where heads share their keys and values."""
        if self.held_heads is not None:
            return self.held_heads.kv_heads
        for name in ("keys", "values"):
            if self.has(name):
                return self.shape_of(name)[0]
        return self.heads

    @property
    def size(self) -> tuple[int, int]:
        """Number of queries and of keys."""
        return self._kept_size[1:]

    @property
    def _kept_size(self) -> tuple[int, int, int]:
        """Number of heads that were kept, of queries and of keys: the shape of the weights."""
        if self.has("weights"):
            heads, queries, keys = self.shape_of("weights")
            return heads, queries, keys
        if self.statistics is not None and not (self.has("queries") and self.has("keys")):
            return self.statistics.heads, *self.statistics.size
        self._check_kept()
        (heads, queries, _), (_, keys, _) = self.shape_of("queries"), self.shape_of("keys")
        return heads, queries, keys

    def has(self, name: str) -> bool:
        """Whether an array, such as ``"queries"``, was kept; nothing is read."""
        return held(self, name) is not None

    def shape_of(self, name: str) -> tuple[int, ...]:
        """Shape of an array that was kept; nothing is read."""
        return held(self, name).shape

    def part(self, name: str, *index: Any) -> np.ndarray:
        """Part of an array that was kept; of a record in a file nothing else is read.

        Args:
            name: such as ``"queries"``.
            *index: for each axis, from the first, a number, a slice or a list of numbers; heads are
                numbered as in the model.

        Raises:
            RecordError: a head that was not kept.
            FileError: where the file was changed since it was opened.
        """
        if self.held_heads is not None and index and self._has_axis_of_heads(name):
            shared = _checks.ARRAYS[name].startswith("kv_head")
            index = (self._head_index(index[0], shared=shared), *index[1:])
        return part_of(held(self, name), *index)

    @property
    def kind(self) -> str:
        """``full``, ``causal`` (all that came before), ``sliding`` (the nearest few), ``chunked``
        or ``masked``.
        """
        return self.visible.kind

    @property
    def kv_head_of(self) -> Int[np.ndarray, " head"]:
        """The key/value head that each head uses."""
        return np.arange(self.heads) // (self.heads // self.kv_heads)

    @property
    def dead(self) -> Bool[np.ndarray, " query"]:
        """True for queries that may look at nothing: their rows are all zero."""
        return self.visible.dead

    def weights_of(self, head: Any = None, *, queries: Any = None) -> Floating:
        """Weights of one head ``[query key]``, or of all ``[head query key]``: kept ones, or
        recomputed in float64.

        Args:
            head: number of the head; None for all.
            queries: positions of the queries of one head to give the rows of; None for all.

        Raises:
            RecordError: where there is no such head, or not all were kept, or a file holds what
                weights cannot be, or this machine has no room for them.
        """
        if queries is not None:
            _checks.check_number("head", head)
            self._chosen(head)
            if not self.has("weights"):
                self._check_kept()
            return recompute.exact_rows(self, int(head), np.asarray(queries, int))
        weights = self._weights(self._chosen(head))
        return weights if head is None else weights[0]

    def held_weights(self) -> Floating:
        """Weights ``[head query key]`` of the heads that the record holds, in the order of
        `head_numbers`.
        """
        return self._weights(
            slice(None) if self.held_heads is None else list(self.held_heads.numbers)
        )

    def _weights(self, chosen: slice | list[int]) -> Floating:
        if not self.has("weights"):
            sinks = self.part("sinks", chosen) if self.has("sinks") else None
            with self._room_for(chosen, recompute.RECOMPUTED):
                return recompute.softmax_of(self._scores(chosen), sinks)
        stored = held(self, "weights")
        if not _checks.is_on_disk(stored):
            return self.part("weights", chosen)
        # Into memory first: what was checked must be what is given, and the file may change.
        with self._room_for(chosen, stored.dtype.itemsize):
            weights = np.array(self.part("weights", chosen))
        _checks.check_weights(
            weights, self._name("weights"), sinks=self._may_be_less, dead=self.dead
        )
        return weights

    def _room_for(self, chosen: slice | list[int], bytes_each: int) -> AbstractContextManager[None]:
        """Refuse weights or scores of these heads where this machine cannot hold them."""
        heads = len(np.arange(self.heads)[chosen])
        return recompute.room_for((heads, *self.size), bytes_each, f"Layer {self.layer}")

    def weight_blocks(
        self, head: Any, *, queries: Any = None, rows: int | None = None
    ) -> Iterator[recompute.WeightBlock]:
        """Weights of one head some rows at a time, in single precision: of a long text no matrix of
        all queries and keys is held, as `weights_of` does.

        Args:
            head: number of the head.
            queries: rising positions of the queries to give the rows of; None for all.
            rows: rows of a block; by default as many as make 2^18 weights, and 32 at least.

        Yields:
            `WeightBlock`: positions of the queries, the keys from the first to the last that one of
            them sees, and the weights ``[query key]`` between them.

        Raises:
            RecordError: where there is no such head, or it was not kept, or a file holds what
                weights cannot be.
        """
        _checks.check_number("head", head)
        self._chosen(head)
        if not self.has("weights"):
            self._check_kept()
        chosen = np.arange(self.size[0]) if queries is None else np.asarray(queries)
        return recompute.weight_blocks(self, int(head), chosen, rows)

    def scores_of(self, head: Any = None) -> Floating:
        """What goes into the softmax, ``[query key]`` or ``[head query key]``; -inf where the query
        may not look.

        Raises:
            RecordError: where queries and keys were not kept, or this machine has no room for the
                scores.
        """
        chosen = self._chosen(head)
        with self._room_for(chosen, recompute.SCORED):
            scores = self._scores(chosen)
        return scores if head is None else scores[0]

    def contributions_of(self, kind: str = "attention") -> Floating:
        """What each key adds to each query over all heads, ``[query key]``: a map of
        `Contributions`.

        Raises:
            RecordError: where it was not kept, or the layer was refused, with the reason.
        """
        if self.contributions is None:
            raise RecordError(f"Layer {self.layer} has no contributions; capture with keep='norms'")
        try:
            return self.contributions.of(kind)
        except RecordError as error:
            raise RecordError(f"Layer {self.layer}: {error}") from None

    def head_contributions_of(self, head: Any = None) -> Floating:
        """``||a f(x_j)||`` of one head ``[query key]``, or of all ``[head query key]``: weights
        times value norms.

        Source: Kobayashi et al. 2020, section 2.

        Raises:
            RecordError: where value norms were not kept, or there is no such head.
        """
        chosen = self._chosen(head)
        if not self.has("value_norms"):
            reason = None
            if self.contributions is not None:
                reason = self.contributions.missing.get("attention")
            raise RecordError(
                f"Layer {self.layer} holds no value norms; "
                f"{reason or 'capture with keep=' + repr('norms')}"
            )
        norms = self._finite_part("value_norms", chosen)
        return self.weights_of(head) * (norms[0] if head is not None else norms[:, None, :])

    def before_positions(self) -> tuple[Floating, Floating]:
        """Queries ``[head query feature]`` and keys ``[kv_head key feature]`` before positions were
        applied to them.

        As the model made them where these were kept (``keep="before"``), otherwise turned back in
        float64.

        Raises:
            RecordError: where queries and keys were not kept, or cannot be turned back.
        """
        if self.has("queries_before") and self.has("keys_before"):
            return self._finite_part("queries_before"), self._finite_part("keys_before")
        self._check_kept()
        if self.turned:
            raise RecordError(
                f"Layer {self.layer}: {self.turned}, so that they cannot be turned back; capture "
                "with keep=('qk', 'before'), which keeps them as the model made them, where that "
                "can be seen"
            )
        queries, keys = self._finite_part("queries"), self._finite_part("keys")
        if self.rotary is None:
            return queries, keys
        return self.rotary.turned(queries, back=True), self.rotary.turned(keys, back=True)

    def _check_kept(self) -> None:
        if not (self.has("queries") and self.has("keys")):
            kept = "weights but no" if self.has("weights") else "neither weights nor"
            raise RecordError(
                f"Layer {self.layer} holds {kept} queries and keys; capture with keep='qk' or "
                "keep='auto'"
            )

    def _finite_part(self, name: str, *index: Any) -> np.ndarray:
        """Part of an array; of one in a file, whose values nobody has seen yet, they are
        checked.
        """
        part = self.part(name, *index)
        if _checks.is_on_disk(held(self, name)):
            _checks.check_finite(part, self._name(name))
        return part

    def _scores(self, chosen: slice | list[int]) -> Floating:
        self._check_kept()
        bias = None
        if self.has("bias"):
            of_heads = chosen if self._has_axis_of_heads("bias") else slice(None)
            bias = self._finite_part("bias", of_heads)
        return recompute.scores_of(
            self._finite_part("queries", chosen),
            self._finite_part("keys", self.kv_head_of[chosen]),
            scale=self.scale,
            soft_cap=self.soft_cap,
            bias=bias,
            visible=None if self.visible.is_full else self.visible.dense(),
        )

    @property
    def _may_be_less(self) -> bool:
        """Whether rows may sum to less than 1."""
        return self.has("sinks") or bool(self.changes) or self.partial

    @property
    def not_kept(self) -> float:
        """Mean share of a row's weight that was not kept, over all heads and queries; 0 where rows
        are whole.
        """
        if not self.partial:
            return 0.0
        # A row that may look at nothing is all zero, and nothing of it was cut.
        alive = self.held_weights()[:, ~self.dead]
        if not alive.size:
            return 0.0
        return float(max(0.0, 1 - alive.sum(axis=-1, dtype=np.float64).mean()))

    def _has_axis_of_heads(self, name: str) -> bool:
        """Whether an array has a row for each head; one bias may stand for all."""
        return name != "bias" or self.shape_of(name)[0] > 1

    def _head_index(self, wanted: Any, *, shared: bool) -> Any:
        """Where heads of these numbers stand in the arrays of a layer of which not all heads were
        kept.
        """
        if self.held_heads is None or (isinstance(wanted, slice) and wanted == slice(None)):
            return wanted
        name = f"Layer {self.layer}"
        if isinstance(wanted, slice):
            count = self.held_heads.kv_heads if shared else self.held_heads.heads
            return self.held_heads.indices(range(*wanted.indices(count)), name, shared=shared)
        if np.ndim(wanted) == 0:
            return self.held_heads.indices([int(wanted)], name, shared=shared)[0]
        return self.held_heads.indices([int(number) for number in wanted], name, shared=shared)

    def _chosen(self, head: Any) -> slice:
        if head is None:
            # All heads of the model were asked for: places raises where one of them was not kept.
            if self.held_heads is not None:
                self.held_heads.indices(range(self.held_heads.heads), f"Layer {self.layer}")
            return slice(None)
        _checks.check_number("head", head)
        if not 0 <= head < self.heads:
            raise RecordError(f"Layer {self.layer} has heads 0 to {self.heads - 1}, not {head}")
        return slice(head, head + 1)

    def _name(self, array: str) -> str:
        return f"{array} of layer {self.layer}"

    def _check_axes(self, name: str) -> None:
        shape = self.shape_of(name)
        if len(shape) != len(_checks.AXES[name]):
            raise RecordError(
                f"{self._name(name)} has shape {shape}; expected the axes [{_checks.ARRAYS[name]}]"
            )
