"""Further things that models may read, tried in turn where `made_up` knows no better."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import torch

from headscope.capturing.walk import reads_target
from headscope.testing._architectures_text import VOCABULARY

TOKENS, TARGETS, SAMPLES, FRAMES = 12, 7, 4000, 64
FREE_WORDS = VOCABULARY // 2
"""The last numbers are marks of pictures and sounds, which would ask for these."""
SPOTS = (4, 8)
"""Rows and columns of patches of a made-up picture, multiples of what models merge."""
BANDS = ("num_mel_bins", "n_mels", "feature_size", "input_feat_per_channel", "num_mel_filters")
"""What configurations call the frequency bands of a spectrogram."""

Inputs = dict[str, torch.Tensor]


def other_inputs(model: Any, count: int) -> Iterator[Inputs]:
    """Arguments that the forward of a model may take, the likelier first.

    Args:
        model: that will read them.
        count: how many texts, pictures or sounds there are.
    """
    target = {}
    if reads_target(model):
        ids = torch.randint(5, FREE_WORDS, (count, TARGETS), generator=_drawn(3))
        target = {"decoder_input_ids": ids}
    for inputs in _sources(model, count):
        yield inputs | target
        if target:
            yield inputs


def _sources(model: Any, count: int) -> Iterator[Inputs]:
    reads = inspect.signature(model.forward).parameters
    if "grid_thw" in reads or "image_grid_thw" in reads:
        yield from _packed_patches(model, reads, count)
    if "input_features" in reads:
        yield from _spectrograms(model, count)
    if "input_values" in reads:
        yield from _waves(count)
    if "pixel_values" in reads and "input_ids" not in reads:
        yield from _pictures(model, reads, count)
    if "input_ids" in reads:
        yield from _words(reads, count)


def _words(reads: Any, count: int) -> Iterator[Inputs]:
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


def _waves(count: int) -> Iterator[Inputs]:
    drawn = torch.randn(count, SAMPLES, generator=_drawn(4))
    yield {"input_values": drawn}
    yield {"input_values": drawn[:, None]}


def _pictures(model: Any, reads: Any, count: int) -> Iterator[Inputs]:
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


def _drawn(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
