"""What the page of an answer draws, as JSON, declared here once as `headscope.views.contract`
declares that of a record; ``frontend/contract`` holds the JSON schema.
"""

from __future__ import annotations

from typing import TypedDict


class AnswerPart(TypedDict):
    """A part of the prompt of an answer."""

    name: str
    kind: str
    level: int
    """How deep it is nested, 0 for the outermost."""
    runs: list[list[int]]
    """First and stop of its tokens, several where other tokens stand between them."""


class AnswerShown(TypedDict):
    """A picture, or a frame of a video, that an answer is about."""

    address: str
    """Of its pixels, as data; empty where they are not known."""
    size: list[int]
    """Height and width of it."""
    grid: list[int]
    """Rows and columns of its patches."""
    keys: list[int]
    """Tokens that are its patches."""
    places: list[int]
    """The cell of each of them, row by row."""


class AnswerPicture(TypedDict):
    """All that the page of an answer draws. Arrays are base64 of their bytes, little-endian."""

    title: str
    theme: str
    """auto, light or dark."""
    model: str
    facts: str
    question: str
    says: list[str]
    """Sentences: what it needed first, then what it looked at."""
    quantity: str
    """What shares are of: attention, norms of contributions, or ALTI."""
    mean: str
    """The heads that shares are the mean of, in words."""
    needs: list[str]
    """Verdicts on the whole answer and on each word: none, parts, any, several, or empty."""
    needed: list[list[int]]
    """Parts that each of them names."""
    targets: list[int]
    """Parts that heads are ranked by, together: those needed, else the one looked at most."""
    gone: str
    """What was done to parts, in words: cut off, deleted ...; empty where nothing was."""
    words: list[str]
    pieces: list[str]
    """Text of each token of the prompt, with what stands before it."""
    parts: list[AnswerPart]
    candidates: list[int]
    """Parts that are compared and cut."""
    heads: list[str]
    """Heads that have a tile: layer-head."""
    columns: int
    """Heads of a layer where all of them have a tile; 0 where they are ranked."""
    shares: str
    """float32, mean over heads and then of each head: head, word, part; behind the parts the first
    token, the template and the answer itself.
    """
    even_shares: str
    """float32: word, part. The share were each row even over the tokens it sees."""
    logs: str
    """float32, logarithms of probabilities: case, word. Cases: whole, with all candidates cut off,
    without each candidate, with each of them alone.
    """
    kinds: list[str]
    """The kind of each of the heads that have a tile on this text."""
    ink: str
    """uint8: head, word, token; 255 times the root of the share of the most. First the mean."""
    tops: str
    """float32: head, word. The most attention that a token gets."""
    between: str
    """float32: part, part; times an even share, rows look at columns; the answer comes last. Empty
    where it is not known.
    """
    pictures: list[AnswerShown]
    sinks: list[int]
    """Tokens of patches that are left out of heat."""
    tables: str
    """Tables and notes as HTML, every text in it escaped."""
