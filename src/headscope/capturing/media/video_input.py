"""A video as it is given: an array, a list of frames, a folder of them, or a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from headscope.capturing.media.picture_input import parse_picture
from headscope.errors import CaptureError, FileError

MOST_FRAMES = 512
"""Frames that are read of one video; ours. A frame has some hundred patches, so more would make
attention that no machine holds.
"""


@dataclass(frozen=True)
class VideoInput:
    """A video whose kind is known; its file is opened when it is read.

    Args:
        count: gives the number of frames.
        frames: gives the frames with these numbers, which rise, as Pillow holds them.
    """

    count: Callable[[], int]
    frames: Callable[[Sequence[int]], Iterator[Any]]

    def read(
        self, wanted: int | None = None, channels: int | None = None
    ) -> tuple[list[Any], list[int]]:
        """The frames in order, as Pillow holds them, and the number of each among all frames of
        the video.

        Args:
            wanted: how many the model reads; of more as many are taken in even steps, from the
                first to the last. None for all.
            channels: of each picture; three by default.

        Raises:
            CaptureError: where there are too few frames, or too many to read all.
            FileError: where the file is not a video.
        """
        count = self.count()
        if wanted is not None and count < wanted:
            raise CaptureError(
                f"The video has {count} frames and the model reads {wanted}; give a longer one"
            )
        if wanted is None and count > MOST_FRAMES:
            raise CaptureError(
                f"The video has {count} frames, and at most {MOST_FRAMES} are read; give some of "
                "them, as an array [frame height width channel] or a list of pictures"
            )
        steps = np.linspace(0, count - 1, count if wanted is None else wanted)
        numbers = np.rint(steps).astype(int).tolist()
        pictures = [parse_picture(each).read(channels) for each in self.frames(numbers)]
        sizes = sorted({picture.size for picture in pictures})
        if len(sizes) > 1:
            raise CaptureError(
                f"The frames of a video must have one size, not {sizes[0]} and {sizes[-1]} (width, "
                "height); scale them to one"
            )
        return pictures, numbers

    def in_memory(self) -> VideoInput:
        """The same video, its file read, unless that holds more frames than are read at once.

        Raises:
            FileError: where the file is not a video.
        """
        count = self.count()
        if count > MOST_FRAMES:
            return self
        return _of_list(list(self.frames(range(count))))


def parse_video(video: Any) -> VideoInput:
    """A video from an array ``[frame height width channel]`` of uint8, a list of pictures, or the
    path of a folder of pictures, of a .npy file with such an array, of a moving picture (GIF, WebP,
    PNG) or of a film, which PyAV reads.

    Raises:
        CaptureError: where it is none of these, or holds no frames.
    """
    if isinstance(video, str | Path):
        return _of_path(Path(video))
    if isinstance(video, np.ndarray):
        return _of_array(video)
    if isinstance(video, list | tuple):
        if not video:
            raise CaptureError("video is an empty list; give its frames, or leave video out")
        for frame in video:
            parse_picture(frame)
        return _of_list(video)
    raise CaptureError(
        "video must be an array [frame height width channel], a list of pictures or a path, not "
        f"{type(video).__name__}"
    )


def _of_list(frames: Sequence[Any] | np.ndarray) -> VideoInput:
    return VideoInput(lambda: len(frames), lambda numbers: (frames[number] for number in numbers))


def _of_array(pixels: np.ndarray, name: str = "A video") -> VideoInput:
    if pixels.ndim != 4 or pixels.dtype != np.uint8 or pixels.shape[3] not in (1, 3, 4):
        raise CaptureError(
            f"{name} must be uint8 with the axes [frame height width channel], not {pixels.dtype} "
            f"{list(pixels.shape)}; multiply brightness from 0 to 1 by 255, and give grey videos "
            "one channel"
        )
    if not pixels.size:
        raise CaptureError(f"{name} of shape {list(pixels.shape)} holds no pixels")
    return _of_list(pixels)


def _of_path(path: Path) -> VideoInput:
    if path.is_dir():
        opened = partial(_folder, path)
    elif path.suffix == ".npy":
        opened = partial(_saved, path)
    else:
        return VideoInput(partial(_count_in, path), partial(_frames_in, path))
    return VideoInput(lambda: opened().count(), lambda numbers: opened().frames(numbers))


def _folder(folder: Path) -> VideoInput:
    """The pictures of a folder in the order of their names."""
    from PIL import Image

    known = Image.registered_extensions()
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() in known)
    if not files:
        raise FileError(f"The folder {folder} holds no pictures; give one with a file each frame")
    return _of_list(files)


def _saved(path: Path) -> VideoInput:
    try:
        # Python objects in a file could run code when they are read.
        pixels = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise FileError(f"Cannot read the video {path}: {error}") from None
    return _of_array(np.asarray(pixels), str(path))


def _count_in(path: Path) -> int:
    """The number of frames of a file."""
    count = sum(1 for _ in _decoded(path, convert=False))
    if count < 2:
        raise FileError(f"{path} holds {count} frames and is no video; give a picture as image=")
    return count


def _frames_in(path: Path, numbers: Sequence[int]) -> Iterator[Any]:
    wanted = set(numbers)
    for number, frame in enumerate(_decoded(path, convert=True)):
        if number in wanted:
            yield frame() if callable(frame) else frame


def _decoded(path: Path, *, convert: bool) -> Iterator[Any]:
    """Each frame of a file; of a film a function that makes a picture of it, as only those that are
    wanted need be made.
    """
    from PIL import Image, ImageSequence, UnidentifiedImageError

    try:
        with Image.open(path) as file:
            for frame in ImageSequence.Iterator(file):
                yield frame.convert("RGB") if convert else None
    except FileNotFoundError:
        raise FileError(f"The video {path} does not exist") from None
    except UnidentifiedImageError:
        yield from _of_film(path)
    except (OSError, EOFError) as error:
        raise FileError(f"Cannot read the video {path}: {error}") from None


def _of_film(path: Path) -> Iterator[Callable[[], Any]]:
    try:
        av = import_module("av")
    except ImportError:
        raise CaptureError(
            f"Reading {path.name} needs PyAV: pip install 'headscope[video]', or give its frames "
            "as an array or a list of pictures"
        ) from None
    try:
        with av.open(str(path)) as film:
            if not film.streams.video:
                raise FileError(f"{path} holds no video")
            for frame in film.decode(video=0):
                yield frame.to_image
    except (av.FFmpegError, OSError) as error:
        raise FileError(f"Cannot read the video {path}: {error}") from None
