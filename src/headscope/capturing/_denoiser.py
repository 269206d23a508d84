"""What the denoising part of a diffusion model reads: a noisy picture, and a text with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import torch

from headscope.capturing.inputs.inputs import Inputs
from headscope.capturing.inputs.tokens import joined_tokens
from headscope.capturing.media._position_marks import marks_of
from headscope.capturing.media.input_positions import (
    TEXT,
    VISION,
    elements_of,
    grid_of,
    positions_of,
)
from headscope.errors import CaptureError
from headscope.record import Tokens

PICTURES = ("sample", "hidden_states")
"""What models of diffusers call the noisy picture."""
WORDS = "encoder_hidden_states"


def denoiser_inputs(
    model: Any,
    arguments: Mapping[str, Any],
    words: Sequence[str] | None = None,
    encoded: Sequence[Tokens] = (),
) -> Inputs:
    """The arguments of a denoiser, with the place that each entry of the picture and each word has.

    Args:
        model: a UNet or a transformer of diffusers.
        arguments: of its forward, by name.
        words: names of the positions of the text; by default those of the tokens that they come
            from, or they are counted.
        encoded: tokens of the texts whose positions were followed from their encoders, numbered
            through from 1 on.

    Raises:
        CaptureError: where there is no picture, or it is unknown where its parts lie; where there
            are more words than positions, or fewer.
    """
    name = _picture_name(model, arguments)
    picture, text = arguments[name], arguments.get(WORDS)
    places = _places(model, picture, arguments)
    batch, size = len(picture), len(places)
    length = 0 if text is None else text.shape[1]
    _check_words(words, length)
    seen = torch.arange(1, batch * size + 1, dtype=torch.int32).reshape(batch, size)
    read = batch * size + 1 + torch.arange(batch * length, dtype=torch.int32)
    marks = {name: seen[:, :, None]}
    if picture.ndim == 4:
        marks[name] = seen.reshape(batch, 1, *picture.shape[2:])
    if text is not None:
        marks[WORDS] = read.reshape(batch, length, 1)
    elements = [elements_of(VISION, [places] * batch, range(batch))]
    elements.append(elements_of(TEXT, [grid_of(1, length)] * batch, range(batch)))
    clips = (None,) * batch
    positions = positions_of(model, batch, marks, np.concatenate(elements), clips=clips)
    source: tuple[Tokens, ...] = ()
    if length:
        numbers = tuple(words or (f"w{number}" for number in range(length)))
        named = Tokens(pieces=numbers, labels=numbers, special=(False,) * length)
        source = (named,) * batch
        if not words and text is not None:
            source = tuple(_read(text, named, encoded))
    return Inputs(dict(arguments), source, (), positions)


def _read(text: torch.Tensor, named: Tokens, encoded: Sequence[Tokens]) -> Iterator[Tokens]:
    """The tokens of each row of a text; positions that were not followed keep their names."""
    known = reduce(joined_tokens, encoded, named)
    marks = marks_of(text)
    for row in range(len(text)):
        at = np.arange(len(named))
        if marks is not None:
            followed = marks[row, :, 0].cpu().numpy()
            at = np.where(followed > 0, len(named) + followed - 1, at)
        own = known.take(at.tolist())
        yield Tokens(pieces=own.pieces, labels=own.labels, special=own.special)


def _picture_name(model: Any, arguments: Mapping[str, Any]) -> str:
    for name in PICTURES:
        if arguments.get(name) is not None:
            return name
    raise CaptureError(
        f"{type(model).__name__} was given {', '.join(arguments)}; expected a picture as "
        f"{' or '.join(PICTURES)}"
    )


def _places(model: Any, picture: torch.Tensor, arguments: Mapping[str, Any]) -> np.ndarray:
    """Row and column of every place of a picture."""
    if picture.ndim == 4:
        return grid_of(*picture.shape[2:])
    ids = arguments.get("img_ids")
    if picture.ndim != 3 or ids is None:
        raise CaptureError(
            f"{type(model).__name__} reads a picture of shape {list(picture.shape)}, and the "
            "positions of its parts are unknown; expected [batch channel row column], or [batch "
            "part feature] with img_ids"
        )
    # Flux gives a number of its own, the row and the column; earlier versions have a batch before.
    numbers = ids.reshape(-1, ids.shape[-1])[: picture.shape[1]].cpu().numpy().astype(np.int64)
    return numbers[:, 1:3]


def _check_words(words: Sequence[str] | None, length: int) -> None:
    if words is not None and len(words) != length:
        raise CaptureError(
            f"{len(words)} words were given for a text of {length} positions; give one for each, "
            "padding included"
        )
