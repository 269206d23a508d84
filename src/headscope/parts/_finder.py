"""Which tokens make a part: by characters of the text, patches of a picture, times of a sound."""

from __future__ import annotations

import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from numbers import Real
from textwrap import shorten
from typing import Any

import numpy as np
from jaxtyping import Int

from headscope.errors import TextError, is_whole
from headscope.parts._conversation import RenderedText, numbered
from headscope.record import PART_KINDS, Part, Record, Tokens

PartsChoice = str | re.Pattern[str] | Sequence[tuple[Any, ...]]
"""A kind of part, a regular expression, ``[(name, start, stop), ...]`` in characters of the text or
seconds of the sound, or ``[(name, left, top, right, bottom), ...]`` in shares of the picture.
"""
WITHIN = {
    "page": re.compile(r"[^\f]+"),
    "paragraph": re.compile(r"\S.*?(?=\n\s*\n|\Z)", re.DOTALL),
    # A mark that ends a sentence has white space behind it, but in scripts without spaces.
    "sentence": re.compile(
        # Behind those of Europe stand those of Armenian, Arabic, Urdu, Hindi and Amharic.
        r"\S.*?(?:[.!?\u2026\u0589\u061f\u06d4\u0964\u0965\u1362]+[\"'\u201d\u2019\u00bb)\]]*(?=\s|\Z)"
        r"|[\u3002\uff01\uff1f]+[\u201d\u300d]*|(?=\n\s*\n)|\Z)",
        re.DOTALL,
    ),
}
"""Kinds that a text is cut into: by form feeds, empty lines, and marks that end a sentence."""
ROWS, COLUMNS = ("top", "middle", "bottom"), ("left", "centre", "right")


def check_choice(parts: Any) -> None:
    """Raise where this is no choice of parts.

    Raises:
        TextError: with what may be given.
    """
    kinds = [kind for kind in PART_KINDS if kind != "span"]
    if parts is None or isinstance(parts, re.Pattern) or parts in tuple(kinds):
        return
    several = list(parts) if isinstance(parts, list | tuple) else []
    sizes = {len(each) if isinstance(each, list | tuple) else 0 for each in several}
    if sizes not in ({3}, {5}) or not all(str(name).strip() == name != "" for name, *_ in several):
        raise TextError(
            f"parts= was {repr(parts)[:60]}; give one of {', '.join(kinds)}, a compiled regular "
            "expression, or a list such as [('name', start, stop)] in characters, or [('name', "
            "left, top, right, bottom)] in shares of a picture"
        )
    for name, *box in (each for each in several if len(each) == 5):
        left, top, right, bottom = (side if isinstance(side, Real) else -1 for side in box)
        if not (0 <= left < right <= 1 and 0 <= top < bottom <= 1):
            raise TextError(
                f"The part {name!r} was given the box {box}; give left < right and top < bottom in "
                "shares of the picture, from 0 to 1: of pixels, divide by its width and height"
            )


def parts_of(
    tokens: Tokens,
    parts: PartsChoice | None = None,
    *,
    known: Sequence[Part] = (),
    prompt: str | Sequence[str] = "",
) -> tuple[Part, ...]:
    """Parts of what was read, with the tokens of each.

    A token whose characters stand in two parts of a level belongs to the one with most of them,
    white space left aside, and to none where most are in none, as the marks of a chat template are.
    Special tokens belong to none.

    Args:
        tokens: what was read.
        parts: ``"sentence"``, ``"paragraph"`` (between empty lines), ``"page"`` (between form
            feeds), ``"text"`` (the two of a pair), ``"picture"``, ``"region"`` (nine of each
            picture), ``"frame"`` of a video, ``"time"`` (seconds of a sound), a compiled regular
            expression (each match is a part), ``[(name, start, stop), ...]`` in characters of the
            text, or in seconds of a sound, or ``[(name, left, top, right, bottom), ...]``, shares
            from 0 to 1 of the width and height of the first picture. ``"turn"`` and ``"document"``
            are those of ``known``.
        known: turns and documents, by their characters. Parts of a text are looked for within
            them, one level deeper.
        prompt: the text that was given, or the two of a pair, where the tokens are of more (what
            the model wrote) or of less (it was cut); by default what they are of.

    Returns:
        Parts by level, in the order of their first tokens. One that no token is left of, because
        the text was cut, is left out with a warning.

    Raises:
        TextError: where there is no such part, spans overlap or leave the text, or it is not known
            which characters a token stands for.

    Example:
        >>> tokens = Tokens(
        ...     pieces=("It", "is", "."), texts=("It is.",), offsets=((0, 2), (3, 5), (5, 6))
        ... )
        >>> [(part.name, part.tokens) for part in parts_of(tokens, "sentence")]
        [('sentence 1', (0, 1, 2))]
    """
    check_choice(parts)
    texts = _given_texts(prompt) or tokens.texts
    chosen = [] if parts is None else _chosen(tokens, texts, parts, known)
    if parts is not None and not chosen:
        name = f"match of {parts.pattern!r}" if isinstance(parts, re.Pattern) else parts
        raise TextError(
            f"No {name} was found in what was read; turns and documents are known of messages "
            "alone, and of {'documents': [...], 'question': '...'}"
        )
    own = [_read(part, texts, tokens.texts) for part in dict.fromkeys([*known, *chosen])]
    return _with_tokens(tokens, own)


def _given_texts(prompt: str | Sequence[str]) -> tuple[str, ...]:
    """The texts of a prompt, which may be the two of a pair."""
    texts = (prompt,) if isinstance(prompt, str) else tuple(prompt)
    return texts if any(texts) else ()


def _chosen(tokens: Tokens, texts: Sequence[str], parts: Any, known: Sequence[Part]) -> list[Part]:
    """The parts that were asked for, by their characters or tokens."""
    level = int(bool(known))
    if isinstance(parts, re.Pattern) or parts in tuple(WITHIN):
        return _matches("".join(texts), known or _texts(texts), parts, level)
    if not isinstance(parts, str) and len(parts[0]) > 3:
        return _boxes(tokens, parts)
    if not isinstance(parts, str):
        return [_given(tokens, "".join(texts), each, level) for each in parts]
    kinds = {parts, "picture"} if parts == "region" else {parts}
    return [part for part in (*known, *_seen(tokens)) if part.kind in kinds]


def with_parts(
    record: Record,
    parts: PartsChoice | None = None,
    *,
    known: Sequence[Part] = (),
    prompt: str | Sequence[str] = "",
) -> Record:
    """A record whose tokens have these parts, in every stack that reads them.

    Args:
        record: of any text.
        parts: as of `parts_of`; None for those of ``known``.
        known: turns and documents, by their characters in the prompt; by default those of the
            record.
        prompt: the text that was given, or the two of a pair, where the record holds less (it was
            cut); by default that of the record, without what the model wrote.

    Raises:
        TextError: where no stack reads such a part, or the chat template changed the words of the
            messages, so that it is not known where they are.

    Example:
        >>> record = with_parts(record, "sentence")
        >>> [part.name for part in record["self"].key.parts]
    """
    check_choice(parts)
    given = _given_texts(prompt)
    is_rendered = any(isinstance(text, RenderedText) for text in given)
    if is_rendered and not known and parts in (*WITHIN, "turn", "document"):
        raise TextError(
            "The chat template changes the words of the messages, so that it is not known where "
            "they are; give parts=[('name', start, stop), ...] in characters of record.texts[0]"
        )
    sides = {id(own): own for stack in record.stacks.values() for own in (stack.query, stack.key)}
    prompt = prompt or record.prompt
    # A decoder may be given the beginning of what the encoder reads, which reads more of it.
    alike = [side.texts for side in sides.values() if _begin_alike(side.texts, given)]
    of_prompt = max(alike, key=lambda texts: len("".join(texts)), default=None)
    refused: list[TextError] = []
    for number, side in sides.items():
        try:
            old = [part for part in side.parts if part.kind in ("turn", "document")]
            own: Any = {"known": known or old, "prompt": prompt} if side.texts == of_prompt else {}
            sides[number] = replace(side, parts=parts_of(side, parts, **own))
        except TextError as error:
            refused.append(error)
    if parts and len(refused) == len(sides):
        raise refused[0]
    changed = {}
    for name, stack in record.stacks.items():
        changed[name] = replace(stack, query=sides[id(stack.query)], key=sides[id(stack.key)])
    return replace(record, stacks=changed)


def _begin_alike(texts: Sequence[str], given: Sequence[str]) -> bool:
    """Whether texts are those given, which may be longer or shorter, or none was given."""
    both = [sorted(pair, key=len) for pair in zip(texts, given, strict=False)]
    return len(texts) == len(given or texts) and all(b.startswith(a) for a, b in both)


def _texts(texts: Sequence[str]) -> list[Part]:
    """The whole text as a part without a name, or the two of a pair."""
    ends = [0, *np.cumsum([len(each) for each in texts]).tolist()]
    return [
        Part(name=f"text {number}" * (len(texts) > 1), kind="text", spans=(span,))
        for number, span in enumerate(pairwise(ends), 1)
    ]


def _matches(text: str, within: Sequence[Part], parts: Any, level: int) -> list[Part]:
    """The parts of other parts that an expression finds, or the one of a kind."""
    kind = parts if isinstance(parts, str) else "span"
    matches: list[Part] = []
    for outer in within:
        inside = [
            (start + match.start(), match)
            for start, stop in outer.spans
            for match in WITHIN.get(kind, parts).finditer(text[start:stop])
            if match[0].strip()
        ]
        for number, (start, match) in enumerate(inside, 1):
            name = ", ".join(filter(None, [outer.name, f"{kind} {number}"]))
            if kind == "span":
                name = shorten(next(filter(None, match.groups()), match[0]), 40)
            first = start + len(match[0]) - len(match[0].lstrip())
            spans = ((first, first + len(match[0].strip())),)
            matches.append(Part(name=name, kind=kind, level=level, spans=spans))
    return matches


def _seen(tokens: Tokens) -> Iterator[Part]:
    """The parts that tokens show themselves: texts of a pair, pictures or frames and their regions,
    seconds.
    """
    worded = [at for at, word in enumerate(tokens.worded) if word and not tokens.special[at]]
    yield from _grouped("text", [(f"text {tokens.segments[at] + 1}", at) for at in worded])
    yield from _grouped("time", _times(tokens))
    for number, (name, kind) in enumerate(_pictures(tokens)):
        own = [at for at, of in enumerate(tokens.pictures or ()) if of == number]
        yield from _grouped(kind, [(name, at) for at in own])
        yield from _grouped("region", _regions(tokens, own, name), level=1)


def _regions(tokens: Tokens, patches: Sequence[int], name: str) -> Iterator[tuple[str, int]]:
    """The ninth of a picture that each of its patches lies in."""
    for at in patches:
        place, picture = (tokens.places or ())[at], (tokens.pictures or ())[at]
        if place is not None and picture is not None:
            rows, columns = tokens.grids[picture]
            row, column = ROWS[3 * place[0] // rows], COLUMNS[3 * place[1] // columns]
            yield f"{name}, {row} {column}", at


def _times(tokens: Tokens) -> Iterator[tuple[str, int]]:
    """The second of each frame of a sound, or the steps of a time series."""
    for at, time in enumerate(tokens.times or ()):
        if time is not None and tokens.places:  # channels of a series are rows
            yield f"steps {time[0]:g}-{time[1]:g}", at
        elif time is not None:
            yield f"seconds {sum(time) // 2:.0f}-{sum(time) // 2 + 1:.0f}", at


def _pictures(tokens: Tokens) -> Iterator[tuple[str, str]]:
    """Name and kind of each picture, or frame of a video."""
    frames = tokens.frames or (None,) * len(tokens.grids)
    for number, frame in enumerate(frames, 1):
        if frame is None:
            yield f"picture {number}" if len(frames) > 1 else "picture", "picture"
        else:
            yield ("frames {}-{}" if len({*frame}) > 1 else "frame {}").format(*frame), "frame"


def _grouped(kind: str, named: Iterable[tuple[str, int]], level: int = 0) -> list[Part]:
    """A part for each name, of the tokens that have it."""
    groups: dict[str, list[int]] = defaultdict(list)
    for name, token in named:
        groups[name].append(token)
    return [
        Part(name=name, kind=kind, level=level, tokens=tuple(own)) for name, own in groups.items()
    ]


def _given(tokens: Tokens, text: str, given: Sequence[Any], level: int) -> Part:
    """A part that the user gave: characters, or seconds."""
    name, first, last = given
    if not text and tokens.times:
        # The frames whose middles lie between two seconds.
        own = [at for at, time in enumerate(tokens.times) if time and first <= sum(time) / 2 < last]
        return Part(name=name, kind="time", tokens=tuple(own))
    if not is_whole(first) or not is_whole(last) or not first < last <= len(text):
        raise TextError(
            f"The part {name!r} was given from {first!r} to {last!r}; give characters of the text, "
            f"which has {len(text)}"
        )
    return Part(name=name, kind="span", level=level, spans=((int(first), int(last)),))


def _boxes(tokens: Tokens, given: Sequence[Any]) -> list[Part]:
    """Regions of the first picture: a patch is of the box with most of it, of equals of the first.

    Raises:
        TextError: where no patches were read, or a box has none.
    """
    if not tokens.grids:
        raise TextError(f"{given[0][0]!r} is a box, and no picture was read; give start and stop")
    (rows, columns), named = tokens.grids[0], []
    for at in [at for at, of in enumerate(tokens.pictures or ()) if of == 0]:
        (row, column), shares = (tokens.places or ())[at] or (0, 0), []
        for _, left, top, right, bottom in given:
            across = min(right * columns, column + 1) - max(left * columns, column)
            down = min(bottom * rows, row + 1) - max(top * rows, row)
            shares.append(round(max(across, 0) * max(down, 0), 9))
        if max(shares) >= 1 - sum(shares):  # no less than is of none
            named.append((given[shares.index(max(shares))][0], at))
    if empty := [name for name, *_ in given if name not in dict(named)]:
        raise TextError(f"The region {empty[0]!r} has most of no patch; give it a larger box")
    return _grouped("region", named)


def _read(part: Part, given: Sequence[str], read: Sequence[str]) -> Part:
    """A part of given texts, by the characters of them that were read."""
    spans, begins, moved = [], 0, 0
    for whole, own in zip(given, read, strict=False):
        ends = begins + min(len(whole), len(own))
        for start, stop in part.spans:
            if max(start, begins) < min(stop, ends):
                spans.append((max(start, begins) - moved, min(stop, ends) - moved))
        begins += len(whole)
        moved += len(whole) - len(own)
    return replace(part, spans=tuple(spans))


def _with_tokens(tokens: Tokens, parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts with their tokens, by level and first token; with a warning that names those that
    have none.
    """
    placed: list[Part] = []
    for level in sorted({part.level for part in parts}):
        own = [part for part in parts if part.level == level]
        names, members = numbered([part.name for part in own]), _members(tokens, own)
        for part, name, of_text in zip(own, names, members, strict=True):
            placed.append(replace(part, name=name, tokens=part.tokens or of_text))
    if lost := [part.name for part in placed if not part.tokens]:
        named = "; ".join(lost[:5]) + f" and {len(lost) - 5} more parts" * (len(lost) > 5)
        warnings.warn(
            f"No token stands for {named}, so left out: the text was cut before it, or it is "
            "special tokens or less than half of one token",
            stacklevel=2,
        )
    kept = [part for part in placed if part.tokens]
    return tuple(sorted(kept, key=lambda part: (part.level, part.tokens[0])))


def _members(tokens: Tokens, parts: Sequence[Part]) -> list[tuple[int, ...]]:
    """The tokens of each of some parts of one level, by their characters.

    Raises:
        TextError: where two of them have characters in common, or tokens have no characters.
    """
    text = "".join(tokens.texts)
    owner = _owners(text, parts)
    if (owner >= 0).any() and tokens.offsets is None:
        raise TextError(
            "It is not known which characters of the text a token stands for; give the tokenizer "
            "that is written in Rust (use_fast=True), or tokens with offsets"
        )
    blank = np.array([letter.isspace() for letter in text], bool)
    members: list[list[int]] = [[] for _ in parts]
    for token, offset in enumerate(tokens.offsets or ()):
        if offset is None or tokens.special[token] or not tokens.worded[token]:
            continue
        first = len(tokens.texts[0]) * tokens.segments[token]
        place = slice(first + offset[0], first + offset[1])
        letters = owner[place][~blank[place]]
        most = Counter((letters if len(letters) else owner[place]).tolist()).most_common(1)
        if most and most[0][0] >= 0:
            members[most[0][0]].append(token)
    return list(map(tuple, members))


def _owners(text: str, parts: Sequence[Part]) -> Int[np.ndarray, " letter"]:
    """The number of the part that each character is of; -1 for none."""
    owner = np.full(len(text), -1)
    for number, part in enumerate(parts):
        for start, stop in part.spans:
            if (owner[start:stop] >= 0).any():
                other = parts[owner[start:stop].max()].name
                raise TextError(
                    f"The parts {part.name!r} and {other!r} have characters in common; give spans "
                    "that do not overlap"
                )
            owner[start:stop] = number
    return owner
