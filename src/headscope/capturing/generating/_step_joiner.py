"""The calls of all steps of a generation, joined to one record."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from headscope.capturing._chosen_heads import held_heads
from headscope.capturing.building._checks import explained, verified
from headscope.capturing.building._inventory import inventory_of
from headscope.capturing.building._real_tokens import (
    ROWS_CHECKED,
    Masks,
    RealTokens,
    plain,
    stored,
)
from headscope.capturing.building._rotation import Rotations
from headscope.capturing.building.layers import SeenLayer, SeenStack, facts_of_call
from headscope.capturing.building.stacks import StackKey, group_of, role_of
from headscope.capturing.calls.attention import EXACT, LOST_AT_MOST, QueryRows, spread, weights_of
from headscope.capturing.calls.call import Call
from headscope.capturing.calls.visibility import Visibility, visibility_of
from headscope.capturing.keep import WEIGHTS_KEPT_BELOW, KeepChoice
from headscope.capturing.watching._routers import routers_of
from headscope.errors import CaptureError
from headscope.record import ARRAYS, HeldHeads, Mask, Stack, Tokens, weakest

SIDES = {"decoder": ("target", "target"), "cross": ("target", "source")}


class StepJoiner:
    """Takes the calls of one step after the other and joins those of each layer.

    Args:
        keeping: what to keep.
        model: whose calls they are.

    ``left_out`` is `Watch.left_out` of the run, ``unseen`` that of its inventory.
    """

    def __init__(self, keeping: KeepChoice, model: nn.Module) -> None:
        self._keeping, self._model = keeping, model
        self._by_call: dict[tuple[str, bool, int], LayerSteps] = {}
        self._visits: Counter[tuple[str, bool]] = Counter()
        self._masks = Masks()
        self.left_out: list[str] = []
        self.unseen: str = ""

    def take(self, call: Call) -> None:
        """One call, checked at once; of its step only new rows are kept.

        Raises:
            CaptureError: where the layer is not what the model computed, or the step cannot be
                joined.
        """
        visited = call.name, call.cross
        # A module may run several times in a step, as the shared layer of ALBERT does.
        key = (*visited, self._visits[visited])
        self._visits[visited] += 1
        if key not in self._by_call:
            self._by_call[key] = LayerSteps(call, self._keeping, self._by_call.values())
        self._by_call[key].add(call, self._masks)

    def end_step(self) -> None:
        """The next call belongs to another pass of the model."""
        self._visits.clear()
        self._masks = Masks()
        weights = sum(steps.weights_size for steps in self._by_call.values())
        if self._keeping.auto and weights > WEIGHTS_KEPT_BELOW:
            # Queries and keys are kept all the same, and weights follow from them.
            for steps in self._by_call.values():
                steps.drop_weights()

    def stacks(
        self, tokens: Mapping[str, Tokens], routers: Mapping[str, np.ndarray] | None = None
    ) -> dict[str, Stack]:
        """The joined stacks.

        Args:
            tokens: that were read, by side: ``"source"``, and ``"target"`` of an encoder-decoder.
            routers: router scores ``[token expert]`` of all steps, by the name of the router's
                module.

        Raises:
            CaptureError: where a layer did not read each of them once.
        """
        wanted, seen = self._keeping.heads, self._by_call.values()
        alike: dict[Mask | None, Mask | None] = {}
        stacks = {}
        inventory = inventory_of(self._model, seen, self.left_out, wanted)
        self.unseen = inventory.unseen
        for stack, others in zip(inventory.stacks, inventory.others, strict=True):
            query, key = (tokens[side] for side in _sides(stack.group, tokens))
            for steps in stack.layers.values():
                _check_size(stack.name, "queries", steps.read, len(query))
                _check_size(stack.name, "keys", steps.known, len(key))
                steps.end(len(query), len(key), alike)
            layers = stack.layers_of(0, wanted)
            if layers:
                stacks[stack.name] = Stack(
                    name=stack.name,
                    query=query,
                    key=key,
                    layers=layers,
                    others=others,
                    routers=self._routed(routers, stack, query),
                )
        return stacks

    def _routed(
        self, routers: Mapping[str, np.ndarray] | None, stack: SeenStack, query: Tokens
    ) -> dict[int, np.ndarray]:
        """Router scores by number of the layer, without those of a pass that came after the end;
        they belong to the block, and are kept with its self-attention alone.
        """
        if stack.group.cross:
            return {}
        own = routers_of(self._model, stack.group.path, routers or {})
        for scores in own.values():
            _check_size(stack.name, "tokens to route", len(scores), len(query))
        return {number: scores[: len(query)] for number, scores in own.items()}


def _sides(group: StackKey, tokens: Mapping[str, Tokens]) -> tuple[str, str]:
    role = role_of(group.path, group.cross) if "target" in tokens else ""
    return SIDES.get(role, ("source", "source"))


def _check_size(name: str, what: str, seen: int, wanted: int) -> None:
    """Each token once; a model may run one pass more than it takes, before it sees that the text
    has ended.
    """
    if not wanted <= seen <= wanted + (wanted > 1):
        raise CaptureError(
            f"A layer of stack {name!r} worked on {seen} {what} in all steps together, but "
            f"{wanted} tokens were read; steps that add, drop or repeat tokens cannot be joined"
        )


SAME_WITHIN = 1e-5
"""How far a key that comes out of the cache may be from the one that went in, relative to the
largest.
"""

Vectors = Float[np.ndarray, "head token feature"]
PlacedBlock = tuple[int, int, np.ndarray]
"""Where the queries and keys of a step begin, and its block ``[head query key]``, whose sizes are
those of the step.
"""


@dataclass(frozen=True)
class StepRange:
    """Where the queries and keys of a call stand in the whole text.

    Args:
        first: place of the first query.
        offset: place of the first key; a cache that slides has dropped those before it.
        kept: how many of the keys are tokens; a static cache has empty places after them.
    """

    first: int
    offset: int
    kept: int


class LayerSteps(SeenLayer):
    """A layer whose calls come step after step, of which only new rows are kept.

    Args:
        call: the first one.
        keeping: what to keep.
        earlier: the layers whose calls came before it.
    """

    def __init__(self, call: Call, keeping: KeepChoice, earlier: Iterable[SeenLayer] = ()) -> None:
        super().__init__(call, group_of(call))
        self.read, self.known = 0, 0
        heads = set(range(self.heads))
        if keeping.heads is not None:
            choices = [choice for _, choice in self.may_hold(keeping.heads, earlier)]
            heads = set().union(*choices)
        self._count, self._what = len(heads), keeping.what if heads else frozenset()
        self._held = held_heads(call, tuple(sorted(heads))) if heads else None
        self._kv_heads = call.value.shape[1]
        # norm and rotation are seen where queries and keys are the same tokens, which is at the
        # first step
        self._facts = facts_of_call(call)
        if call.sinks is not None:
            self._facts["sinks"] = plain(self._own(call.sinks.reshape(-1)))
        self._keeping = keeping
        self._arrays = {name: _Growing() for name in ("queries", "keys", "values")}
        self._has_qk = "qk" in self._what
        self._blocks: list[PlacedBlock] | None = [] if "weights" in self._what else None
        self._biases: list[PlacedBlock] = []
        self._runs: list[np.ndarray] = []
        self._counts: list[np.ndarray] = []

    @property
    def weights_size(self) -> int:
        """How many bytes the joined weights would take; 0 where they are not kept."""
        itemsize = self._keeping.dtype.itemsize
        return 0 if self._blocks is None else self._count * self.read * self.known * itemsize

    def drop_weights(self) -> None:
        """Keep no weights from now on, where queries and keys say the same."""
        if self._has_qk:
            self._blocks = None

    def add(self, call: Call, masks: Masks) -> None:
        """Check one step's call and keep of it what is new.

        Raises:
            CaptureError: where the layer is not what the model computed, or the step cannot be
                joined.
        """
        span = self._span(call)
        visibility = _visibility(call, span)
        unpadded = RealTokens(
            call,
            0,
            *(torch.arange(n, device=call.context.device) for n in (call.size[2], span.kept)),
        )
        if not self.read:
            self._facts |= Rotations().of([unpadded])[0]
        self._keep_queries_and_keys(unpadded, visibility, span)
        rows = _some_rows(unpadded) if self._blocks is None else QueryRows()
        checked = weights_of(call, visibility, rows)
        weights = checked[0]
        ours = weights[:, :, : span.kept]
        _check_nothing_lost(weights[:, :, span.kept :], call.name)
        if self._blocks is not None:
            self._blocks.append((span.first, span.offset, self._plain(self._own(ours))))
        if "values" in self._what:
            self._extend("values", self._own_shared(call.value[0]), span, call.name)
        self._note(call, verified(call, checked, rows)[0])
        self._see(masks.of(unpadded, visibility), unpadded, span)
        self.read += call.size[2]
        self.known = max(self.known, span.offset + span.kept)

    def end(self, queries: int, keys: int, alike: dict[Mask | None, Mask | None]) -> None:
        """Put the steps together to a layer over this many tokens; what is beyond is left out.

        Args:
            queries: how many tokens look.
            keys: how many are looked at.
            alike: the masks of all layers, of which equal ones are held once.
        """
        arrays: dict[str, Any] = {
            name: growing.first(keys) for name, growing in self._arrays.items()
        }
        arrays["queries"] = self._arrays["queries"].first(queries)
        arrays["bias"] = arrays["weights"] = None
        size, dtype = (queries, keys), self._keeping.dtype
        if self._biases:
            heads = max(block.shape[0] for _, _, block in self._biases)
            arrays["bias"] = _put_together(self._biases, (heads, *size), dtype)
        if self._blocks is not None:
            arrays["weights"] = _put_together(self._blocks, (self._count, *size), dtype)
        mask = self._mask(queries, keys)
        visible = alike.setdefault(mask, mask)
        self.layers = [arrays | self._facts | {"held_heads": self._held, "visible": visible}]

    def arguments(self, example: int, number: int, heads: tuple[int, ...] | None) -> dict[str, Any]:
        """As `SeenLayer.arguments`, once the steps are put together."""
        whole = self.layers[example]
        if heads is None:
            return whole
        kept = self._held or HeldHeads(tuple(range(self.heads)), self.heads, self._kv_heads)
        if kept.numbers == heads:
            return whole
        held = HeldHeads(heads, kept.heads, kept.kv_heads)
        arguments = whole | {"held_heads": held}
        for name, axes in ARRAYS.items():
            array = whole.get(name)
            if array is None or (name == "bias" and len(array) == 1):
                continue
            shared = axes.startswith("kv_head")
            wanted = held.kv_numbers if shared else held.numbers
            arguments[name] = array[kept.indices(wanted, self.made.name, shared=shared)]
        return arguments

    def _mask(self, queries: int, keys: int) -> Mask | None:
        """Which keys each query saw; None where each saw all."""
        firsts = np.concatenate([[0], np.cumsum(np.concatenate(self._counts)[:queries])])
        runs = np.concatenate(self._runs)[: firsts[-1]]
        mask = Mask(keys=keys, runs=runs, firsts=firsts)
        return None if mask.is_full else mask

    def _span(self, call: Call) -> StepRange:
        batch, _, queries, keys = call.size
        if batch != 1:
            raise CaptureError(
                f"{call.name} works on {batch} sequences at once; only one can be recorded"
            )
        if call.odd:
            raise CaptureError(f"{call.name} {call.odd}")
        if call.weights is not None and tuple(call.weights.shape) != call.size:
            raise CaptureError(f"{call.name} multiplies weights in blocks, which cannot be joined")
        if call.cross:
            return StepRange(self.read, 0, keys)
        total = self.read + queries
        if self.read and 1 < queries == keys:
            raise CaptureError(
                f"{call.name} reads the whole text again at every step, without a key/value cache; "
                "record the finished text with headscope.capture(model, tokenizer, text)"
            )
        span = StepRange(self.read, max(total - keys, 0), min(keys, total))
        if span.offset > self.read:
            raise CaptureError(
                f"{call.name} has {queries} queries and only {keys} keys; its steps cannot be "
                "joined"
            )
        return span

    def _keep_queries_and_keys(
        self, unpadded: RealTokens, visibility: Visibility, span: StepRange
    ) -> None:
        call = unpadded.call
        if not self._has_qk:
            return
        follows = explained(call, visibility, _some_rows(unpadded))
        if call.query is None or call.key is None or not follows:
            if self.read and self._blocks is None:
                raise CaptureError(
                    f"{call.name} shows queries and keys in some steps only; generate with "
                    "keep='weights'"
                )
            # what says the same as queries and keys is kept instead, from the first step on
            self._has_qk, self._blocks = False, self._blocks or []
            self._arrays["queries"], self._arrays["keys"], self._biases = _Growing(), _Growing(), []
            return
        self._arrays["queries"].add(self._plain(self._own(unpadded.of_queries(call.query))))
        self._extend("keys", self._own_shared(call.key[0]), span, call.name)
        if visibility.bias is not None:
            bias = unpadded.of_both(visibility.bias)
            self._biases.append(
                (span.first, span.offset, self._plain(bias if len(bias) == 1 else self._own(bias)))
            )

    def _extend(self, name: str, tensor: torch.Tensor, span: StepRange, module: str) -> None:
        """Add the keys that are new, once a few of the others are seen to be what they were."""
        growing = self._arrays[name]
        new = growing.size - span.offset
        before = spread(new, ROWS_CHECKED).to(tensor.device)
        if len(before):
            plain = self._plain(tensor[:, before])
            known = growing.rows[:, before.cpu().numpy() + span.offset]
            exact = tensor.dtype in EXACT
            allowed = SAME_WITHIN * float(np.abs(known).max()) if exact else 0.0
            if np.abs(plain - known).max() > allowed:
                raise CaptureError(
                    f"{module}: the cache returns other {name} than it was given, as one that "
                    "quantises or moves them does; such steps cannot be joined. If you chose a "
                    "cache_implementation, leave it out"
                )
        growing.add(self._plain(tensor[:, new : span.kept]))

    def _note(self, call: Call, checked: dict[str, Any]) -> None:
        facts = self._facts
        if (
            not math.isclose(call.scale, facts["scale"], rel_tol=1e-6)
            or call.soft_cap != facts["soft_cap"]
        ):
            raise CaptureError(
                f"{call.name}: the scale of the scores changes from step to step; it cannot be "
                "joined"
            )
        facts["projection"] = facts["projection"] or call.projection_name
        before = facts if "verified" in facts else checked
        against = before["verified_against"], checked["verified_against"]
        facts["verified"] = max(before["verified"], checked["verified"])
        facts["verified_against"] = weakest(against)
        facts["verified_limit"] = min(before["verified_limit"], checked["verified_limit"])

    def _see(self, mask: Mask | None, unpadded: RealTokens, span: StepRange) -> None:
        if mask is None:
            whole = [span.offset, span.offset + span.kept]
            self._runs.append(np.tile(np.array([whole], np.int32), (len(unpadded.queries), 1)))
            self._counts.append(np.ones(len(unpadded.queries), np.int32))
        else:
            self._runs.append(mask.runs + span.offset)
            self._counts.append(np.diff(mask.firsts))

    def _own(self, tensor: torch.Tensor) -> torch.Tensor:
        """Of an array whose first axis is the heads, those that are kept."""
        return tensor if self._held is None else tensor[list(self._held.numbers)]

    def _own_shared(self, tensor: torch.Tensor) -> torch.Tensor:
        """Of an array whose first axis is the key/value heads, those that are kept."""
        return tensor if self._held is None else tensor[list(self._held.kv_numbers)]

    def _plain(self, tensor: torch.Tensor) -> np.ndarray:
        return stored(tensor, self._keeping.dtype)


class _Growing:
    """An array ``[head token feature]`` that grows along its tokens."""

    def __init__(self) -> None:
        self.size = 0
        self._room: np.ndarray = np.zeros((0, 0, 0), np.float32)

    @property
    def rows(self) -> Vectors:
        """What was added so far."""
        return self._room[:, : self.size]

    def add(self, rows: Vectors) -> None:
        """Append tokens."""
        needed = self.size + rows.shape[1]
        if not self.size:
            self._room = rows
        elif needed > self._room.shape[1]:
            grown = np.empty((rows.shape[0], max(needed, 2 * self.size), rows.shape[2]), rows.dtype)
            grown[:, : self.size] = self.rows
            self._room = grown
        self._room[:, self.size : needed] = rows
        self.size = needed

    def first(self, count: int) -> Vectors | None:
        """An array of its own with the first tokens; None where there are none."""
        return np.array(self.rows[:, :count], order="C") if self.size else None


def _put_together(
    blocks: Iterable[PlacedBlock], size: tuple[int, int, int], dtype: np.dtype
) -> Float[np.ndarray, "head read known"]:
    """The blocks of all steps where they belong; what lies beyond heads, queries and keys of the
    whole is left out.
    """
    whole = np.zeros(size, dtype)
    _, queries, keys = size
    for first, offset, block in blocks:
        part = block[:, : max(0, queries - first), : max(0, keys - offset)]
        whole[:, first : first + part.shape[1], offset : offset + part.shape[2]] = part
    return whole


def _visibility(call: Call, span: StepRange) -> Visibility:
    """What the queries may look at; where only weights were seen, causal if none lies on a later
    token.
    """
    visibility = visibility_of(call)
    if (
        call.query is not None
        or call.weights is None
        or call.cross
        or visibility.visible is not None
    ):
        return visibility
    _, _, queries, keys = call.size
    queries_at = torch.arange(queries, device=call.weights.device)[:, None] + span.first
    earlier = torch.arange(keys, device=call.weights.device) + span.offset <= queries_at
    if call.weights.masked_select(~earlier).any():
        return Visibility(bias=visibility.bias)
    return Visibility(visible=earlier[None, None], bias=visibility.bias)


def _check_nothing_lost(empty: torch.Tensor, name: str) -> None:
    """Raise where weight lies on places of the cache that no token has filled."""
    lost = empty.sum(-1).max().item() if empty.shape[-1] else 0.0
    if lost > LOST_AT_MOST:
        raise CaptureError(
            f"{name}: up to {lost:.3g} of a row's weight lies on empty places of the cache, which "
            "this model does not hide; its steps are no causal attention over the text. Generate "
            "without cache_implementation"
        )


def _some_rows(unpadded: RealTokens) -> QueryRows:
    return QueryRows.spread([unpadded.queries], len(unpadded.queries), ROWS_CHECKED)
