"""The calls of all steps of a generation, joined to one record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
from torch import nn

from headscope.capturing.building._inventory import inventory_of
from headscope.capturing.building._masks import Masks
from headscope.capturing.building.layers import SeenStack
from headscope.capturing.building.stacks import StackKey, role_of
from headscope.capturing.calls.call import Call
from headscope.capturing.generating._layer_steps import LayerSteps
from headscope.capturing.keep import WEIGHTS_KEPT_BELOW, KeepChoice
from headscope.capturing.watching._routers import routers_of
from headscope.errors import CaptureError
from headscope.record import Mask, Stack, Tokens

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
