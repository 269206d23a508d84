"""The elements of a model's input that its positions come from: pixels, samples, words."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import nn

from headscope.capturing.media.position_marks import PositionMarks, marked
from headscope.capturing.observers import hook_after, hook_before, swapped
from headscope.capturing.walk import modules_of
from headscope.errors import CaptureError

TEXT, TARGET, VISION, AUDIO, SERIES = "text", "target", "vision", "audio", "series"
KINDS = (TEXT, TARGET, VISION, AUDIO, SERIES)
ARGUMENTS = {
    "input_ids": TEXT,
    "decoder_input_ids": TARGET,
    "pixel_values": VISION,
    "pixel_values_videos": VISION,
    "input_features": AUDIO,
    "input_values": AUDIO,
}
"""What the arguments of a forward hold, as all of transformers calls them."""
GRIDS = {"pixel_values": "image_grid_thw", "pixel_values_videos": "video_grid_thw"}
"""Arguments of pictures, each with the argument that holds how many of its patches are packed."""
PIXEL_MASKS = ("pixel_attention_mask", "pixel_mask")
"""Arguments that mark the padding of pictures."""
OBJECT = "object"
"""Name of a parameter that holds the queries of objects."""
OBJECTS = ("num_queries", "two_stage_num_proposals")
"""What configurations call the number of these queries."""


class UnnamedPositions(CaptureError):
    """A model works on positions whose meaning is unknown; they can still be
    numbered.
    """


@dataclass(frozen=True)
class InputPositions:
    """All elements of a model's input, numbered from 1 on: entry ``i`` of each array is of the
    element numbered ``i + 1``.

    Args:
        count: number of examples.
        marks: for each argument that holds elements their numbers, broadcast to its shape.
        kind: number of what it is in `KINDS`.
        example: the example it belongs to.
        item: number of the picture, sound or text, counted within its kind; each frame of a video
            is a picture, after those of other arguments.
        row: of a pixel or patch, or the channel of a time series; 0 in a text and in a sound.
        column: of a pixel, patch, sample or step of a time series, or the position of a word.
        names: of the model's parameters, which are numbered -1, -2 ...
        objects: how many objects a detector looks for, each with a query or token of its own.
        seconds: how far two neighbouring samples, or columns of features, of a sound are apart,
            and how long the sound is; None if unknown.
        whole: whether each element of a picture is a patch, as in packed input, and not a pixel.
        clips: for each picture the number of the video that it is a frame of; None where it is of
            none.
        tube: how many frames one patch of a video reaches over.
        span: steps that one patch of a time series holds.
        frame_numbers: of the frames that the model reads among those of the given video; empty
            where it reads them all.
    """

    count: int
    marks: Mapping[str, torch.Tensor]
    kind: np.ndarray
    example: np.ndarray
    item: np.ndarray
    row: np.ndarray
    column: np.ndarray
    names: tuple[str, ...] = ()
    objects: frozenset[int] = frozenset()
    seconds: tuple[float, float] | None = None
    whole: bool = False
    clips: tuple[int | None, ...] = ()
    tube: int = 1
    span: int = 1
    frame_numbers: tuple[int, ...] = ()

    @property
    def kinds(self) -> set[str]:
        """What the input holds."""
        return {KINDS[number] for number in np.unique(self.kind)}

    def come_from(self, marks: np.ndarray, kind: str) -> np.ndarray:
        """True where a mark is that of an element of this kind."""
        # Marks of 0 and below read some entry from the end of the array; the sign rules them out.
        return (marks > 0) & (self.kind[marks - 1] == KINDS.index(kind))

    def examples(self, marks: np.ndarray) -> np.ndarray:
        """The example of each mark; -1 where there is none."""
        return np.where(marks > 0, self.example[marks - 1], -1)


def origins_of(
    model: nn.Module,
    arguments: Mapping[str, torch.Tensor],
    seconds: tuple[float, float] | None = None,
    frame_numbers: tuple[int, ...] = (),
) -> InputPositions:
    """The elements of these arguments.

    Raises:
        CaptureError: where it is unknown which pictures belong to which text.
    """
    seen = {name: _pictures(model, arguments, name) for name in GRIDS if name in arguments}
    sounds = _sounds(arguments)
    count = _count_of(arguments, sounds)
    parts: list[np.ndarray] = []
    marks: dict[str, torch.Tensor] = {}
    clips: list[int | None] = []
    size = 0
    for name, kind in ARGUMENTS.items():
        tensor = arguments.get(name)
        if tensor is None:
            continue
        own, first = [grid_of(1, tensor.shape[1])] * len(tensor), 0
        if kind == AUDIO:
            own = sounds
        if kind == VISION:
            own, first = seen[name], len(clips)
            clips += _clips(arguments, name, len(own))
        examples = _examples(tensor, len(own), count, kind=kind, clips=clips[first:])
        rows = elements_of(kind, own, examples, first)
        numbers = torch.arange(size + 1, size + 1 + len(rows), dtype=torch.int32)
        marks[name] = _spread(numbers, tensor)
        parts.append(rows)
        size += len(numbers)
    return positions_of(
        model,
        count,
        marks,
        np.concatenate(parts),
        seconds=seconds,
        whole=any(arguments[name].ndim < 4 for name in seen),
        clips=tuple(clips),
        tube=tube_of(model),
        frame_numbers=frame_numbers,
    )


def positions_of(
    model: nn.Module,
    count: int,
    marks: Mapping[str, torch.Tensor],
    elements: Int[np.ndarray, "element 5"],
    **known: Any,
) -> InputPositions:
    """The elements of a model's input, from the rows of `elements_of`; for the other arguments see
    `InputPositions`.
    """
    objects = _objects_of(getattr(model, "config", None))
    names = tuple(
        OBJECT if parameter.ndim > 1 and parameter.shape[-2] in objects else name
        for name, parameter in model.named_parameters()
    )
    # A row of the transposed table for each field after the marks, in the order of the fields.
    return InputPositions(count, marks, *elements.T, names=names, objects=objects, **known)


def _objects_of(config: Any) -> frozenset[int]:
    """How many objects a detector looks for, by its configuration or a part of it."""
    parts = [config, *(getattr(config, name, None) for name in getattr(config, "sub_configs", ()))]
    counts = {getattr(part, name, 0) for part in parts for name in OBJECTS}
    return frozenset(counts)


def elements_of(
    kind: str, items: Sequence[np.ndarray], examples: Sequence[int], first: int = 0
) -> Int[np.ndarray, "element 5"]:
    """A row for each element: kind, example, item (counted from the first on), row and column.

    Args:
        kind: of all of them.
        items: row and column of each element, for each picture, sound or text.
        examples: that each item belongs to.
        first: number of the first item.
    """
    parts = []
    for item, (example, places) in enumerate(zip(examples, items, strict=True), start=first):
        shared = np.full((len(places), 3), (KINDS.index(kind), example, item))
        parts.append(np.column_stack([shared, places]))
    return np.concatenate(parts)


def tube_of(model: nn.Module) -> int:
    """How many frames of a video one patch of it reaches over."""
    config = getattr(model.config, "vision_config", model.config)
    names = ("tubelet_size", "temporal_patch_size")
    size = next((each for name in names if (each := getattr(config, name, None))), 1)
    # ViViT gives frames, rows and columns of a tube.
    return int(size if isinstance(size, int) else size[0])


def holds_frames(arguments: Mapping[str, Any], name: str) -> bool:
    """Whether this argument holds frames of videos; `capture` marks its own in the same way."""
    if name not in arguments:
        return False
    # Without a text five axes are the frames of a video for each example; with one they
    # are crops of a picture, or several pictures.
    return name == "pixel_values_videos" or (
        arguments[name].ndim == 5 and "input_ids" not in arguments
    )


def _clips(arguments: Mapping[str, torch.Tensor], name: str, count: int) -> list[int | None]:
    """For each of so many pictures the number of its video; None where it is of none."""
    tensor = arguments[name]
    if not holds_frames(arguments, name):
        return [None] * count
    if tensor.ndim == 5:
        return [number // tensor.shape[1] for number in range(count)]
    clips: list[int | None] = []
    for video, steps in enumerate(arguments[GRIDS[name]][:, 0].tolist()):
        clips += [video] * steps
    return clips


def _count_of(arguments: Mapping[str, torch.Tensor], sounds: list[np.ndarray]) -> int:
    """Number of examples."""
    if "input_ids" in arguments:
        return len(arguments["input_ids"])
    for name in GRIDS:
        if name not in arguments:
            continue
        # Packed pictures have no axis of examples.
        return len(arguments[name if arguments[name].ndim >= 3 else GRIDS[name]])
    return len(sounds)


def has_more_than_text(arguments: Mapping[str, Any]) -> bool:
    """Whether these arguments of a forward hold pictures or sounds."""
    return any(ARGUMENTS.get(name) in (VISION, AUDIO) for name in arguments)


@contextmanager
def followed(
    model: nn.Module, arguments: Mapping[str, Any], input_positions: InputPositions | None
) -> Generator[tuple[dict, Any]]:
    """The arguments with marks, which are followed while the block is open, and a wrapper for
    functions in which nothing is to be followed. Without input positions nothing is followed.
    """
    if input_positions is None:
        yield dict(arguments), lambda function: function
        return
    marks = input_positions.marks
    starts = [int(each[each > 0].min()) for each in marks.values()]
    with PositionMarks(model.parameters(), starts) as follow:
        yield (
            {
                name: marked(given, marks[name]) if name in marks else given
                for name, given in arguments.items()
            },
            follow.unfollowed,
        )


@contextmanager
def pixels_followed(
    model: nn.Module, batch: int, tell: Callable[[InputPositions, dict[str, Any]], None]
) -> Generator[Any]:
    """Follow the pixels that a model of any library is given while the block is open; for what is
    yielded see `followed`.

    Args:
        model: which, or a part of which, is given a picture ``[batch channel row column]``.
        batch: number of pictures.
        tell: is called with their elements when the first are given, and with the masks of padding
            that came with them, by name.
    """
    with PositionMarks(model.parameters()) as follow, ExitStack() as undo:
        follow.away = True
        pixels = _GivenPixels(model, batch, follow, tell)
        for module in modules_of(model):
            undo.callback(hook_before(module, pixels.enter).remove)
            undo.callback(hook_after(module, pixels.leave, always=True).remove)
        yield follow.unfollowed


class _GivenPixels:
    """Marks the pictures that are given to a model from outside; see `pixels_followed`."""

    def __init__(
        self,
        model: nn.Module,
        batch: int,
        follow: PositionMarks,
        tell: Callable[[InputPositions, dict[str, Any]], None],
    ) -> None:
        self._model, self._batch, self._follow, self._tell = model, batch, follow, tell
        self._depth, self._size = 0, torch.Size()
        self._marks = torch.empty(0)
        convolutions = (each for each in modules_of(model) if isinstance(each, nn.Conv2d))
        self._channels = {3, *(each.in_channels for each in convolutions)}

    def enter(self, module: nn.Module, args: tuple, options: dict) -> Any:
        """A module begins: what it is given instead, or None."""
        self._depth += 1
        given = [*args, *options.values()]
        pixels = next(filter(self._are_pixels, given), None) if self._depth == 1 else None
        if pixels is None:
            return None
        if not self._size:
            bound = inspect.signature(module.forward).bind_partial(*args).arguments | options
            self._begin(pixels, {name: bound[name] for name in PIXEL_MASKS if name in bound})
        if pixels.shape[2:] != self._size:
            return None
        return swapped(args, options, pixels, marked(pixels, self._marks))

    def leave(self, *_: Any) -> None:
        """A module has ended."""
        self._depth -= 1

    def _are_pixels(self, given: Any) -> bool:
        # Masks of attention have four axes, too.
        is_picture = isinstance(given, torch.Tensor) and given.ndim == 4
        return is_picture and len(given) == self._batch and given.shape[1] in self._channels

    def _begin(self, pixels: torch.Tensor, masks: dict[str, Any]) -> None:
        self._size, self._follow.away = pixels.shape[2:], False
        items = [grid_of(*self._size)] * self._batch
        elements = elements_of(VISION, items, range(self._batch))
        self._marks = _spread(torch.arange(1, len(elements) + 1, dtype=torch.int32), pixels)
        clips = (None,) * self._batch
        self._tell(positions_of(self._model, self._batch, {}, elements, clips=clips), masks)


def _pictures(
    model: nn.Module, arguments: Mapping[str, torch.Tensor], name: str
) -> list[np.ndarray]:
    """Row and column of every pixel, or of every patch where a processor packed these, for each
    picture or frame of an argument.
    """
    pixels = arguments[name]
    if pixels.ndim >= 4:
        grid = grid_of(*pixels.shape[-2:])
        return [grid] * (pixels.shape[0] * (pixels.shape[1] if pixels.ndim == 5 else 1))
    if GRIDS[name] in arguments and pixels.ndim == 2:
        config = getattr(model.config, "vision_config", model.config)
        merged = getattr(config, "spatial_merge_size", 1)
        blocks = []
        for frames, height, width in arguments[GRIDS[name]].tolist():
            blocks += [in_blocks(height, width, merged)] * frames
        return blocks
    if "spatial_shapes" in arguments and pixels.ndim == 3:
        shapes = arguments["spatial_shapes"].tolist()
        return [_filled_up(height, width, pixels.shape[1]) for height, width in shapes]
    raise UnnamedPositions(
        f"{name} of shape {list(pixels.shape)} cannot be split into "
        "pictures; expected [picture channel row column], or patches with image_grid_thw or "
        "spatial_shapes"
    )


def _sounds(arguments: Mapping[str, torch.Tensor]) -> list[np.ndarray]:
    for name, kind in ARGUMENTS.items():
        if kind == AUDIO and name in arguments:
            sound = arguments[name]
            size = sound.shape[1:] if sound.ndim == 3 else (1, sound.shape[1])
            return [grid_of(*size)] * len(sound)
    return []


def _examples(
    tensor: torch.Tensor, items: int, count: int, *, kind: str, clips: list[int | None]
) -> list[int]:
    """The example that each of so many items of an argument belongs to.

    Args:
        tensor: the argument.
        items: number of its pictures, frames, sounds or texts.
        count: number of examples.
        kind: of the argument.
        clips: the video of each frame.
    """
    if items == count:
        return list(range(count))
    if count == 1:
        return [0] * items
    if tensor.ndim == 5 and len(tensor) == count:
        return [number // tensor.shape[1] for number in range(items)]
    videos = [clip for clip in clips if clip is not None]
    if len(videos) == items and len(set(videos)) == count:
        return videos
    what = {VISION: "pictures", AUDIO: "sounds"}.get(kind, "texts")
    raise CaptureError(
        f"{items} {what} were given for {count} texts, and it is unknown which goes "
        "with which; give one for each text, or capture one text at a time"
    )


def _spread(numbers: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """The numbers of elements, broadcast over the axes of an argument that distinguish none:
    channels and features.
    """
    shape = tensor.shape
    if tensor.ndim == 2 and tensor.is_floating_point() and len(numbers) == shape[0]:
        return numbers[:, None].expand(shape)  # packed patches [patch feature]
    if tensor.ndim <= 2 or (tensor.ndim == 3 and len(numbers) == tensor.numel()):
        return numbers.reshape(shape)
    if tensor.ndim == 3:
        return numbers.reshape(*shape[:2], 1).expand(shape)
    return numbers.reshape(*shape[:-3], 1, *shape[-2:]).expand(shape)


def grid_of(height: int, width: int) -> Int[np.ndarray, "place 2"]:
    """Row and column of every place of a grid; of a text or a sound, which have one row."""
    return np.indices((height, width)).reshape(2, -1).T


def _filled_up(height: int, width: int, count: int) -> np.ndarray:
    """Row and column of patches, -1 for those that bring a small picture to the common number."""
    padding = np.full((count - height * width, 2), -1)
    return np.concatenate([grid_of(height, width), padding])


def in_blocks(height: int, width: int, merged: int) -> np.ndarray:
    """Row and column of patches that are packed block by block, those of a block standing
    together.
    """
    grid = grid_of(height, width).reshape(height // merged, merged, width // merged, merged, 2)
    return grid.swapaxes(1, 2).reshape(-1, 2)
