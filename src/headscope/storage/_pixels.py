"""Pictures as numbers that files hold."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int, UInt8

COLOURS = np.array([1 << 16, 1 << 8, 1], np.int32)
"""Whole numbers of a kind that earlier versions read too, which pass over pictures."""


def packed_pixels(picture: UInt8[np.ndarray, "height width 3"]) -> Int[np.ndarray, "height width"]:
    """One number for each pixel: ``red * 65536 + green * 256 + blue``."""
    return picture @ COLOURS


def pixels_of(numbers: Int[np.ndarray, "height width"]) -> UInt8[np.ndarray, "height width 3"]:
    """Red, green and blue of such numbers."""
    return (numbers[..., None] // COLOURS % 256).astype(np.uint8)
