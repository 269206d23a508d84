"""The layers of one short text, which wait until it has run and are then worked on together.

For a text of a few words, starting an operation of torch takes longer than computing it. Layers of
the same form are therefore taken for the texts of one batch: every operation on the weights is
started once, and not once for each layer. Each layer is checked as strictly as one by itself,
through its own output projection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from headscope.capturing.building._build import Builder
from headscope.capturing.building._checks import check_sizes, explained, verified
from headscope.capturing.building._real_tokens import RealTokens, stored
from headscope.capturing.building._side_tokens import SideTokens
from headscope.capturing.building.layers import (
    KEPT_OF_CALL,
    NO_ARRAYS,
    VOUCHED,
    SeenLayer,
    facts_of_call,
)
from headscope.capturing.calls.call import Call, joined_calls
from headscope.capturing.calls.tiles import are_one
from headscope.capturing.calls.visibility import Visibility, state_of
from headscope.capturing.inputs.inputs import Inputs
from headscope.capturing.keep import KeepChoice
from headscope.capturing.watching.deferred_work import DeferredWork
from headscope.record import HeldHeads
from headscope.record.vouched import has_finite_squares

NUMBERS_TOGETHER = 2**20
"""How many numbers of calls are worked on together: 4 MiB in single precision."""
BEFORE = {"query_before": "query", "key_before": "key"}
"""Tensors of a call before positions were applied, and what they became."""


@dataclass(frozen=True, eq=False)
class WaitingLayer:
    """A call of one text.

    Args:
        call: the call.
        tensors: what the layer is made of, by name; they are the model's own.
    """

    call: Call
    tensors: dict[str, torch.Tensor]

    @property
    def form(self) -> tuple:
        """What calls must share to be worked on together."""
        call = self.call
        form = [(name, tensor.shape, tensor.dtype) for name, tensor in self.tensors.items()]
        shared = call.scale, call.soft_cap, call.cross, call.route, call.context.device
        return (*state_of(call.mask), *state_of(call.bias), *shared, *form)


class ShortTextBuilder(Builder):
    """Makes the layers of one text, those of the same form together.

    A layer that cannot wait is made at once, as by `Builder`: of a long text, or with what layers
    do not share. Where there is padding, layers are made one by one in the end.

    Args:
        inputs: one text.
        keeping: the arrays to keep.
        model: the model that makes the calls.
    """

    def __init__(self, inputs: Inputs, keeping: KeepChoice, model: nn.Module) -> None:
        super().__init__(inputs, keeping, model)
        self._later = DeferredWork(self._write_waiting)
        # Norms follow what attention gives from its call on.
        if "norms" not in keeping.what:
            self.deferred = self._later
        self._waiting: list[WaitingLayer] = []
        self._held = 0
        self._layers: Call | None = None
        self._alike_sides: dict[tuple, tuple[SideTokens, SideTokens]] = {}

    def take(self, call: Call) -> None:
        """As `Builder.take`; the layer may be made and checked later, at the latest in
        `complete`.
        """
        if not _can_wait(call):
            super().take(call)
            return
        if self.norms is not None and self._later.is_open:
            self.norms.mark(call, call, self._sides.of(call))
        used = call.mask, call.bias, *_tensors(call).values()
        self._later.add(self._wait, call, used=used)

    def complete(self) -> None:
        """All calls of the pass were seen: make the layers that wait.

        Raises:
            CaptureError: where one of them differs from what the model computed.
            OverwrittenError: where the model wrote over what a layer had used.
        """
        self._later.work()
        super().complete()

    def _wait(self, call: Call) -> None:
        """Make the layer of a call with others, if it comes after the pass."""
        if not self._later.is_running:
            super().take(call)
            return
        check_sizes(call)
        self._made[call.name] += 1
        self._waiting.append(WaitingLayer(call, _tensors(call)))
        self._held += numbers_in(call)
        if self._held > NUMBERS_TOGETHER:
            self._write_waiting()

    def _write_waiting(self) -> None:
        """Make the layers that wait."""
        forms: dict[tuple, list[WaitingLayer]] = {}
        for each in self._waiting:
            shared = self._visibility_of(each.call).causal, *map(id, self._sides.of(each.call))
            forms.setdefault((shared, each.form), []).append(each)
        self._waiting, self._held = [], 0
        for alike in forms.values():
            self._write(alike)

    def _write(self, alike: Sequence[WaitingLayer]) -> None:
        """Make layers of one form."""
        first = alike[0].call
        of_text, visibility = self._sides.of(first), self._visibility_of(first)
        rows, padding = self._rows_and_padding_of(first, of_text)
        is_padded = padding is not None or of_text[0].positions[0].numel() != first.size[2]
        call = None if is_padded else _together(alike)
        if call is None or not explained(call, visibility, rows):
            for each in alike:
                super().take(each.call)
            return
        self._layers = call
        sides = self._sides_of_layers(of_text, len(alike))
        unpadded = self._unpadded(call, sides)
        self._count(call, layers=len(alike))
        weights = self._checked_rows(unpadded, sides, visibility, (rows, None))
        checks, turns = verified(call, weights, rows), self._rotations.of(unpadded)
        visible = self._masks.of(unpadded[0], visibility)
        facts = [
            {**facts_of_call(each.call), "visible": visible, **turned, **checked}
            for each, turned, checked in zip(alike, turns, checks, strict=True)
        ]
        known = weights if rows.at is None else None
        layers = self._kept(unpadded, facts, sides, known=known)
        of_layers = [None] * len(alike) if known is None else known.split(1)
        for each, layer, own in zip(alike, layers, of_layers, strict=True):
            group = self._sides.group_of(each.call, of_text)
            seen = SeenLayer(each.call, group, sides=of_text)
            seen.layers = [layer]
            self.seen[seen.number] = seen
            if self.norms is not None:
                self.norms.expect(each.call, visibility, own, [layer])

    def _sides_of_layers(
        self, sides: tuple[SideTokens, SideTokens], count: int
    ) -> tuple[SideTokens, SideTokens]:
        """The tokens of a text, once for each of so many layers."""
        known = (*map(id, sides), count)
        if known not in self._alike_sides:
            query, key = (
                replace(side, tokens=side.tokens * count, positions=side.positions * count)
                for side in sides
            )
            self._alike_sides[known] = query, key
        return self._alike_sides[known]

    def _kept_weights(
        self, unpadded: list[RealTokens], known: torch.Tensor | None
    ) -> tuple[list[np.ndarray], bool]:
        if known is None or unpadded[0].call is not self._layers:
            return super()._kept_weights(unpadded, known)
        return self._of_layers(known), self._are_kept(known) and are_one(known.sum(-1))

    def _arrays(
        self, unpadded: list[RealTokens], visibility: Visibility, held: HeldHeads | None
    ) -> list[dict[str, Any]]:
        if unpadded[0].call is not self._layers:
            return super()._arrays(unpadded, visibility, held)
        kept, vouched = self._kept_of(unpadded[0].call)
        shared = dict(NO_ARRAYS)
        if "queries" in kept:
            shared["bias"], is_finite = self._bias(unpadded[0], visibility)
            vouched.update(["bias"] if is_finite else [])
        return [
            {
                **shared,
                **{name: arrays[layer] for name, arrays in kept.items()},
                VOUCHED: set(vouched),
            }
            for layer in range(len(unpadded))
        ]

    def _kept_of(self, call: Call) -> tuple[dict[str, list[np.ndarray]], set[str]]:
        """What is kept of the tensors of all layers, and the names of those that are vouched
        for.
        """
        kept, vouched = {}, set()
        for name, (of_call, what) in KEPT_OF_CALL.items():
            tensor = getattr(call, of_call)
            if what in self._keeping.what and tensor is not None:
                kept[name] = self._of_layers(tensor)
                if self._are_kept(tensor) and has_finite_squares(tensor.numpy()):
                    vouched.add(name)
        return kept, vouched

    def _of_layers(self, tensor: torch.Tensor) -> list[np.ndarray]:
        """What is kept of ``[layer ...]``: arrays of their own, as views would keep all."""
        if self._are_kept(tensor):
            whole = tensor.numpy()
        else:
            whole = stored(tensor, self._keeping.dtype)
        return [of_layer.copy() for of_layer in whole]

    def _are_kept(self, tensor: torch.Tensor) -> bool:
        """Whether numbers are kept in the precision in which they are at hand."""
        is_single = tensor.device.type == "cpu" and tensor.dtype == torch.float32
        return is_single and self._keeping.dtype == np.float32


class _Projections(nn.Module):
    """The output projections of several layers, each for its own rows."""

    def __init__(self, projections: Sequence[nn.Module]) -> None:
        super().__init__()
        # not registered: their parameters are the model's own
        self._each = tuple(projections)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """``[layer * row feature]``, the layers one after the other."""
        parts = rows.chunk(len(self._each))
        # forward, not a call: hooks that the user put on the modules must not run again
        outputs = [module.forward(part) for module, part in zip(self._each, parts, strict=True)]
        return torch.cat(outputs)


def numbers_in(call: Call) -> int:
    """How many numbers the tensors of a call have."""
    numbers = 0
    for name in ("query", "key", "value", "context", "weights"):
        tensor = getattr(call, name)
        if tensor is not None:
            numbers += tensor.numel()
    return numbers


def _can_wait(call: Call) -> bool:
    """Whether a call is of one text, and has nothing that each layer has for itself."""
    if len(call.context) != 1 or call.layout.open or call.changes:
        return False
    return call.sinks is None and call.added is None


def _tensors(call: Call) -> dict[str, torch.Tensor]:
    """What a layer is made of, by name; those before positions only where they are others."""
    # Where the output of the projection is compared, the context is not.
    compared = "context" if call.projection is None or call.output is None else "output"
    tensors = {}
    for name in ("query", "key", "value", "weights", compared):
        tensor = getattr(call, name)
        if tensor is not None:
            tensors[name] = tensor
    for name, after in BEFORE.items():
        tensor = getattr(call, name)
        if tensor is not None and tensor is not tensors.get(after):
            tensors[name] = tensor
    return tensors


def _together(alike: Sequence[WaitingLayer]) -> Call:
    """Calls of one form as one, each a text of its batch."""
    first, count = alike[0].call, len(alike)
    names = [name for name in alike[0].tensors if name != "output"]
    call = joined_calls([each.call for each in alike], names)
    parts: dict[str, Any] = {}
    for name in names:
        parts[name] = getattr(call, name).contiguous()
    if "output" in alike[0].tensors:
        # whose axis of the batch may be missing, or not be the first one
        outputs = torch.stack([each.tensors["output"] for each in alike]).detach()
        parts["output"] = outputs.reshape(count, first.size[2], -1)
    for name, after in BEFORE.items():
        if getattr(first, name) is not None:
            parts.setdefault(name, parts.get(after))
    return replace(call, projection=_projections_of(alike), **parts)


def _projections_of(alike: Sequence[WaitingLayer]) -> nn.Module | None:
    """The output projections of calls of one form as one; None where they have none."""
    each = [layer.call.projection for layer in alike]
    projections = [module for module in each if module is not None]
    return _Projections(projections) if projections else None
