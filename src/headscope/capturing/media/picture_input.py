"""A picture as it is given: a PIL picture, an array or a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from headscope.errors import CaptureError, FileError

MODES = {1: "L", 3: "RGB", 4: "RGBA"}
"""Pillow's names of pictures of so many channels."""


@dataclass(frozen=True)
class PictureInput:
    """A picture whose kind is known; its file is opened when it is read.

    Args:
        opened: gives the picture, as Pillow holds it.
    """

    opened: Callable[[], Any]

    def read(self, channels: int | None = None) -> Any:
        """The PIL picture, with so many channels; three by default.

        Raises:
            FileError: where the file is not a picture.
        """
        picture = self.opened()
        mode = MODES.get(channels or 3, picture.mode)
        return picture if picture.mode == mode else picture.convert(mode)

    def in_memory(self) -> PictureInput:
        """The same picture, its file read.

        Raises:
            FileError: where the file is not a picture.
        """
        picture = self.opened()
        return PictureInput(lambda: picture)


def parse_picture(image: Any) -> PictureInput:
    """A picture from a PIL picture, from an array ``[height width channel]`` of uint8, or from a
    path.

    Raises:
        CaptureError: where it is none of these, or Pillow is missing.
    """
    try:
        from PIL import Image
    except ImportError:
        raise CaptureError("Pictures need Pillow: pip install 'headscope[pictures]'") from None
    if isinstance(image, str | Path):
        return PictureInput(partial(_from_file, image))
    if isinstance(image, np.ndarray):
        _check_array(image)
        return PictureInput(partial(_from_array, image))
    if isinstance(image, Image.Image):
        return PictureInput(lambda: image)
    raise CaptureError(
        "image must be a PIL picture, an array [height width channel] or a path, not "
        f"{type(image).__name__}"
    )


def parse_pictures(image: Any) -> tuple[PictureInput, ...]:
    """One picture or a list of them; none where there is none.

    Raises:
        CaptureError: where the list is empty, or one of them is no picture.
    """
    if not isinstance(image, list | tuple):
        return () if image is None else (parse_picture(image),)
    if not image:
        raise CaptureError("image is an empty list; give a picture, or leave image out")
    return tuple(map(parse_picture, image))


def _from_file(path: str | Path) -> Any:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as file:
            # Opening reads the head of a file alone, and a cut file fails only where it is loaded.
            file.load()
            return file.copy()
    except FileNotFoundError:
        raise FileError(f"The picture {path} does not exist") from None
    except (OSError, UnidentifiedImageError) as error:
        raise FileError(f"Cannot read the picture {path}: {error}") from None


def _check_array(pixels: np.ndarray) -> None:
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] not in MODES:
        raise CaptureError(
            f"A picture must be uint8 with the axes [height width channel], not {pixels.dtype} "
            f"{list(pixels.shape)}; multiply brightness from 0 to 1 by 255, and give grey "
            "pictures one channel"
        )


def _from_array(pixels: np.ndarray) -> Any:
    from PIL import Image

    channels = pixels.shape[2]
    # Pillow takes grey pictures without an axis of channels.
    return Image.fromarray(pixels[:, :, 0] if channels == 1 else pixels, MODES[channels])
