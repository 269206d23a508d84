"""The contract between Python and the viewer: what a page says about itself, as JSON.

Declared here once; ``frontend/src/contract`` holds the JSON schema and the TypeScript types generated from it
(``make contract``), and a test on each side fails when they drift. Arrays are not part of the JSON: each
`PageArray` names a chunk of gzipped bytes that travels beside it.

Format 1. Additions keep the number, changes of meaning raise it.
"""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

PAGE_FORMAT = 1


class PageArray(TypedDict):
    """An array that travels as bytes, in C order, gzipped."""

    chunk: str
    """Name of the chunk that holds the bytes."""
    axes: list[str]
    """Axis names, outermost first, such as head, query, key."""
    shape: list[int]
    dtype: Literal["uint8"]
    encoding: Literal["sqrt"]
    """How a stored byte b becomes a value: sqrt means (b / 255) ** 2."""
    error: float
    """Largest absolute difference between a decoded and the exact value in this very array."""


class PageTokens(TypedDict):
    """The tokens of one side of a stack; every list has one entry for each token."""

    pieces: list[str]
    """As the tokenizer names them."""
    labels: list[str]
    """As a reader should see them: without the tokenizer's marks for spaces and continuation."""
    continues: list[bool]
    """True where the token continues the word of the token before."""
    special: list[bool]
    """True for [CLS], [SEP], <s> and their like."""
    segments: list[int]
    """0 for the first text and 1 for the second of a pair."""


class PageLayer(TypedDict):
    layer: int
    """Number of the layer in the model, from 0."""
    kind: str
    """full, causal, sliding ...: what a query may look at."""
    weights: PageArray
    """Axes head, query, key."""
    row_sums: Literal["one", "less"]
    """less where part of a row's mass went to a learned sink that is no token."""


class PageStack(TypedDict):
    """Layers that share their tokens: the only stack, or the encoder, the decoder, cross-attention."""

    name: str
    """self, encoder, decoder, cross ..."""
    heads: int
    query: PageTokens
    key: PageTokens
    layers: list[PageLayer]


class PageModel(TypedDict):
    name: str
    """Hub name or folder, or what the user called it."""
    model_type: str
    """As in the configuration, such as bert; empty for bare arrays."""


class PageSelection(TypedDict):
    """What the page shows when it opens."""

    stack: str
    layer: int
    heads: list[int] | None
    """None for all heads."""
    theme: Literal["auto", "light", "dark"]


class Page(TypedDict):
    """The header of a page: everything but the bytes of the arrays."""

    format: Literal[1]
    headscope: str
    """Version of headscope that wrote the page."""
    title: str
    model: PageModel
    verified: float | None
    """Largest difference between the recomputed and the model's own layer output; None for bare arrays."""
    stacks: list[PageStack]
    selection: PageSelection
