"""What can be captured of a model, found out by trying."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from headscope.capturing import capture_ids
from headscope.errors import HeadscopeError
from headscope.record import Layer, Record
from headscope.testing._made_up import made_up
from headscope.testing._models import UNSUITED

OWN = {
    "encoder": ("encoder_attentions",),
    "decoder": ("decoder_attentions",),
    "cross": ("cross_attentions",),
    "vision": ("vision_model_output", "attentions"),
    "text": ("text_model_output", "attentions"),
    "probe": ("pooler_attentions",),
}
"""Where a model returns the weights of a stack; else under ``attentions``."""


@dataclass(frozen=True)
class Support:
    """What can be captured of one model.

    Args:
        name: what the model is called.
        class_name: its class in transformers.
        routes: how its attention was seen.
        stacks: layers, heads and kinds of attention, by stack.
        output_difference: largest difference between the layer outputs recomputed from weights and
            values and the model's own; None where refused.
        weights_difference: largest difference from the weights that the model returns itself; None
            where it returns none, or returns something else.
        remark: what it returns itself, where that is not the weights of all layers.
        refused: why it cannot be captured; empty where it can.
    """

    name: str
    class_name: str
    routes: tuple[str, ...] = ()
    stacks: tuple[str, ...] = ()
    output_difference: float | None = None
    weights_difference: float | None = None
    remark: str = ""
    refused: str = ""


def examine(model: Any, name: str = "", *, batch_size: int = 2) -> Support:
    """Capture a batch of made-up texts, pictures or sounds, and compare with what the model returns
    itself.

    Every second text or sound is shorter than the first and padded. The model's own weights are
    asked for under eager attention. They are left out of the comparison where asking for them
    changes the model's output (Falcon computes another attention then), or where they are no
    weights (SqueezeBERT returns scores). Where they are the mean over heads (WavLM), our mean is
    compared.

    Args:
        model: a loaded transformers model; it comes back as it was.
        name: what to call it; its model type by default.
        batch_size: how many texts, pictures or sounds the batch holds; of one nothing is padded.
    """
    support = Support(name or model.config.model_type, type(model).__name__)
    try:
        inputs = made_up(model, batch_size)
        if not inputs:
            return replace(support, refused="it reads neither text nor pictures nor sound")
        with _steady():
            records = capture_ids(model, **inputs)
    except HeadscopeError as error:
        return replace(support, refused=str(error))
    except UNSUITED as error:
        return replace(support, refused=_unreadable(error))
    own = _own_weights(model, inputs, records)
    layers = sum(len(stack) for record in records for stack in record.stacks.values())
    return replace(
        support,
        routes=_routes(records[0]),
        stacks=tuple(_described(records[0])),
        output_difference=max(record.verified or 0.0 for record in records),
        weights_difference=max((pair.difference for pair in own), default=None),
        remark=_remark(own, layers, len(records)),
    )


def _unreadable(error: Exception) -> str:
    # The first line alone: transformers' errors may go on for a page.
    reason = (str(error).splitlines() or [""])[0]
    return f"it cannot read what was made up for it ({type(error).__name__}: {reason})"


def _routes(record: Record) -> tuple[str, ...]:
    layers = [layer for stack in record.stacks.values() for layer in stack]
    return tuple(dict.fromkeys(layer.route for layer in layers))


def _described(record: Record) -> Iterator[str]:
    for name, stack in record.stacks.items():
        kinds = "/".join(dict.fromkeys(layer.kind for layer in stack))
        yield f"{name} {len(stack)} x {stack.heads} {kinds}"


@dataclass(frozen=True)
class _Pair:
    """A layer and what the model says of it: the largest difference, perhaps of the mean over
    heads.
    """

    difference: float
    is_mean: bool


def _own_weights(model: Any, inputs: dict[str, torch.Tensor], records: list[Record]) -> list[_Pair]:
    with torch.no_grad(), _eager(model):
        with _steady():
            plain = model(**inputs)
        try:
            with _steady():
                telling = model(**inputs, output_attentions=True)
        except (TypeError, ValueError):
            return []
    if not torch.allclose(plain[0], telling[0], atol=1e-4 * float(plain[0].abs().max())):
        return []
    pairs = []
    for example, record in enumerate(records):
        for layer, own in _matched(record, telling):
            # Another first axis is not that of the texts: windows, or patches of several pictures.
            if len(own) != len(records):
                continue
            mask = _mask_of(inputs, example)
            pair = _compared(layer.weights_of(), own[example].numpy(), mask)
            if pair is not None:
                pairs.append(pair)
    return pairs


def _matched(record: Record, output: Any) -> Iterator[tuple[Layer, torch.Tensor]]:
    """Layers with the weights that the model returns of them, as far as it does."""
    staged = [
        layer
        for name, stack in record.stacks.items()
        if name.startswith("stage")
        for layer in stack
    ]
    yield from zip(staged, _given(output, "self"), strict=False) if staged else ()
    for name, stack in record.stacks.items():
        if not name.startswith("stage"):
            only = not {"vision", "text"} <= set(record.stacks)
            own = _given(output, name, only=only)
            # What is returned under a common name must be as many, or nobody knows whose they are.
            if name in OWN or name == "self" or len(own) == len(stack):
                yield from zip(stack, own, strict=False)


def _given(output: Any, name: str, *, only: bool = True) -> list[torch.Tensor]:
    """What a model returns of a stack; without parts of its own, what it returns is of the text, or
    of the only one.
    """
    weights = output
    for part in OWN.get(name, ("attentions",)):
        weights = weights.get(part, None) if weights is not None else None
    if weights is None and (name == "text" or (only and name == "vision")):
        weights = output.get("attentions", None)
    return [own.cpu() for own in weights or () if isinstance(own, torch.Tensor)]


def _mask_of(inputs: dict[str, torch.Tensor], example: int) -> np.ndarray | None:
    mask = inputs.get("attention_mask")
    return None if mask is None else mask[example].bool().cpu().numpy()


def _compared(ours: np.ndarray, own: np.ndarray, mask: np.ndarray | None) -> _Pair | None:
    """None where the model returns something else."""
    if own.ndim != 3 or own.min() < 0:
        return None
    own = _without_padding(own, ours.shape[1:], mask)
    if own.shape != ours.shape:
        return None
    # Equal to the last bit in all heads, while ours differ: the model returns their mean.
    are_equal = len(own) > 1 and bool((own == own[:1]).all())
    is_mean = are_equal and not np.allclose(ours, ours[:1], atol=1e-3)
    ours = ours.mean(axis=0, keepdims=True) if is_mean else ours
    return _Pair(float(np.abs(ours - own).max()), is_mean)


def _without_padding(
    own: np.ndarray, sizes: tuple[int, ...], mask: np.ndarray | None
) -> np.ndarray:
    """Weights of the tokens alone, where the model returns those of padding with them."""
    if mask is None:
        return own
    seen = np.asarray(own.any(axis=(0, 1)))  # nothing looks at padding
    for axis, size in zip((1, 2), sizes, strict=True):
        if own.shape[axis] != size:
            told = len(seen) == own.shape[axis] and seen.sum() == size
            own = own.compress(seen if told else _kept(mask, own.shape[axis], size), axis)
    return own


def _kept(mask: np.ndarray, positions: int, count: int) -> np.ndarray:
    """True for positions that are no padding: of words, of words and what follows them, or of the
    frames of a sound.
    """
    if len(mask) > positions:
        return np.arange(positions) < count
    return np.concatenate([mask, np.ones(positions - len(mask), bool)])


def _remark(pairs: list[_Pair], layers: int, records: int) -> str:
    said = ["mean over heads"] * any(pair.is_mean for pair in pairs)
    if pairs and len(pairs) < layers:
        said.append(f"{len(pairs) // records} of {layers // records} layers")
    return ", ".join(said)


@contextmanager
def _steady() -> Generator[None]:
    """The same random numbers every time, for models that draw some (ViT-MAE); the caller's go on
    as before.
    """
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


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
