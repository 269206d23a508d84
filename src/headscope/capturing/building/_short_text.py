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
from headscope.capturing.building._call_tokens import SideTokens
from headscope.capturing.building._checks import check_sizes, explained, verified
from headscope.capturing.building._real_tokens import RealTokens, stored
from headscope.capturing.building.layers import (
    KEPT_OF_CALL,
    NO_ARRAYS,
    VOUCHED,
    SeenLayer,
    facts_of_call,
)
from headscope.capturing.calls.attention import QueryRows
from headscope.capturing.calls.call import Call
from headscope.capturing.calls.tiles import are_one
from headscope.capturing.calls.visibility import Visibility, state_of
from headscope.capturing.inputs.inputs import Inputs
from headscope.capturing.keep import KeepChoice
from headscope.capturing.watching._before_positions import is_one
from headscope.capturing.watching.watch_plan import PlanFailedError
from headscope.record import HeldHeads
from headscope.record.vouched import has_finite_squares

NUMBERS_HELD = 2**20
"""How many numbers of calls may wait: 4 MiB in single precision."""
BEFORE = {"query_before": "query", "key_before": "key"}
"""Tensors of a call before positions were applied, and what they became."""


@dataclass(frozen=True, eq=False)
class WaitingLayer:
    """A call of one text without padding.

    Args:
        call: the call, with copies of its tensors: the model may write over its own.
        sides: its tokens.
        visibility: what its queries may look at.
        rows: the rows at which it is checked.
        states: of the tensors that say what its queries may look at, when it was made.
        form: what calls must share besides to be worked on together.
    """

    call: Call
    sides: tuple[SideTokens, SideTokens]
    visibility: Visibility
    rows: QueryRows
    states: tuple[int, ...]
    form: tuple


class ShortTextBuilder(Builder):
    """Makes the layers of one text, those of the same form together.

    A layer that cannot wait is made at once, as by `Builder`: of a long text, with padding, or with
    what layers do not share.

    Args:
        inputs: one text.
        keeping: the arrays to keep.
        model: the model that makes the calls.
    """

    def __init__(self, inputs: Inputs, keeping: KeepChoice, model: nn.Module) -> None:
        super().__init__(inputs, keeping, model)
        self._waiting: list[WaitingLayer] = []
        self._held = 0
        self._layers: Call | None = None
        self._alike_sides: dict[tuple, tuple[SideTokens, SideTokens]] = {}

    def take(self, call: Call) -> None:
        """As `Builder.take`; the layer may be made and checked later, at the latest in
        `complete`.
        """
        numbers = numbers_in(call)
        if 2 * numbers > NUMBERS_HELD or not _can_wait(call):
            super().take(call)
            return
        sides = self._sides.of(call)
        rows, padding = self._rows_and_padding_of(call, sides)
        if padding is not None or sides[0].positions[0].numel() != call.size[2]:
            super().take(call)
            return
        check_sizes(call)
        self._made[call.name] += 1
        visibility = self._visibility_of(call)
        states, form = (
            _states(call, visibility),
            (visibility.causal, *map(id, sides), *_copy_in(call)),
        )
        self._waiting.append(WaitingLayer(call, sides, visibility, rows, states, form))
        if self.norms is not None:
            self.norms.mark(call, call, sides)
        self._held += numbers
        if self._held > NUMBERS_HELD:
            self._write_waiting()

    def complete(self) -> None:
        """All calls of the pass were seen: make the layers that wait.

        Raises:
            CaptureError: where one of them differs from what the model computed.
            PlanFailedError: where the model wrote over a mask after a layer had used it.
        """
        self._write_waiting()
        super().complete()

    def _write_waiting(self) -> None:
        """Make the layers that wait."""
        forms: dict[tuple, list[WaitingLayer]] = {}
        for each in self._waiting:
            forms.setdefault((each.states, each.form), []).append(each)
        self._waiting, self._held = [], 0
        for alike in forms.values():
            if _states(alike[0].call, alike[0].visibility) != alike[0].states:
                raise PlanFailedError(f"{alike[0].call.name}: its mask was changed after its use")
            self._write(alike)

    def _write(self, alike: Sequence[WaitingLayer]) -> None:
        """Make layers of one form."""
        first = alike[0]
        call, visibility, rows = (
            _together([each.call for each in alike]),
            first.visibility,
            first.rows,
        )
        if not explained(call, visibility, rows):
            for each in alike:
                super().take(each.call)
            return
        self._layers = call
        sides = self._sides_of_layers(first.sides, len(alike))
        unpadded = self._unpadded(call, sides)
        self._count(call)
        weights = self._checked_rows(unpadded, sides, visibility, (rows, None))
        checks, turns = verified(call, weights, rows), self._rotations.of(unpadded)
        visible = self._masks.of(unpadded[0], visibility)
        facts = [
            {**facts_of_call(each.call), "visible": visible, **turned, **checked}
            for each, turned, checked in zip(alike, turns, checks, strict=True)
        ]
        known = weights if rows.at is None else None
        layers = self._kept(unpadded, facts, sides, known=known)
        for index, (each, layer) in enumerate(zip(alike, layers, strict=True)):
            group = self._sides.group_of(each.call, each.sides)
            seen = SeenLayer(each.call, group, sides=each.sides)
            seen.layers = [layer]
            self.seen[seen.number] = seen
            if self.norms is not None:
                own = None if known is None else known[index : index + 1]
                self.norms.expect(each.call, each.visibility, own, [layer])

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

    def _count(self, call: Call) -> None:
        of_layer = call.of_text(0)
        for _ in range(call.size[0]):
            super()._count(of_layer)

    def _kept_weights(
        self, unpadded: list[RealTokens], known: torch.Tensor | None
    ) -> tuple[list[np.ndarray], bool]:
        if known is None or unpadded[0].call is not self._layers:
            return super()._kept_weights(unpadded, known)
        return self._of_layers(known), self._are_kept(known) and are_one(known.sum(-1))

    def _arrays(
        self, unpadded: list[RealTokens], visibility: Visibility, held: HeldHeads | None
    ) -> list[dict[str, Any]]:
        call, kept, vouched = unpadded[0].call, {}, set()
        if call is not self._layers:
            return super()._arrays(unpadded, visibility, held)
        for name, (of_call, what) in KEPT_OF_CALL.items():
            tensor = getattr(call, of_call)
            if what in self._keeping.what and tensor is not None:
                kept[name] = self._of_layers(tensor)
                if self._are_kept(tensor) and has_finite_squares(tensor.numpy()):
                    vouched.add(name)
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
    # Tensors of inference mode do not tell whether they were changed.
    return call.sinks is None and call.added is None and not call.context.is_inference()


def _states(call: Call, visibility: Visibility) -> tuple[int, ...]:
    read = (call.mask, call.bias, visibility.visible, visibility.bias)
    return tuple([number for tensor in read for number in state_of(tensor)])


def _copy_in(call: Call) -> tuple:
    """Put copies in the place of the tensors that a layer is made of.

    Returns:
        What calls must share to be worked on together.
    """
    form: list[Any] = [call.scale, call.soft_cap, call.cross, call.route, call.context.device]
    given = {name: getattr(call, name) for name in _copied(call)}
    for name, tensor in given.items():
        if tensor is None:
            form.append(None)
            continue
        after = given.get(BEFORE.get(name, ""))
        unturned = after is not None and is_one(tensor, after)
        form += (tensor.shape, tensor.dtype, unturned)
        copy = getattr(call, BEFORE[name]) if unturned else _copy(tensor)
        setattr(call, name, copy)
    return tuple(form)


def _copied(call: Call) -> tuple[str, ...]:
    """Which tensors a layer is made of; before positions after the others."""
    # Where the output of the projection is compared, the context is not.
    compared = "context" if call.projection is None or call.output is None else "output"
    return ("query", "key", "value", "weights", compared, *BEFORE)


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone(memory_format=torch.contiguous_format)


def _together(calls: Sequence[Call]) -> Call:
    """Calls of one form as one, each a text of its batch."""
    first, count = calls[0], len(calls)
    # Of a context that is not compared the shape alone is read.
    parts: dict[str, Any] = {"context": first.context.expand(count, -1, -1, -1)}
    for name in _copied(first):
        tensor = getattr(first, name)
        if tensor is None:
            continue
        if name in BEFORE and tensor is getattr(first, BEFORE[name]):
            parts[name] = parts[BEFORE[name]]
        elif name == "output":
            # whose axis of the batch may be missing, or not be the first one
            outputs = torch.stack([getattr(call, name) for call in calls])
            parts[name] = outputs.view(count, first.size[2], -1)
        else:
            parts[name] = torch.cat([getattr(call, name) for call in calls])
    if first.projection is not None:
        projections = [call.projection for call in calls if call.projection is not None]
        parts["projection"] = _Projections(projections)
    return replace(first, **parts)
