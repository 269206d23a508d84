"""What a model is given to try it out: random words, pictures, videos, sounds and time series."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch

from headscope.capturing.walk import reads_target
from headscope.testing._models import VOCABULARY

TOKENS, TARGETS, PADDED = 12, 7, 3
SAMPLES, SAMPLES_OF_SHORT, LONG_WAVE, FRAMES = 400, 300, 4000, 64
FREE_WORDS = VOCABULARY // 2
"""The last numbers are marks of pictures and sounds, which would ask for these."""
SPOTS = (4, 8)
"""Rows and columns of patches of a made-up picture, multiples of what models merge."""
BANDS = ("num_mel_bins", "n_mels", "feature_size", "input_feat_per_channel", "num_mel_filters")
"""What configurations call the frequency bands of a spectrogram."""

Inputs = dict[str, torch.Tensor]


def made_up(model: Any, count: int = 2) -> Inputs:
    """Arguments of a forward of some examples: words, pictures, sounds ..., as far as the model
    reads them.

    Every second text, and every second sound where the model knows about padding, is shorter than
    the others and padded.

    Args:
        model: that will read them.
        count: how many examples there are.
    """
    reads = inspect.signature(model.forward).parameters
    inputs: Inputs = {}
    for name, makes in MAKERS.items():
        if name in reads:
            inputs |= makes(model, count)
            break
    # Words stand next to pictures, but nothing else is read together with them.
    if "input_ids" in reads and (not inputs or "pixel_values" in inputs):
        inputs |= _words(model, inputs, count)
    if inputs and reads_target(model):
        ids = torch.randint(5, _vocabulary(model), (count, TARGETS), generator=_drawn(3))
        inputs["decoder_input_ids"] = ids
    return {name: tensor.to(model.device) for name, tensor in inputs.items()}


def _words(model: Any, pictures: Inputs, examples: int) -> Inputs:
    ids = torch.randint(5, _vocabulary(model), (examples, TOKENS), generator=_drawn(1))
    mask = torch.ones_like(ids)
    mask[1::2, -PADDED:] = 0
    token = getattr(model.config, "image_token_id", None)
    if not pictures or token is None:
        return {"input_ids": ids, "attention_mask": mask}
    counts = _features(model, pictures)
    shape = (examples, TOKENS + max(counts))
    whole = torch.randint(5, _vocabulary(model), shape, generator=_drawn(1))
    # A picture's features take the place of as many marks in the text, no more and no fewer.
    for example, count in enumerate(counts):
        whole[example, 2 : 2 + count] = token
    mask = torch.cat([torch.ones_like(whole[:, TOKENS:]), mask], dim=1)
    words = {"input_ids": whole, "attention_mask": mask}
    if "mm_token_type_ids" in inspect.signature(model.forward).parameters:
        words["mm_token_type_ids"] = (whole == token).long()
    return words


def _features(model: Any, pictures: Inputs) -> list[int]:
    """How many positions each picture takes in the text."""
    with torch.no_grad():
        features = model.get_image_features(**pictures)
    # An output with the features under that name, or the features themselves: models differ.
    features = getattr(features, "pooler_output", features)
    return [part.numel() // part.shape[-1] for part in features]


def _pictures(model: Any, examples: int) -> Inputs:
    config = _part(model.config, "image_size", "patch_size")
    channels = getattr(config, "num_channels", None) or getattr(config, "in_channels", 3)
    patch = getattr(config, "patch_size", 1)
    # Packed patches (Qwen-VL): all pictures in one row, their grids with them.
    if getattr(config, "temporal_patch_size", None) is not None:
        rows, columns = 2 * config.spatial_merge_size, 4 * config.spatial_merge_size
        sizes = [(1, rows, rows if number % 2 else columns) for number in range(examples)]
        features = channels * config.temporal_patch_size * patch**2
        pixels = torch.randn(sum(a * b * c for a, b, c in sizes), features, generator=_drawn(2))
        return {"pixel_values": pixels, "image_grid_thw": torch.tensor(sizes)}
    backbone = getattr(config, "backbone_config", None)
    # Convolutions make one patch of 32 x 32 pixels.
    convolves = backbone is not None and not hasattr(backbone, "num_attention_heads")
    size = getattr(config, "image_size", (64, 96) if convolves else 32)
    height, width = size if isinstance(size, list | tuple) else (size, size)
    frames = [model.config.num_frames] if hasattr(model.config, "num_frames") else []
    shape = (examples, *frames, channels, height, width)
    return {"pixel_values": torch.randn(shape, generator=_drawn(2))}


def _videos(model: Any, examples: int) -> Inputs:
    sizes = (model.config.in_chans, model.config.crop_size, model.config.crop_size)
    frames = (examples, model.config.frames_per_clip)
    return {"pixel_values_videos": torch.randn(*frames, *sizes, generator=_drawn(2))}


def _series(model: Any, examples: int) -> Inputs:
    """Values of time series, of several channels where the model reads several."""
    reads = inspect.signature(model.forward).parameters
    channels = getattr(model.config, "num_input_channels", None)
    shape = (examples, model.config.context_length, *([] if channels is None else [channels]))
    inputs = {"past_values": torch.randn(shape, generator=_drawn(4))}
    if "freq" in reads:  # how often a value was taken: 0 is often
        inputs |= {
            "past_values_padding": torch.zeros(shape),
            "freq": torch.zeros(examples, 1, dtype=torch.long),
        }
    return inputs


def _sounds(model: Any, examples: int) -> Inputs:
    config = getattr(model.config, "encoder", model.config)
    if hasattr(config, "conv_kernel"):
        mask = torch.ones(examples, SAMPLES, dtype=torch.long)
        mask[1::2, SAMPLES_OF_SHORT:] = 0
        waves = torch.randn(examples, SAMPLES, generator=_drawn(4))
        return {"input_values": waves, "attention_mask": mask}
    if hasattr(config, "input_feat_per_channel"):
        mask = torch.ones(examples, 2 * TOKENS, dtype=torch.long)
        mask[1::2, -2 * PADDED :] = 0
        shape = (examples, 2 * TOKENS, config.input_feat_per_channel)
        features = torch.randn(shape, generator=_drawn(4))
        return {"input_features": features, "attention_mask": mask}
    # A spectrogram under the name that other models have for waves.
    reads = inspect.signature(model.forward).parameters
    if hasattr(config, "max_length") and "input_values" in reads:
        shape = (examples, config.max_length, config.num_mel_bins)
        return {"input_values": torch.randn(shape, generator=_drawn(4))}
    shape = (examples, config.num_mel_bins, 2 * config.max_source_positions)
    return {"input_features": torch.randn(shape, generator=_drawn(4))}


MAKERS: dict[str, Callable[[Any, int], Inputs]] = {
    "pixel_values": _pictures,
    "input_features": _sounds,
    "input_values": _sounds,
    "pixel_values_videos": _videos,
    "past_values": _series,
}
"""What makes an argument of a forward; the first that it has is taken."""


def _part(config: Any, *names: str) -> Any:
    """The part of a configuration that knows one of these."""
    for part in ("encoder", "vision_config"):
        if any(hasattr(getattr(config, part, None), name) for name in names):
            return getattr(config, part)
    return config


def _vocabulary(model: Any) -> int:
    """The first number that no word has; those of pictures stand behind them."""
    config = model.config.decoder if hasattr(model.config, "decoder") else model.config
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    names = ("image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id")
    marks = [getattr(model.config, name, None) for name in names]
    known = [mark for mark in marks if isinstance(mark, int) and mark > 5]
    return min([getattr(config, "vocab_size", VOCABULARY), *known])


def _drawn(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def other_inputs(model: Any, count: int) -> Iterator[Inputs]:
    """Arguments that the forward of a model may take, the likelier first.

    Args:
        model: that will read them.
        count: how many texts, pictures or sounds there are.
    """
    ids = torch.randint(5, FREE_WORDS, (count, TARGETS), generator=_drawn(3))
    target = {"decoder_input_ids": ids} if reads_target(model) else {}
    for inputs in _sources(model, count):
        yield inputs | target
        if channels := getattr(getattr(model.config, "decoder_config", {}), "num_channels", 0):
            yield inputs | {"decoder_input_ids": ids[..., None].expand(-1, -1, channels)}


def _sources(model: Any, count: int) -> Iterator[Inputs]:
    reads = inspect.signature(model.forward).parameters
    if "grid_thw" in reads or "image_grid_thw" in reads:
        yield from _packed_patches(model, reads, count)
    if "input_features" in reads:
        yield from _spectrograms(model, count)
    if "input_values" in reads:
        drawn = torch.randn(count, LONG_WAVE, generator=_drawn(4))
        yield {"input_values": drawn}
        yield {"input_values": drawn[:, None]}
    if "pixel_values" in reads and "input_ids" not in reads:
        yield from _pictures_alone(model, reads, count)
    if "input_ids" in reads:
        yield from _words_alone(reads, count)


def _words_alone(reads: Any, count: int) -> Iterator[Inputs]:
    """Words alone, of models that can read pictures or sounds with them, too."""
    ids = torch.randint(5, FREE_WORDS, (count, TOKENS), generator=_drawn(1))
    mask = torch.ones_like(ids)
    words = {"input_ids": ids, "attention_mask": mask}
    if "bbox" in reads:
        words["bbox"] = torch.zeros(count, TOKENS, 4, dtype=torch.long)
    yield words
    yield {"input_ids": ids}


def _packed_patches(model: Any, reads: Any, count: int) -> Iterator[Inputs]:
    """Patches of all pictures in one row, with the grid of each."""
    config = _part_with(model.config, "patch_size")
    patch = getattr(config, "patch_size", 14)
    channels = getattr(config, "in_channels", None) or getattr(config, "num_channels", 3)
    frames = getattr(config, "temporal_patch_size", None) or 1
    rows, columns = SPOTS
    name = "grid_thw" if "grid_thw" in reads else "image_grid_thw"
    grid = torch.tensor([(1, rows, columns)] * count)
    patches = rows * columns * count
    flat = torch.randn(patches, channels * frames * patch**2, generator=_drawn(2))
    square = flat[:, : channels * patch**2].reshape(patches, channels, patch, patch)
    for argument in ("hidden_states", "pixel_values"):
        if argument in reads:
            yield {argument: flat, name: grid}
            yield {argument: square, name: grid}


def _spectrograms(model: Any, count: int) -> Iterator[Inputs]:
    config = _part_with(model.config, *BANDS)
    bands = next((getattr(config, name) for name in BANDS if hasattr(config, name)), 80)
    for frames in (FRAMES, 2 * (getattr(config, "max_source_positions", None) or FRAMES)):
        drawn = torch.randn(count, frames, bands, generator=_drawn(4))
        yield {"input_features": drawn}
        yield {"input_features": drawn.mT.contiguous()}
        mask = torch.ones(count, frames, dtype=torch.long)
        for name in ("attention_mask", "input_features_mask"):
            yield {"input_features": drawn, name: mask}
            yield {"input_features": drawn.mT.contiguous(), name: mask}


def _pictures_alone(model: Any, reads: Any, count: int) -> Iterator[Inputs]:
    config = _part_with(model.config, "image_size")
    side = getattr(config, "image_size", None) or 64
    height, width = side if isinstance(side, list | tuple) else (side, side)
    pixels = torch.randn(count, 3, height, width, generator=_drawn(2))
    yield {"pixel_values": pixels}
    if "pixel_mask" in reads:
        yield {"pixel_values": pixels, "pixel_mask": torch.ones(count, height, width).long()}
    config = _part_with(model.config, "patch_size")
    patch = getattr(config, "patch_size", 16)
    rows, columns = SPOTS
    flat = torch.randn(count, rows * columns, 3 * patch**2, generator=_drawn(2))
    if "spatial_shapes" in reads:
        yield {
            "pixel_values": flat,
            "pixel_attention_mask": torch.ones(count, rows * columns, dtype=torch.long),
            "spatial_shapes": torch.tensor([SPOTS] * count),
        }
    if "pixel_position_ids" in reads:
        cells = torch.cartesian_prod(torch.arange(columns), torch.arange(rows))
        yield {"pixel_values": flat, "pixel_position_ids": cells[None].repeat(count, 1, 1)}


def _part_with(config: Any, *names: str) -> Any:
    """The part of a configuration that has one of these fields; the configuration if none has."""
    parts = [config, *(getattr(config, name, None) for name in config.sub_configs)]
    for part in parts:
        if part is not None and any(getattr(part, name, None) is not None for name in names):
            return part
    return config
