"""Sound: reading it, and the times of its frames."""

from __future__ import annotations

import inspect
import io
import warnings
import wave
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from headscope.errors import CaptureError, FileError

WINDOWS = ("n_samples", "nb_max_samples", "num_max_samples")
"""What extractors of features call the samples that they read of a sound (Whisper, CLAP ...)."""
SPECTROGRAM_STEP, SPECTROGRAM_WINDOW = 0.01, 0.025
"""Seconds between the columns of a spectrogram whose extractor counts these (AST), and of each."""
PADDED = ", padding"
"""Behind the name of a frame that a sound is too short for."""
SCALES = {1: np.uint8, 2: np.dtype("<i2"), 4: np.dtype("<i4")}


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
        return partial(_from_file, file, sampling_rate)
    try:
        samples = np.asarray(sound)
    except ValueError:
        raise CaptureError(
            "A sound is one list of floats, and a list of lists of several lengths was given; give "
            "one sound a call, or capture_many dicts with sound="
        ) from None
    if samples.ndim != 1 or samples.dtype.kind != "f" or not samples.size:
        raise CaptureError(
            f"A sound must be floats with one axis [sample], not {samples.dtype} "
            f"{list(samples.shape)}; average its channels, and divide whole numbers by their "
            "largest value"
        )
    if not np.isfinite(samples).all():
        raise CaptureError("The sound holds values that are not finite")
    if sampling_rate is None:
        raise CaptureError(
            "A sound without its sampling rate has no times; pass sampling_rate=, such as 16000"
        )
    return lambda: (samples.astype(np.float32), sampling_rate)


def _from_file(file: Path | io.IOBase, sampling_rate: int | None) -> tuple[np.ndarray, int]:
    samples, rate = _read(file)
    if sampling_rate not in (None, rate):
        raise CaptureError(
            f"{_named(file)} has {rate} samples a second, not {sampling_rate}; leave "
            "sampling_rate out"
        )
    return samples, rate


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


def _named(file: Path | io.IOBase) -> str:
    return "The sound" if isinstance(file, io.IOBase) else f"The sound {file}"


def _read(source: Path | io.IOBase) -> tuple[np.ndarray, int]:
    name, opened = _named(source), source
    if isinstance(source, io.IOBase):
        source.seek(0)
    else:
        opened = str(source)
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
    # The samples of all channels at one moment stand together.
    return samples.reshape(-1, channels).mean(axis=1), rate
