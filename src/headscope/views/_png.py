"""Small pictures as PNG files, without a library for pictures."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from jaxtyping import UInt8

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
