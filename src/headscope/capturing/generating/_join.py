"""The calls of all steps of a generation, joined to one record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
from torch import nn

from headscope.capturing.building._masks import Masks
from headscope.capturing.building.stacks import Group, group_of, name_groups, number_layers, role_of
from headscope.capturing.calls.call import Call
from headscope.capturing.facts import others_of
from headscope.capturing.generating._strand import Strand
from headscope.capturing.keep import WEIGHTS_KEPT_BELOW, Keeping
from headscope.capturing.watching._routers import block_of, routers_of
from headscope.errors import CaptureError
from headscope.record import Layer, Mask, Stack, Tokens

SIDES = {"decoder": ("target", "target"), "cross": ("target", "source")}


class Joiner:
    """Takes the calls of one step after the other and joins those of each layer.

    Args:
        keeping: what to keep.
        model: whose calls they are.
    """

    def __init__(self, keeping: Keeping, model: nn.Module) -> None:
        self._keeping, self._model = keeping, model
        self._strands: dict[tuple[str, bool, int], Strand] = {}
        self._visits: Counter[tuple[str, bool]] = Counter()
        self._masks = Masks()

    def take(self, call: Call) -> None:
        """One call, checked at once; of its step only new rows are kept.

        Raises:
            CaptureError: where the layer is not what the model computed, or the step cannot be
                joined.
        """
        visited = call.name, call.cross
        key = (*visited, self._visits[visited])
        self._visits[visited] += 1
        if key not in self._strands:
            self._strands[key] = Strand(call, self._keeping, self._wanted(call))
        self._strands[key].add(call, self._masks)

    def end_step(self) -> None:
        """The next call belongs to another pass of the model."""
        self._visits.clear()
        self._masks = Masks()
        if (
            self._keeping.auto
            and sum(strand.weights_size for strand in self._strands.values()) > WEIGHTS_KEPT_BELOW
        ):
            for strand in self._strands.values():
                strand.drop_weights()

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
        strands = sorted(self._strands.values(), key=lambda strand: strand.number)
        alike: dict[Mask, Mask] = {}
        found, there = {}, {}
        for group, name in name_groups([strand.group for strand in strands]).items():
            members = [strand for strand in strands if strand.group == group]
            query, key = (tokens[side] for side in _sides(group, tokens))
            layers = []
            wanted = self._keeping.heads
            numbers = _numbers(members)
            for number, strand in zip(numbers, members, strict=True):
                _check_sizes(strand, name, query, key)
                mask = strand.mask(len(query), len(key))
                visible = None if mask is None else alike.setdefault(mask, mask)
                size = len(query), len(key)
                if wanted is None:
                    layers.append(Layer(layer=number, **strand.layer(*size), visible=visible))
                elif heads := wanted.of_layer(number, name, most=strand.all_heads):
                    layers.append(
                        Layer(layer=number, **strand.layer_of(*size, heads), visible=visible)
                    )
            there[name] = {
                number: strand.all_heads for number, strand in zip(numbers, members, strict=True)
            }
            if not layers:
                continue
            names = [strand.name for strand in members]
            others = others_of(self._model, group[0], numbers, seen=names, cross=group[1])
            routed = {} if group[1] else _routed(routers_of(group[0], routers or {}), name, query)
            found[name] = Stack(
                name=name, query=query, key=key, layers=tuple(layers), others=others, routers=routed
            )
        if self._keeping.heads is not None:
            self._keeping.heads.check(there)
        return found

    def _wanted(self, call: Call) -> tuple[int, ...] | None:
        """The heads that may be wanted of a layer whose number and stack are known at the end; None
        for all.
        """
        if self._keeping.heads is None:
            return None
        block, group = block_of(call.name), group_of(call)
        before = sum(strand.group == group for strand in self._strands.values())
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


def _sides(group: Group, tokens: Mapping[str, Tokens]) -> tuple[str, str]:
    return (
        SIDES.get(role_of(group.path, group.cross), ("source", "source"))
        if "target" in tokens
        else ("source", "source")
    )


def _numbers(strands: list[Strand]) -> list[int]:
    blocks = [block_of(strand.name) for strand in strands]
    own = [strand.own_number for strand in strands]
    return number_layers(own, [None if block is None else block[1] for block in blocks])


def _check_sizes(strand: Strand, name: str, query: Tokens, key: Tokens) -> None:
    """Each token once; a model may run one pass more than it takes, before it sees that the text
    has ended.
    """
    for what, seen, wanted in (
        ("queries", strand.read, len(query)),
        ("keys", strand.known, len(key)),
    ):
        _check_size(name, what, seen, wanted)


def _check_size(name: str, what: str, seen: int, wanted: int) -> None:
    if not wanted <= seen <= wanted + (wanted > 1):
        raise CaptureError(
            f"A layer of stack {name!r} worked on {seen} {what} in all steps together, but "
            f"{wanted} tokens were read; steps that add, drop or repeat tokens cannot be joined"
        )


def _routed(routers: dict[int, np.ndarray], name: str, query: Tokens) -> dict[int, np.ndarray]:
    for scores in routers.values():
        _check_size(name, "tokens to route", len(scores), len(query))
    return {number: scores[: len(query)] for number, scores in routers.items()}
