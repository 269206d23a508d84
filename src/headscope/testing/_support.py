"""What can be captured of a model, found out by trying."""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from headscope.capturing import capture_ids
from headscope.errors import HeadscopeError
from headscope.record import Record
from headscope.testing._architectures import VOCABULARY

OWN = {
    "self": "attentions",
    "encoder": "encoder_attentions",
    "decoder": "decoder_attentions",
    "cross": "cross_attentions",
}
TOKENS, TARGETS, PADDED = 12, 7, 3


@dataclass(frozen=True)
class Support:
    """What can be captured of one model.

    Args:
        name: what the model is called.
        class_name: its class in transformers.
        routes: how its attention was seen.
        stacks: layers, heads and kinds of attention, by stack.
        output_difference: largest difference between the layer outputs recomputed from weights and values and the
            model's own; None where refused.
        weights_difference: largest difference from the weights that the model returns itself; None where it returns
            none, or returns something else.
        refused: why it cannot be captured; empty where it can.
    """

    name: str
    class_name: str
    routes: tuple[str, ...] = ()
    stacks: tuple[str, ...] = ()
    output_difference: float | None = None
    weights_difference: float | None = None
    refused: str = ""


def examine(model: Any, name: str = "") -> Support:
    """Capture a batch of two made-up texts, one of them padded, and compare with what the model returns itself.

    The model's own weights are asked for under eager attention. They are left out of the comparison where asking
    for them changes the model's output (Falcon computes another attention then), or where they are no weights
    (SqueezeBERT returns scores).

    Args:
        model: a loaded transformers model that reads ``input_ids``; it comes back as it was.
        name: what to call it; its model type by default.
    """
    name = name or model.config.model_type
    if "input_ids" not in inspect.signature(model.forward).parameters:
        return Support(
            name, type(model).__name__, refused="it reads no text; pictures and sound cannot be captured yet"
        )
    inputs = _inputs(model)
    try:
        records = capture_ids(model, **inputs)
    except HeadscopeError as error:
        return Support(name, type(model).__name__, refused=str(error))
    layers = [layer for stack in records[0].stacks.values() for layer in stack]
    return Support(
        name=name,
        class_name=type(model).__name__,
        routes=tuple(dict.fromkeys(layer.route for layer in layers)),
        stacks=tuple(_described(records[0])),
        output_difference=max(record.verified or 0.0 for record in records),
        weights_difference=_own_difference(model, inputs, records),
    )


def _inputs(model: Any) -> dict[str, torch.Tensor]:
    ids = torch.randint(
        5, getattr(model.config, "vocab_size", VOCABULARY), (2, TOKENS), generator=torch.Generator().manual_seed(1)
    )
    mask = torch.ones_like(ids)
    mask[1, -PADDED:] = 0
    inputs = {"input_ids": ids, "attention_mask": mask}
    if getattr(model.config, "is_encoder_decoder", False):
        inputs["decoder_input_ids"] = ids[:, :TARGETS].flip(1)
    return {name: tensor.to(model.device) for name, tensor in inputs.items()}


def _described(record: Record) -> Iterator[str]:
    for name, stack in record.stacks.items():
        kinds = "/".join(dict.fromkeys(layer.kind for layer in stack))
        yield f"{name} {len(stack)} x {stack.heads} {kinds}"


def _own_difference(model: Any, inputs: dict[str, torch.Tensor], records: list[Record]) -> float | None:
    with torch.no_grad(), _eager(model):
        plain, telling = model(**inputs), None
        try:
            telling = model(**inputs, output_attentions=True)
        except (TypeError, ValueError):
            return None
    if not torch.allclose(plain[0], telling[0], atol=1e-4 * float(plain[0].abs().max())):
        return None
    found = [
        difference
        for example, record in enumerate(records)
        for name, stack in record.stacks.items()
        for layer, own in zip(stack, _given(telling, name), strict=False)
        if (
            difference := _difference(layer.weights_of(), own[example].numpy(), name, inputs["attention_mask"][example])
        )
        is not None
    ]
    return max(found, default=None)


def _given(output: Any, stack: str) -> list[torch.Tensor]:
    return [own.cpu() for own in output.get(OWN.get(stack, ""), None) or () if own is not None]


def _difference(ours: np.ndarray, own: np.ndarray, stack: str, mask: torch.Tensor) -> float | None:
    kept = mask.bool().cpu().numpy()
    if own.ndim != 3 or (stack != "decoder" and own.shape[2] != len(kept)):
        return None
    if stack in ("self", "encoder"):
        own = own[:, kept]
    if stack != "decoder":
        own = own[:, :, kept]
    if own.shape != ours.shape or own.min() < 0:
        return None
    return float(np.abs(ours - own).max())


@contextmanager
def _eager(model: Any) -> Generator[None]:
    before = model.config._attn_implementation
    try:
        model.set_attn_implementation("eager")
    except (ValueError, AttributeError):
        yield
        return
    try:
        yield
    finally:
        model.set_attn_implementation(before)
