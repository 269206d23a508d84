"""The spots of a model's input that its positions come from: pixels, samples, words."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from headscope.capturing.media._position_marks import PositionMarks, marked
from headscope.errors import CaptureError

TEXT, TARGET, VISION, AUDIO = "text", "target", "vision", "audio"
KINDS = (TEXT, TARGET, VISION, AUDIO)
ARGUMENTS = {
    "input_ids": TEXT,
    "decoder_input_ids": TARGET,
    "pixel_values": VISION,
    "input_features": AUDIO,
    "input_values": AUDIO,
}
"""What the arguments of a forward hold, as all of transformers calls them."""


class UnnamedPositions(CaptureError):
    """A model works on positions whose meaning is unknown; they can still be
    numbered.
    """


@dataclass(frozen=True)
class InputPositions:
    """All spots of a model's input, numbered from 1 on: entry ``i`` of each array is of the spot
    numbered ``i + 1``.

    Args:
        count: number of examples.
        marks: for each argument that holds spots their numbers, broadcast to its shape.
        kind: number of what it is in `KINDS`.
        example: the example it belongs to.
        item: number of the picture, sound or text, counted within its kind.
        row: of a pixel or patch; 0 in a text and in a sound.
        column: of a pixel, patch or sample, or the position of a word.
        names: of the model's parameters, which are numbered -1, -2 ...
        seconds: how far two neighbouring samples, or columns of features, of a sound are apart;
            None if unknown.
        whole: whether each spot of a picture is a patch, as in packed input, and not a pixel.
    """

    count: int
    marks: Mapping[str, torch.Tensor]
    kind: np.ndarray
    example: np.ndarray
    item: np.ndarray
    row: np.ndarray
    column: np.ndarray
    names: tuple[str, ...] = ()
    seconds: float | None = None
    whole: bool = False

    @property
    def kinds(self) -> set[str]:
        """What the input holds."""
        return {KINDS[number] for number in np.unique(self.kind)}

    def spots(self, marks: np.ndarray, kind: str) -> np.ndarray:
        """True where a mark is that of a spot of this kind."""
        # Marks of 0 and below read some entry from the end of the array; the sign rules them out.
        return (marks > 0) & (self.kind[marks - 1] == KINDS.index(kind))

    def examples(self, marks: np.ndarray) -> np.ndarray:
        """The example of each mark; -1 where there is none."""
        return np.where(marks > 0, self.example[marks - 1], -1)


def origins_of(
    model: nn.Module, arguments: Mapping[str, torch.Tensor], seconds: float | None = None
) -> InputPositions:
    """The spots of these arguments.

    Raises:
        CaptureError: where it is unknown which pictures belong to which text.
    """
    pictures, sounds = _pictures(model, arguments), _sounds(arguments)
    count = _count_of(arguments, pictures or sounds)
    items = {VISION: pictures, AUDIO: sounds}
    parts: list[np.ndarray] = []
    marks: dict[str, torch.Tensor] = {}
    size = 0
    for name, kind in ARGUMENTS.items():
        tensor = arguments.get(name)
        if tensor is None:
            continue
        own = items[kind] if kind in items else [_line(tensor.shape[1])] * len(tensor)
        input_positions = _table_of(kind, own, _examples(tensor, own, count, kind))
        numbers = torch.arange(size + 1, size + 1 + len(input_positions), dtype=torch.int32)
        marks[name] = _spread(numbers, tensor)
        parts.append(input_positions)
        size += len(numbers)
    # One row for each field of Origins after its marks, in the order of the fields.
    table = np.concatenate(parts).T
    return InputPositions(
        count,
        marks,
        *table,
        names=tuple(name for name, _ in model.named_parameters()),
        seconds=seconds,
        whole="pixel_values" in arguments and arguments["pixel_values"].ndim < 4,
    )


def _count_of(arguments: Mapping[str, torch.Tensor], items: list[np.ndarray]) -> int:
    """Number of examples."""
    texts, pixels = arguments.get("input_ids"), arguments.get("pixel_values")
    if texts is not None:
        return len(texts)
    # Without a text beside them five axes are the frames of a video for each example.
    if pixels is not None and pixels.ndim == 5:
        return len(pixels)
    return len(items)


def _table_of(kind: str, items: list[np.ndarray], examples: list[int]) -> np.ndarray:
    """A line for each spot: kind, example, item, row and column."""
    number = KINDS.index(kind)
    parts = []
    for item, (example, spots) in enumerate(zip(examples, items, strict=True)):
        parts.append(np.column_stack([np.full((len(spots), 3), (number, example, item)), spots]))
    return np.concatenate(parts)


def has_more_than_text(arguments: Mapping[str, Any]) -> bool:
    """Whether these arguments of a forward hold pictures or sounds."""
    return any(ARGUMENTS.get(name) in (VISION, AUDIO) for name in arguments)


@contextmanager
def followed(
    model: nn.Module, arguments: Mapping[str, Any], input_positions: InputPositions | None
) -> Generator[tuple[dict, Any]]:
    """The arguments with marks, which are followed while the block is open; nothing is done without
    origins.

    Beside the arguments comes a wrapper for functions in which nothing is to be followed.
    """
    if input_positions is None:
        yield dict(arguments), lambda function: function
        return
    marks = input_positions.marks
    with PositionMarks(model.parameters()) as follow:
        yield (
            {
                name: marked(given, marks[name]) if name in marks else given
                for name, given in arguments.items()
            },
            follow.unfollowed,
        )


def _pictures(model: nn.Module, arguments: Mapping[str, torch.Tensor]) -> list[np.ndarray]:
    """Row and column of every pixel, or of every patch where a processor packed these, for each
    picture.
    """
    pixels = arguments.get("pixel_values")
    if pixels is None:
        return []
    if pixels.ndim >= 4:
        grid = _grid(*pixels.shape[-2:])
        return [grid] * (pixels.shape[0] * (pixels.shape[1] if pixels.ndim == 5 else 1))
    if "image_grid_thw" in arguments and pixels.ndim == 2:
        config = getattr(model.config, "vision_config", model.config)
        merged = getattr(config, "spatial_merge_size", 1)
        blocks = []
        for frames, height, width in arguments["image_grid_thw"].tolist():
            blocks += [_in_blocks(height, width, merged)] * frames
        return blocks
    if "spatial_shapes" in arguments and pixels.ndim == 3:
        shapes = arguments["spatial_shapes"].tolist()
        return [_filled_up(height, width, pixels.shape[1]) for height, width in shapes]
    raise UnnamedPositions(
        f"pixel_values of shape {list(pixels.shape)} cannot be split into "
        "pictures; expected [picture channel row column], or patches with image_grid_thw or "
        "spatial_shapes"
    )


def _sounds(arguments: Mapping[str, torch.Tensor]) -> list[np.ndarray]:
    for name, kind in ARGUMENTS.items():
        if kind == AUDIO and name in arguments:
            sound = arguments[name]
            return [_grid(*sound.shape[1:]) if sound.ndim == 3 else _line(sound.shape[1])] * len(
                sound
            )
    return []


def _examples(tensor: torch.Tensor, items: list[np.ndarray], count: int, kind: str) -> list[int]:
    if len(items) == count:
        return list(range(count))
    if count == 1:
        return [0] * len(items)
    if tensor.ndim == 5 and len(tensor) == count:
        return [number // tensor.shape[1] for number in range(len(items))]
    what = {VISION: "pictures", AUDIO: "sounds"}.get(kind, "texts")
    raise CaptureError(
        f"{len(items)} {what} were given for {count} texts, and it is unknown which goes "
        "with which; give one for each text, or capture one text at a time"
    )


def _spread(numbers: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """The numbers of spots, broadcast over the axes of an argument that hold no spots: channels and
    features.
    """
    shape = tensor.shape
    if tensor.ndim == 2 and tensor.is_floating_point() and len(numbers) == shape[0]:
        return numbers[:, None].expand(shape)  # packed patches [patch feature]
    if tensor.ndim <= 2:
        return numbers.reshape(shape)
    if tensor.ndim == 3:
        return (
            numbers.reshape(shape)
            if len(numbers) == tensor.numel()
            else numbers.reshape(*shape[:2], 1)
        ).expand(shape)
    return numbers.reshape(*shape[:-3], 1, *shape[-2:]).expand(shape)


def _grid(height: int, width: int) -> np.ndarray:
    return np.moveaxis(np.indices((height, width)), 0, -1).reshape(-1, 2)


def _filled_up(height: int, width: int, count: int) -> np.ndarray:
    """Row and column of patches, -1 for those that bring a small picture to the common number."""
    padding = np.full((count - height * width, 2), -1)
    return np.concatenate([_grid(height, width), padding])


def _line(length: int) -> np.ndarray:
    return _grid(1, length)


def _in_blocks(height: int, width: int, merged: int) -> np.ndarray:
    """Row and column of patches that are packed block by block, those of a block standing
    together.
    """
    grid = _grid(height, width).reshape(height // merged, merged, width // merged, merged, 2)
    return grid.swapaxes(1, 2).reshape(-1, 2)
