"""Sentences with their translations, as an encoder-decoder reads them."""

from __future__ import annotations

import hashlib
import warnings
from typing import TYPE_CHECKING, Any

from headscope.errors import HeadscopeError, ModelError
from headscope.record import Record
from headscope.studies.alignment._pair import AlignedPair
from headscope.studies.shared._source import check_known_texts

if TYPE_CHECKING:
    from headscope.capturing import Outcome, ParsedInput


def check_model(model: Any) -> None:
    """Raise where a model does not read one sentence and write another.

    Raises:
        ModelError: naming it.
    """
    from headscope.capturing.loading.load import display_name
    from headscope.capturing.walk import reads_target

    if not reads_target(model):
        raise ModelError(
            f"{display_name(model)} is not an encoder-decoder; words are aligned by a model that "
            "reads a sentence and writes its translation, such as Helsinki-NLP/opus-mt-de-en"
        )


def parsed(pair: AlignedPair) -> ParsedInput:
    """A pair as the model reads it.

    Raises:
        HeadscopeError: where one side is no text.
    """
    from headscope.capturing import parse_call

    return parse_call(pair.source, None, {"target": pair.target})


def captured(
    model: Any,
    readers: tuple[Any, Any],
    pair: AlignedPair | Outcome,
    *,
    allow_unfit: bool,
) -> Record:
    """The record of a pair.

    Args:
        model: an encoder-decoder.
        readers: tokenizers of both sides; None for the second where it is the first.
        pair: or what it was parsed to.
        allow_unfit: whether a sentence that is mostly unknown tokens is read.

    Raises:
        HeadscopeError: where it cannot be read.
    """
    from headscope.capturing import capture

    given = parsed(pair) if isinstance(pair, AlignedPair) else pair
    if isinstance(given, HeadscopeError):
        raise given
    source, target = readers
    if not allow_unfit:
        check_known_texts(source, given.texts, "the sentence")
        known = filter(None, [given.decoder_text()])
        check_known_texts(source if target is None else target, known, "the sentence")
    more = {} if target is None else {"target_tokenizer": target}
    with warnings.catch_warnings():
        # Checked above, or allowed.
        warnings.filterwarnings("ignore", message=".* the tokenizer does not know its words")
        return capture(model, source, given, keep=("weights", "norms"), **more)


def digest_of(pair: AlignedPair) -> str:
    """A short name of what a pair says."""
    text = repr((pair.source, pair.target, sorted(pair.sure), sorted(pair.possible)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
