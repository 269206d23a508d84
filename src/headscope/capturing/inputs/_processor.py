"""What a model is to read of pictures, videos, sounds and time series."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32

from headscope.capturing.device import device_of
from headscope.capturing.inputs.inputs import (
    Inputs,
    check_length,
    check_reads,
    cut_of,
    followed_inputs,
    reads_frames,
    with_target,
)
from headscope.capturing.inputs.parsed_input import ParsedInput
from headscope.capturing.inputs.tokens import once, tokenized, tokens_from_encoding, tokens_from_ids
from headscope.capturing.media._pixels import frames_of, pictures_of
from headscope.capturing.media.given import (
    SPECTROGRAM_STEP,
    ReadSound,
    VideoInput,
    columns_of,
    marks_of,
    within,
)
from headscope.capturing.media.input_positions import (
    SERIES,
    elements_of,
    grid_of,
    positions_of,
    tube_of,
)
from headscope.capturing.walk import arguments_of, reads_target
from headscope.errors import CaptureError, TextError
from headscope.record import Tokens

AS_LONG_AS_TEXT = ("ids", "mask")
"""How arguments are called that have an entry for each token of the text."""
SAMPLES = "do_sample_frames"
"""The argument that decides whether a processor of videos may leave frames out."""


def inputs_of(
    model: Any,
    processor: Any,
    given: ParsedInput,
    *,
    truncate: bool = False,
    target_tokenizer: Any = None,
) -> Inputs:
    """What a model is to read: a picture, video or sound, and a text where it reads one with it.

    Args:
        model: that is to read them.
        processor: of transformers: of pictures, of sounds, or of several kinds.
        given: picture, video or sound, and text.
        truncate: whether a text or a sound that is too long is cut.
        target_tokenizer: of the target side; by default that of the processor.

    Raises:
        CaptureError: where model, processor and what was given do not fit.
    """
    _check_given(model, given)
    truncation = _truncation(model, processor, given, truncate=truncate)
    asked: dict[str, Any] = {} if given.text is None else {"text": [given.text]}
    frame_numbers, heard = (), None
    if given.video is not None:
        frames, frame_numbers = _read_video(model, given.video)
        asked["videos"] = [frames]
    if given.pictures:
        asked["images"] = [picture.read(_channels(model)) for picture in given.pictures]
    if given.sound is not None:
        heard = _read_sound(processor, given.sound, truncate=truncate)
        asked |= {"audio": heard[0], "sampling_rate": heard[1]}
    features = _asked(processor, given, asked | truncation)
    if given.text is not None:
        features = _once(processor.tokenizer, features, given.text, truncation)
    tensors = {name: each for name, each in features.items() if isinstance(each, torch.Tensor)}
    # Pixels and samples are computed with, so they need the precision of the weights.
    arguments = {
        name: each.to(device_of(model), model.dtype if each.is_floating_point() else None)
        for name, each in tensors.items()
    }
    if given.video is None:
        pictures = pictures_of(processor, features, asked.get("images", ()))
    else:
        pictures = frames_of(processor, features, asked["videos"][0], tube_of(model))
    seconds = None if heard is None else _seconds(model, processor, arguments, heard)
    source: tuple[Tokens, ...] = ()
    if given.text is not None:
        check_length(model, arguments["input_ids"].shape[1])
        ids = arguments["input_ids"][0].tolist()
        source = (_tokens(processor.tokenizer, given.text, ids, truncation),)
    target: tuple[Tokens, ...] = ()
    if reads_target(model):
        tokenizer = target_tokenizer or getattr(processor, "tokenizer", None)
        if tokenizer is None:
            raise CaptureError(
                f"{type(model).__name__} writes text; pass its tokenizer as target_tokenizer="
            )
        arguments, tokens = with_target(model, arguments, given.decoder_text(), tokenizer)
        target = (tokens,)
    followed = followed_inputs(
        model,
        arguments,
        source,
        target,
        seconds=seconds,
        pictures=(pictures,) if pictures else (),
        frame_numbers=tuple(frame_numbers),
    )
    return replace(followed, given=(given,))


def _read_video(model: Any, video: VideoInput) -> tuple[list[Any], list[int]]:
    """The frames that the model reads, and their numbers."""
    # Only models with learned positions for frames have a number of them.
    wanted = getattr(model.config, "num_frames", None)
    frames, numbers = video.read(wanted if isinstance(wanted, int) else None, _channels(model))
    tube = tube_of(model)
    if len(frames) < tube:
        raise CaptureError(
            f"{type(model).__name__} reads {tube} frames of a video together, and "
            f"{len(frames)} was given; give a longer video, or a picture as image= to a "
            "model of pictures"
        )
    return frames, numbers


def _check_given(model: Any, given: ParsedInput) -> None:
    """Raise where picture, video, sound and text do not go with the model."""
    check_reads(model, given)
    if given.video is not None and not reads_frames(model):
        raise CaptureError(f"{type(model).__name__} reads no videos; give a picture with image=")
    if given.pictures and given.text is None and reads_frames(model):
        raise CaptureError(f"{type(model).__name__} reads videos; give their frames with video=")
    # Processors take several pictures without a text for a batch of examples.
    if given.text is None and len(given.pictures) > 1:
        raise CaptureError(
            f"{type(model).__name__} reads one picture at a time, and {len(given.pictures)} were "
            "given; capture them one after another, or with capture_many"
        )


def _truncation(
    model: Any, processor: Any, given: ParsedInput, *, truncate: bool
) -> dict[str, Any]:
    """The arguments with which a tokenizer cuts the text to the model's positions; empty to leave
    it whole.
    """
    if given.text is None:
        return {}
    marks = _check_placeholder(processor, given.text, len(given.pictures))
    if given.video is not None:
        marks += _check_placeholder(processor, given.text, 1, "video")
    # A text that holds marks of pictures is not cut: patches would be lost.
    if not truncate or marks:
        return {}
    whole = tokenized(processor.tokenizer, given.text, warns=False, verbose=False)
    return cut_of(model, len(whole["input_ids"]), given.cuts)


def _read_sound(processor: Any, sound: ReadSound, *, truncate: bool) -> tuple[np.ndarray, int]:
    """The samples that the processor reads, and how many of them make a second."""
    samples, rate = sound()
    wanted = getattr(getattr(processor, "feature_extractor", processor), "sampling_rate", rate)
    # Played at another speed it would sound higher or lower than what the model was trained on.
    if wanted != rate:
        raise CaptureError(
            f"The sound has {rate} samples a second and the model reads {wanted}; resample it first"
        )
    return within(samples, rate, processor, truncate=truncate), rate


def _check_placeholder(processor: Any, text: str, given: int, what: str = "picture") -> list[str]:
    """The marks that stand for pictures, or videos, in texts; none where texts have no place for
    them.

    Args:
        processor: of pictures and text.
        text: that holds the marks.
        given: how many pictures or videos there are.
        what: they are.
    """
    if not hasattr(processor, "tokenizer"):
        raise CaptureError(
            f"{type(processor).__name__} reads no text; give the model's processor (AutoProcessor)"
        )
    marks = marks_of(processor, what)
    # A model without such a mark, such as CLIP, reads text and picture side by side.
    if not given or not marks:
        return marks
    # Texts for Gemma 3 hold the mark of a picture's beginning, others that of the picture itself.
    marked = max(text.count(mark) for mark in marks)
    has = f"{marked} place{'s' * (marked > 1)} for {what}s, and {given} were given"
    if not marked:
        raise TextError(f"The text has no place for the {what}; put {marks[0]} where it belongs")
    if marked != given:
        raise TextError(f"The text has {has}; put {marks[0]} where each belongs")
    return marks


def _asked(processor: Any, given: ParsedInput, asked: dict[str, Any]) -> Any:
    """What a processor, or its part for one kind of input, makes of what it is given."""
    first: tuple[Any, ...] = ()
    if given.text is not None:
        call = processor
    elif given.pictures:
        call = getattr(processor, "image_processor", processor)
    elif given.video is not None:
        call = getattr(processor, "video_processor", processor)
        # Some call the argument videos, and that of VideoMAE images; it is the first of all.
        first, asked = (asked["videos"],), {}
    else:
        call = getattr(processor, "feature_extractor", processor)
        # Extractors of Whisper and wav2vec 2.0 call a sound raw_speech, later ones audio.
        if "raw_speech" in inspect.signature(call.__call__).parameters:
            asked = {"raw_speech": asked["audio"], "sampling_rate": asked["sampling_rate"]}
    # Which frames are read was chosen before, and the names of patches show it.
    if given.video is not None and hasattr(getattr(call, "video_processor", call), SAMPLES):
        asked = asked | {SAMPLES: False}
    try:
        return call(*first, **asked, return_tensors="pt")
    except (TypeError, ValueError) as error:
        this = "this"
        if given.sound is not None:
            samples = asked["audio" if "audio" in asked else "raw_speech"]
            this = f"a sound of {len(samples) / asked['sampling_rate']:.4f} s"
        # NumPy says so of a sound that is shorter than the window of a spectrogram.
        short = " (too short: give a longer one)" * ("negative dimensions" in str(error))
        raise CaptureError(
            f"{type(call).__name__} cannot read {this}{short}: {str(error).splitlines()[0]}"
        ) from error


def _once(tokenizer: Any, features: Any, text: str, truncation: Mapping[str, Any]) -> Any:
    """The same without a special token that the text begins or ends with, and got once more."""
    ids = features["input_ids"][0].tolist()
    kept = once(tokenizer, ids, text, **truncation)
    if kept != slice(0, len(ids)):
        for name, values in features.items():
            if name.endswith(AS_LONG_AS_TEXT) and list(values.shape) == [1, len(ids)]:
                features[name] = values[:, kept]
    return features


def _channels(model: Any) -> int | None:
    parts = [getattr(model.config, name, None) for name in ("vision_config", "encoder")]
    counts = (getattr(config, "num_channels", None) for config in (model.config, *parts))
    return next(filter(None, counts), None)


def _seconds(
    model: Any, processor: Any, arguments: dict, heard: tuple[np.ndarray, int]
) -> tuple[float, float] | None:
    """How far two samples, or two columns of features, of the sound are apart, and its length.

    Raises:
        CaptureError: where the samples that a model reads are fewer than it makes one frame of.
    """
    samples, rate = len(heard[0]), heard[1]
    length, read = samples / rate, arguments.get("input_values", torch.empty(0))
    # With two axes [sound sample] the model reads the samples themselves.
    if read.ndim == 2:
        names = "_get_feat_extract_output_lengths"
        count = next(filter(None, (getattr(each, names, None) for each in model.modules())), None)
        if count is not None and int(count(torch.tensor(read.shape[1]))) < 1:
            raise CaptureError(
                f"The sound has {length:.4f} s, too short for one frame of "
                f"{type(model).__name__}; give a longer one"
            )
        return 1 / rate, length
    extractor = getattr(processor, "feature_extractor", processor)
    step = getattr(extractor, "hop_length", None)
    if step:
        # Some extractors (CLAP) fill up with the sound itself.
        is_repeated = "repeat" in str(getattr(extractor, "padding", ""))
        return step / rate, math.inf if is_repeated else length
    if isinstance(getattr(extractor, "max_length", None), int):
        return SPECTROGRAM_STEP, SPECTROGRAM_STEP * columns_of(samples, rate)
    # Extractors without a known step pad the sound; its real part lasts as long as the sound.
    mask = arguments.get("attention_mask")
    return None if mask is None else (length / int(mask.sum()), length)


def _tokens(tokenizer: Any, text: str, ids: list[int], truncation: Mapping[str, Any]) -> Tokens:
    """Tokens with their character offsets; those that a processor put between them, for patches,
    have none.
    """
    own = tokenized(tokenizer, text, **truncation)
    known = tokens_from_encoding(tokenizer, own, (text,))
    if known.ids == tuple(ids):
        return known
    tokens = tokens_from_ids(tokenizer, ids, texts=(text,))
    if known.offsets is None:
        return tokens
    offsets: list[Any] = [None] * len(ids)
    same = SequenceMatcher(None, known.ids or (), ids, autojunk=False)
    for start, at, size in same.get_matching_blocks():
        offsets[at : at + size] = known.offsets[start : start + size]
    return replace(tokens, offsets=tuple(offsets))


def inputs_of_series(
    model: Any, series: Float32[np.ndarray, "time channel"], *, truncate: bool = False
) -> Inputs:
    """The arguments of a model of time series, and which value each of their entries is.

    A model of several channels (PatchTST) has them as an axis of its input, and others (TimesFM)
    read each as a series of its own. Both fold them into the batch, so that no channel attends to
    another.

    Args:
        model: of patches of time series.
        series: what it is to read.
        truncate: whether of a series that is too long only the last steps are read.

    Raises:
        CaptureError: where the model reads no time series, or the series does not fit it.
    """
    reads, config, name = arguments_of(model), model.config, type(model).__name__
    patch, wanted = (getattr(config, each, None) for each in ("patch_length", "num_input_channels"))
    if "past_values" not in reads or not isinstance(patch, int):
        raise CaptureError(
            f"{name} reads no patches of time series; series= is for PatchTST and TimesFM"
        )
    first = max(0, len(series) - config.context_length) if truncate else 0
    if first:
        warnings.warn(
            f"The time series has {len(series)} steps and {name} reads {len(series) - first}: "
            "those before are cut off",
            stacklevel=2,
        )
    series = series[first:]
    length, channels = series.shape
    check_series(model, series.shape)
    values = torch.from_numpy(series).to(device_of(model), model.dtype)
    numbers = torch.arange(1, length * channels + 1, dtype=torch.int32).reshape(channels, length)
    arguments, marks = {"past_values": values[None]}, {"past_values": numbers.T[None]}
    if wanted is None:
        arguments, marks = {"past_values": values.T}, {"past_values": numbers}
    if "past_values_padding" in reads:
        arguments["past_values_padding"] = torch.zeros_like(arguments["past_values"])
    if "freq" in reads:
        # How often a value was taken: 0 stands for often, from every minute to every day.
        arguments["freq"] = torch.zeros(channels, 1, dtype=torch.long, device=values.device)
    # A step that is read keeps the number that it has in the whole series.
    places = grid_of(channels, length) + np.array([0, first])
    elements = elements_of(SERIES, [places], [0])
    positions = positions_of(model, 1, marks, elements, span=patch)
    return Inputs(arguments, (), (), positions)


def check_series(model: Any, shape: Sequence[int]) -> None:
    """Raise where a model does not read a time series as it is: some cut it without a word.

    Raises:
        CaptureError: with what the model reads.
    """
    config, name, length, channels = model.config, type(model).__name__, shape[0], shape[-1]
    wanted, most = getattr(config, "num_input_channels", None), config.context_length
    why = ""
    if length > most:
        why = f"{most}; give the last ones, which capture(series=..., truncate=True) takes"
    elif length < most and hasattr(model, "_preprocess"):
        why = f"{most}, filling up shorter ones; give as many, or capture its inner model"
    elif wanted is None and length % config.patch_length:
        why = f"patches of {config.patch_length}; give a multiple of that"
    elif wanted not in (None, channels):
        raise CaptureError(
            f"The time series has {channels} channels and {name} reads {wanted}; give as many, "
            "with the axes [time channel]"
        )
    elif wanted is not None and length != most:
        why = f"{most}; give as many"
    if why:
        raise CaptureError(f"The time series has {length} steps and {name} reads {why}")
