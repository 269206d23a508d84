"""The calls of all steps of a generation, joined as if the text had been read in one pass."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from headscope.capturing.building._checks import ROWS_CHECKED, explained
from headscope.capturing.building.layers import group_of, role_of
from headscope.capturing.calls.attention import EXACT, LOST_AT_MOST, QueryRows
from headscope.capturing.calls.call import Call, visibility_of
from headscope.capturing.keep import WEIGHTS_KEPT_BELOW, KeepChoice
from headscope.errors import CaptureError

READ = {"query": 2, "context": 1, "output": 1, "added": 1}
"""Tensors of a call with an entry for each token that a step reads, and the axis of the tokens."""
CACHED = {"key": 2, "value": 2}
"""Tensors with those that were read before, too."""
BETWEEN = ("mask", "bias", "weights")
"""Tensors of queries and keys."""
SAME_WITHIN = 1e-5
"""How far a key that comes out of the cache may be from the one that went in, relative to the
largest.
"""
SIDES = {"decoder": ("target", "target"), "cross": ("target", "source")}
Shared = dict[tuple, torch.Tensor]
"""Masks and biases of all layers, of which equal ones are held once."""


class JoinedSteps:
    """Notes the calls of every step, of which only what is new is held, and joins those of each
    layer to one call.

    Args:
        keeping: what to keep.
        padding: how many tokens stand before each prompt of the batch.
    """

    def __init__(self, keeping: KeepChoice, padding: Sequence[int]) -> None:
        self._keeping, self._padding = keeping, padding
        self._layers: dict[tuple[str, bool, int], LayerSteps] = {}
        self._visits: Counter[tuple[str, bool]] = Counter()

    @property
    def bytes_held(self) -> int:
        """Of all layers, without their masks."""
        return sum(layer.bytes_held for layer in self._layers.values())

    def take(self, call: Call) -> None:
        """One call of a step.

        Raises:
            CaptureError: where the step cannot be joined.
        """
        if call.layout.open or call.size[0] != len(self._padding):
            raise CaptureError(
                f"{call.name} works on {call.size[0]} sequences at once, and it is not known where "
                f"the {len(self._padding)} that are written stand in it"
            )
        visited = call.name, call.cross
        # A module may run several times in a step, as the shared layer of ALBERT does.
        key = (*visited, self._visits[visited])
        self._visits[visited] += 1
        if key not in self._layers:
            self._layers[key] = LayerSteps(call, holds_weights="weights" in self._keeping.what)
        self._layers[key].add(call, self._padding)

    def end_pass(self) -> None:
        """The next call belongs to another pass of the model."""
        self._visits.clear()
        layers = self._layers.values()
        if self._keeping.auto and sum(each.weights_size for each in layers) > WEIGHTS_KEPT_BELOW:
            # Queries and keys are kept all the same, and weights follow from them.
            for each in layers:
                each.drop_weights()

    def calls(self, lengths: Mapping[str, int]) -> Iterator[Call]:
        """A call of each layer over all that was read.

        Args:
            lengths: how many tokens were read, padding included, by side: ``"source"``, and
                ``"target"`` of an encoder-decoder.

        Raises:
            CaptureError: where a layer did not read each of them once.
        """
        shared: Shared = {}
        for layer in self._layers.values():
            group = group_of(layer.call)
            role = role_of(group.path, group.cross) if "target" in lengths else ""
            query, key = SIDES.get(role, ("source", "source"))
            yield layer.joined((lengths[query], lengths[key]), shared)


@dataclass(frozen=True)
class Step:
    """What a step adds to a layer.

    Args:
        first: place of its first query in the whole text.
        offset: place of its first key; a cache that slides has dropped those before it.
        queries: how many there are.
        kept: how many of the keys are tokens; a static cache has empty places after them.
        causal: whether each query attends to keys up to its own place alone.
        mask: of the call.
        bias: of the call.
    """

    first: int
    offset: int
    queries: int
    kept: int
    causal: bool
    mask: torch.Tensor | None
    bias: torch.Tensor | None

    @property
    def hides_later(self) -> bool:
        """Whether it is a part of causal attention that needs no mask."""
        is_last = self.queries == 1 and self.kept == self.first + 1
        is_first = self.causal and not self.first
        return self.mask is None and not self.offset and (is_last or is_first)

    def visible(self, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        """The mask, in this form."""
        mask = self.mask
        if mask is None:
            mask = torch.ones(1, 1, self.queries, self.kept, dtype=torch.bool, device=device)
            mask = mask.tril() if self.causal else mask
        if mask.dtype == dtype:
            return mask
        numbers = torch.zeros(mask.shape, dtype=dtype, device=device)
        return numbers.masked_fill(~mask, torch.finfo(dtype).min)


class LayerSteps:
    """The calls of one layer, step after step.

    Args:
        call: the first one.
        holds_weights: whether the weights that the model returns are held.
    """

    def __init__(self, call: Call, *, holds_weights: bool) -> None:
        # Positions are seen where queries and keys are the same tokens, which is at the first step.
        nothing: dict[str, Any] = dict.fromkeys((*READ, *CACHED, *BETWEEN))
        self.call = replace(call, **nothing)
        self._device, self._heads = call.context.device, call.size[:2]
        self._read = self._known = 0
        self._steps: list[Step] = []
        self._parts: dict[str, list[torch.Tensor] | None] = {name: [] for name in READ | CACHED}
        self._weights: list[torch.Tensor] | None = [] if holds_weights else None
        self._follows = True
        self._lost: list[torch.Tensor] = []
        self._cache: dict[str, torch.Tensor | None] = {}

    @property
    def bytes_held(self) -> int:
        """Without masks."""
        held = [*self._parts.values(), self._weights]
        return sum(tensor.nbytes for parts in held for tensor in parts or ())

    @property
    def weights_size(self) -> int:
        """Bytes in single precision of the joined weights, if the model's own are held."""
        return 4 * math.prod(self._heads) * self._read * self._known if self._weights else 0

    def drop_weights(self) -> None:
        """Hold no weights from now on, where they follow from queries and keys."""
        if self._follows:
            self._weights = None

    def add(self, call: Call, padding: Sequence[int]) -> None:
        """The call of one more step.

        Raises:
            CaptureError: where it cannot be joined.
        """
        step = self._step(call)
        if self._follows and not self._are_explained(call, padding):
            if self._read and self._weights is None:
                raise self._shown_in_some()
            # What says the same as queries and keys is held instead, from the first step on.
            self._follows, self._weights = False, self._weights or []
            self._parts["query"] = self._parts["key"] = None
        if self._weights is not None and call.weights is not None:
            self._weights.append(call.weights[..., : step.kept])
        self._note_lost(call, step)
        for name, axis in READ.items():
            self._note(name, getattr(call, name), axis, slice(None))
        new = slice(self._known - step.offset, step.kept)
        for name, axis in CACHED.items():
            self._cache[name] = getattr(call, name)
            if new.start < new.stop:
                self._note(name, getattr(call, name), axis, new)
        self._steps.append(step)
        self._read += step.queries
        self._known = max(self._known, step.offset + step.kept)

    def joined(self, size: tuple[int, int], shared: Shared) -> Call:
        """The call over so many queries and keys; what is beyond is left out.

        Raises:
            CaptureError: where not each of them was read once, the cache changed what it was given,
                or weight lies on its empty places.
        """
        self._check_sizes(size)
        self._check_cache()
        parts: dict[str, Any] = {}
        for names, count in zip((READ, CACHED), size, strict=True):
            for name, axis in names.items():
                held = self._parts[name]
                parts[name] = None if held is None else torch.cat(held, axis).narrow(axis, 0, count)
        steps = self._steps
        if self._weights:
            if len(self._weights) < len(steps):
                raise self._shown_in_some()
            parts["weights"] = _placed(steps, self._weights, size, 0)
        parts["mask"], parts["causal"] = self._mask(size, shared)
        if any(step.bias is not None for step in steps):
            key = "bias", size, *((*_place(step), id(step.bias)) for step in steps)
            if key not in shared:
                shared[key] = _placed(steps, [step.bias for step in steps], size, 0)
            parts["bias"] = shared[key]
        return replace(self.call, **parts)

    def _mask(self, size: tuple[int, int], shared: Shared) -> tuple[torch.Tensor | None, bool]:
        """The mask over all steps, or whether the call is causal without one."""
        steps = self._steps
        kinds = [step.mask.dtype for step in steps if step.mask is not None]
        sees_all = all((step.offset, step.kept) == (0, size[1]) for step in steps)
        if not kinds and (sees_all or not self._follows):
            # Of weights alone, the zeros in them tell what is hidden.
            return None, len(steps) == 1 and steps[0].causal
        if all(step.hides_later for step in steps):
            return None, True
        key = "mask", size, *((*_place(step), step.causal, id(step.mask)) for step in steps)
        if key not in shared:
            # Numbers, where a step adds some to the scores.
            dtype = next((kind for kind in kinds if kind != torch.bool), torch.bool)
            blocks = [step.visible(dtype, self._device) for step in steps]
            hidden = 0 if dtype == torch.bool else torch.finfo(dtype).min
            shared[key] = _placed(steps, blocks, size, hidden)
        return shared[key], False

    def _step(self, call: Call) -> Step:
        """Where the tokens of a step stand in the whole text."""
        name, (_, _, queries, keys), total = call.name, call.size, self._read + call.size[2]
        alike = math.isclose(call.scale, self.call.scale, rel_tol=1e-6)
        why = ""
        if call.odd:
            why = call.odd
        elif call.weights is not None and tuple(call.weights.shape) != call.size:
            why = "multiplies weights in blocks, which cannot be joined"
        elif not alike or call.soft_cap != self.call.soft_cap:
            why = "changes the scale of the scores from step to step; it cannot be joined"
        elif not call.cross and self._read and 1 < queries == keys:
            why = (
                "reads the whole text again at every step, without a key/value cache; record the "
                "finished text with headscope.capture(model, tokenizer, text)"
            )
        elif not call.cross and total - keys > self._read:
            why = f"has {queries} queries and only {keys} keys; its steps cannot be joined"
        if why:
            raise CaptureError(f"{name} {why}")
        if call.cross:
            offset, kept = 0, keys
        else:
            offset, kept = max(total - keys, 0), min(keys, total)
        return Step(self._read, offset, queries, kept, call.causal, call.mask, call.bias)

    def _are_explained(self, call: Call, padding: Sequence[int]) -> bool:
        """Whether queries and keys are there, and the weights that the model returned, if any,
        follow from them.
        """
        if call.query is None or call.key is None or call.weights is None:
            return call.query is not None and call.key is not None
        before = [0 if self._read else own for own in padding]
        real = [torch.arange(own, call.size[2], device=self._device) for own in before]
        rows = QueryRows.spread(real, call.size[2], ROWS_CHECKED)
        return explained(call, visibility_of(call), rows)

    def _note(self, name: str, tensor: torch.Tensor | None, axis: int, part: slice) -> None:
        """Hold a part of a tensor; nothing of one that not every step has."""
        held = self._parts[name]
        if tensor is None or held is None:
            self._parts[name] = None
            return
        if name == "output":
            tensor = tensor.reshape(self._heads[0], -1, tensor.shape[-1])
        held.append(tensor[(slice(None),) * axis + (part,)].detach().clone())

    def _note_lost(self, call: Call, step: Step) -> None:
        """Note whether weight lies on places of the cache that no token has filled."""
        keys = call.size[3]
        if step.kept == keys or call.causal:
            return
        lost = torch.ones((), device=self._device)
        if call.weights is not None:
            lost = call.weights[..., step.kept :].sum(-1).max()
        elif call.mask is not None:
            empty = call.mask[..., step.kept : keys]
            least = 0 if empty.dtype == torch.bool else torch.finfo(empty.dtype).min / 2
            lost = (empty > least).any()
        self._lost.append(lost.float())

    def _check_sizes(self, size: tuple[int, int]) -> None:
        for what, seen, wanted in zip(
            ("queries", "keys"), (self._read, self._known), size, strict=True
        ):
            # A model may run one pass more than it takes, before it sees that the text has ended.
            if not wanted <= seen <= wanted + (wanted > 1):
                raise CaptureError(
                    f"{self.call.name} worked on {seen} {what} in all steps together, but {wanted} "
                    "tokens were read; steps that add, drop or repeat tokens cannot be joined"
                )

    def _check_cache(self) -> None:
        lost = float(torch.stack(self._lost).max()) if self._lost else 0.0
        if lost > LOST_AT_MOST:
            raise CaptureError(
                f"{self.call.name}: up to {lost:.3g} of a row's weight lies on empty places of the "
                "cache, which this model does not hide; its steps are no causal attention over the "
                "text. Generate without cache_implementation"
            )
        last = self._steps[-1]
        for name, now in self._cache.items():
            held = self._parts[name]
            if held is None or now is None:
                continue
            known = torch.cat(held, CACHED[name])[:, :, last.offset :]
            within = SAME_WITHIN * known.abs().max() if known.dtype in EXACT else 0
            if (now[:, :, : last.kept] - known).abs().max() > within:
                raise CaptureError(
                    f"{self.call.name}: the cache returns other {name}s than it was given, as one "
                    "that quantises or moves them does; such steps cannot be joined. If you chose "
                    "a cache_implementation, leave it out"
                )

    def _shown_in_some(self) -> CaptureError:
        return CaptureError(
            f"{self.call.name} shows queries and keys in some steps only; generate with "
            "keep='weights'"
        )


def _place(step: Step) -> tuple[int, ...]:
    return step.first, step.offset, step.queries, step.kept


def _placed(
    steps: Sequence[Step],
    blocks: Sequence[torch.Tensor | None],
    size: tuple[int, int],
    hidden: float,
) -> torch.Tensor:
    """The blocks of all steps ``[text head query key]`` where they belong, and ``hidden``
    elsewhere; what is beyond queries and keys of the whole is left out.
    """
    given = [block for block in blocks if block is not None]
    texts, heads = (max(block.shape[axis] for block in given) for axis in (0, 1))
    whole = given[0].new_full((texts, heads, *size), hidden)
    for step, block in zip(steps, blocks, strict=True):
        part = whole[:, :, step.first :, step.offset :][..., : step.queries, : step.kept]
        if block is not None:
            part.copy_(block[..., : part.shape[2], : part.shape[3]])
    return whole
