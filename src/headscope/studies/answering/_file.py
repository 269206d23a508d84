"""Answers about pictures kept as files, with the pictures; without the record."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from headscope.results import Kept, reads
from headscope.storage import (
    PAIR,
    Finite,
    array_of,
    check_document,
    load_kept,
    packed_pixels,
    pixels_of,
    reading,
)
from headscope.studies.answering._result import PictureAnswer
from headscope.studies.answering._words import AnswerWord

FIELDS: dict[str, Any] = {
    "question": str,
    "prompt": str,
    "text": str,
    "model": str,
    "keep_sinks": bool,
    "given": int,
    "tokens": [str],
    "probabilities": [Finite],
    "words": [[str, [int]]],
    "chosen": [PAIR],
    "layers": [int],
    "grids": [PAIR],
    "places": [PAIR],
    "picture_of": [int],
    "apart": Finite,
    "pictures": int,
}
AS_THEY_ARE = ("question", "prompt", "text", "model", "keep_sinks", "given", "apart")
ARRAYS = ("attention", "shares", "even", "times")


def kept_of(answer: PictureAnswer) -> Kept:
    """What a file of it holds."""
    fields = {name: getattr(answer, name) for name in AS_THEY_ARE}
    for name in ("tokens", "probabilities", "chosen", "layers", "grids", "places", "picture_of"):
        fields[name] = list(getattr(answer, name))
    fields["words"] = [[word.text, list(word.tokens)] for word in answer.words]
    fields["pictures"] = len(answer.pictures)
    arrays = {name: np.asarray(getattr(answer, name)) for name in ARRAYS}
    arrays |= {
        f"picture.{number}": packed_pixels(each) for number, each in enumerate(answer.pictures)
    }
    return fields, arrays


@reads(PictureAnswer.KIND)
def load_answer(path: str | os.PathLike[str]) -> PictureAnswer:
    """A saved answer, without its record.

    Raises:
        FileError: where the file does not exist, is cut, or is none of ours.
    """
    fields, arrays = load_kept(path, PictureAnswer.KIND)
    with reading(path, PictureAnswer.KIND):
        check_document(fields, FIELDS)
        _check(fields)
        tokens, patches = len(fields["tokens"]), len(fields["places"])
        sizes = {
            "attention": (tokens, patches),
            "shares": (tokens, len(fields["layers"]), None),
            "even": (tokens,),
            "times": (patches,),
        }
        read = {name: array_of(arrays, name, "f", sizes[name]) for name in ARRAYS}
        return PictureAnswer(
            **{name: fields[name] for name in AS_THEY_ARE},
            tokens=tuple(fields["tokens"]),
            probabilities=tuple(fields["probabilities"]),
            layers=tuple(fields["layers"]),
            picture_of=tuple(fields["picture_of"]),
            words=tuple(AnswerWord(text, tuple(of)) for text, of in fields["words"]),
            chosen=_pairs(fields["chosen"]),
            grids=_pairs(fields["grids"]),
            places=_pairs(fields["places"]),
            pictures=tuple(_picture(arrays, number) for number in range(fields["pictures"])),
            **read,
        )


def _pairs(listed: list[list[int]]) -> tuple[tuple[int, int], ...]:
    # JSON has lists, and heads and places are compared as pairs.
    return tuple((first, second) for first, second in listed)


def _picture(arrays: dict[str, np.ndarray], number: int) -> np.ndarray:
    return pixels_of(array_of(arrays, f"picture.{number}", "i", (None, None)))


def _check(fields: dict[str, Any]) -> None:
    """Raise where numbers point at what is not there.

    Raises:
        ValueError: saying what.
    """
    tokens, grids = len(fields["tokens"]), fields["grids"]
    if not fields["chosen"]:
        raise ValueError("it does not say which heads it is the mean of")
    if len(fields["probabilities"]) != tokens or len(fields["picture_of"]) != len(fields["places"]):
        raise ValueError("its lists are of different lengths")
    if fields["pictures"] not in (0, len(grids)):
        raise ValueError(f"it has {fields['pictures']} pictures for {len(grids)} grids")
    if any(not of or not all(0 <= at < tokens for at in of) for _, of in fields["words"]):
        raise ValueError("a word is made of tokens that are not there")
    for (row, column), of in zip(fields["places"], fields["picture_of"], strict=True):
        if not 0 <= of < len(grids):
            raise ValueError(f"a patch is of picture {of}")
        if not (0 <= row < grids[of][0] and 0 <= column < grids[of][1]):
            raise ValueError(f"a patch is at {row}, {column} of a grid of {grids[of]}")
