"""Tokens of a record from what a tokenizer returned."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from headscope.record import Tokens

UNDECODABLE = "\ufffd"


def tokens_from_encoding(
    tokenizer: Any, encoding: Any, texts: tuple[str, ...] = (), example: int = 0
) -> Tokens:
    """Tokens of one example of a `transformers.BatchEncoding`, padding included.

    Args:
        tokenizer: the tokenizer that made it.
        encoding: with ``input_ids`` of one text or of a batch.
        texts: one text, or two for a sentence pair; without them the tokens have no offsets.
        example: which of the batch.
    """
    ids = _plain(encoding["input_ids"], example)
    if not getattr(encoding, "is_fast", False):
        return tokens_from_ids(tokenizer, ids, texts=texts)
    sources, words = encoding.sequence_ids(example), encoding.word_ids(example)
    segments = _filled(sources)
    if not texts:
        return tokens_from_ids(tokenizer, ids, segments=segments, words=tuple(words))
    offsets = zip(encoding[example].offsets, sources, strict=True)
    spans = tuple(None if source is None else span for span, source in offsets)
    words = _words(words, spans, segments, texts)
    return tokens_from_ids(
        tokenizer, ids, texts=texts, offsets=spans, segments=segments, words=words
    )


def tokens_from_ids(
    tokenizer: Any, ids: Sequence[int], *, texts: tuple[str, ...] = (), **known: Any
) -> Tokens:
    """Tokens from vocabulary numbers alone, such as those that a model generated."""
    ids = [int(number) for number in ids]
    pieces = [
        piece if isinstance(piece, str) else "" for piece in tokenizer.convert_ids_to_tokens(ids)
    ]
    roles = roles_of(tokenizer)
    # an unknown word stands for text, but for tokenizers such as GPT-2's, whose one special token
    # is named for all
    special = (set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}) | set(roles)
    spans = known.get("offsets") or (None,) * len(ids)
    segments = known.get("segments") or (0,) * len(ids)
    labels = []
    for number, piece, span, segment in zip(ids, pieces, spans, segments, strict=True):
        written = texts[segment][slice(*span)] if span is not None else ""
        labels.append(piece if number in special else _label(tokenizer, piece, written))
    return Tokens(
        pieces=tuple(pieces),
        ids=tuple(ids),
        texts=texts,
        special=tuple(n in special for n in ids),
        labels=tuple(labels),
        roles=tuple(roles.get(n) for n in ids) if roles else None,
        **known,
    )


def roles_of(tokenizer: Any) -> dict[int, str]:
    """What a tokenizer has its special tokens for, by their vocabulary numbers; the first role of a
    token counts.
    """
    roles: dict[int, str] = {}
    for role in ("cls", "bos", "sep", "eos"):
        number = getattr(tokenizer, f"{role}_token_id", None)
        if number is not None:
            roles.setdefault(number, role)
    return roles


def _label(tokenizer: Any, piece: str, written: str) -> str:
    """What a reader should see of a piece: decoded, and without the marks for spaces and
    continuation.
    """
    plain = piece.removeprefix("##") if len(piece) > 2 else piece
    decoded = tokenizer.convert_tokens_to_string([plain])
    if UNDECODABLE in decoded and written:
        decoded = written
    # some decoders drop the space before a word, others keep it; a token that is nothing but space
    # keeps one
    if not decoded and not plain:
        return ""
    return decoded.strip(" ") or " "


def _words(
    numbers: Sequence[int | None],
    spans: Sequence[tuple[int, int] | None],
    segments: Sequence[int],
    texts: tuple[str, ...],
) -> tuple[int | None, ...]:
    """Word numbers, counted through all texts, that never join what white space or punctuation
    separates.

    The numbers of some tokenizers do: to them all of "Once upon a time," is one word.
    """
    starts = [[match.start() for match in re.finditer(r"\S+", text)] for text in texts]
    words: list[int | None] = []
    last, word = None, -1
    for number, span, segment in zip(numbers, spans, segments, strict=True):
        if number is None or span is None:
            words.append(None)
            continue
        written = texts[segment][slice(*span)]
        begins = span[0] + len(written) - len(written.lstrip())
        mark = (
            segment,
            number,
            bisect_right(starts[segment], begins),
            any(map(str.isalnum, written)),
        )
        word += mark != last
        last = mark
        words.append(word)
    return tuple(words)


def _filled(sources: Sequence[int | None]) -> tuple[int, ...]:
    """Segment of every token: special tokens belong to the text that they close, or open."""
    filled, last = [], 0
    for source in sources:
        last = last if source is None else source
        filled.append(last)
    return tuple(filled)


def _plain(ids: Any, example: int) -> list[int]:
    ids = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    return ids[example] if ids and isinstance(ids[0], list) else ids
