"""The tokens of one side of a stack."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from itertools import filterfalse, pairwise
from textwrap import shorten
from typing import Any

from headscope.errors import RecordError, is_whole
from headscope.record._words import Words, word_numbers

SPECIAL = re.compile(
    r"\[[A-Z]+\]|<\|[^<>|]+\|>|</?[a-z]+>|<(?:start|end)_of_[a-z]+>", re.IGNORECASE
)
_special_in = lru_cache(2**16)(SPECIAL.fullmatch)
FALLBACK = re.compile(r"<0x[0-9A-F]{2}>")
"""A byte that a vocabulary of SentencePiece has no piece for."""
CONTINUATION = "##"
MARKS = WORD_END, GOES_ON = "</w>", "@@"
"""What BPE writes behind the last piece of a word, or behind each but the last."""
SPACE_MARKS = ("\u0120", "\u2581")  # byte-level BPE and SentencePiece
PART_KINDS = ("turn", "document", "page", "paragraph", "sentence", "span", "text")
PART_KINDS += ("picture", "region", "frame", "time")
"""Kinds of parts of texts, and of pictures, videos and sounds."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A named part of what a model reads: a document, a turn of a chat, a sentence, a frame.

    Marks of a chat template and special tokens belong to no part. What a model writes itself is not
    a part: it begins at ``record.generation.prompt``.

    Args:
        name: what to call it, such as ``"document 2"`` or ``"document 2, sentence 3"``.
        kind: ``"turn"``, ``"document"``, ``"page"``, ``"paragraph"``, ``"sentence"``, ``"span"``,
            ``"text"`` (one of a pair), ``"picture"``, ``"region"`` (of a picture), ``"frame"``, or
            ``"time"``.
        level: how deep it is nested, 0 for the outermost. Parts of one level share no token.
        spans: ``(start, stop)`` in characters of the text, several where a template repeats a
            message; of a pair counted on from the first text to the second. None for parts of
            pictures, videos and sounds.
        tokens: rising positions of its tokens. A token whose characters stand in two parts belongs
            to the one with most of them, white space left aside. None where all of them were cut.
    """

    name: str
    kind: str
    level: int = 0
    spans: tuple[tuple[int, int], ...] = ()
    tokens: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """Tokens of a text, a sentence pair, a picture, a video or a sound, or bare pieces.

    Every list but ``texts``, ``grids``, ``frames`` and ``parts`` has one entry for each token.

    Only ``pieces`` must be given; the rest is filled with what follows from the pieces alone.

    Args:
        pieces: the tokens as the tokenizer names them, such as ``"##berries"`` or ``"Ġstore"``.
        texts: the texts they come from: none, one, or two for a sentence pair.
        ids: vocabulary numbers.
        offsets: ``(start, stop)`` in characters into ``texts[segment]``; None for a token that
            stands for no text.
        special: True for ``[CLS]``, ``<s>`` and their like; by default found by their form.
        segments: 0 for the first text, 1 for the second of a pair; by default 0.
        words: the number of the word, counted through all texts; None for a token that belongs to
            no word.
        labels: what a reader should see; by default the pieces without the tokenizer's marks.
        grids: rows and columns of the patches of each picture. A video has a grid for each frame,
            or for each group of frames that its patches reach over (tubes).
        places: ``(row, column)`` of a patch in the grid of its picture; None for words, ``[CLS]``,
            registers.
        pictures: which of the grids a token belongs to; by default the first, for every token that
            has a place.
        times: ``(start, stop)`` of a frame of sound, in seconds, or of a patch of a time series, in
            steps, whose rows of ``grids`` are channels.
        roles: what the tokenizer has a token for: ``"bos"``, ``"cls"``, ``"sep"``, ``"eos"``, or
            None; bare pieces have none, and roles follow from the names of the pieces.
        frames: for each grid the first and last frame of the video that it stands for, counted from
            0; None for a picture. Empty where there is no video.
        numbered: why the pieces are but numbers of positions; empty where they are tokens.
        parts: documents, turns, sentences, frames ...

    Raises:
        RecordError: where a list has another length than ``pieces``, offsets leave the text, or
            places the grid, for a role there is not, or where parts leave the text or share a
            token.
    """

    pieces: tuple[str, ...]
    texts: tuple[str, ...] = ()
    ids: tuple[int, ...] | None = None
    offsets: tuple[tuple[int, int] | None, ...] | None = None
    special: tuple[bool, ...] = field(default=())
    segments: tuple[int, ...] = field(default=())
    words: tuple[int | None, ...] | None = None
    labels: tuple[str, ...] = field(default=())
    grids: tuple[tuple[int, int], ...] = ()
    places: tuple[tuple[int, int] | None, ...] | None = None
    pictures: tuple[int | None, ...] | None = None
    times: tuple[tuple[float, float] | None, ...] | None = None
    roles: tuple[str | None, ...] | None = None
    frames: tuple[tuple[int, int] | None, ...] = ()
    numbered: str = field(default="", compare=False)
    parts: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        for position, piece in enumerate(self.pieces):
            if not isinstance(piece, str):
                raise RecordError(
                    f"Tokens: piece {position} is {piece!r}, not a string; give the tokens as "
                    "strings"
                )
        self._fill()
        # Lengths first: the checks after it read the lists in parallel.
        self._check_lengths()
        self._check_known()
        self._check_offsets()
        self._check_places()
        self._check_frames()
        self._check_times()
        self._check_parts()

    def _fill(self) -> None:
        """Tuples in place of lists, and what follows from the pieces where it was not given."""
        filled: dict[str, tuple] = {
            "pieces": tuple(self.pieces),
            "texts": tuple(self.texts),
            "frames": tuple(self.frames),
            "parts": tuple(self.parts),
            "special": tuple(self.special) or tuple(map(bool, map(_special_in, self.pieces))),
            "segments": tuple(self.segments) or (0,) * len(self.pieces),
            "labels": tuple(self.labels) or _labels(self.pieces),
        }
        if self.pictures is None and self.places is not None:
            filled["pictures"] = tuple(None if place is None else 0 for place in self.places)
        for name, value in filled.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.pieces)

    def __repr__(self) -> str:
        """The first tokens in a line."""
        return f"<Tokens: {len(self)}: {shorten(' '.join(self.pieces), 120, placeholder=' ...')}>"

    @property
    def grid(self) -> tuple[int, int] | None:
        """Rows and columns of the patches where the tokens hold one picture; None where they hold
        none or several.
        """
        return self.grids[0] if len(self.grids) == 1 else None

    @property
    def video_grid(self) -> tuple[int, int, int] | None:
        """Steps in time, rows and columns of the patches where the tokens hold one video and no
        picture; None where they do not, or its steps differ in size.
        """
        if not self.frames or None in self.frames or len(set(self.grids)) > 1:
            return None
        return len(self.grids), *self.grids[0]

    @cached_property
    def worded(self) -> tuple[bool, ...]:
        """False for patches and frames, which stand for no text even where their pieces are alike
        (``<image>``).
        """
        sides = [values for values in (self.places, self.times) if values is not None]
        if not sides:
            return (True,) * len(self)
        return tuple(all(values[token] is None for values in sides) for token in range(len(self)))

    @cached_property
    def continues(self) -> tuple[bool, ...]:
        """True where a token continues the word of the token before it."""
        numbers = _bare_words(self) if self.words is None else self.words
        # With the segment, in case that words are numbered anew in the second text of a pair.
        words: list[tuple[int, int] | None] = [None]
        for segment, number, alone in zip(self.segments, numbers, self.special, strict=True):
            words.append(None if number is None or alone else (segment, number))
        return tuple(now is not None and now == before for before, now in pairwise(words))

    @cached_property
    def whole_words(self) -> Words:
        """The words that the tokens make; every token is part of one, special tokens and patches
        each of their own.
        """
        starts = [at for at, goes_on in enumerate(self.continues) if not goes_on or not at]
        runs = [tuple(range(*ends)) for ends in pairwise([*starts, len(self)])]
        joined = ["".join(self.labels[position] for position in run) for run in runs]
        names = tuple(name.strip(" ") or name for name in joined)
        return Words(names, tuple(runs), ())

    @property
    def part_names(self) -> dict[int, tuple[str, ...]]:
        """For each level the name of the part that each token belongs to; empty where it is
        none.
        """
        names: dict[int, list[str]] = {}
        for part in self.parts:
            own = names.setdefault(part.level, [""] * len(self))
            for token in part.tokens:
                own[token] = part.name
        return {level: tuple(own) for level, own in names.items()}

    @property
    def outer_parts(self) -> tuple[int, ...]:
        """The number of the outermost part that each token belongs to; -1 where it is none."""
        owner = [-1] * len(self)
        for number, part in enumerate(self.parts):
            for token in () if part.level else part.tokens:
                owner[token] = number
        return tuple(owner)

    def take(self, kept: Sequence[int]) -> Tokens:
        """The tokens at these positions."""
        places = {token: place for place, token in enumerate(kept)}
        parts = []
        for part in self.parts:
            own = sorted(places[token] for token in part.tokens if token in places)
            parts.append(replace(part, tokens=tuple(own)))
        picked = {name: _picked(getattr(self, name), kept) for name in EACH}
        return replace(self, **picked, parts=tuple(parts))

    def _check_lengths(self) -> None:
        for name in EACH:
            values = getattr(self, name)
            if values is not None and len(values) != len(self.pieces):
                raise RecordError(
                    f"Tokens: {len(values)} {name} were given for {len(self.pieces)} pieces; give "
                    "one for each piece"
                )

    def _check_known(self) -> None:
        known = {"segments": (self.segments, (0, 1)), "roles": (self.roles, (None, *ROLES))}
        for name, (given, allowed) in known.items():
            if unknown := set(given or ()) - set(allowed):
                raise RecordError(
                    f"Tokens: {name} are {', '.join(map(str, allowed))}, not "
                    f"{', '.join(sorted(map(str, unknown)))}"
                )

    def _check_offsets(self) -> None:
        for position, offset in enumerate(self.offsets or ()):
            if offset is None:
                continue
            segment = self.segments[position]
            size = len(self.texts[segment]) if segment < len(self.texts) else 0
            start, stop = offset
            if not 0 <= start <= stop <= size:
                raise RecordError(
                    f"Tokens: the offsets {offset} of token {position} "
                    f"({self.pieces[position]!r}) leave text {segment} with its {size} characters"
                )

    def _check_places(self) -> None:
        pairs = zip(self.places or (), self.pictures or (), strict=True)
        for position, (place, picture) in enumerate(pairs):
            if place is None and picture is None:
                continue
            if place is None or picture is None or not 0 <= picture < len(self.grids):
                raise RecordError(
                    f"Tokens: token {position} ({self.pieces[position]!r}) has the place {place} "
                    f"in picture {picture}, and there are {len(self.grids)} grids; give rows and "
                    "columns of each picture in grids="
                )
            grid = self.grids[picture]
            if not all(0 <= number < size for number, size in zip(place, grid, strict=True)):
                raise RecordError(
                    f"Tokens: the place {place} of token {position} leaves the grid of {grid[0]} "
                    f"x {grid[1]} patches"
                )

    def _check_frames(self) -> None:
        if self.frames and len(self.frames) != len(self.grids):
            raise RecordError(
                f"Tokens: {len(self.frames)} frames were given for {len(self.grids)} grids; give "
                "the first and last frame of each grid, and None for a picture"
            )
        for number, frame in enumerate(self.frames):
            if frame is not None and not 0 <= frame[0] <= frame[1]:
                raise RecordError(
                    f"Tokens: the frames {frame} of grid {number} must be (first, last), counted "
                    "from 0"
                )

    def _check_times(self) -> None:
        for position, time in enumerate(self.times or ()):
            if time is not None and not 0 <= time[0] <= time[1]:
                raise RecordError(
                    f"Tokens: the times {time} of token {position} must be (start, stop) in seconds"
                )

    def _check_parts(self) -> None:
        size, owners = sum(map(len, self.texts)), {}
        for number, part in enumerate(self.parts):
            what, tokens = f"Tokens: the part {part.name!r}", part.tokens
            if part.kind not in PART_KINDS or not is_whole(part.level, 0):
                raise RecordError(
                    f"{what} has the kind {part.kind!r} and the level {part.level!r}; give one of "
                    f"{', '.join(PART_KINDS)}, and a whole number from 0"
                )
            if any(not 0 <= start <= stop <= size for start, stop in part.spans):
                raise RecordError(
                    f"{what} has the spans {part.spans}, which leave the {size} characters read"
                )
            ends = (*tokens[:1], *tokens[-1:])
            if sorted(set(tokens)) != list(tokens) or any(not 0 <= at < len(self) for at in ends):
                raise RecordError(
                    f"{what} has the tokens {tokens[:8]}; give rising positions from 0 to "
                    f"{len(self) - 1}"
                )
            for token in tokens:
                if owners.setdefault((part.level, token), number) != number:
                    other = self.parts[owners[part.level, token]].name
                    raise RecordError(
                        f"{what} shares token {token} with {other!r}; parts of one level share "
                        "none, so give one of them another level"
                    )


ROLES = ("bos", "cls", "sep", "eos")
"""What tokenizers have special tokens for, as transformers names them."""
PLACES = ("offsets", "segments", "words", "places", "pictures", "times")
EACH = ("pieces", "ids", "labels", "special", "roles", *PLACES)
"""The lists that have one entry for each token."""


def _labels(pieces: Sequence[str]) -> tuple[str, ...]:
    """What a reader should see of bare pieces: of several that are bytes of one letter the first
    has it, the others nothing.
    """
    own = _bytes_in(pieces)
    if own is None:
        return tuple(map(_label, pieces))
    whole = b"".join(own)
    begins = [at for at, byte in enumerate(whole) if byte & 0xC0 != 0x80] + [len(whole)]
    labels, end = [], 0
    for piece, part in zip(pieces, own, strict=True):
        start, end = end, end + len(part)
        letters = slice(begins[bisect_left(begins, start)], begins[bisect_left(begins, end)])
        text = whole[letters].decode("utf-8", "replace")
        labels.append((text.removeprefix(" ") or text) if part else piece)
    return tuple(labels)


def _bare_words(tokens: Tokens) -> tuple[int | None, ...]:
    """The numbers of the words of bare pieces."""
    texts, span, spans, numbers = [""], (0, 0), [], []
    glued = _glued(tokens.pieces)
    for label, is_glued, special in zip(tokens.labels, glued, tokens.special, strict=True):
        if special or not is_glued:
            texts.append("")
            span = (0, 0)
        # The further bytes of a letter have no label, and are where it is.
        if label and not special:
            span = (len(texts[-1]), len(texts[-1]) + len(label))
            texts[-1] += label
        spans.append(None if special else span)
        numbers.append(len(texts) - 1)
    return word_numbers(texts, spans, numbers)


def _glued(pieces: Sequence[str]) -> list[bool]:
    """Whether no space stands before each piece, as the marks of its vocabulary tell."""
    if any(piece.startswith(SPACE_MARKS) for piece in pieces):
        return [not piece.startswith(SPACE_MARKS) for piece in pieces]
    for mark in MARKS:
        if any(piece.endswith(mark) and piece != mark for piece in pieces):
            goes_on = [piece.endswith(mark) == (mark == GOES_ON) for piece in pieces]
            return [False, *goes_on[:-1]]
    # WordPiece: "##berries", but not "##" alone.
    return [piece.removeprefix(CONTINUATION) not in ("", piece) for piece in pieces]


def _bytes_in(pieces: Sequence[str]) -> list[bytes] | None:
    """The bytes that pieces stand for, none for special tokens; None where pieces are letters."""
    words = list(filterfalse(_special_in, pieces))
    if any(map(FALLBACK.fullmatch, words)):
        written = {piece: piece.replace(SPACE_MARKS[1], " ").encode() for piece in words}
        bytes_of = filter(FALLBACK.match, words)
        written |= {piece: bytes([int(piece[1:-1], 16)]) for piece in bytes_of}
    elif any(word.startswith(SPACE_MARKS[0]) for word in words):
        known = _byte_of()
        if not set("".join(words)) <= known.keys():
            return None
        written = {piece: bytes(map(known.__getitem__, piece)) for piece in words}
    else:
        return None
    return [written.get(piece, b"") for piece in pieces]


@cache
def _byte_of() -> dict[str, int]:
    """The byte that each letter of byte-level BPE stands for."""
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in own]
    return {chr(byte): byte for byte in own} | {chr(256 + n): byte for n, byte in enumerate(others)}


@lru_cache(2**16)
def _label(piece: str) -> str:
    if piece.startswith(CONTINUATION) and len(piece) > len(CONTINUATION):
        return piece[len(CONTINUATION) :]
    for mark in SPACE_MARKS:
        piece = piece.replace(mark, " ")
    for mark in MARKS:
        piece = piece.removesuffix(mark) or piece
    return piece.removeprefix(" ") or piece


def _picked(values: Sequence | None, kept: Sequence[int]) -> Any:
    return None if values is None else tuple(values[position] for position in kept)
