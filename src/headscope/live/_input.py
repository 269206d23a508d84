"""What a page gives the model to read, checked."""

from __future__ import annotations

import base64
import binascii
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headscope.capturing import ParsedInput, parse_call
from headscope.errors import TextError
from headscope.live._facts import picture_mark_of
from headscope.live.contract import InputField, LiveLimits

TEXTS: tuple[InputField, ...] = ("text", "text_b", "target")
MOST_PIXELS = 2**24
"""A small file may hold a picture that fills the memory when it is unpacked."""
MOST_SECONDS = 30
"""Of a sound: what Whisper hears at a time; a frame of wav2vec 2.0 is 20 ms."""
MOST_MESSAGES = 64


@dataclass(frozen=True)
class ReadInput:
    """An input that was checked.

    Args:
        parsed: as `headscope.capture` takes it.
        key: tells it from others.
    """

    parsed: ParsedInput
    key: str


def parse_input(
    given: Any, fields: Sequence[InputField], limits: LiveLimits, reads_with: Any
) -> ReadInput:
    """The field ``input`` of a request.

    Args:
        given: what came.
        fields: what the model takes.
        limits: what it may be at most.
        reads_with: tokenizer or processor of the model.

    Raises:
        TextError: a field that the model does not take, or a value that cannot be one.
        CaptureError: where there is nothing to read.
        FileError: where a sound cannot be read.
    """
    if not isinstance(given, Mapping) or not given:
        raise TextError("input is a JSON object with a text")
    for name in given:
        if name not in fields:
            raise TextError(
                f"This model takes {', '.join(fields)} and no {str(name)[:40]!r} in its input"
            )
    for name in TEXTS:
        if name in given:
            _check_text(name, given[name], limits["characters"])
    text = given.get("text")
    if "messages" in given:
        if text is not None:
            raise TextError("Give a text or messages, not both")
        text = _messages(given["messages"], limits["characters"])
    elif text is not None and "image" in given:
        text = _with_mark(text, picture_mark_of(reads_with))
    options = _options(given, limits["picture_bytes"])
    key = json.dumps(dict(given), sort_keys=True)
    parsed = parse_call(text or None, given.get("text_b") or None, options)
    return ReadInput(_heard(parsed), key)


def _options(given: Mapping[str, Any], most: int) -> dict[str, Any]:
    """What is given with the texts, as options of `headscope.capture`."""
    options: dict[str, Any] = {}
    if given.get("target"):
        options["target"] = given["target"]
    if "image" in given:
        options["image"] = _picture(given["image"], most)
    if "audio" in given:
        options["sound"] = _sound(given["audio"], most)
    return options


def _check_text(name: str, given: Any, most: int) -> None:
    if not isinstance(given, str):
        raise TextError(f"{name} is a text, not {type(given).__name__}")
    if len(given) > most:
        raise TextError(
            f"{name} has {len(given):,} characters, and at most {most:,} are read at a time; "
            "shorten it"
        )


def _messages(given: Any, most: int) -> list[dict[str, Any]]:
    """The turns of a conversation, of texts alone: no page names files of this machine."""
    listed = given if isinstance(given, list) else []
    if not listed or len(listed) > MOST_MESSAGES or not all(map(_is_message, listed)):
        raise TextError(
            f'messages is a list of up to {MOST_MESSAGES} of {{"role": ..., "content": a text}}'
        )
    _check_text("messages", "".join(each["content"] for each in listed), most)
    return listed


def _with_mark(text: str, mark: str) -> str:
    """A text with the mark of its picture, before it where it has none."""
    return text if not mark or mark in text else f"{mark} {text}".strip()


def _is_message(given: Any) -> bool:
    if not isinstance(given, Mapping) or given.keys() != {"role", "content"}:
        return False
    return isinstance(given["content"], str)


def _decoded(given: Any, most: int, what: str) -> bytes:
    """The bytes of a file from its base64."""
    if not isinstance(given, str) or len(given) > most * 4 // 3 + 4:
        raise TextError(f"{what} of at most {most:,} bytes, in base64")
    try:
        return base64.b64decode(given, validate=True)
    except (binascii.Error, ValueError) as error:
        raise TextError(f"{what} in base64, which this is not: {error}") from None


def _picture(given: Any, most: int) -> Any:
    """A picture from its file in base64."""
    from PIL import Image

    data = _decoded(given, most, "image is a PNG or JPEG")
    try:
        picture = Image.open(io.BytesIO(data), formats=("PNG", "JPEG"))
        if picture.width * picture.height > MOST_PIXELS:
            raise TextError(
                f"The image has {picture.width} x {picture.height} pixels; make it smaller than "
                f"{MOST_PIXELS:,} in all"
            )
        return picture.convert("RGB")
    except (OSError, SyntaxError, ValueError) as error:
        raise TextError(f"The image cannot be read as a PNG or JPEG: {error}") from None


def _sound(given: Any, most: int) -> io.BytesIO:
    """The file of a sound from its base64."""
    return io.BytesIO(_decoded(given, most, "audio is a WAV"))


def _heard(parsed: ParsedInput) -> ParsedInput:
    """The input with its sound read.

    Raises:
        FileError: where it is no sound.
        TextError: where it is too long.
    """
    if parsed.sound is None:
        return parsed
    samples, rate = parsed.sound()
    seconds = len(samples) / rate
    if seconds > MOST_SECONDS:
        raise TextError(
            f"The sound lasts {seconds:.1f} seconds, and at most {MOST_SECONDS} are heard at a "
            "time; cut it"
        )
    return parsed.in_memory()
