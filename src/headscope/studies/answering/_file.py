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
    reading,
)
from headscope.studies.answering._result import AnswerWord, PictureAnswer

DOCUMENT: dict[str, Any] = {
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
    document = {name: getattr(answer, name) for name in AS_THEY_ARE}
    for name in ("tokens", "probabilities", "chosen", "layers", "grids", "places", "picture_of"):
        document[name] = list(getattr(answer, name))
    document["words"] = [[word.text, list(word.tokens)] for word in answer.words]
    document["pictures"] = len(answer.pictures)
    arrays = {name: np.asarray(getattr(answer, name)) for name in ARRAYS}
    arrays |= {f"picture.{number}": each for number, each in enumerate(answer.pictures)}
    return document, arrays


@reads(PictureAnswer.KIND)
def load_answer(path: str | os.PathLike[str]) -> PictureAnswer:
    """A saved answer, without its record.

    Raises:
        FileError: where the file does not exist, is cut, or is none of ours.
    """
    document, arrays = load_kept(path, PictureAnswer.KIND)
    with reading(path, PictureAnswer.KIND):
        check_document(document, DOCUMENT)
        _check(document)
        tokens, patches = len(document["tokens"]), len(document["places"])
        sizes = {
            "attention": (tokens, patches),
            "shares": (tokens, len(document["layers"]), None),
            "even": (tokens,),
            "times": (patches,),
        }
        read = {name: array_of(arrays, name, "f", sizes[name]) for name in ARRAYS}
        return PictureAnswer(
            **{name: document[name] for name in AS_THEY_ARE},
            tokens=tuple(document["tokens"]),
            probabilities=tuple(document["probabilities"]),
            layers=tuple(document["layers"]),
            picture_of=tuple(document["picture_of"]),
            words=tuple(AnswerWord(text, tuple(of)) for text, of in document["words"]),
            chosen=_pairs(document["chosen"]),
            grids=_pairs(document["grids"]),
            places=_pairs(document["places"]),
            pictures=tuple(_picture(arrays, number) for number in range(document["pictures"])),
            **read,
        )


def _pairs(listed: list[list[int]]) -> tuple[tuple[int, int], ...]:
    # JSON has lists, and heads and places are compared as pairs.
    return tuple((first, second) for first, second in listed)


def _picture(arrays: dict[str, np.ndarray], number: int) -> np.ndarray:
    return array_of(arrays, f"picture.{number}", "u", (None, None, 3))


def _check(document: dict[str, Any]) -> None:
    """Raise where numbers point at what is not there.

    Raises:
        ValueError: saying what.
    """
    tokens, grids = len(document["tokens"]), document["grids"]
    if not document["chosen"]:
        raise ValueError("it does not say which heads it is the mean of")
    patches = len(document["places"])
    if len(document["probabilities"]) != tokens or len(document["picture_of"]) != patches:
        raise ValueError("its lists are of different lengths")
    if document["pictures"] not in (0, len(grids)):
        raise ValueError(f"it has {document['pictures']} pictures for {len(grids)} grids")
    if any(not of or not all(0 <= at < tokens for at in of) for _, of in document["words"]):
        raise ValueError("a word is made of tokens that are not there")
    for (row, column), of in zip(document["places"], document["picture_of"], strict=True):
        if not 0 <= of < len(grids):
            raise ValueError(f"a patch is of picture {of}")
        if not (0 <= row < grids[of][0] and 0 <= column < grids[of][1]):
            raise ValueError(f"a patch is at {row}, {column} of a grid of {grids[of]}")
