"""Pictures as a model saw them, from what its processor made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8

from headscope.capturing.media.input_positions import PIXEL_MASKS, VISION, InputPositions, in_blocks

LONGEST = 448
"""Pixels that the longer side of a kept picture has at most."""
ROUNDING = 1.0
"""How far beyond 0 and 255 a value may lie that was brought back, in steps of one."""


@dataclass(frozen=True)
class Picture:
    """A picture that a model saw.

    Args:
        pixels: of the whole picture, shrunk where it is large.
        size: rows and columns that the model saw of it, without padding: of pixels, or of patches
            where its processor packed these.
    """

    pixels: UInt8[np.ndarray, "height width 3"]
    size: tuple[int, int]


def pictures_of(
    processor: Any, features: Mapping[str, Any], given: Sequence[Any] = ()
) -> tuple[Picture, ...]:
    """The pictures that a processor made, as what can be looked at; none where their pixels are
    unknown.

    With the processor's own numbers: ``pixel = (value * image_std + image_mean) / rescale_factor``,
    each part where the processor did it. Channels that are no colours, and values that do not come
    back to 0 ... 255 (a processor that does more than its fields show) give no picture. Of packed
    patches, as Qwen2-VL has them, it is the given picture, scaled.

    Args:
        processor: of pictures, or of several kinds.
        features: what it returned; ``pixel_values`` has the axes ``[.. channel height width]``, or
            ``[patch feature]`` where they are packed.
        given: the PIL pictures that it was given.
    """
    own = getattr(processor, "image_processor", processor)
    values = features.get("pixel_values")
    # Without these it is not known what a processor did to the pixels, so nothing can be undone.
    says_how = any(hasattr(own, name) for name in ("do_rescale", "do_normalize"))
    if says_how and given and "image_grid_thw" in features:
        return _packed(own, features, given)
    # With one channel or three, and no packed patches.
    are_pixels = isinstance(values, torch.Tensor) and values.ndim >= 4 and says_how
    if not are_pixels or values.shape[-3] not in (1, 3):
        return ()
    values = values.detach().cpu().double().numpy()
    values = values.reshape(-1, *values.shape[-3:])
    masks = _masks(features, len(values))
    if len(masks) != len(values):
        return ()
    pictures = []
    for picture, mask in zip(values, masks, strict=True):
        pixels = _brought_back(own, np.moveaxis(picture, 0, -1))
        if pixels is None:
            return ()
        if mask is not None:
            # Where texts have different numbers of pictures, those missing are padding all over.
            if not mask.any():
                continue
            pixels = _unpadded(pixels, mask)
        pictures.append(Picture(_shrunk(pixels), pixels.shape[:2]))
    return tuple(pictures)


def frames_of(
    processor: Any, features: Mapping[str, Any], given: Sequence[Any], tube: int
) -> tuple[Picture, ...]:
    """The frames that a processor made of a video, as `pictures_of`. Of so many that one patch
    reaches over the middle one, which its mark comes from; of packed ones the first.
    """
    values = features.get("pixel_values_videos", features.get("pixel_values"))
    own = getattr(processor, "video_processor", processor)
    if "video_grid_thw" in features:
        steps, *sizes = features["video_grid_thw"][0].tolist()
        grids = torch.tensor([[1, *sizes]] * steps)
        return _packed(own, {"pixel_values": values, "image_grid_thw": grids}, given[::tube])
    frames = pictures_of(own, {"pixel_values": values})
    # Frames that do not fill a tube at the end are not read.
    return frames[(tube - 1) // 2 : len(frames) // tube * tube : tube]


def _packed(own: Any, features: Mapping[str, Any], given: Sequence[Any]) -> tuple[Picture, ...]:
    """The given pictures, scaled to the patches that a processor packed of each, where these have
    the colours of their places: so the order of the patches was understood.
    """
    from PIL import Image

    rows, grids = features["pixel_values"], features["image_grid_thw"].tolist()
    side, merged, colours = _patches_of(own, rows)
    # A video has several frames, which no single picture shows.
    is_known = merged and len(grids) == len(given) and {times for times, *_ in grids} == {1}
    if not is_known or any(size % merged for _, *sizes in grids for size in sizes):
        return ()
    pictures, start = [], 0
    for (_, down, wide), picture in zip(grids, given, strict=True):
        size = (wide * side, down * side)
        scaled = np.asarray(picture.convert("RGB").resize(size, Image.Resampling.BICUBIC))
        wanted = scaled.reshape(down, side, wide, side, 3).mean((1, 3))
        at = in_blocks(down, wide, merged)
        if np.abs(colours[start : start + len(at)] - wanted[*at.T]).mean() > UNLIKE:
            return ()
        start += len(at)
        pictures.append(Picture(_shrunk(scaled), (down, wide)))
    return tuple(pictures)


def _patches_of(own: Any, rows: torch.Tensor) -> tuple[int, int, np.ndarray]:
    """Pixels of a side of the packed patches, how many of them stand together on a side, and the
    mean colour of each; zeros where that is not known.
    """
    sizes = [getattr(own, name, None) for name in SIZES]
    side, merged, frames = (size if isinstance(size, int) else 0 for size in sizes)
    colours = None
    if rows.ndim == 2 and rows.shape[1] == 3 * frames * side**2:
        # A row holds channels, frames (of which the first is shown), rows and columns of pixels.
        pixels = rows.detach().cpu().double().reshape(1, len(rows), 3, frames, -1)
        means = pixels[:, :, :, 0].mean(-1)
        colours = _brought_back(own, means.numpy())
    return (0, 0, np.zeros(0)) if colours is None else (side, merged, colours[0])


def _masks(features: Mapping[str, Any], count: int) -> list[np.ndarray | None]:
    """Where each of the pictures is real and not padding; None where the processor pads none."""
    for name in PIXEL_MASKS:
        masks = features.get(name)
        if isinstance(masks, torch.Tensor):
            return list(masks.cpu().numpy().reshape(-1, *masks.shape[-2:]))
    return [None] * count


def _unpadded(pixels: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The picture without its padding, which lies below it and on its right."""
    height = np.flatnonzero(mask.any(axis=1))[-1] + 1
    width = np.flatnonzero(mask.any(axis=0))[-1] + 1
    return pixels[:height, :width]


def lie_within(
    marks: np.ndarray, input_positions: InputPositions, pictures: tuple[Picture, ...]
) -> bool:
    """Whether each patch, drawn as an equal part of its picture, covers the pixel that its mark
    says it comes from.

    Args:
        marks: of every position of one side of an example.
        input_positions: what the marks are the numbers of.
        pictures: of the example, in order.
    """
    seen = marks[input_positions.come_from(marks, VISION)] - 1
    items = np.unique(input_positions.item[seen])
    if len(seen) and len(items) != len(pictures):
        return False
    for item, picture in zip(items, pictures, strict=False):
        at = seen[input_positions.item[seen] == item]
        for numbers, size in zip(
            (input_positions.row[at], input_positions.column[at]), picture.size, strict=True
        ):
            # The model may cut patches that overlap, or leave out an edge; equal parts drawn over
            # such a picture would show the wrong pixels.
            own, number = np.unique(numbers, return_inverse=True)
            if (own[number] * len(own) // size != number).any():
                return False
    return True


def _brought_back(processor: Any, values: np.ndarray) -> np.ndarray | None:
    """``[height width 3]`` of 0 ... 255; None where that is not what comes out."""

    def of(name: str) -> Any:
        return getattr(processor, name, None)

    if of("do_normalize"):
        mean, std = (
            np.atleast_1d(np.asarray(of(name), float)) for name in ("image_mean", "image_std")
        )
        if not {len(mean), len(std)} <= {1, values.shape[-1]}:
            return None
        values = values * std + mean
    if of("do_rescale"):
        # Processors such as EfficientNet's subtract one after scaling, if rescale_offset is set.
        values = (values + bool(of("rescale_offset"))) / (of("rescale_factor") or 1 / 255)
    if not -ROUNDING <= values.min() <= values.max() <= 255 + ROUNDING:
        return None
    pixels = np.clip(np.rint(values), 0, 255).astype(np.uint8)
    if of("do_flip_channel_order"):
        pixels = pixels[:, :, ::-1]
    return np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else pixels


def _shrunk(pixels: np.ndarray) -> np.ndarray:
    """The picture with at most `LONGEST` pixels a side, each the mean of those it stands for."""
    height, width = pixels.shape[:2]
    longest = max(height, width)
    if longest <= LONGEST:
        return np.ascontiguousarray(pixels)
    from PIL import Image

    size = [max(1, round(side * LONGEST / longest)) for side in (width, height)]
    return np.asarray(
        Image.fromarray(np.ascontiguousarray(pixels)).resize(size, Image.Resampling.BOX)
    )


UNLIKE = 12.0
"""How far the mean colours of patches may be from those of their places in the given picture,
scaled: mean of all, in steps of 0 ... 255. Ways of scaling differ by one or two; wrong orders by
more. Ours.
"""
SIZES = ("patch_size", "merge_size", "temporal_patch_size")
