"""Calls to records."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch

from headscope.capturing._call import Call
from headscope.capturing._inputs import Inputs
from headscope.capturing._stacks import group_of, name_groups, number_layers
from headscope.capturing._weights import difference, visible_and_bias, weights_of
from headscope.errors import CaptureError
from headscope.record import Layer, ModelFacts, Record, Stack, Tokens

WEIGHTS_KEPT_BELOW = 256 * 2**20
TOLERANCE = {torch.float64: 1e-4, torch.float32: 1e-4}
HALF_TOLERANCE = 3e-2
"""Differences allowed, relative to the largest value of the layer output."""
LOST_AT_MOST = 1e-5


@dataclass(frozen=True)
class Parts:
    """Everything that records are built from."""

    calls: list[Call]
    inputs: Inputs
    keep: str
    facts: ModelFacts
    masks: dict[tuple, np.ndarray] = field(default_factory=dict)
    """Masks already seen, so that layers share one."""

    @property
    def keeps_weights(self) -> bool:
        """Whether the weights go into the record."""
        if self.keep == "auto":
            return sum(4 * math.prod(call.size) for call in self.calls) <= WEIGHTS_KEPT_BELOW
        return self.keep == "weights"

    @property
    def keeps_qk(self) -> bool:
        """Whether queries, keys and values go into the record."""
        return self.keep != "weights"


def build_records(parts: Parts) -> list[Record]:
    """One record for each example of the batch, padding cut off.

    Raises:
        CaptureError: where tokens and calls do not fit, or a layer is not what the model computed.
    """
    names = name_groups([group_of(call) for call in parts.calls])
    examples = range(len(parts.inputs.source))
    layers: dict[str, list[list[Layer]]] = {name: [[] for _ in examples] for name in names.values()}
    for group, name in names.items():
        calls = [call for call in parts.calls if group_of(call) == group]
        for call, number in zip(calls, number_layers(calls), strict=True):
            _check_sizes(call)
            visible, bias = visible_and_bias(call)
            weights = weights_of(call, visible, bias)
            queries, keys = _kept(parts.inputs, name, call)
            for example in examples:
                cut = Cut(call, example, queries[example], keys[example])
                layers[name][example].append(_layer(parts, cut, number, (weights, visible, bias)))
            call.weights = None
    return [
        Record(
            stacks={
                name: Stack(name=name, **_sides(parts.inputs, name, example), layers=tuple(found[example]))
                for name, found in layers.items()
            },
            model=parts.facts,
        )
        for example in examples
    ]


@dataclass(frozen=True)
class Cut:
    """The real tokens of one example of a call: positions of queries and of keys."""

    call: Call
    example: int
    queries: torch.Tensor
    keys: torch.Tensor

    def of_queries(self, tensor: torch.Tensor) -> np.ndarray:
        """``[batch head query feature]`` to ``[head query feature]``."""
        return _plain(tensor[self.example][:, self.queries])

    def of_keys(self, tensor: torch.Tensor) -> np.ndarray:
        """``[batch kv_head key feature]`` to ``[kv_head key feature]``."""
        return _plain(tensor[self.example][:, self.keys])

    def of_both(self, tensor: torch.Tensor) -> torch.Tensor:
        """``[batch head query key]``, where axes may be 1, to ``[head query key]``, where head may be 1."""
        example = self.example if tensor.shape[0] > 1 else 0
        return tensor[example].expand(tensor.shape[1], *self.call.size[2:])[:, self.queries][:, :, self.keys]


def _layer(parts: Parts, cut: Cut, number: int, tensors: tuple) -> Layer:
    weights, visible, bias = tensors
    call = cut.call
    ours = cut.of_both(weights)
    _check_nothing_lost(weights[cut.example][:, cut.queries].sum(-1), ours.sum(-1), call.name)
    arrays = {
        "weights": _plain(ours) if parts.keeps_weights or call.query is None else None,
        "queries": cut.of_queries(call.query) if parts.keeps_qk and call.query is not None else None,
        "keys": cut.of_keys(call.key) if parts.keeps_qk and call.key is not None else None,
        "values": cut.of_keys(call.value) if parts.keeps_qk else None,
        "bias": None if bias is None or not parts.keeps_qk else _plain(cut.of_both(bias)),
        "sinks": None if call.sinks is None else _plain(call.sinks.reshape(-1)),
    }
    worst, largest = difference(call, weights, cut.example, cut.queries)
    tolerance = TOLERANCE.get(call.context.dtype, HALF_TOLERANCE) * largest
    if not worst <= tolerance:
        raise CaptureError(
            f"{call.name}: the layer output recomputed from weights and values differs from the model's own by "
            f"{worst:.3g} (allowed {tolerance:.1g}); this attention is computed in a way that headscope does not know, "
            "and is refused"
        )
    return Layer(
        layer=number,
        scale=call.scale,
        soft_cap=call.soft_cap,
        visible=_visible(cut, visible, parts.masks),
        module=call.name,
        projection=call.projection_name,
        route=call.route,
        verified=worst,
        **arrays,
    )


def _visible(cut: Cut, visible: torch.Tensor | None, masks: dict) -> np.ndarray | None:
    """``[query key]``, kept once where layers share it; None where the real tokens all see each other."""
    if visible is None:
        return None
    found = cut.of_both(visible)
    if found.shape[0] > 1 and not (found == found[:1]).all():
        raise CaptureError(f"{cut.call.name}: each head has a mask of its own; such models cannot be captured yet")
    plain = found[0].cpu().numpy()
    if plain.all():
        return None
    return masks.setdefault((plain.shape, plain.tobytes()), plain)


def _check_sizes(call: Call) -> None:
    """Weights must lead from every query to every key: not from landmarks, nor within blocks."""
    if call.weights is not None and tuple(call.weights.shape) != call.size:
        raise CaptureError(
            f"{call.name} multiplies weights of shape {list(call.weights.shape)} where [batch head query key] is "
            f"{list(call.size)}; attention in blocks or by landmarks cannot be captured yet"
        )


def _check_nothing_lost(before: torch.Tensor, after: torch.Tensor, name: str) -> None:
    lost = (before - after).abs().max().item()
    if lost > LOST_AT_MOST:
        raise CaptureError(
            f"{name}: up to {lost:.3g} of a row's weight lies on padding, so that the padding cannot be cut off; "
            "capture the text alone, without padding"
        )


def _kept(inputs: Inputs, stack: str, call: Call) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Positions of the real query and key tokens, for each example."""
    batch, _, queries, keys = call.size
    masks = {"source": inputs.arguments.get("attention_mask"), "target": inputs.arguments.get("decoder_attention_mask")}
    found = []
    for side, size in zip(_roles(stack), (queries, keys), strict=True):
        mask = masks[side]
        if mask is None:
            mask = torch.ones(batch, size, device=call.context.device)
        if mask.shape != (batch, size):
            raise CaptureError(
                f"{call.name} works on {batch} x {size} positions, but the {side} text has {tuple(mask.shape)} tokens; "
                "models that change their tokens on the way cannot be captured yet"
            )
        found.append([row.nonzero()[:, 0] for row in mask])
    return found[0], found[1]


def _sides(inputs: Inputs, stack: str, example: int) -> dict[str, Tokens]:
    masks = {"source": inputs.arguments.get("attention_mask"), "target": inputs.arguments.get("decoder_attention_mask")}
    tokens = {"source": inputs.source, "target": inputs.target}
    sides = {}
    for axis, role in zip(("query", "key"), _roles(stack), strict=True):
        whole, mask = tokens[role][example], masks[role]
        sides[axis] = (
            whole if mask is None or bool(mask[example].all()) else whole.take(mask[example].nonzero()[:, 0].tolist())
        )
    return sides


def _roles(stack: str) -> tuple[str, str]:
    return {"decoder": ("target", "target"), "cross": ("target", "source")}.get(stack, ("source", "source"))


def _plain(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().float().cpu().contiguous().numpy()
