"""What a processor makes of pictures, sounds and texts."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headscope.capturing.device import device_of
from headscope.capturing.inputs._modalities import check_reads
from headscope.capturing.inputs.inputs import (
    Inputs,
    check_length,
    check_text,
    followed_inputs,
    positions_of,
    with_target,
)
from headscope.capturing.inputs.tokens import tokens_from_encoding, tokens_from_ids
from headscope.capturing.media._pixels import Picture, pictures_of
from headscope.capturing.media._sound import parse_sound
from headscope.errors import CaptureError, FileError, TextError
from headscope.record import Tokens

PLACEHOLDERS = ("image_token", "boi_token")
"""What processors call the mark that stands for a picture in a text."""
MODES = {1: "L", 3: "RGB", 4: "RGBA"}


def inputs_of(model: Any, processor: Any, text: str | None, given: Mapping[str, Any]) -> Inputs:
    """What a model is to read: a picture or a sound, and a text where it reads one beside it.

    Args:
        model: that is to read them.
        processor: of transformers: of pictures, of sounds, or of several kinds.
        text: the text, or None.
        given: the options of a capture, and ``text_pair``.

    Raises:
        CaptureError: where model, processor and what was given do not fit.
    """
    arguments, source, seconds, pictures = _processed(model, processor, text, given)
    target: tuple[Tokens, ...] = ()
    if getattr(model.config, "is_encoder_decoder", False):
        tokenizer = given.get("target_tokenizer") or getattr(processor, "tokenizer", None)
        if tokenizer is None:
            raise CaptureError(
                f"{type(model).__name__} writes text; pass its tokenizer as target_tokenizer="
            )
        arguments, tokens = with_target(model, arguments, given.get("target"), tokenizer)
        target = (tokens,)
    known = (pictures,) if pictures else ()
    return followed_inputs(model, arguments, source, target, seconds=seconds, pictures=known)


def _processed(
    model: Any, processor: Any, text: str | None, given: Mapping[str, Any]
) -> tuple[dict[str, torch.Tensor], tuple[Tokens, ...], float | None, tuple[Picture, ...]]:
    """Arguments, tokens of the text, the seconds between samples or columns of features of a sound,
    and pictures.
    """
    images = _checked_images(model, text, given)
    cut = _cut(model, processor, text, truncate=given.get("truncate"), pictures=len(images))
    asked: dict[str, Any] = {} if text is None else {"text": [text], **cut}
    if images:
        asked["images"] = [parse_image(each, _channels(model)) for each in images]
    if given.get("sound") is not None:
        asked |= _checked_sound(processor, given["sound"], given.get("sampling_rate"))
    features = _asked(processor, asked)
    arguments = {}
    for name, values in features.items():
        if isinstance(values, torch.Tensor):
            arguments[name] = _placed(values, model)
    pictures = pictures_of(processor, features) if images else ()
    seconds = _seconds(processor, arguments, asked) if "audio" in asked else None
    if text is None:
        return arguments, (), seconds, pictures
    check_length(model, arguments["input_ids"].shape[1])
    tokens = _tokens(processor.tokenizer, text, arguments["input_ids"][0].tolist(), cut)
    return arguments, (tokens,), seconds, pictures


def _checked_images(model: Any, text: str | None, given: Mapping[str, Any]) -> list[Any]:
    """The pictures, where they go with the model and the text."""
    if given.get("text_pair") is not None:
        raise TextError("A picture or sound goes with one text; leave text_pair out")
    check_reads(model, text, image=given.get("image"), sound=given.get("sound"))
    images = listed_images(given.get("image"))
    # Processors take several pictures without a text for a batch of examples.
    if text is None and len(images) > 1:
        raise CaptureError(
            f"{type(model).__name__} reads one picture at a time, and {len(images)} were given; "
            "capture them one after another, or with capture_many"
        )
    return images


def _cut(
    model: Any, processor: Any, text: str | None, *, truncate: Any, pictures: int
) -> dict[str, Any]:
    """How a tokenizer is told to cut the text to the model's positions; empty to leave it whole."""
    if text is None:
        return {}
    marks = _check_placeholder(processor, check_text(text), pictures)
    # A text that holds the places of pictures is not cut: patches would be lost.
    limit = positions_of(model) if truncate and not marks else None
    return {} if limit is None else {"truncation": True, "max_length": limit}


def _checked_sound(processor: Any, sound: Any, sampling_rate: int | None) -> dict[str, Any]:
    samples, rate = parse_sound(sound, sampling_rate)
    wanted = getattr(getattr(processor, "feature_extractor", processor), "sampling_rate", rate)
    # Played at another speed it would sound higher or lower than what the model was trained on.
    if wanted != rate:
        raise CaptureError(
            f"The sound has {rate} samples a second and the model reads {wanted}; resample it first"
        )
    return {"audio": samples, "sampling_rate": rate}


def listed_images(image: Any) -> list[Any]:
    """One picture or a list of them as a list; none where there is none.

    Raises:
        CaptureError: where the list is empty.
    """
    if isinstance(image, list | tuple):
        if not image:
            raise CaptureError("image is an empty list; give a picture, or leave image out")
        return list(image)
    return [] if image is None else [image]


def parse_image(image: Any, channels: int | None = None) -> Any:
    """A PIL picture from one, from an array ``[height width channel]`` of uint8, or from a path.

    Raises:
        CaptureError: where it is none of these, or Pillow is missing.
        FileError: where the file is not a picture.
    """
    try:
        from PIL import Image
    except ImportError:
        raise CaptureError("Pictures need Pillow: pip install 'headscope[pictures]'") from None
    if isinstance(image, str | Path):
        picture = _picture_from_file(image)
    elif isinstance(image, np.ndarray):
        picture = _picture_from_array(image)
    elif isinstance(image, Image.Image):
        picture = image
    else:
        raise CaptureError(
            "image must be a PIL picture, an array [height width channel] or a path, not "
            f"{type(image).__name__}"
        )
    mode = MODES.get(channels or 3, picture.mode)
    return picture if picture.mode == mode else picture.convert(mode)


def _picture_from_file(path: str | Path) -> Any:
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


def _picture_from_array(pixels: np.ndarray) -> Any:
    from PIL import Image

    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] not in MODES:
        raise CaptureError(
            f"A picture must be uint8 with the axes [height width channel], not {pixels.dtype} "
            f"{list(pixels.shape)}; multiply brightness from 0 to 1 by 255, and give grey "
            "pictures one channel"
        )
    channels = pixels.shape[2]
    # Pillow takes grey pictures without an axis of channels.
    return Image.fromarray(pixels[:, :, 0] if channels == 1 else pixels, MODES[channels])


def _check_placeholder(processor: Any, text: str, pictures: int) -> list[str]:
    """The marks that stand for pictures in texts, none where texts have no place for them."""
    if not hasattr(processor, "tokenizer"):
        raise CaptureError(
            f"{type(processor).__name__} reads no text; give the model's processor (AutoProcessor)"
        )
    marks = [getattr(processor, name, None) for name in PLACEHOLDERS]
    marks = [mark for mark in marks if isinstance(mark, str)]
    # A model without such a mark, such as CLIP, reads text and picture side by side.
    if not pictures or not marks:
        return marks
    # Texts for Gemma 3 hold the mark of a picture's beginning, others that of the picture itself.
    marked = max(text.count(mark) for mark in marks)
    if not marked:
        raise TextError(f"The text has no place for the picture; put {marks[0]} where it belongs")
    if marked != pictures:
        places = f"{marked} place{'s' * (marked > 1)} for pictures"
        raise TextError(
            f"The text has {places}, and {pictures} were given; put {marks[0]} where each belongs"
        )
    return marks


def _asked(processor: Any, asked: dict[str, Any]) -> Any:
    if "text" in asked:
        call = processor
    elif "images" in asked:
        call = getattr(processor, "image_processor", processor)
    else:
        call = getattr(processor, "feature_extractor", processor)
        # Extractors of Whisper and wav2vec 2.0 call a sound raw_speech, later ones audio.
        asked = {"raw_speech" if _reads_raw_speech(call) else "audio": asked["audio"]} | {
            "sampling_rate": asked["sampling_rate"]
        }
    try:
        return call(**asked, return_tensors="pt")
    except (TypeError, ValueError) as error:
        raise CaptureError(
            f"{type(call).__name__} cannot read this: {str(error).splitlines()[0]}"
        ) from error


def _reads_raw_speech(extractor: Any) -> bool:
    return "raw_speech" in inspect.signature(extractor.__call__).parameters


def _placed(values: torch.Tensor, model: Any) -> torch.Tensor:
    # Pixels and samples are computed with, so they need the precision of the weights; ids do not.
    return values.to(device_of(model), model.dtype if values.is_floating_point() else None)


def _channels(model: Any) -> int | None:
    places = (
        model.config,
        *(getattr(model.config, name, None) for name in ("vision_config", "encoder")),
    )
    return next(
        (count for place in places if (count := getattr(place, "num_channels", None))), None
    )


def _seconds(processor: Any, arguments: dict, asked: Mapping[str, Any]) -> float | None:
    """How far two samples, or two columns of features, of the sound are apart."""
    samples, rate = len(asked["audio"]), asked["sampling_rate"]
    # With two axes [sound sample] the model reads the samples themselves.
    if arguments.get("input_values", torch.empty(0)).ndim == 2:
        return 1 / rate
    extractor = getattr(processor, "feature_extractor", processor)
    step = getattr(extractor, "hop_length", None)
    if step:
        return step / rate
    # Extractors that do not tell their step pad the sound; what is real of it lasts as long as it.
    mask = arguments.get("attention_mask")
    return None if mask is None else samples / rate / int(mask.sum())


def _tokens(tokenizer: Any, text: str, ids: list[int], cut: Mapping[str, Any]) -> Tokens:
    """With their places in the text, where the processor put nothing else between them."""
    own = tokenizer(text, **cut)
    if list(own["input_ids"]) == ids:
        return tokens_from_encoding(tokenizer, own, (text,))
    return tokens_from_ids(tokenizer, ids, texts=(text,))
