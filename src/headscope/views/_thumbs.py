"""Small pictures of all heads, for the overview: of a long text sentence by sentence."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from headscope.record import Mask, Tokens

MOST = 48
"""Number of rows and columns of a thumbnail of a short text at most."""
SENTENCE = 24
"""Tokens of a sentence at least: shorter ones are put together."""
ENDS, CLOSING = frozenset(".?!;:。？！"), "\"'’”»)]"

Starts = Int[np.ndarray, " block"]
Blocks = tuple[Starts, Int[np.ndarray, " column"]]
"""First token of each row, and of each column, of a thumbnail."""


def sentence_starts(tokens: Tokens, most: int, least: int = SENTENCE) -> Starts:
    """First token of each sentence, of ``least`` tokens and more: as few are put together as it
    takes to have no more than ``most``. None begins inside a word.
    """
    continues, begins = tokens.continues, _begins(tokens)
    while True:
        starts = [0]
        for at in range(1, len(tokens)):
            size = at - starts[-1]
            # What has no end for long is cut between words, and a word without end anywhere.
            if size >= least and (
                begins[at] or (size >= 8 * least and not continues[at]) or size >= 32 * least
            ):
                starts.append(at)
        if len(starts) <= most:
            return np.array(starts)
        least += -(-least // 4)


def _begins(tokens: Tokens) -> list[bool]:
    """Whether each token begins a sentence: it follows an end, and marks that close a quotation
    belong to what they close.
    """
    begins, ended = [], False
    for label, continues in zip(tokens.labels, tokens.continues, strict=True):
        words = label.strip(CLOSING)
        begins.append(ended and not continues and bool(words))
        ended = words[-1:] in ENDS if words else ended
    return begins


def starts_of(count: int, most: int = MOST) -> Starts:
    """First token of each block of a side: blocks are as even as they can be, and a side of up to
    ``most`` tokens stays as it is.
    """
    return np.arange(min(most, count)) * count // min(most, count)


def pooled_lifts(
    weights: Float[np.ndarray, "head query key"], visible: Mask, blocks: Blocks | None = None
) -> Float[np.ndarray, "head query_block key_block"]:
    """Small pictures of several heads, by `PooledRows`."""
    queries, keys = weights.shape[1:]
    pooled = PooledRows(blocks or (starts_of(queries), starts_of(keys)), keys, len(weights))
    pooled.add(np.asarray(weights), visible.dense(), np.arange(queries))
    return pooled.picture


class PooledRows:
    """Small pictures of heads, from blocks of their rows: how often the even share a weight is, as
    mean over the visible pairs of each block, divided by the number of keys, which is the most.

    The mean keeps an even head at 1 at every size; the largest would make long texts dark.

    Args:
        blocks: the first query of each row and the first key of each column.
        keys: how many keys there are.
        heads: how many heads.
    """

    def __init__(self, blocks: Blocks, keys: int, heads: int = 1) -> None:
        self._queries, self._keys = blocks
        shape = len(self._queries), len(self._keys)
        self._most = keys
        self._sums = np.zeros((shape[0], heads, shape[1]))
        self._counts = np.zeros(shape)

    def add(
        self,
        weights: Float[np.ndarray, "head query key"],
        visible: Bool[np.ndarray, "query key"],
        queries: Int[np.ndarray, " query"],
    ) -> None:
        """Take up the rows of the queries at these positions."""
        rows = np.searchsorted(self._queries, queries, side="right") - 1
        seen = visible.sum(axis=1)
        by_key = np.add.reduceat(weights, self._keys, axis=2) * seen[:, None]
        counts = np.add.reduceat(visible, self._keys, axis=1, dtype=float)
        np.add.at(self._sums, rows, by_key.transpose(1, 0, 2))
        np.add.at(self._counts, rows, counts)

    @property
    def picture(self) -> Float[np.ndarray, "head query_block key_block"]:
        """The means so far, as parts of the most that there can be."""
        means = self._sums.transpose(1, 0, 2) / np.maximum(1, self._counts)
        return means / self._most


BEGINNING = b"\x89PNG\r\n\x1a\n"
KINDS = {3: 2, 4: 6}
"""PNG's number for pictures with so many channels: colours, and colours with opacity."""


def png_address(pixels: UInt8[np.ndarray, "height width channel"]) -> str:
    """A picture as a data address: ``data:image/png;base64,...``.

    Args:
        pixels: red, green, blue, and opacity where there is a fourth channel.
    """
    height, width, channels = pixels.shape
    # Each line begins with the number of its filter; 0 is none.
    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    head = struct.pack(">IIBBBBB", width, height, 8, KINDS[channels], 0, 0, 0)
    parts = [
        _chunk(b"IHDR", head),
        _chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)),
        _chunk(b"IEND", b""),
    ]
    return f"data:image/png;base64,{base64.b64encode(BEGINNING + b''.join(parts)).decode()}"


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def packed(values: np.ndarray) -> str:
    """An array in base64: its bytes, of floats those of single precision."""
    kind = np.float32 if values.dtype.kind == "f" else values.dtype
    return base64.b64encode(np.ascontiguousarray(values, kind).tobytes()).decode()


def quantise(weights: Float[np.ndarray, "*axes"]) -> UInt8[np.ndarray, "*axes"]:
    """Bytes ``round(255 * sqrt(weight))``.

    The square root gives small weights more steps: the error is at most 0.00391 for a weight near
    1, and below 0.0005 for weights below 0.015. A weight below 1 / 260100 becomes 0.
    """
    # Recomputed weights may exceed 1 by rounding, which would wrap round to 0 as a byte.
    return np.rint(255 * np.sqrt(np.clip(weights, 0, 1))).astype(np.uint8)


def decoded(stored: UInt8[np.ndarray, "*axes"]) -> Float[np.ndarray, "*axes"]:
    """The weights that a reader recovers from the bytes."""
    return (stored.astype(np.float32) / 255) ** 2
