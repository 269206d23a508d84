"""Which tokens the queries and keys of a call are."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from headscope.capturing._call import Call
from headscope.capturing._inputs import Inputs
from headscope.capturing._stacks import group_of, role_of
from headscope.errors import CaptureError
from headscope.record import Tokens


@dataclass(frozen=True)
class Side:
    """The real tokens of one side of a call, for each example.

    Args:
        tokens: without padding.
        positions: where they stand among those that the model worked on.
    """

    tokens: tuple[Tokens, ...]
    positions: tuple[torch.Tensor, ...]


class Sides:
    """Finds the tokens of calls, remembering what was found."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self._known: dict[tuple[str, int], Side] = {}

    def of(self, call: Call) -> tuple[Side, Side]:
        """The tokens of the queries and of the keys.

        Raises:
            CaptureError: where the model works on another number of positions than there are tokens.
        """
        _, _, queries, keys = call.size
        query, key = self._roles(call)
        return self._side(call, query, queries), self._side(call, key, keys)

    def _roles(self, call: Call) -> tuple[str, str]:
        if not self._inputs.target:
            return "source", "source"
        return {"decoder": ("target", "target"), "cross": ("target", "source")}.get(
            role_of(*group_of(call)), ("source", "source")
        )

    def _side(self, call: Call, role: str, size: int) -> Side:
        if (role, size) not in self._known:
            self._known[role, size] = self._found(call, role, size)
        return self._known[role, size]

    def _found(self, call: Call, role: str, size: int) -> Side:
        tokens = self._inputs.source if role == "source" else self._inputs.target
        mask = self._inputs.arguments.get("attention_mask" if role == "source" else "decoder_attention_mask")
        batch = call.size[0]
        if mask is None:
            mask = torch.ones(len(tokens), len(tokens[0]), device=call.context.device)
        if mask.shape != (batch, size):
            raise CaptureError(
                f"{call.name} works on {batch} x {size} positions, but the {role} text has {tuple(mask.shape)} tokens; "
                "models that change their tokens on the way cannot be captured yet"
            )
        positions = tuple(row.nonzero()[:, 0] for row in mask)
        kept = tuple(
            whole if len(whole) == len(where) else whole.take(where.tolist())
            for whole, where in zip(tokens, positions, strict=True)
        )
        return Side(kept, positions)
