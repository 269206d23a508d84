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
from headscope.live.contract import InputField, LiveLimits

TEXTS: tuple[InputField, ...] = ("text", "text_b", "target")
MOST_PIXELS = 2**24
"""A small file may hold a picture that fills the memory when it is unpacked."""
MOST_MESSAGES = 64
ROLES = ("system", "user", "assistant")


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
    given: Any, fields: Sequence[InputField], limits: LiveLimits, tokenizer: Any
) -> ReadInput:
    """The field ``input`` of a request.

    Args:
        given: what came.
        fields: what the model takes.
        limits: what it may be at most.
        tokenizer: puts messages into the form of its model.

    Raises:
        TextError: a field that the model does not take, or a value that cannot be one.
        CaptureError: where there is nothing to read.
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
    text, options = given.get("text"), {}
    if "messages" in given:
        if text is not None:
            raise TextError("Give a text or messages, not both")
        text = _of_messages(given["messages"], tokenizer, limits["characters"])
    if given.get("target"):
        options["target"] = given["target"]
    if "image" in given:
        options["image"] = _picture(given["image"], limits["picture_bytes"])
    key = json.dumps(dict(given), sort_keys=True)
    parsed = parse_call(text or None, given.get("text_b") or None, options)
    return ReadInput(parsed, key)


def _check_text(name: str, given: Any, most: int) -> None:
    if not isinstance(given, str):
        raise TextError(f"{name} is a text, not {type(given).__name__}")
    if len(given) > most:
        raise TextError(
            f"{name} has {len(given):,} characters, and at most {most:,} are read at a time; "
            "shorten it"
        )


def _of_messages(given: Any, tokenizer: Any, most: int) -> str:
    """A conversation as one text, in the form that its model was trained on."""
    listed = given if isinstance(given, list) else []
    if not listed or len(listed) > MOST_MESSAGES or not all(map(_is_message, listed)):
        raise TextError(
            f'messages is a list of up to {MOST_MESSAGES} of {{"role": one of '
            f'{", ".join(ROLES)}, "content": a text}}'
        )
    _check_text("messages", "".join(each["content"] for each in listed), most)
    try:
        text = tokenizer.apply_chat_template(listed, tokenize=False, add_generation_prompt=True)
    except Exception as error:  # noqa: BLE001 - templates are programs that come with a model
        raise TextError(f"The model's form for messages refuses these: {error}") from None
    # The tokenizer puts its own first token before a text, and the form has it already.
    begin = getattr(tokenizer, "bos_token", None)
    return text.removeprefix(begin) if begin else text


def _is_message(given: Any) -> bool:
    if not isinstance(given, Mapping) or given.keys() != {"role", "content"}:
        return False
    return given["role"] in ROLES and isinstance(given["content"], str)


def _picture(given: Any, most: int) -> Any:
    """A picture from its file in base64."""
    if not isinstance(given, str) or len(given) > most * 4 // 3 + 4:
        raise TextError(f"image is a PNG or JPEG of at most {most:,} bytes, in base64")
    from PIL import Image

    try:
        data = base64.b64decode(given, validate=True)
        picture = Image.open(io.BytesIO(data), formats=("PNG", "JPEG"))
        if picture.width * picture.height > MOST_PIXELS:
            raise TextError(
                f"The image has {picture.width} x {picture.height} pixels; make it smaller than "
                f"{MOST_PIXELS:,} in all"
            )
        return picture.convert("RGB")
    except (binascii.Error, OSError, SyntaxError, ValueError) as error:
        raise TextError(f"The image cannot be read as a PNG or JPEG: {error}") from None
