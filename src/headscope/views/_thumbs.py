"""Small pictures of all heads, for the overview."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from headscope.record import Mask

MOST = 48
"""Number of rows and columns of a thumbnail at most."""


def thumb_shape(size: tuple[int, int]) -> tuple[int, int]:
    """Rows and columns of the thumbnail of so many queries and keys."""
    queries, keys = size
    return min(MOST, queries), min(MOST, keys)


def starts_of(count: int, most: int = MOST) -> Int[np.ndarray, " block"]:
    """First token of each block of a side: blocks are as even as they can be, and a side of up to
    ``most`` tokens stays as it is.
    """
    return np.arange(min(most, count)) * count // min(most, count)


def pooled_lifts(
    weights: Float[np.ndarray, "head query key"], visible: Mask
) -> Float[np.ndarray, "head query_block key_block"]:
    """Small pictures of several heads, by `PooledRows`."""
    pooled = PooledRows(weights.shape[1:], len(weights))
    pooled.add(np.asarray(weights), visible.dense(), np.arange(weights.shape[1]))
    return pooled.picture


class PooledRows:
    """Small pictures of heads, from blocks of their rows: how often the even share a weight is, as
    mean over the visible pairs of each block, divided by the number of keys, which is the most.

    The mean keeps an even head at 1 at every size; the largest would make long texts dark.

    Args:
        size: number of queries and of keys.
        heads: how many.
    """

    def __init__(self, size: tuple[int, ...], heads: int = 1) -> None:
        queries, keys = size
        self._queries, self._keys = starts_of(queries), starts_of(keys)
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
