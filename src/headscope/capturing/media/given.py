"""Pictures, videos, sounds and time series as they are given: arrays, lists and files."""

from __future__ import annotations

import inspect
import io
import warnings
import wave
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
from jaxtyping import Float32

from headscope.errors import CaptureError, FileError

MODES = {1: "L", 3: "RGB", 4: "RGBA"}
"""Pillow's names of pictures of so many channels."""


PLACEHOLDERS = {"picture": ["image_token", "boi_token"], "video": ["video_token"]}
"""What processors call the mark that stands for a picture, or a video, in a text."""


def marks_of(processor: Any, what: str) -> list[str]:
    """The marks that a processor knows for pictures, or for videos."""
    marks = [getattr(processor, name, None) for name in PLACEHOLDERS[what]]
    return [mark for mark in marks if isinstance(mark, str)]


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
        return PictureInput(partial(_opened_picture, image))
    if isinstance(image, np.ndarray):
        _check_pixels(image, "height width channel", "A picture", "pictures")
        return PictureInput(partial(_picture_of, image))
    if isinstance(image, Image.Image):
        return PictureInput(lambda: image)
    raise CaptureError(
        "image must be a PIL picture, an array [height width channel] or a path, not "
        f"{type(image).__name__}"
    )


def parse_pictures(image: Any) -> tuple[PictureInput, ...]:
    """One picture or a list of them.

    Raises:
        CaptureError: where the list is empty, or one of them is no picture.
    """
    if not isinstance(image, list | tuple):
        return (parse_picture(image),)
    if not image:
        raise CaptureError("image is an empty list; give a picture, or leave image out")
    return tuple(map(parse_picture, image))


def _opened_picture(path: str | Path) -> Any:
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


def _check_pixels(pixels: np.ndarray, axes: str, name: str, several: str) -> None:
    is_known = pixels.dtype == np.uint8 and pixels.ndim == len(axes.split())
    if not is_known or pixels.shape[-1] not in MODES:
        raise CaptureError(
            f"{name} must be uint8 with the axes [{axes}], not {pixels.dtype} "
            f"{list(pixels.shape)}; multiply brightness from 0 to 1 by 255, and give grey "
            f"{several} one channel"
        )


def _picture_of(pixels: np.ndarray) -> Any:
    from PIL import Image

    channels = pixels.shape[2]
    # Pillow takes grey pictures without an axis of channels.
    return Image.fromarray(pixels[:, :, 0] if channels == 1 else pixels, MODES[channels])


MOST_FRAMES = 512
"""Frames that are read of one video; ours. A frame has some hundred patches, so more would make
attention that no machine holds.
"""


@dataclass(frozen=True)
class VideoInput:
    """A video whose kind is known; its file is opened when it is read.

    Args:
        opened: gives its frames in order, as Pillow takes them, or what makes each of them: of a
            film only those that are wanted need be made.
    """

    opened: Callable[[], Iterable[Any]]

    def count(self) -> int:
        """Number of frames."""
        return sum(1 for _ in self.opened())

    def frames(self, numbers: Iterable[int]) -> Iterator[Any]:
        """Those with these numbers, in order."""
        wanted = set(numbers)
        for number, frame in enumerate(self.opened()):
            if number in wanted:
                yield frame() if callable(frame) else frame

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


def parse_video(video: Any) -> VideoInput:
    """A video from an array ``[frame height width channel]`` of uint8, a list of pictures, or the
    path of a folder of pictures, of a .npy file with such an array, of a moving picture (GIF, WebP,
    PNG) or of a film, which PyAV reads.

    Raises:
        CaptureError: where it is none of these, or holds no frames.
    """
    if isinstance(video, str | Path):
        path = Path(video)
        opened = _saved if path.suffix == ".npy" else _moving
        return VideoInput(partial(_folder if path.is_dir() else opened, path))
    if isinstance(video, np.ndarray):
        pixels = _of_array(video)
        return VideoInput(lambda: pixels)
    if isinstance(video, list | tuple):
        if not video:
            raise CaptureError("video is an empty list; give its frames, or leave video out")
        for frame in video:
            parse_picture(frame)
        return VideoInput(lambda: video)
    raise CaptureError(
        "video must be an array [frame height width channel], a list of pictures or a path, not "
        f"{type(video).__name__}"
    )


def _of_array(pixels: np.ndarray, name: str = "A video") -> np.ndarray:
    _check_pixels(pixels, "frame height width channel", name, "videos")
    if not pixels.size:
        raise CaptureError(f"{name} of shape {list(pixels.shape)} holds no pixels")
    return pixels


def _folder(folder: Path) -> list[Path]:
    """The pictures of a folder in the order of their names."""
    from PIL import Image

    known = Image.registered_extensions()
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() in known)
    if not files:
        raise FileError(f"The folder {folder} holds no pictures; give one with a file each frame")
    return files


def _saved(path: Path) -> np.ndarray:
    try:
        # Python objects in a file could run code when they are read.
        pixels = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise FileError(f"Cannot read the video {path}: {error}") from None
    return _of_array(np.asarray(pixels), str(path))


def _moving(path: Path) -> Iterator[Callable[[], Any]]:
    """What makes each frame of a file."""
    from PIL import Image, ImageSequence, UnidentifiedImageError

    count = 0
    try:
        with Image.open(path) as file:
            for frame in ImageSequence.Iterator(file):
                count += 1
                yield partial(frame.convert, "RGB")
    except FileNotFoundError:
        raise FileError(f"The video {path} does not exist") from None
    except UnidentifiedImageError:
        for frame in _of_film(path):
            count += 1
            yield frame
    except (OSError, EOFError) as error:
        raise FileError(f"Cannot read the video {path}: {error}") from None
    if count < 2:
        raise FileError(f"{path} holds {count} frames and is no video; give a picture as image=")


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


WINDOWS = ("n_samples", "nb_max_samples", "num_max_samples")
"""What extractors of features call the samples that they read of a sound (Whisper, CLAP ...)."""
SPECTROGRAM_STEP, SPECTROGRAM_WINDOW = 0.01, 0.025
"""Seconds between the columns of a spectrogram whose extractor counts these (AST), and of each."""
PADDED = ", padding"
"""Behind the name of a frame that a sound is too short for."""
SCALES: dict[int, str] = {1: "u1", 2: "<i2", 4: "<i4"}


ReadSound = Callable[[], tuple[np.ndarray, int]]
"""Function that gives one channel of samples from -1 to 1, and how many of them make a second."""


def parse_sound_input(sound: Any, sampling_rate: int | None) -> ReadSound:
    """A sound from floats ``[sample]`` or from a .wav file, which is opened when it is read.

    Args:
        sound: floats ``[sample]``, or the path of a .wav file or the file itself, open for bytes;
            several channels of a file are averaged.
        sampling_rate: of the samples; a file has its own.

    Raises:
        CaptureError: where it is no sound, or its sampling rate is missing.
    """
    if isinstance(sound, str | Path | io.IOBase):
        file = Path(sound) if isinstance(sound, str) else sound
        return partial(_sound_in, file, sampling_rate)
    try:
        samples = np.asarray(sound)
    except ValueError:
        raise CaptureError(
            "A sound is one list of floats, and a list of lists of several lengths was given; give "
            "one sound a call, or capture_many dicts with sound="
        ) from None
    if not samples.size:
        raise CaptureError(f"The sound is empty: {list(samples.shape)}; give at least one sample")
    if samples.ndim != 1 or samples.dtype.kind != "f":
        raise CaptureError(
            f"A sound must be floats with one axis [sample], not {samples.dtype} "
            f"{list(samples.shape)}; average its channels, and divide whole numbers by their "
            "largest value"
        )
    if not np.isfinite(samples).all():
        raise CaptureError("The sound holds values that are not finite")
    if not isinstance(sampling_rate, int | float | np.number):
        raise CaptureError(
            "A sound needs its sampling rate, a number; pass sampling_rate=, such as 16000"
        )
    return lambda: (samples.astype(np.float32), sampling_rate)


def samples_read(processor: Any) -> int | None:
    """The samples of a sound that a processor reads before it cuts the rest; None without end."""
    extractor = getattr(processor, "feature_extractor", processor)
    rate = getattr(extractor, "sampling_rate", 0)
    # Some processors (Audio Flamingo 3) split a sound into windows of their extractor.
    seconds = getattr(processor, "max_audio_len", getattr(extractor, "default_audio_length", None))
    if seconds is not None:
        return int(seconds * rate)
    named = inspect.signature(extractor.__call__).parameters
    columns = getattr(extractor, "max_length", None)
    if "truncation" not in named:
        return round(columns * SPECTROGRAM_STEP * rate) if isinstance(columns, int) else None
    if named["truncation"].default is False:
        return None
    own = named["max_length"].default if "max_length" in named else None
    return own or next(
        (getattr(extractor, each) for each in WINDOWS if hasattr(extractor, each)), None
    )


def columns_of(samples: int, rate: int) -> int:
    """The columns of a spectrogram (AST) that lie in a sound wholly; others are filled up."""
    return max(0, int((samples / rate - SPECTROGRAM_WINDOW) / SPECTROGRAM_STEP + 1 + 1e-6))


def within(samples: np.ndarray, rate: int, processor: Any, *, truncate: bool) -> np.ndarray:
    """The samples, or where that is asked for their beginning, that a processor reads.

    Raises:
        CaptureError: where there are more, with the seconds.
    """
    most = samples_read(processor)
    if most is None or len(samples) <= most:
        return samples
    both = f"The sound has {len(samples) / rate:.2f} s and the model reads {most / rate:.2f} s"
    if not truncate:
        raise CaptureError(
            f"{both}; shorten it, or pass truncate=True (--truncate) to keep its beginning"
        )
    warnings.warn(f"{both}: the rest is cut off", stacklevel=2)
    return samples[:most]


def times_of(
    middles: np.ndarray, seconds: tuple[float, float] | None
) -> tuple[tuple[tuple[float, float] | None, ...] | None, list[str | None]]:
    """Start and stop of every frame, and what to call it.

    Frames follow each other as densely as their middles do, from the beginning of the sound on.

    Args:
        middles: the sample or column of features in the middle of each frame; -1 where there is no
            frame.
        seconds: how far two of them are apart, and how long the sound is: what comes behind its end
            was filled up. Without it there are no times.
    """
    at, numbers = np.unique(middles[middles >= 0], return_inverse=True)
    # The median, since the first or last frame may lie closer to its neighbour than others do.
    step = float(np.median(np.diff(at))) if len(at) > 1 else 1.0
    frames = np.full(len(middles), -1)
    frames[middles >= 0] = numbers
    if seconds is None:
        return None, [None if frame < 0 else f"frame {frame}" for frame in frames]
    length, end = step * seconds[0], seconds[1]
    times = tuple(
        None if frame < 0 else (frame * length, (frame + 1) * length) for frame in frames.tolist()
    )
    names = []
    for time in times:
        # Frames are rounded to columns, so that one begins at the end up to rounding.
        after = "" if time is None or time[0] < end - 1e-6 else PADDED
        names.append(None if time is None else f"{time[0]:.2f} s{after}")
    return times, names


def _sound_in(source: Path | io.IOBase, sampling_rate: int | None) -> tuple[np.ndarray, int]:
    name, opened = "The sound", source
    if isinstance(source, io.IOBase):
        source.seek(0)
    else:
        name, opened = f"The sound {source}", str(source)
    try:
        with wave.open(cast("Any", opened)) as file:
            width, channels, rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
            frames = file.readframes(file.getnframes())
    except FileNotFoundError:
        raise FileError(f"{name} does not exist") from None
    except (OSError, EOFError, wave.Error) as error:
        raise FileError(
            f"{name} cannot be read: {str(error) or 'it is empty or cut'}; expected a .wav file of "
            "PCM samples"
        ) from None
    if width not in SCALES:
        raise FileError(f"{name} has samples of {8 * width} bits; expected 8, 16 or 32")
    samples = np.frombuffer(frames, SCALES[width]).astype(np.float32)
    # In .wav files samples of one byte are unsigned with silence at 128, wider ones are signed.
    samples = samples / 128 - 1 if width == 1 else samples / 2 ** (8 * width - 1)
    if not samples.size:
        raise FileError(f"{name} holds no samples")
    if sampling_rate not in (None, rate):
        raise CaptureError(
            f"{name} has {rate} samples a second, not {sampling_rate}; leave sampling_rate out"
        )
    # The samples of all channels at one moment stand together.
    return samples.reshape(-1, channels).mean(axis=1), rate


def parse_series(series: Any) -> Float32[np.ndarray, "time channel"]:
    """A time series from numbers ``[time]`` or ``[time channel]``.

    Raises:
        CaptureError: where it is none, is empty, or holds values that are not finite.
    """
    try:
        values = np.asarray(series, dtype=np.float32)
    except (TypeError, ValueError):
        raise CaptureError(
            "series must be numbers [time] or [time channel], not "
            f"{type(series).__name__} of something else"
        ) from None
    if values.ndim not in (1, 2) or not values.size:
        raise CaptureError(
            f"series must be numbers with the axes [time] or [time channel], not {values.ndim} "
            f"axes {list(values.shape)}"
        )
    if not np.isfinite(values).all():
        raise CaptureError("The time series holds values that are not finite; fill them first")
    return values.reshape(len(values), -1)
