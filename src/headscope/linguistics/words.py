"""Word level: attention between tokens made attention between the words of any tokenisation."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from headscope.errors import FileError, RecordError
from headscope.record import Tokens, Words, word_maps

Span = tuple[int, int]
"""Where a word starts and stops, in characters of its text."""


def read_whole(path: Path) -> str:
    """What a file of annotated text holds.

    Raises:
        FileError: where it cannot be read.
    """
    try:
        # A byte-order mark, as Windows writes it, would become part of the first column's name.
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise FileError(f"{path} does not exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{path} cannot be read: {error}") from None


def spans_of(words: Iterable[str]) -> tuple[Span, ...]:
    """Where words are that are joined by spaces.

    Example:
        >>> spans_of(["a", "bc"])
        ((0, 1), (2, 4))
    """
    spans, start = [], 0
    for word in words:
        spans.append((start, start + len(word)))
        start += len(word) + 1
    return tuple(spans)


def words_at(tokens: Tokens, spans: Sequence[Span]) -> Words:
    """The tokens of each word of a text, by character offsets: any tokenizer that gives them will
    do.

    A token belongs to the word that its characters lie in, white space at its ends apart; one that
    is nothing but white space belongs to the word after it. A token outside all words stands alone,
    as special tokens do.

    Args:
        tokens: of the text, with offsets; those of a second text belong to no word.
        spans: where each word starts and stops, in order.

    Raises:
        RecordError: where there are no offsets, spans overlap or leave the text, or a token is part
            of several words.

    Example:
        >>> tokens = Tokens(
        ...     pieces=("a", "b", "##c"), offsets=((0, 1), (2, 3), (3, 4)), texts=("a bc",)
        ... )
        >>> words_at(tokens, [(0, 1), (2, 4)]).tokens
        ((0,), (1, 2))
    """
    if not tokens.texts or tokens.offsets is None:
        raise RecordError(
            f"The tokens {' '.join(tokens.pieces[:4])} ... have no character offsets, so "
            "their words are unknown; expected a fast tokenizer"
        )
    text = tokens.texts[0]
    _check_spans(spans, len(text))
    placed = [(0, start, stop) for start, stop in spans]
    positions, rest = words_of_spans(tokens, placed)
    return Words(tuple(text[start:stop] for start, stop in spans), positions, rest)


def words_of_spans(
    tokens: Tokens, spans: Sequence[tuple[int, int, int]]
) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """The tokens of each span ``(text, start, stop)``, sorted and apart, and those of none; see
    `words_at`.

    Raises:
        RecordError: where a token is part of several spans.
    """
    positions: list[list[int]] = [[] for _ in spans]
    rest = []
    ends = [(segment, stop) for segment, _, stop in spans]
    for position, offset in enumerate(tokens.offsets or ()):
        number = None if offset is None else _word_at(tokens, position, spans, ends)
        if number is None:
            rest.append(position)
        else:
            positions[number].append(position)
    return tuple(map(tuple, positions)), tuple(rest)


def word_attention(
    weights: Float[np.ndarray, "head query key"], words: Words, *, rows: str = "mean"
) -> Float[np.ndarray, "head unit unit"]:
    """Attention between words: what goes to a word is summed over its tokens, what comes from one
    is averaged.

    ``A'[i, w] = sum_{j in T(w)} A[i, j]``, ``A''[v, w] = (1 / |T(v)|) sum_{i in T(v)} A'[i, w]``. A
    token that belongs to no word, such as ``[CLS]``, stays as a word of one token, so rows still
    sum to 1.

    Source: Clark et al. 2019, section 4.1. Their released extractor takes the first token's row
    where the paper takes the mean.

    Args:
        weights: attention of tokens to tokens of the same text.
        words: see `words_at`.
        rows: how the rows of a word's tokens become one: ``"mean"``, ``"first"``, or ``"max"``, the
            largest value of each column, scaled to the sum that their mean has.

    Returns:
        Both axes are ``words.units``; ``words.places`` has where the words are.

    Raises:
        RecordError: where a word has no tokens, or ``rows`` is not what it may be.

    Example:
        >>> words = Words(("a", "bc"), ((0,), (1, 2)), ())
        >>> word_attention(
        ...     np.array([[[0.5, 0.25, 0.25], [0.2, 0.4, 0.4], [0.4, 0.5, 0.1]]]), words
        ... ).round(2).tolist()
        [[[0.5, 0.5], [0.3, 0.7]]]
    """
    words.check()
    return word_maps(weights, words.units, words.units, rows=rows)


def _word_at(
    tokens: Tokens,
    position: int,
    spans: Sequence[tuple[int, int, int]],
    ends: Sequence[tuple[int, int]],
) -> int | None:
    """Which of the spans a token is part of; None for no span."""
    segment, (start, stop) = tokens.segments[position], (tokens.offsets or ())[position] or (0, 0)
    text = tokens.texts[segment]
    written = text[start:stop]
    # Byte-level tokens hold the space before their word, so a token is placed by its first letter.
    begins = start + len(written) - len(written.lstrip())
    # The first word that ends after it: either the token is in that word, or before it.
    number = bisect_right(ends, (segment, begins))
    if number == len(spans) or spans[number][0] != segment:
        return None
    if not written.strip():
        return number
    last = start + len(written.rstrip())
    if number + 1 < len(spans) and spans[number + 1][:2] < (segment, last):
        (_, *word), (_, *following) = spans[number], spans[number + 1]
        raise RecordError(
            f"Token {position}, {written.strip()!r}, is part of several words, "
            f"{text[slice(*word)]!r} and {text[slice(*following)]!r}; these cannot be aligned apart"
        )
    # Characters between two words end before the next word starts.
    return number if spans[number][1] < last else None


def _check_spans(spans: Sequence[Span], size: int) -> None:
    last = 0
    for number, (start, stop) in enumerate(spans):
        if not last <= start < stop <= size:
            raise RecordError(
                f"Word {number} is at the characters {start} to {stop}; words follow each other "
                f"within the {size} characters of the text"
            )
        last = stop
