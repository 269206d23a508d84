"""What heads look at on average over the examples of a task."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from headscope.capturing.entry import numbered_tokens
from headscope.capturing.hooks import hook_before
from headscope.capturing.inputs.inputs import Inputs
from headscope.capturing.keep import KeepChoice
from headscope.capturing.media.input_positions import has_more_than_text, origins_of
from headscope.capturing.run import run
from headscope.errors import CaptureError, InterventionError
from headscope.record import Record
from headscope.tasks import Task

AVERAGED = 64
"""Examples whose attention is averaged; those of the last batch, the longest, come first."""
KEEPING = KeepChoice(frozenset({"weights", "values"}), auto=False)
"""What is kept of each example. Values tell how many key/value heads there are, too."""


def averaged(model: nn.Module, task: Task) -> tuple[Record, ...]:
    """Records of examples from all over the task.

    Args:
        model: in evaluation mode.
        task: whose examples it reads.

    Raises:
        InterventionError: where what the task runs cannot be captured.
    """
    # Batches go from short to long texts. The longest come first, as no text may be longer than
    # the mean map; then some from all over the task.
    last = len(task.batches) - 1
    order = [last, *range(0, last, max(1, last // 4))]
    records: list[Record] = []
    for number in order:
        for arguments in _arguments(model, task, number):
            for one in _singly(arguments):
                if len(records) == AVERAGED:
                    return tuple(records)
                records.append(_record(model, one))
    return tuple(records)


def _record(model: nn.Module, arguments: dict[str, torch.Tensor]) -> Record:
    sides = [arguments.get("input_ids"), arguments.get("decoder_input_ids")]
    source, target = (
        () if ids is None else tuple(map(numbered_tokens, ids.tolist())) for ids in sides
    )
    origins = origins_of(model, arguments) if has_more_than_text(arguments) else None
    if not source and origins is None:
        raise InterventionError(
            "The examples have neither ids nor pictures, so their attention cannot be averaged; "
            "give by=functools.partial(headscope.Mean, records=...) with records that you "
            "captured"
        )
    try:
        return run(model, Inputs(arguments, source, target, origins), KEEPING)[0]
    except CaptureError as error:
        raise InterventionError(
            f"The attention of the examples cannot be averaged: {error}"
        ) from error


def _singly(arguments: dict[str, torch.Tensor]) -> list[dict[str, torch.Tensor]]:
    """Each example by itself, without padding."""
    mask = arguments.get("attention_mask")
    count = max((len(tensor) for tensor in arguments.values()), default=0)
    singles = []
    for row in range(count):
        one = {
            name: tensor[row : row + 1]
            for name, tensor in arguments.items()
            if len(tensor) == count
        }
        if mask is not None and mask.ndim == 2:
            one = _without_padding(one, mask[row].bool())
        singles.append(one)
    return singles


def _without_padding(
    arguments: dict[str, torch.Tensor], kept: torch.Tensor
) -> dict[str, torch.Tensor]:
    cut = {}
    for name, tensor in arguments.items():
        # Pixels and the like have another second axis than the tokens, and stay whole.
        has_tokens = tensor.shape[:2] == (1, len(kept))
        cut[name] = tensor[:, kept] if has_tokens else tensor
    return cut


def _arguments(model: nn.Module, task: Task, number: int) -> list[dict[str, torch.Tensor]]:
    """The tensors that the model is given by name on a batch, run by run."""
    arguments: list[dict[str, torch.Tensor]] = []

    def note(_: nn.Module, args: tuple, options: dict[str, Any]) -> None:
        tensors = {}
        for name, value in options.items():
            if isinstance(value, torch.Tensor) and value.ndim:
                tensors[name] = value
        arguments.append(tensors)

    handle = hook_before(model, note)
    try:
        task.values(model, number)
    finally:
        handle.remove()
    return arguments
