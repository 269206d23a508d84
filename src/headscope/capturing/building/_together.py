"""One array of weights for all texts of a batch, instead of layers for each text."""

from __future__ import annotations

from typing import Any

import torch

from headscope.capturing.building._build import Builder
from headscope.capturing.building._real_tokens import RealTokens
from headscope.capturing.building._side_tokens import SideTokens
from headscope.capturing.building._waiting_calls import (
    AT_ONCE,
    WaitingCall,
    may_wait,
    write_waiting,
    write_weights,
)
from headscope.capturing.building.stacks import order_of
from headscope.capturing.calls.attention import QueryRows
from headscope.capturing.calls.call import Call
from headscope.capturing.calls.visibility import Visibility
from headscope.capturing.inputs.inputs import Inputs
from headscope.capturing.keep import KeepChoice
from headscope.errors import CaptureError
from headscope.record import BatchLayer, BatchStack, Mask, ModelFacts, TextBatch

KEEPING = KeepChoice(frozenset({"weights"}), auto=False)


class BatchBuilder(Builder):
    """Makes arrays of the weights of texts of one length that were run without padding.

    Every text is checked as in `Builder`, with the very weights that are kept. Calls that do not
    fit into one array (padding, masks that differ between texts) are refused; their texts are
    captured as records instead.

    Args:
        inputs: the inputs that the model is run on.
        model: the model that makes the calls.
        count: number of texts that are kept; the others are copies that only fill the batch.
    """

    def __init__(self, inputs: Inputs, model: torch.nn.Module, count: int) -> None:
        super().__init__(inputs, KEEPING, model)
        self._kept_texts = count
        self._waiting: list[WaitingCall] = []
        self._held = 0
        self._whole: set[tuple] = set()

    def batch(self, facts: ModelFacts) -> TextBatch:
        """The weights of all texts.

        Raises:
            CaptureError: where some attention was not seen; a record could say so, an array cannot.
        """
        inventory = self._inventory()
        self._write_waiting()
        if not inventory.is_whole:
            raise CaptureError("Some attention was not seen")
        stacks = {}
        for stack in inventory.stacks:
            query, key = (side.tokens[: self._kept_texts] for side in stack.first.sides)
            layers = tuple(
                BatchLayer(layer=number, heads=tuple(range(seen.heads)), **seen.layers[0])
                for number, seen in stack.layers.items()
            )
            stacks[stack.name] = BatchStack(name=stack.name, query=query, key=key, layers=layers)
        ordered = {name: stacks[name] for name in sorted(stacks, key=order_of)}
        return TextBatch(stacks=ordered, model=facts)

    def _unpadded(self, call: Call, sides: tuple[SideTokens, SideTokens]) -> list[RealTokens]:
        """The tokens of the first text, which stand for those of all: none has padding."""
        queries, keys = call.size[2:]
        known = (*map(id, sides), queries, keys)
        if known not in self._whole:
            for side, size in zip(sides, (queries, keys), strict=True):
                if any(positions.numel() != size for positions in side.positions):
                    raise CaptureError(f"{call.name}: some of the batch is padding")
            self._whole.add(known)
        return [RealTokens(call, 0, *(side.positions[0] for side in sides))]

    def _facts(
        self,
        unpadded: list[RealTokens],
        sides: tuple[SideTokens, SideTokens],
        visibility: Visibility,
        rows_and_padding: tuple[QueryRows, torch.Tensor | None],
    ) -> tuple[list[dict[str, Any]], torch.Tensor | None]:
        """Mask and weights of all texts as one layer, and nothing more to be known of them."""
        whole = unpadded[0].call
        _, _, queries, keys = whole.size
        kept = range(self._kept_texts)
        call, visibility = whole.of_texts(kept), visibility.of_texts(kept)
        seen = visibility.visible
        if seen is not None and not bool((seen == seen[:1]).all()):
            raise CaptureError(f"{call.name}: texts of one length see differently")
        visible = self._masks.of(unpadded[0], visibility) or Mask.full(queries, keys)
        layer = {"visible": visible}
        rows = rows_and_padding[0]
        if not may_wait(call):
            write_weights(call, rows, layer)
            return [layer], None
        waiting = WaitingCall.of(call, rows, layer)
        # Layers of another form cannot be computed together with those before them.
        if self._waiting and waiting.form != self._waiting[0].form:
            self._write_waiting()
        self._held += waiting.bytes
        self._waiting.append(waiting)
        if self._held > AT_ONCE:
            self._write_waiting()
        return [layer], None

    def _write_waiting(self) -> None:
        if self._waiting:
            write_waiting(self._waiting)
        self._waiting, self._held = [], 0

    def _kept(
        self,
        unpadded: list[RealTokens],
        facts: list[dict[str, Any]],
        sides: tuple[SideTokens, SideTokens],
        held: Any = None,
        *,
        known: torch.Tensor | None = None,
    ) -> list[dict[str, Any]]:
        """Nothing to add: the weights were written already."""
        return facts
