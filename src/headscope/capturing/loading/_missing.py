"""Weights that the files of a model lack, and which of them a question needs."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from headscope.errors import ModelError

POOLER = "pooler"
"""The layer over [CLS] that models of the BERT family come with: neither attention nor word heads
read it.
"""


@dataclass(frozen=True)
class OutputHead:
    """What a question needs a model to have.

    Args:
        what: its name in messages.
        loader: class of transformers that loads a model with it.
        example: a model that was kept with it.
    """

    what: str
    loader: str
    example: str


NEXT, MASKED, CLASS, TRANSLATION = "next word", "masked word", "class", "translation"
HEADS = {
    NEXT: OutputHead(
        "head that predicts the next word", "AutoModelForCausalLM", "HuggingFaceTB/SmolLM2-135M"
    ),
    MASKED: OutputHead("masked-word head", "AutoModelForMaskedLM", "google-bert/bert-base-uncased"),
    CLASS: OutputHead(
        "classifier",
        "AutoModelForSequenceClassification",
        "distilbert/distilbert-base-uncased-finetuned-sst-2-english",
    ),
    TRANSLATION: OutputHead(
        "head that writes", "AutoModelForSeq2SeqLM", "Helsinki-NLP/opus-mt-en-de"
    ),
}
"""By the task."""


def check_loaded(name: str, missing: Iterable[str], asks: str) -> None:
    """Raise where the files of a model lack weights that the question needs.

    Args:
        name: of the model.
        missing: names of the weights that are not in its files.
        asks: one of `HEADS`.

    Raises:
        ModelError: naming the weights.
    """
    lacking = needed(missing, asks)
    if lacking:
        head = HEADS[asks]
        raise ModelError(
            f"{name} has no trained {head.what}: its files lack {listed(lacking)}; take a model "
            f"that was kept with it, such as {head.example}"
        )


def warn_of_new(name: str, missing: Iterable[str]) -> None:
    """Say so where the files of a model lack weights of it, which are random then."""
    lacking = needed(missing, "")
    if lacking:
        warnings.warn(
            f"The files of {name} lack {listed(lacking)}: these weights are random, and so is "
            "what follows from them",
            stacklevel=2,
        )


@contextmanager
def without_report() -> Generator[None]:
    """Keep transformers from printing its table of weights that are missing or not expected."""

    def is_other(line: logging.LogRecord) -> bool:
        return "LOAD REPORT" not in line.getMessage()

    logger = logging.getLogger("transformers.modeling_utils")
    logger.addFilter(is_other)
    try:
        yield
    finally:
        logger.removeFilter(is_other)


def warn_of_unread(model: Any, name: str, unexpected: Iterable[str]) -> None:
    """Say so where the files hold weights of parts of the model that it does not have, such as
    further layers; heads, which are parts of their own, are left out on purpose.
    """
    parts = {part for of in (model, model.base_model) for part, _ in of.named_children()}
    prefix = f"{model.base_model_prefix}."
    inside = [key for key in unexpected if "lm_head" not in key.split(".")]
    unread = sorted(key for key in inside if key.removeprefix(prefix).split(".")[0] in parts)
    if unread:
        warnings.warn(
            f"The files of {name} hold {listed(unread)}, which its configuration has no place for: "
            "they are not read",
            stacklevel=2,
        )


def needed(names: Iterable[str], asks: str) -> list[str]:
    """Of missing weights those that matter; a classifier may read the pooler."""
    # By whole parts of the name, since other names may hold the word within.
    return sorted(name for name in names if asks == CLASS or POOLER not in name.split("."))


def listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{names[0]}{more}"
