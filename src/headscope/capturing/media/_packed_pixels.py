"""Pictures whose processor cut them into patches and packed these in rows, put together again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8

UNLIKE = 12.0
"""How far a picture that was put together may be from the given one, brought to its size: mean over
pixels, in steps of 0 ... 255. Ways of scaling differ by one or two; wrong orders by more. Ours.
"""
SIZES = ("patch_size", "merge_size", "temporal_patch_size")


def unpacked(
    processor: Any, features: Mapping[str, Any]
) -> list[tuple[Float[np.ndarray, "3 down along"], tuple[int, int]]]:
    """Each picture from its packed patches, as Qwen2-VL's processor orders them, and how many rows
    and columns of patches it has; none where it packs in another way.

    Rows of ``pixel_values`` are patches, ``merge_size`` x ``merge_size`` of them after each other;
    a row holds channels, frames, rows and columns of pixels.

    Args:
        processor: of pictures.
        features: what it returned.
    """
    values, grids = features.get("pixel_values"), features.get("image_grid_thw")
    sizes = [getattr(processor, name, None) for name in SIZES]
    known = [size for size in sizes if isinstance(size, int)]
    is_packed = isinstance(values, torch.Tensor) and values.ndim == 2 and grids is not None
    if not is_packed or len(known) < len(SIZES):
        return []
    side, merged, frames = known
    if values.shape[1] != 3 * frames * side**2:
        return []
    rows = values.detach().cpu().double().numpy()
    pictures, start = [], 0
    for times, down, along in torch.as_tensor(grids).tolist():
        count = times * down * along
        # A video has several frames, which no single picture shows.
        if times != 1 or down % merged or along % merged:
            return []
        part = rows[start : start + count].reshape(
            down // merged, along // merged, merged, merged, 3, frames, side, side
        )
        start += count
        # A picture is given as so many equal frames; the first stands for all.
        image = part[:, :, :, :, :, 0].transpose(4, 0, 2, 5, 1, 3, 6)
        pictures.append((image.reshape(3, down * side, along * side), (down, along)))
    return pictures


def is_like(pixels: UInt8[np.ndarray, "height width 3"], given: Any) -> bool:
    """Whether a picture is the given one, scaled: so the order of its patches was understood.

    Args:
        pixels: that were put together.
        given: as a PIL picture.
    """
    from PIL import Image

    size = (pixels.shape[1], pixels.shape[0])
    scaled = given.convert("RGB").resize(size, Image.Resampling.BICUBIC)
    apart = np.abs(np.asarray(scaled, np.float64) - pixels)
    return bool(apart.mean() <= UNLIKE)
