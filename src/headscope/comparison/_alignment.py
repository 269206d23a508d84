"""Which tokens of one record are which of another."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

import numpy as np
from jaxtyping import Int

from headscope.errors import RecordError
from headscope.record import Tokens

Kind = Literal["both", "replaced", "a", "b"]
Method = Literal["the same tokens", "edit distance", "characters", "patches"]
LEAST = 0.5


@dataclass(frozen=True)
class Span:
    """Tokens of A and of B that stand for the same, or for something that the other has not.

    Args:
        a: positions in A; empty where only B has it.
        b: positions in B; empty where only A has it.
        kind: ``"both"``; ``"replaced"``, another word in the same place; ``"a"`` or ``"b"``, only
            there.
    """

    a: tuple[int, ...]
    b: tuple[int, ...]
    kind: Kind


@dataclass(frozen=True)
class TokenAlignment:
    """The tokens of two records, side by side; in the order of both.

    Args:
        spans: every token of A and every token of B is in one of them.
        method: how they were found.
        shared: part of the tokens of both, special ones left out, that both have.
    """

    spans: tuple[Span, ...]
    method: Method
    shared: float

    def __len__(self) -> int:
        return len(self.spans)

    @property
    def identity(self) -> bool:
        """Whether each token is a span, and the same token in both."""
        return self.method == "the same tokens"

    def span_numbers(self, *kinds: Kind) -> Int[np.ndarray, " span"]:
        """Numbers of the spans of these kinds."""
        return np.array(
            [position for position, span in enumerate(self.spans) if span.kind in kinds], int
        )

    @property
    def summary(self) -> str:
        """One line: how many spans both have, and how they were found."""
        counts = {kind: len(self.span_numbers(kind)) for kind in ("both", "replaced", "a", "b")}
        if self.identity:
            return f"{counts['both']} tokens, the same in both"
        words = {"both": "in both", "replaced": "replaced", "a": "only in A", "b": "only in B"}
        differing = ", ".join(
            f"{counts[kind]} {word}"
            for kind, word in words.items()
            if counts[kind] or kind == "both"
        )
        return f"{differing} (aligned by {self.method})"


def align(a: Tokens, b: Tokens, *, same_model: bool, least: float = LEAST) -> TokenAlignment:
    """The tokens of two records, side by side.

    - The same pieces: one by one.
    - The same texts, cut into other pieces: by characters. Spans are the smallest stretches of text
      that end where tokens of both end. White space at the ends of a token does not count; special
      tokens stand by their place (before, between, after the texts), all those of one place
      together.
    - The same grids of patches without words, by two models: patch by patch; class tokens and
      registers by their names, in order, with the fewest edits.
    - One model, two texts: by the least number of tokens that must be inserted, deleted or replaced
      (Levenshtein). Between tokens that both have, as many tokens on either side are replaced one
      by one; otherwise each is only in its own record, as nothing shows which would be which.
      Pictures between the words must have the same grids; a patch is the same in the same place,
      and is replaced by nothing.

    Args:
        a: tokens of one record.
        b: tokens of the other.
        same_model: whether one model with one tokenizer reads both.
        least: part of the tokens that both must have, special ones left out, from 0 to 1.

    Raises:
        RecordError: where no alignment is right: other texts in other tokens, tokens without texts
            or characters, other grids of patches, or too little in common. Nothing is cut to fit.

    Example:
        >>> align(
        ...     Tokens(pieces=("a", "b")), Tokens(pieces=("a", "x", "b")), same_model=True
        ... ).summary
        '2 in both, 1 only in B (aligned by edit distance)'
    """
    # Grids and places as well as the pieces: all patches of a picture have the same piece.
    sides = [(each.pieces, each.segments, each.grids, each.places) for each in (a, b)]
    if sides[0] == sides[1]:
        spans = tuple(Span((position,), (position,), "both") for position in range(len(a)))
        return TokenAlignment(spans, "the same tokens", 1.0)
    _check_kind(a, b)
    if a.grids and not same_model:
        _check_wordless(a, b)
        spans, method = _by_names(a, b), "patches"
    elif _can_match_characters(a, b):
        spans, method = by_characters(a, b), "characters"
    elif same_model:
        spans, method = _by_names(a, b), "edit distance"
    else:
        raise RecordError(_why_not(a, b))
    alignment = TokenAlignment(spans, method, _shared(spans, a, b))
    if alignment.shared < least:
        raise RecordError(
            f"The records have {alignment.shared:.0%} of their tokens in common (special ones left "
            f"out), expected at least {least:.0%}; compare texts that differ in a few words, or "
            "give less to hs.compare(..., least=)"
        )
    return alignment


def _can_match_characters(a: Tokens, b: Tokens) -> bool:
    if a.grids or not a.texts or a.texts != b.texts:
        return False
    return a.offsets is not None and b.offsets is not None


def by_edits(a: Sequence[Hashable], b: Sequence[Hashable]) -> tuple[Span, ...]:
    """Spans of two lists by the fewest edits, of those with the fewest replacements; see
    `align`.
    """
    spans: list[Span] = []
    # What differs is gathered until both have a token again: only then is it known whether as many
    # stand on either side, and so replace each other one by one.
    run: tuple[list[int], list[int]] = ([], [])
    for first, second in edit_pairs(a, b):
        if first is not None and second is not None and a[first] == b[second]:
            spans += [*_between(*run), Span((first,), (second,), "both")]
            run = ([], [])
            continue
        if first is not None:
            run[0].append(first)
        if second is not None:
            run[1].append(second)
    return (*spans, *_between(*run))


def by_characters(a: Tokens, b: Tokens) -> tuple[Span, ...]:
    """Spans of two lists of tokens of the same texts; see `align`."""
    spans: list[Span] = []
    sides = _zones(a), _zones(b)
    for segment in range(-1, len(a.texts)):
        if segment >= 0:
            pieces = [
                (*_trimmed(tokens, position), side, position)
                for side, tokens in enumerate((a, b))
                for position in sides[side].get((segment, "text"), ())
            ]
            spans += _components(sorted(pieces))
        marks = tuple(tuple(zones.get((segment, "after"), ())) for zones in sides)
        spans += [Span(marks[0], marks[1], _kind_of(*marks))] if any(marks) else []
    return tuple(spans)


def _between(a: list[int], b: list[int]) -> list[Span]:
    if len(a) == len(b):
        return [Span((first,), (second,), "replaced") for first, second in zip(a, b, strict=True)]
    return [*(Span((first,), (), "a") for first in a), *(Span((), (second,), "b") for second in b)]


def _components(pieces: Sequence[tuple[int, int, int, int]]) -> list[Span]:
    """Tokens that overlap, directly or through others, together; (start, stop, side, place) in
    order of start.
    """
    groups: list[tuple[list[int], list[int]]] = []
    end = -1
    for start, stop, side, position in pieces:
        # Tokens that only touch do not overlap: here a stretch ends for both sides.
        if start >= end:
            groups.append(([], []))
        groups[-1][side].append(position)
        end = max(end, stop)
    return [Span(tuple(a), tuple(b), _kind_of(a, b)) for a, b in groups]


def _kind_of(a: Sequence[int], b: Sequence[int]) -> Kind:
    if a and b:
        return "both"
    return "a" if a else "b"


def _zones(tokens: Tokens) -> dict[tuple[int, str], list[int]]:
    """Places of the tokens of each text, and of those that stand for no text before the first and
    after each text.
    """
    offsets = tokens.offsets or ()
    last = {
        tokens.segments[position]: position
        for position, offset in enumerate(offsets)
        if offset is not None
    }
    zones: dict[tuple[int, str], list[int]] = {}
    # The text that was reached; -1 for what stands before the first, such as [CLS].
    now = -1
    for position, offset in enumerate(offsets):
        now = now if offset is None else max(now, tokens.segments[position])
        # A token of no text that stands between two tokens of one belongs inside it.
        zone = "text" if position <= last.get(now, -1) else "after"
        zones.setdefault((now, zone), []).append(position)
    return zones


def _trimmed(tokens: Tokens, position: int) -> tuple[int, int]:
    """Where a token begins and ends in its text, white space at its ends left out; as it is where
    it is all white.

    What stands for no text is of no width, after the token before it.
    """
    offsets = tokens.offsets or ()
    if offsets[position] is None:
        before = next(
            (offset for offset in reversed(offsets[:position]) if offset is not None), (0, 0)
        )
        return before[1], before[1]
    start, stop = offsets[position] or (0, 0)
    piece = tokens.texts[tokens.segments[position]][start:stop]
    if not piece.strip():
        return start, stop
    return start + len(piece) - len(piece.lstrip()), stop - len(piece) + len(piece.rstrip())


def _by_names(a: Tokens, b: Tokens) -> tuple[Span, ...]:
    """Spans by the fewest edits; a patch is replaced by nothing."""
    spans: list[Span] = []
    for span in by_edits(_names(a), _names(b)):
        if span.kind == "replaced" and (_is_patch(a, span.a[0]) or _is_patch(b, span.b[0])):
            spans += [Span(span.a, (), "a"), Span((), span.b, "b")]
        else:
            spans.append(span)
    return tuple(spans)


def _names(tokens: Tokens) -> list[Hashable]:
    """What is the same in two records: a text's piece, a picture's place."""
    words = zip(tokens.segments, tokens.pieces, strict=True)
    patches = zip(tokens.pictures or (), tokens.places or (), strict=True)
    return [
        patch if _is_patch(tokens, at) else word
        for at, (word, patch) in enumerate(zip_longest(words, patches))
    ]


def _is_patch(tokens: Tokens, token: int) -> bool:
    return tokens.places is not None and tokens.places[token] is not None


def _shared(spans: Sequence[Span], a: Tokens, b: Tokens) -> float:
    """Part of the tokens of both that are in both; special ones count only where there is nothing
    else.
    """
    in_a, in_b = ~np.array(a.special, bool), ~np.array(b.special, bool)
    if not in_a.any() and not in_b.any():
        in_a[:], in_b[:] = True, True
    inside = 0
    for span in spans:
        if span.kind == "both":
            inside += int(in_a[list(span.a)].sum())
            inside += int(in_b[list(span.b)].sum())
    return inside / int(in_a.sum() + in_b.sum())


def _check_kind(a: Tokens, b: Tokens) -> None:
    if a.grids != b.grids:
        raise RecordError(
            f"The patches of the two records are no parts of one grid: {_in_words(a)} in A, "
            f"{_in_words(b)} in B; compare pictures that are cut into as many rows and columns"
        )
    if a.times or b.times:
        raise RecordError(
            f"The tokens are those of sounds, of {len(a)} and {len(b)} parts; only those with the "
            "same parts can be compared"
        )


def _in_words(tokens: Tokens) -> str:
    """The grids of patches, in rows and columns."""
    return (
        " and ".join(f"{rows} x {columns} patches" for rows, columns in tokens.grids)
        or "no picture"
    )


def _check_wordless(a: Tokens, b: Tokens) -> None:
    for tokens in (a, b):
        pairs = zip(tokens.worded, tokens.special, strict=True)
        if any(worded and not special for worded, special in pairs):
            raise RecordError(
                "The records are of two models and hold words as well as pictures, which have no "
                "common measure; capture both models on the picture alone, or one model on both"
            )


def _why_not(a: Tokens, b: Tokens) -> str:
    if not (a.texts and b.texts) or a.texts == b.texts:
        missing = "texts" if not (a.texts and b.texts) else "offsets of their tokens in the text"
        return (
            "The records are of two models, cut their text into other tokens, and hold no "
            f"{missing}; capture both with headscope.capture and a fast tokenizer"
        )
    return (
        f"The records are of two models and of two texts ({a.texts[0][:40]!r} and "
        f"{b.texts[0][:40]!r}), so that the effects of model and text could not be separated; "
        "capture both models on the same text, or one model on both"
    )


Pair = tuple[int | None, int | None]
LARGEST = 2**26
"""Products of two lengths up to which lists are compared; the table of costs then has 256 MiB."""


def edit_pairs(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[Pair]:
    """The pairs of places of an alignment with the fewest insertions, deletions and replacements.

    Of several with as few, one with the fewest replacements, which has the most equal pairs; of
    several of those, the one that pairs as late as possible. ``(i, None)`` is a deletion, ``(None,
    j)`` an insertion.

    Source: Levenshtein 1966; Wagner and Fischer 1974. Equal beginnings and ends are paired first,
    which costs nothing.

    Args:
        a: one list.
        b: the other.

    Raises:
        RecordError: where the part in which they differ is too long to compare.

    Example:
        >>> edit_pairs("abc", "adc")
        [(0, 0), (1, 1), (2, 2)]
        >>> edit_pairs("ab", "b")
        [(0, None), (1, 0)]
    """
    head = _equal(a, b)
    tail = _equal(a[head:][::-1], b[head:][::-1])
    inner = a[head : len(a) - tail], b[head : len(b) - tail]
    pairs: list[Pair] = [(index, index) for index in range(head)]
    for first, second in _traced(*inner):
        one = None if first is None else head + first
        other = None if second is None else head + second
        pairs.append((one, other))
    return pairs + [(len(a) - tail + index, len(b) - tail + index) for index in range(tail)]


def _equal(a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    """How many entries are the same from the beginning on."""
    count = 0
    for first, second in zip(a, b, strict=False):
        if first != second:
            break
        count += 1
    return count


def _traced(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[Pair]:
    costs = _costs(a, b)
    one = len(a) + len(b) + 1
    i, j = len(a), len(b)
    pairs: list[Pair] = []
    # From the ends back, a pair being tried before a deletion: so pairs stand as late as they can.
    while i and j:
        step = 0 if a[i - 1] == b[j - 1] else one + 1
        if costs[i, j] == costs[i - 1, j - 1] + step:
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif costs[i, j] == costs[i - 1, j] + one:
            i -= 1
            pairs.append((i, None))
        else:
            j -= 1
            pairs.append((None, j))
    # One list is used up; what is left of the other has nothing to be paired with.
    pairs += [(index, None) for index in range(i - 1, -1, -1)]
    pairs += [(None, index) for index in range(j - 1, -1, -1)]
    return pairs[::-1]


def _costs(a: Sequence[Hashable], b: Sequence[Hashable]) -> Int[np.ndarray, "first second"]:
    """Cost of making the first j of b out of the first i of a: an edit has more than all
    replacements together.
    """
    if len(a) * len(b) > LARGEST:
        raise RecordError(
            f"The records differ in a stretch of {len(a)} and {len(b)} tokens, which is too long "
            "to be aligned; compare shorter texts, or texts that differ in fewer words"
        )
    # A deletion or insertion costs `one`, a replacement `one + 1`. As there are fewer than `one`
    # replacements, the least sum has the fewest edits, and among those the fewest replacements.
    one = len(a) + len(b) + 1
    number: dict[Hashable, int] = {}
    first, second = (
        np.array([number.setdefault(entry, len(number)) for entry in of], int) for of in (a, b)
    )
    line = one * np.arange(len(b) + 1)
    # The largest cost is below 2 * one^2; half the memory where that fits.
    whole = np.int32 if 2 * one * one < 2**31 else np.int64
    costs = np.empty((len(a) + 1, len(b) + 1), whole)
    costs[0] = line
    for i, entry in enumerate(first):
        row = costs[i] + one
        np.minimum(row[1:], costs[i][:-1] + np.where(second == entry, 0, one + 1), out=row[1:])
        # Insertions run along the row, each adding `one`: with j * one taken off first, the least
        # cost up to each place is a running minimum.
        costs[i + 1] = np.minimum.accumulate(row - line) + line
    return costs
