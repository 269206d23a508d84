"""The calls of all steps of a generation, joined to one record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
from torch import nn

from headscope.capturing.building._masks import Masks
from headscope.capturing.building.stacks import (
    StackKey,
    group_of,
    name_groups,
    number_layers,
    role_of,
)
from headscope.capturing.calls.call import Call
from headscope.capturing.facts import others_of
from headscope.capturing.generating._layer_steps import LayerSteps
from headscope.capturing.keep import WEIGHTS_KEPT_BELOW, KeepChoice
from headscope.capturing.watching._routers import block_of, routers_of
from headscope.errors import CaptureError
from headscope.record import Layer, Mask, Stack, Tokens

SIDES = {"decoder": ("target", "target"), "cross": ("target", "source")}


class StepJoiner:
    """Takes the calls of one step after the other and joins those of each layer.

    Args:
        keeping: what to keep.
        model: whose calls they are.
    """

    def __init__(self, keeping: KeepChoice, model: nn.Module) -> None:
        self._keeping, self._model = keeping, model
        self._by_call: dict[tuple[str, bool, int], LayerSteps] = {}
        self._visits: Counter[tuple[str, bool]] = Counter()
        self._masks = Masks()

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
            self._by_call[key] = LayerSteps(call, self._keeping, self._wanted(call))
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
        in_order = sorted(self._by_call.values(), key=lambda steps: steps.number)
        alike: dict[Mask, Mask] = {}
        stacks, there = {}, {}
        for group, name in name_groups([steps.group for steps in in_order]).items():
            members = [steps for steps in in_order if steps.group == group]
            by_number = dict(zip(_numbers(members), members, strict=True))
            query, key = (tokens[side] for side in _sides(group, tokens))
            layers = self._layers(by_number, name, (query, key), alike)
            there[name] = {number: steps.all_heads for number, steps in by_number.items()}
            if not layers:
                continue
            stacks[name] = Stack(
                name=name,
                query=query,
                key=key,
                layers=layers,
                others=self._others(group, by_number),
                # Routers belong to the block, and are kept with its self-attention alone.
                routers={} if group.cross else _routed(routers, group, name, query),
            )
        if self._keeping.heads is not None:
            self._keeping.heads.check(there)
        return stacks

    def _others(self, group: StackKey, by_number: Mapping[int, LayerSteps]) -> dict[int, str]:
        seen = [steps.name for steps in by_number.values()]
        return others_of(self._model, group.path, by_number, seen=seen, cross=group.cross)

    def _layers(
        self,
        by_number: Mapping[int, LayerSteps],
        stack: str,
        sides: tuple[Tokens, Tokens],
        alike: dict[Mask, Mask],
    ) -> tuple[Layer, ...]:
        """The layers of a stack of which heads are kept.

        Args:
            by_number: steps, by number of the layer.
            stack: its name.
            sides: tokens of its queries and of its keys.
            alike: the masks of all layers, of which equal ones are held once.
        """
        layers = []
        size = len(sides[0]), len(sides[1])
        wanted = self._keeping.heads
        for number, steps in by_number.items():
            _check_sizes(steps, stack, *sides)
            mask = steps.mask(*size)
            visible = None if mask is None else alike.setdefault(mask, mask)
            if wanted is None:
                layers.append(Layer(layer=number, **steps.layer(*size), visible=visible))
                continue
            heads = wanted.of_layer(number, stack, most=steps.all_heads)
            if heads:
                kept = steps.layer_of(*size, heads)
                layers.append(Layer(layer=number, **kept, visible=visible))
        return tuple(layers)

    def _wanted(self, call: Call) -> tuple[int, ...] | None:
        """The heads that may be wanted of a layer whose number and stack are known at the end; None
        for all.
        """
        if self._keeping.heads is None:
            return None
        block, group = block_of(call.name), group_of(call)
        before = sum(steps.group == group for steps in self._by_call.values())
        # Any of these may turn out to be the number of the layer, once all layers are known.
        numbers = (
            getattr(call.module, "layer_idx", None),
            None if block is None else block[1],
            before,
        )
        heads: set[int] = set()
        for number in numbers:
            if isinstance(number, int):
                heads.update(*self._keeping.heads.may_be(number, most=call.size[1]))
        return tuple(sorted(heads))


def _sides(group: StackKey, tokens: Mapping[str, Tokens]) -> tuple[str, str]:
    return (
        SIDES.get(role_of(group.path, group.cross), ("source", "source"))
        if "target" in tokens
        else ("source", "source")
    )


def _numbers(members: list[LayerSteps]) -> list[int]:
    blocks = [block_of(steps.name) for steps in members]
    own = [steps.own_number for steps in members]
    return number_layers(own, [None if block is None else block[1] for block in blocks])


def _check_sizes(steps: LayerSteps, name: str, query: Tokens, key: Tokens) -> None:
    """Each token once; a model may run one pass more than it takes, before it sees that the text
    has ended.
    """
    for what, seen, wanted in (
        ("queries", steps.read, len(query)),
        ("keys", steps.known, len(key)),
    ):
        _check_size(name, what, seen, wanted)


def _check_size(name: str, what: str, seen: int, wanted: int) -> None:
    if not wanted <= seen <= wanted + (wanted > 1):
        raise CaptureError(
            f"A layer of stack {name!r} worked on {seen} {what} in all steps together, but "
            f"{wanted} tokens were read; steps that add, drop or repeat tokens cannot be joined"
        )


def _routed(
    routers: Mapping[str, np.ndarray] | None, group: StackKey, stack: str, query: Tokens
) -> dict[int, np.ndarray]:
    """Router scores by number of the layer, without those of a pass that came after the end."""
    own = routers_of(group.path, routers or {})
    for scores in own.values():
        _check_size(stack, "tokens to route", len(scores), len(query))
    return {number: scores[: len(query)] for number, scores in own.items()}
