"""Tokens of a record from what a tokenizer returned."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from headscope.record import Tokens

UNDECODABLE = "\ufffd"


@dataclass(frozen=True)
class SpecialTokens:
    """The special tokens of a tokenizer. It takes long to tell them, which many texts of one call
    need not ask for again.

    Args:
        roles: of those that have one, by id; see `roles_of`.
        ids: of all that count as special.
    """

    roles: Mapping[int, str]
    ids: frozenset[int]

    @classmethod
    def of(cls, tokenizer: Any) -> SpecialTokens:
        """Those of a tokenizer as it is now."""
        roles = roles_of(tokenizer)
        # The token for an unknown word replaces a word of the text, so it is not special. But
        # GPT-2's tokenizer has one token for all roles, unknown words included, which stays
        # special.
        ids = (set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}) | set(roles)
        return cls(roles, frozenset(ids))


def tokens_from_encoding(
    tokenizer: Any,
    encoding: Any,
    texts: tuple[str, ...] = (),
    example: int = 0,
    *,
    specials: SpecialTokens | None = None,
) -> Tokens:
    """Tokens of one example of a `transformers.BatchEncoding`, padding included.

    Args:
        tokenizer: the tokenizer that made the encoding.
        encoding: an encoding with ``input_ids`` of one text or of a batch.
        texts: one text, or two for a sentence pair; without them the tokens have no offsets.
        example: index of the example in the batch.
        specials: of the tokenizer, where they are known already.
    """
    ids = _plain(encoding["input_ids"], example)
    # Only the tokenizers written in Rust know from which characters a token comes.
    if not getattr(encoding, "is_fast", False):
        return tokens_from_ids(tokenizer, ids, texts=texts, specials=specials)
    sources, words = encoding.sequence_ids(example), encoding.word_ids(example)
    segments = _filled(sources)
    if not texts:
        known: dict[str, Any] = {"segments": segments, "words": tuple(words)}
        return tokens_from_ids(tokenizer, ids, specials=specials, **known)
    offsets = zip(encoding[example].offsets, sources, strict=True)
    spans = tuple(None if source is None else span for span, source in offsets)
    words = _words(words, spans, segments, texts)
    known = {"texts": texts, "offsets": spans, "segments": segments, "words": words}
    return tokens_from_ids(tokenizer, ids, specials=specials, **known)


def tokens_from_ids(
    tokenizer: Any,
    ids: Sequence[int],
    *,
    texts: tuple[str, ...] = (),
    specials: SpecialTokens | None = None,
    **known: Any,
) -> Tokens:
    """Tokens from vocabulary numbers alone, such as those that a model generated."""
    ids = [int(number) for number in ids]
    # A model may write numbers beyond its tokenizer's vocabulary, which come back as None.
    pieces = [
        piece if isinstance(piece, str) else "" for piece in tokenizer.convert_ids_to_tokens(ids)
    ]
    specials = SpecialTokens.of(tokenizer) if specials is None else specials
    roles = specials.roles
    special = tuple(number in specials.ids for number in ids)
    written = _written(len(ids), texts, known)
    labels = []
    for piece, is_special, text in zip(pieces, special, written, strict=True):
        labels.append(piece if is_special else _label(tokenizer, piece, text))
    return Tokens(
        pieces=tuple(pieces),
        ids=tuple(ids),
        texts=texts,
        special=special,
        labels=tuple(labels),
        roles=tuple(roles.get(number) for number in ids) if roles else None,
        **known,
    )


def _written(count: int, texts: tuple[str, ...], known: Mapping[str, Any]) -> list[str]:
    """The characters of the text from which each token comes; empty if they are not known."""
    spans = known.get("offsets") or (None,) * count
    segments = known.get("segments") or (0,) * count
    written = []
    for span, segment in zip(spans, segments, strict=True):
        written.append("" if span is None else texts[segment][slice(*span)])
    return written


def roles_of(tokenizer: Any) -> dict[int, str]:
    """Roles of a tokenizer's special tokens, by their ids; the first role of a token counts."""
    # BERT's [CLS] and [SEP] may be named bos and eos too; their own names say more.
    roles: dict[int, str] = {}
    for role in ("cls", "bos", "sep", "eos"):
        number = getattr(tokenizer, f"{role}_token_id", None)
        if number is not None:
            roles.setdefault(number, role)
    return roles


def _label(tokenizer: Any, piece: str, written: str) -> str:
    """The label of a piece: decoded, and without the marks for spaces and continuation."""
    plain = piece.removeprefix("##") if len(piece) > 2 else piece
    decoded = _decoded(tokenizer, plain)
    # A token of bytes may hold a part of a character, which decodes to nothing that can be read.
    if UNDECODABLE in decoded and written:
        decoded = written
    # Some decoders drop the space before a word, others keep it; a token that is nothing but space
    # keeps one.
    if not decoded and not plain:
        return ""
    return decoded.strip(" ") or " "


@lru_cache(maxsize=2**16)
def _decoded(tokenizer: Any, piece: str) -> str:
    # Kept, because a call takes longer than all else that is done with a token.
    return tokenizer.convert_tokens_to_string([piece])


def _words(
    numbers: Sequence[int | None],
    spans: Sequence[tuple[int, int] | None],
    segments: Sequence[int],
    texts: tuple[str, ...],
) -> tuple[int | None, ...]:
    """Word numbers, counted through all texts; white space and punctuation always end a word.

    The tokenizer's own numbers cannot be used: for some, "Once upon a time," is a single word.
    """
    starts = [[match.start() for match in re.finditer(r"\S+", text)] for text in texts]
    words: list[int | None] = []
    last, word = None, -1
    for number, span, segment in zip(numbers, spans, segments, strict=True):
        if number is None or span is None:
            words.append(None)
            continue
        written = texts[segment][slice(*span)]
        # Tokenizers such as RoBERTa's may count the space before a word to its first token.
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
    """Segment of every token; a special token belongs to the text before it, or to the first."""
    filled, last = [], 0
    for source in sources:
        last = last if source is None else source
        filled.append(last)
    return tuple(filled)


def _plain(ids: Any, example: int) -> list[int]:
    ids = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    return ids[example] if ids and isinstance(ids[0], list) else ids
