"""What can be captured of a model, found out by trying."""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from headscope.capturing import capture_encoded
from headscope.errors import HeadscopeError, ModelError
from headscope.record import Layer, Record
from headscope.testing._made_up import made_up, other_inputs
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
        reads: what it was given, such as ``"Text"`` or ``"Pictures and text"``.
        unbuilt: why no tiny model of it could be made, so that nothing was tried.
    """

    name: str
    class_name: str
    routes: tuple[str, ...] = ()
    stacks: tuple[str, ...] = ()
    output_difference: float | None = None
    weights_difference: float | None = None
    remark: str = ""
    refused: str = ""
    reads: str = ""
    unbuilt: str = ""


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
        inputs = _readable(model, batch_size)
        support = replace(support, reads=_kind_of(inputs))
        with _steady():
            records = capture_encoded(model, None, inputs | {"use_cache": False})
    except HeadscopeError as error:
        return replace(support, refused=str(error))
    except UNSUITED as error:
        # The first line alone: transformers' errors may go on for a page.
        reason = (str(error).splitlines() or [""])[0]
        why = f"{UNREADABLE} ({type(error).__name__}: {reason})"
        return replace(support, refused=why)
    unseen = next(filter(None, [record.unseen for record in records]), "")
    if unseen:
        return replace(support, refused=f"captured in part: attention of {unseen} is not seen")
    own = _own_weights(model, inputs, records)
    layers = sum(len(stack) for record in records for stack in record.stacks.values())
    seen = [layer for stack in records[0].stacks.values() for layer in stack]
    return replace(
        support,
        routes=tuple(dict.fromkeys(layer.route for layer in seen)),
        stacks=tuple(_described(records[0])),
        output_difference=max(record.verified or 0.0 for record in records),
        weights_difference=max((pair.difference for pair in own), default=None),
        remark=_remark(own, layers, len(records)),
    )


UNREADABLE = "it cannot read what was made up for it"
"""How the reason begins where a model was given nothing that it reads."""
READS_NOTHING = "it reads neither text nor pictures nor sound"
READS = {
    "pixel_values_videos": "Video",
    "past_values": "Time series",
    "input_features": "Sound",
    "input_values": "Sound",
    "pixel_values": "Pictures",
    "hidden_states": "Pictures",
}
"""What a model reads, by the first argument that it takes besides words."""


def _kind_of(inputs: dict[str, torch.Tensor]) -> str:
    kind = next((kind for name, kind in READS.items() if name in inputs), "Text")
    return f"{kind} and text" if kind == "Pictures" and "input_ids" in inputs else kind


def _readable(model: Any, count: int) -> dict[str, torch.Tensor]:
    """The first of the inputs made up for a model that it reads.

    Raises:
        ModelError: where there are none for it.
        Exception: what the model raised for the first, where it reads none.
    """
    first: Exception | None = None
    for make in (lambda: [made_up(model, count)], lambda: other_inputs(model, count)):
        try:
            for inputs in make():
                if not inputs:
                    continue
                try:
                    with torch.no_grad(), _steady():
                        model(**inputs)
                    return inputs
                except UNSUITED as error:
                    first = first or error
        except UNSUITED as error:
            first = first or error
    if first is not None:
        raise first
    raise ModelError(READS_NOTHING)


def _described(record: Record) -> Iterator[str]:
    for name, stack in record.stacks.items():
        kinds = "/".join(dict.fromkeys(layer.kind for layer in stack))
        yield f"{name} {len(stack)} x {stack.heads} {kinds}"


@dataclass(frozen=True)
class _Pair:
    """A layer and what the model returns of it: the largest difference, perhaps of the mean over
    heads.
    """

    difference: float
    is_mean: bool


def _own_weights(model: Any, inputs: dict[str, Any], records: list[Record]) -> list[_Pair]:
    # As it was captured: FSMT masks what comes later only where it fills no cache.
    reads = inspect.signature(model.forward).parameters
    given = inputs | ({"use_cache": False} if "use_cache" in reads else {})
    with torch.no_grad(), _steady():
        captured = model(**given)
    # A copy, since a backbone of convolutions refuses to be set back to where it was.
    eager = deepcopy(model)
    with suppress(ValueError, AttributeError):
        eager.set_attn_implementation("eager")
    with torch.no_grad():
        with _steady():
            plain = eager(**given)
        try:
            with _steady():
                with_weights = eager(**given, output_attentions=True)
        except (TypeError, ValueError):
            return []
    before, after = plain[0], with_weights[0]
    if not isinstance(before, torch.Tensor) or not isinstance(after, torch.Tensor):
        return []
    largest = float(before.abs().max())
    if not torch.allclose(before, after, atol=1e-4 * largest):
        return []
    # ColPali on text alone looks at all of it under sdpa, and back only under eager attention. What
    # comes of padding differs in many models, and nobody reads it.
    differing = _at_tokens((before - captured[0]).abs(), inputs.get("attention_mask"))
    if float(differing.max()) > 1e-2 * largest:
        return []
    pairs = []
    for example, record in enumerate(records):
        for layers, own in _matched(record, with_weights):
            # Another first axis is not that of the texts: windows, or patches of several pictures.
            if len(own) != len(records):
                continue
            mask = _mask_of(inputs, example)
            there = own[example].numpy()
            compared = [_compared(layer.weights_of(), there, mask) for layer in layers]
            known = [pair for pair in compared if pair is not None]
            if known:
                pairs.append(min(known, key=lambda pair: pair.difference))
    return pairs


def _at_tokens(values: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """``[batch position ...]`` without padding, where the mask has as many positions."""
    is_alike = mask is not None and mask.ndim == 2 and values.shape[:2] == mask.shape
    return values[mask.bool()] if mask is not None and is_alike else values


def _matched(record: Record, output: Any) -> Iterator[tuple[list[Layer], torch.Tensor]]:
    """Layers with the weights that the model returns of them, as far as it does. A module that
    computes two softmaxes (DiffLlama, LiLT) has two layers, of which it returns one.
    """
    staged: list[Layer] = []
    for name, stack in record.stacks.items():
        staged += stack if name.startswith("stage") else ()
    if staged:
        yield from _paired(staged, _given(output, "self"))
    for name, stack in record.stacks.items():
        if not name.startswith("stage"):
            only = not {"vision", "text"} <= set(record.stacks)
            own = _given(output, name, only=only)
            # What is returned under a common name must be as many, or nobody knows whose they are.
            counts = len(stack), len({layer.module for layer in stack})
            if name in OWN or name == "self" or len(own) in counts:
                yield from _paired(list(stack), own)


def _paired(
    layers: list[Layer], own: list[torch.Tensor]
) -> Iterator[tuple[list[Layer], torch.Tensor]]:
    """Each of the model's own weights with the layer that they are of, or the two of a module."""
    layers = sorted(layers, key=lambda layer: _in_order(layer.module))
    of_module: dict[str, list[Layer]] = {}
    for layer in layers:
        of_module.setdefault(layer.module, []).append(layer)
    # ALBERT runs the same module for several layers, and returns the weights of each.
    groups = [[layer] for layer in layers]
    if len(own) == len(of_module) < len(layers):
        groups = list(of_module.values())
    yield from zip(groups, own, strict=False)


def _in_order(module: str) -> list[tuple[bool, int, str]]:
    """A module's name as it sorts by its numbers: ``layers.10`` after ``layers.9``."""
    return [
        (part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in module.split(".")
    ]


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
            is_clear = len(seen) == own.shape[axis] and seen.sum() == size
            own = own.compress(seen if is_clear else _kept(mask, own.shape[axis], size), axis)
    return own


def _kept(mask: np.ndarray, positions: int, count: int) -> np.ndarray:
    """True for positions that are no padding: of words, of words and what follows them, or of the
    frames of a sound.
    """
    if len(mask) > positions:
        return np.arange(positions) < count
    return np.concatenate([mask, np.ones(positions - len(mask), bool)])


def _remark(pairs: list[_Pair], layers: int, records: int) -> str:
    remarks = ["mean over heads"] * any(pair.is_mean for pair in pairs)
    if pairs and len(pairs) < layers:
        remarks.append(f"{len(pairs) // records} of {layers // records} layers")
    return ", ".join(remarks)


@contextmanager
def _steady() -> Generator[None]:
    """The same random numbers every time, for models that draw some (ViT-MAE); the caller's go on
    as before.
    """
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield
