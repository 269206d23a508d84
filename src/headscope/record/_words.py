"""Words: the tokens that each is made of, and attention between them; the one place where pieces
are joined.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING
from unicodedata import category, east_asian_width

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.record._checks import ARRAYS

if TYPE_CHECKING:
    from headscope.record._layer import Layer
    from headscope.record._tokens import Tokens

ROWS = ("mean", "first", "max")
SIGNS = {"_": "l", "'": "'", "\u2019": "'", ".": ".", ",": ".", "\u200d": "j", "\u200b": "s"}
SIGNS |= dict.fromkeys(map(chr, range(0x1F1E6, 0x1F200)), "f") | dict.fromkeys("\n\r\v\f", "\n")
SIGNS |= dict.fromkeys(map(chr, range(0x1F3FB, 0x1F400)), "m")
CATEGORIES = {"L": "l", "N": "d", "M": "m", "P": "p"}
"""What characters are to the words of a text, some by themselves and the others by their category:
letters, digits, marks on what is before them, joiners of emoji, halves of a flag, apostrophes,
points, punctuation; all else is another sign.
"""
MORE = r"(?:m|j[^ \n]?)*"
WORD = re.compile(
    rf"\n+|{MORE}(?:(?:[ld]|(?<=l)'(?=l)|(?<=d)\.(?=d)|m|j[^ \n]?)+|[ps'.](?:[ps'.]|m|j[^ \n]?)*"
    rf"|a{MORE}|f{MORE}f?{MORE})"
)
"""Words in the text of these letters. An apostrophe between letters, and a point or comma between
digits, divide no word (Unicode's Annex 29, rules WB6, WB7, WB11 and WB12).
"""


@dataclass(frozen=True)
class Words:
    """The words of one side, and the tokens that each is made of.

    Args:
        names: what they are.
        tokens: the positions of each one's tokens; none for a word that the tokenizer dropped.
        rest: the positions of tokens that belong to no word, such as ``[CLS]``.
    """

    names: tuple[str, ...]
    tokens: tuple[tuple[int, ...], ...]
    rest: tuple[int, ...]

    @property
    def units(self) -> tuple[tuple[int, ...], ...]:
        """Words and tokens that belong to none, in the order of the text: the axes of
        `word_attention`.
        """
        words = [tokens for tokens in self.tokens if tokens]
        alone = [(position,) for position in self.rest]
        # No position is in two units, so tuples sort by where a unit begins.
        return tuple(sorted([*words, *alone]))

    @property
    def places(self) -> tuple[int, ...]:
        """Where each word stands among the `units`.

        Raises:
            RecordError: where a word has no tokens.
        """
        self.check()
        numbers = {tokens: index for index, tokens in enumerate(self.units)}
        return tuple(numbers[tokens] for tokens in self.tokens)

    def check(self) -> None:
        """Raise where a word has no tokens.

        Raises:
            RecordError: with the words.
        """
        lost = [f"{at} ({self.names[at]!r})" for at, own in enumerate(self.tokens) if not own]
        if lost:
            raise RecordError(
                f"No token stands for word {', '.join(lost)}; the tokenizer dropped it, or the "
                "text was cut before it"
            )


def word_numbers(
    texts: Sequence[str], spans: Sequence[tuple[int, int] | None], segments: Sequence[int]
) -> tuple[int | None, ...]:
    """The number of the word that each token belongs to, counted through all texts; None for
    tokens without a span.

    Where words begin is a property of the text alone; words that one token reaches over are counted
    as one.

    Args:
        texts: what was read.
        spans: ``(start, stop)`` of each token in characters of its text.
        segments: which text each token is of.
    """
    starts = [_word_starts(text) for text in texts]
    numbers: list[int | None] = []
    number, last, reached = -1, (-1, -1), 0
    for span, segment in zip(spans, segments, strict=True):
        if span is None:
            numbers.append(None)
            continue
        written = texts[segment][slice(*span)]
        # Many tokenizers count the space before a word to its first token.
        blank = len(written) - len(written.lstrip()) if written.strip() else 0
        word = (segment, starts[segment][span[0] + blank])
        if word != last and not (segment == last[0] and word[1] < reached):
            number, last = number + 1, word
        reached = span[0] + len(written.rstrip())
        numbers.append(number)
    return tuple(numbers)


def _word_starts(text: str) -> list[int]:
    """Where the word of each character, and of the end of the text, begins. A word is a run of
    letters, digits and underscores, or of other signs; in scripts without spaces each letter is
    one. Line breaks are a word, and a space belongs to the word behind it.
    """
    starts: list[int] = []
    for word in WORD.finditer("".join(map(_kind, text))):
        starts += [word.start()] * (word.end() - len(starts))
    return starts + [len(text)] * (len(text) + 1 - len(starts))


@cache
def _kind(character: str) -> str:
    """What a character is to the words of a text; see `CATEGORIES`."""
    of_category = CATEGORIES.get(category(character).replace("Cf", "M")[0], "s")
    kind = SIGNS.get(character, " " if character.isspace() else of_category)
    # Letters of scripts without spaces, and emoji.
    is_hangul = "\u1100" <= character <= "\u11ff" or "\uac00" <= character <= "\ud7a3"
    is_wide = east_asian_width(character) in "WF" and not is_hangul
    return "a" if is_wide and kind in "lds" else kind


def word_tokens(tokens: Tokens) -> Tokens:
    """The words of a side as its tokens."""
    words = tokens.whole_words
    offsets = None
    if tokens.offsets is not None:
        ends = [(tokens.offsets[run[0]], tokens.offsets[run[-1]]) for run in words.tokens]
        offsets = tuple(first and last and (first[0], last[1]) for first, last in ends)
    return replace(
        tokens.take([run[0] for run in words.tokens]),
        pieces=tuple("".join(tokens.pieces[at] for at in run) for run in words.tokens),
        labels=words.names,
        ids=None,
        offsets=offsets,
        words=tuple(range(len(words.names))),
    )


def word_layer(layer: Layer, query: Words, key: Words) -> Layer:
    """The weights of a layer between words; queries and keys and what follows from them are those
    of tokens, and are left out.
    """
    seen = np.asarray(layer.visible, bool)
    for axis, words in enumerate((query, key)):
        starts = [run[0] for run in words.tokens]
        seen = np.logical_or.reduceat(seen, starts, axis=axis)
    of_tokens = {*ARRAYS} - {"weights", "sinks"} | {"contributions", "statistics", "rotary"}
    # Rows of tokens that see nothing are zero, so that the mean may sum to less than 1.
    return replace(
        layer,
        weights=word_maps(layer.held_weights(), query.tokens, key.tokens),
        visible=seen,
        partial=layer.partial or bool(layer.dead.any()),
        **dict.fromkeys(of_tokens),
    )


def word_maps(
    maps: Float[np.ndarray, "head query key"],
    query_words: Sequence[Sequence[int]],
    key_words: Sequence[Sequence[int]],
    *,
    rows: str = "mean",
) -> Float[np.ndarray, "head query_word key_word"]:
    """Maps of tokens made maps of words: the sum over a key word's tokens, the mean over a query
    word's tokens.

    ``B[v, w] = (1 / |T(v)|) sum_{i in T(v)} sum_{j in T(w)} A[i, j]``; 0 for a word without tokens.

    Source: Clark et al. 2019, section 4.1 (their released extractor takes the first token's row);
    for translation Kobayashi et al. 2020, section 5.

    Args:
        maps: attention, or norms of what is added; axes head, query, key.
        query_words: the tokens of each query word.
        key_words: the tokens of each key word.
        rows: how the rows of a query word's tokens become one: ``"mean"``, ``"first"``, or
            ``"max"``, the largest value for each key word, scaled to the sum that their mean has.

    Raises:
        RecordError: where a token does not exist, or ``rows`` is not what it may be.

    Example:
        >>> word_maps(
        ...     np.array([[[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]]]), [[0, 1]], [[0], [1, 2]]
        ... ).round(2).tolist()
        [[[0.3, 0.7]]]
    """
    if rows not in ROWS:
        raise RecordError(f"rows is {rows!r}; it may be {', '.join(map(repr, ROWS))}")
    maps = np.asarray(maps, np.float64)
    taken = [words[:1] for words in query_words] if rows == "first" else query_words
    # Two products of matrices: the first adds up the columns of words, the second averages rows.
    means = _members(taken, maps.shape[1], "query")
    # At least 1, so that a word without tokens gets a row of zeros, and not of NaN.
    means /= np.maximum(means.sum(axis=1, keepdims=True), 1)
    summed = maps @ _members(key_words, maps.shape[2], "key").T
    averaged = means @ summed
    if rows == "max":
        for number, positions in enumerate(query_words):
            if len(positions) > 1:
                averaged[:, number] = _largest(summed[:, list(positions)], averaged[:, number])
    return averaged


def _largest(
    rows: Float[np.ndarray, "head token key_word"], mean: Float[np.ndarray, "head key_word"]
) -> Float[np.ndarray, "head key_word"]:
    """The largest value for each key word, scaled to the sum of the mean row."""
    largest = rows.max(axis=1)
    # Maxima of several rows sum to more than any of them.
    sums = largest.sum(axis=1, keepdims=True)
    wanted = mean.sum(axis=1, keepdims=True)
    return largest * np.divide(wanted, sums, out=np.zeros_like(sums), where=sums > 0)


def _members(
    words: Sequence[Sequence[int]], tokens: int, side: str
) -> Float[np.ndarray, "word token"]:
    """1 where a token belongs to a word."""
    members = np.zeros((len(words), tokens))
    for number, positions in enumerate(words):
        for position in positions:
            if not 0 <= position < tokens:
                raise RecordError(
                    f"The {side} word {number} has token {position}; there are tokens 0 to "
                    f"{tokens - 1}"
                )
            members[number, position] = 1
    return members
