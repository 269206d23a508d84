"""What a processor makes of pictures, sounds and texts."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch

from headscope.capturing.device import device_of
from headscope.capturing.inputs._modalities import check_reads
from headscope.capturing.inputs.inputs import (
    Inputs,
    check_length,
    followed_inputs,
    positions_of,
    with_target,
)
from headscope.capturing.inputs.parsed_input import ParsedInput
from headscope.capturing.inputs.tokens import tokens_from_encoding, tokens_from_ids
from headscope.capturing.media._pixels import Picture, pictures_of
from headscope.capturing.media._sound import SoundInput
from headscope.errors import CaptureError, TextError
from headscope.record import Tokens

PLACEHOLDERS = ("image_token", "boi_token")
"""What processors call the mark that stands for a picture in a text."""


def inputs_of(
    model: Any,
    processor: Any,
    given: ParsedInput,
    *,
    truncate: bool = False,
    target_tokenizer: Any = None,
) -> Inputs:
    """What a model is to read: a picture or a sound, and a text where it reads one beside it.

    Args:
        model: that is to read them.
        processor: of transformers: of pictures, of sounds, or of several kinds.
        given: picture or sound, and text.
        truncate: whether a text that is too long is cut.
        target_tokenizer: of the target side; by default that of the processor.

    Raises:
        CaptureError: where model, processor and what was given do not fit.
    """
    arguments, source, seconds, pictures = _processed(model, processor, given, truncate=truncate)
    target: tuple[Tokens, ...] = ()
    if getattr(model.config, "is_encoder_decoder", False):
        tokenizer = target_tokenizer or getattr(processor, "tokenizer", None)
        if tokenizer is None:
            raise CaptureError(
                f"{type(model).__name__} writes text; pass its tokenizer as target_tokenizer="
            )
        arguments, tokens = with_target(model, arguments, given.decoder_text(), tokenizer)
        target = (tokens,)
    known = (pictures,) if pictures else ()
    return followed_inputs(model, arguments, source, target, seconds=seconds, pictures=known)


def _processed(
    model: Any, processor: Any, given: ParsedInput, *, truncate: bool
) -> tuple[dict[str, torch.Tensor], tuple[Tokens, ...], float | None, tuple[Picture, ...]]:
    """Arguments, tokens of the text, the seconds between samples or columns of features of a sound,
    and pictures.
    """
    _check_given(model, given)
    text = given.text
    truncation = _truncation(model, processor, given, truncate=truncate)
    asked: dict[str, Any] = {} if text is None else {"text": [text], **truncation}
    if given.pictures:
        channels = _channels(model)
        asked["images"] = [picture.read(channels) for picture in given.pictures]
    if given.sound is not None:
        asked |= _checked_sound(processor, given.sound)
    features = _asked(processor, given, asked)
    arguments = {}
    for name, values in features.items():
        if isinstance(values, torch.Tensor):
            arguments[name] = _placed(values, model)
    pictures = pictures_of(processor, features, asked.get("images", ()))
    seconds = _seconds(processor, arguments, asked) if given.sound is not None else None
    if text is None:
        return arguments, (), seconds, pictures
    check_length(model, arguments["input_ids"].shape[1])
    tokens = _tokens(processor.tokenizer, text, arguments["input_ids"][0].tolist(), truncation)
    return arguments, (tokens,), seconds, pictures


def _check_given(model: Any, given: ParsedInput) -> None:
    """Raise where picture, sound and text do not go with the model."""
    check_reads(model, given)
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
    # A text that holds the places of pictures is not cut: patches would be lost.
    limit = positions_of(model) if truncate and not marks else None
    return {} if limit is None else {"truncation": True, "max_length": limit}


def _checked_sound(processor: Any, sound: SoundInput) -> dict[str, Any]:
    samples, rate = sound.read()
    wanted = getattr(getattr(processor, "feature_extractor", processor), "sampling_rate", rate)
    # Played at another speed it would sound higher or lower than what the model was trained on.
    if wanted != rate:
        raise CaptureError(
            f"The sound has {rate} samples a second and the model reads {wanted}; resample it first"
        )
    return {"audio": samples, "sampling_rate": rate}


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


def _asked(processor: Any, given: ParsedInput, asked: dict[str, Any]) -> Any:
    if given.text is not None:
        call = processor
    elif given.pictures:
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


def _tokens(tokenizer: Any, text: str, ids: list[int], truncation: Mapping[str, Any]) -> Tokens:
    """With their places in the text, where the processor put nothing else between them."""
    own = tokenizer(text, **truncation)
    if list(own["input_ids"]) == ids:
        return tokens_from_encoding(tokenizer, own, (text,))
    return tokens_from_ids(tokenizer, ids, texts=(text,))
