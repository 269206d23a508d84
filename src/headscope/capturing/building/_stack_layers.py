"""What is kept of a call until its stack is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from headscope.capturing.building._call_tokens import SideTokens
from headscope.capturing.building.stacks import StackKey, number_layers
from headscope.capturing.calls.call import Call
from headscope.capturing.watching._joined_heads import CallSummary

ChosenLayers = dict[tuple[int, tuple[int, ...]], list[dict[str, Any]]]
"""Arguments of a `Layer` for each example, by possible layer number and choice of heads."""

KEPT_OF_CALL = {
    "queries": ("query", "qk"),
    "keys": ("key", "qk"),
    "values": ("value", "values"),
    "queries_before": ("query_before", "before"),
    "keys_before": ("key_before", "before"),
}
"""Arrays of a `Layer`: which tensor of a call each is, and under what name it is kept."""
NO_ARRAYS = dict.fromkeys((*KEPT_OF_CALL, "bias", "sinks", "held_heads"))


@dataclass(frozen=True)
class StackLayers:
    """What is kept of a call: arguments of a `Layer` for each example, and what numbers the layer.

    Args:
        group: the stack that it belongs to.
        own_number: the layer number in its module.
        block: the path of the list that holds its block, and the index of the block.
        sides: its tokens.
        layers: arguments of a `Layer` for each example.
        made: name of the module, and size of the call.
        chosen: the layers where only some heads are kept; which of them is right is known once all
            calls were seen.
    """

    group: StackKey
    own_number: int | None
    block: tuple[str, int] | None
    sides: tuple[SideTokens, SideTokens]
    layers: list[dict[str, Any]]
    made: CallSummary
    chosen: ChosenLayers = field(default_factory=dict)

    @property
    def all_layers(self) -> list[dict[str, Any]]:
        """The arguments of all layers that may be made from the call."""
        return [*self.layers, *(layer for layers in self.chosen.values() for layer in layers)]


def numbers_of(members: Sequence[StackLayers]) -> list[int]:
    """The numbers of a stack's layers."""
    blocks = [None if entry.block is None else entry.block[1] for entry in members]
    return number_layers([entry.own_number for entry in members], blocks)


def facts_of_call(call: Call) -> dict[str, Any]:
    """The arguments of a `Layer` that follow from its call alone."""
    return {
        "scale": call.scale,
        "soft_cap": call.soft_cap,
        "module": call.name,
        "projection": call.projection_name,
        "route": call.route,
        "norm": call.norm,
        "latent": getattr(call.module, "kv_lora_rank", None),
        "changes": call.changes,
    }
