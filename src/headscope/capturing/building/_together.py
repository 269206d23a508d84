"""One array of weights for all texts of a batch, instead of layers for each text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from headscope.capturing.building._build import Builder, Computed
from headscope.capturing.building._real_tokens import RealTokens
from headscope.capturing.building.layers import SideTokens, order_of
from headscope.capturing.calls.attention import QueryRows, has_own_weights
from headscope.capturing.calls.blocks import fill
from headscope.capturing.calls.call import Call, Visibility
from headscope.capturing.inputs.inputs import Inputs
from headscope.capturing.keep import KeepChoice
from headscope.errors import CaptureError
from headscope.record import BatchLayer, BatchStack, Mask, ModelFacts, TextBatch

ROW_SUM_TOLERANCE = 5e-3
"""Largest difference of a row's sum from 1, as in a record."""
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
        self._whole: set[tuple] = set()

    def batch(self, facts: ModelFacts) -> TextBatch:
        """The weights of all texts.

        Raises:
            CaptureError: where some attention was not seen; a record could say so, an array cannot.
        """
        inventory = self._inventory()
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

    def _narrowed(self, call: Call, visibility: Visibility) -> tuple[Call, Visibility]:
        """The texts that are kept, which must see alike.

        Outputs of heads are compared with what the projection was given, and not projected: that
        takes a twelfth of the model's own time, and shows nothing more, since the projection was
        found by being given these very numbers.
        """
        kept = range(self._kept_texts)
        call, visibility = call.of_texts(kept), visibility.of_texts(kept)
        seen = visibility.visible
        if seen is not None and not bool((seen == seen[:1]).all()):
            raise CaptureError(f"{call.name}: texts of one length see differently")
        return replace(call, projection=None), visibility

    def _computed(
        self,
        call: Call,
        visibility: Visibility,
        sides: tuple[SideTokens, SideTokens],
        rows: QueryRows | None,
    ) -> Computed:
        """All weights in one array."""
        weights = torch.empty(call.size, device=call.context.device)
        fill(call, visibility, weights.unbind())
        if has_own_weights(call):
            _check_rows(weights, call, visibility)
        return Computed(None if rows is None else rows.of(weights), [weights])

    def _facts(self, unpadded: list[RealTokens], visibility: Visibility) -> list[dict[str, Any]]:
        """The mask of all texts."""
        mask = self._masks.of(unpadded[0], visibility)
        return [{"visible": mask or Mask.full(*unpadded[0].call.size[2:])}]

    def _kept(
        self,
        unpadded: list[RealTokens],
        visibility: Visibility,
        facts: list[dict[str, Any]],
        computed: Computed,
    ) -> list[dict[str, Any]]:
        """One layer for all texts."""
        return [{**facts[0], "weights": each.cpu().numpy()} for each in computed.weights or ()]


def _check_rows(weights: torch.Tensor, call: Call, visibility: Visibility) -> None:
    """Raise where a row of the model's own weights does not sum to 1, as a record would refuse it.

    Raises:
        CaptureError: with the sums.
    """
    sums = weights.sum(-1)
    if visibility.alive is not None:
        sums = sums.where(visibility.alive.squeeze(-1), 1.0)
    least, most = torch.stack(sums.aminmax()).tolist()
    low = 0.0 if call.sinks is not None else 1 - ROW_SUM_TOLERANCE
    # not (... <= ...) is true of NaN, too
    if not low <= least <= most <= 1 + ROW_SUM_TOLERANCE:
        raise CaptureError(
            f"{call.name}: rows of weights sum to {least:.4g} to {most:.4g}, not to 1; this "
            "attention is computed in a way that headscope does not know, and is refused"
        )
