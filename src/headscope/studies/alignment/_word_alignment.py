"""Word alignment of one text: which source word each target word was written from."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.linguistics import Words
from headscope.linguistics.words import words_of_spans
from headscope.measures import aligned_words, alignment_error_rate, word_maps
from headscope.measures.alignment import Link
from headscope.record import Layer, Record, Stack, Tokens

BY = ("weight", "norm")
STATES = ("output", "input")


@dataclass(frozen=True)
class WordAlignment:
    """Links between the words of a source and its translation; prints as ``0-1 1-0``, source first,
    from 0.

    Args:
        source: the source words.
        target: the target words.
        links: numbers of a source word and a target word.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    links: frozenset[Link]

    def error_rate(
        self, sure: AbstractSet[Link], possible: AbstractSet[Link] = frozenset()
    ) -> float:
        """Alignment error rate; see `headscope.measures.alignment_error_rate`.

        Raises:
            RecordError: where a link names a word that does not exist.
        """
        check_links(sure | possible, len(self.source), len(self.target))
        return alignment_error_rate(sure, possible, self.links)

    def __str__(self) -> str:
        return " ".join(f"{source}-{target}" for source, target in sorted(self.links))


def word_alignment(
    record: Record,
    *,
    layer: int,
    head: int | None = None,
    by: str = "weight",
    state: str = "input",
    special: bool = True,
    stack: str = "cross",
) -> WordAlignment:
    """Link each target word to the source word that it takes most from.

    Rows of a word's tokens are averaged, columns summed (`headscope.measures.word_maps`), and the
    largest is taken. Words are what white space separates in the text; where a record has no text
    or offsets, what its word numbers say.

    Source: Kobayashi et al. 2020, section 5. There the token that ends the source may be looked at
    most, and the word is then linked to none, as here.

    Args:
        record: of an encoder-decoder that reads its target (``hs.capture(..., target=...)``).
        layer: number of the decoder's layer.
        head: one head; None for all together, by the mean of the weights or by ``||sum_h a
            f_h(x_j)||``.
        by: ``"weight"`` a, or ``"norm"`` ``||a f(x_j)||``, for which norms must be kept.
        state: the decoder's state that is asked: the one that is to write a token (``"output"``,
            AWO in the paper), or the one a step later, which reads it (``"input"``, AWI).
        special: whether tokens that belong to no word may be looked at most; False lets words alone
            compete.
        stack: which stack of the record.

    Raises:
        RecordError: where words are unknown, an option is not what it may be, or norms were not
            kept.

    Example:
        >>> record = capture(
        ...     model, tokenizer, "das Haus", target="the house", keep=("weights", "norms")
        ... )
        >>> print(word_alignment(record, layer=3, by="norm"))
        0-0 1-1
    """
    for name, given, known in (("by", by, BY), ("state", state, STATES)):
        if given not in known:
            raise RecordError(f"{name} is {given!r}; it may be {' or '.join(map(repr, known))}")
    chosen = record[stack]
    source, target = words_of(chosen.key), written_words_of(chosen)[state]
    maps = _map_of(chosen.layer(layer), head, by)
    links = links_of(maps, source, target, special=special)[0]
    return WordAlignment(source.names, target.names, links)


def links_of(
    maps: Float[np.ndarray, "head query key"], source: Words, target: Words, *, special: bool = True
) -> tuple[frozenset[Link], ...]:
    """The links of each head; see `word_alignment`."""
    # Special tokens come behind the words, as words of their own: one that is looked at most takes
    # the link, and `aligned_words` then gives none.
    columns = (*source.tokens, *((position,) for position in source.rest if special))
    return aligned_words(word_maps(maps, target.tokens, columns), words=len(source.tokens))


def written_words_of(stack: Stack) -> dict[str, Words]:
    """The target's words, with the rows that read them and those that write them.

    Raises:
        RecordError: where words are unknown, or the first token is part of a word, which then no
            row writes.
    """
    read = words_of(stack.query)
    if any(position == 0 for tokens in read.tokens for position in tokens):
        raise RecordError(
            f"The first token of the target, {stack.query.pieces[0]!r}, is part of a word, and no "
            "row writes it; give what the decoder reads, which begins with a start token"
        )
    # The state at position t - 1 writes token t.
    writing = tuple(tuple(position - 1 for position in tokens) for tokens in read.tokens)
    return {"input": read, "output": Words(read.names, writing, ())}


def words_of(tokens: Tokens) -> Words:
    """The words of a side: runs without white space in its texts, else what its word numbers say.

    A token that is nothing but white space belongs to the word after it.

    Raises:
        RecordError: where neither is known, a token is part of several words, or the text goes on
            after the tokens.
    """
    if tokens.texts and tokens.offsets is not None:
        return _by_space(tokens)
    if tokens.words is None:
        raise RecordError(
            f"It is unknown which of the tokens {' '.join(tokens.pieces[:4])} ... make a word; "
            "expected texts with offsets, or word numbers (a fast tokenizer gives them, and "
            "for a target it must be given: target=)"
        )
    return _by_number(tokens, tokens.words)


def check_links(links: AbstractSet[Link], source: int, target: int) -> None:
    """Raise where a link names a word that does not exist.

    Raises:
        RecordError: with the link.
    """
    for link in sorted(links):
        if not (0 <= link[0] < source and 0 <= link[1] < target):
            raise RecordError(
                f"The link {link[0]}-{link[1]} leaves the {source} source and {target} target "
                "words; words are counted from 0, the source first"
            )


def _map_of(layer: Layer, head: int | None, by: str) -> Float[np.ndarray, "1 query key"]:
    if head is not None:
        return np.asarray(
            layer.weights_of(head) if by == "weight" else layer.head_contributions_of(head)
        )[None]
    if by == "weight":
        return np.asarray(layer.weights_of(), np.float64).mean(axis=0, keepdims=True)
    return np.asarray(layer.contributions_of("attention"))[None]


def _by_number(tokens: Tokens, numbers: Sequence[int | None]) -> Words:
    words = zip(tokens.whole_words.names, tokens.whole_words.tokens, strict=True)
    named = [(name, run) for name, run in words if numbers[run[0]] is not None]
    rest = tuple(position for position, number in enumerate(numbers) if number is None)
    return Words(tuple(name for name, _ in named), tuple(run for _, run in named), rest)


def _by_space(tokens: Tokens) -> Words:
    spans = [
        (segment, *match.span())
        for segment, text in enumerate(tokens.texts)
        for match in re.finditer(r"\S+", text)
    ]
    words, rest = words_of_spans(tokens, spans)
    _check_covered(tokens)
    names = tuple(tokens.texts[segment][start:stop] for segment, start, stop in spans)
    return Words(names, words, rest)


def _check_covered(tokens: Tokens) -> None:
    """Raise where a text goes on after its last token: its last word was cut off or cut through."""
    placed = [
        (tokens.segments[n], offset[1])
        for n, offset in enumerate(tokens.offsets or ())
        if offset is not None
    ]
    ends = {
        segment: max(stop for _, stop in group)
        for segment, group in groupby(sorted(placed), lambda each: each[0])
    }
    for segment, text in enumerate(tokens.texts):
        after = text[ends.get(segment, 0) :]
        # Accents that a tokenizer strips belong to no token.
        if any(not (letter.isspace() or unicodedata.combining(letter)) for letter in after):
            raise RecordError(
                f"The text continues after its last token with {after.strip()[:20]!r}; a decoder "
                "reads all but the last token of its target, so the tokenizer must end it with "
                "one of its own, and nothing may be cut off"
            )
