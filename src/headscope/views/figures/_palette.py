"""Colours of figures: those of the live viewer, and greys for print without colour."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
from jaxtyping import Float, UInt8

Colours = UInt8[np.ndarray, "step 3"]

# Chosen so that any two can be distinguished with normal and with colour-blind eyes: by simulated
# annealing in OKLCH over normal, protan, deutan and tritan vision.
LIGHT_HEADS: Mapping[int, str] = {
    12: (
        "#3c9ffb #a00b27 #9a973f #2e48b5 #fd99a4 #d665b0 #47cfe4 #a5cc36 #a95c10 #753b79 #008c74 "
        "#7e63da"
    ),
    16: (
        "#1c66d0 #c4c625 #6c4e02 #e95764 #98b2fc #897af6 #355284 #fca195 #a84a53 #389a87 #3fd3c9 "
        "#8069a3 #c97fc3 #a07102 #95045c #df8a0a"
    ),
    32: (
        "#3466ad #ded071 #d92624 #66223b #0bd5fd #9e80f9 #1c17af #eea722 #596d12 #d36b8e #a6dad3 "
        "#3576fd #551a7c #1c44be #9a2743 #f76b2e #92bdd2 #8875bb #644982 #febca7 #8f6264 #d88a6e "
        "#534319 #81a0e8 #6b9f0e #3f3f67 #9051d0 #c7b385 #af578d #b496b4 #96805d #1d5c54"
    ),
}
"""Colours of the heads of a layer on light paper, by the number of colours."""
DARK_HEADS: Mapping[int, str] = {
    12: (
        "#9cc1ff #d56407 #d1e26c #6b7ae5 #d3a500 #b764a5 #1af4fb #73a26e #b68ffe #f47aba #4ccf7d "
        "#ffb2bd"
    ),
    16: (
        "#61abfc #fbde40 #b96923 #24fafa #8db577 #a960b6 #faa3ca #b390c9 #4b9266 #b9eebb #cf9206 "
        "#b2c3ff #6bdf87 #857cf0 #dc6893 #ccbf17"
    ),
    32: (
        "#4e89ec #c6f95d #806613 #dea46f #60e1d4 #b24786 #614ed1 #2ba8cd #75810c #fcba6f #58fee5 "
        "#c2bef8 #636dda #fe899e #95594d #7a9e20 #fae2c1 #4fb7fb #a2cf18 #e551a1 #8fe6ff #b79560 "
        "#d6e097 #dc82dd #af6d57 #7d5eab #6f89a7 #97b52d #a6d6ac #75b79c #96c0cf #4b997b"
    ),
}
"""The same on dark paper."""


def head_colours(heads: int, *, dark: bool) -> list[str]:
    """One colour for each head of a layer; beyond 32 heads colours are used again."""
    size = next((size for size in (12, 16) if heads <= size), 32)
    colours = (DARK_HEADS if dark else LIGHT_HEADS)[size].split()
    return [colours[head % len(colours)] for head in range(heads)]


def head_greys(heads: int, *, dark: bool) -> list[str]:
    """One grey for each of the heads that a figure shows, from the one that stands out most to the
    palest.
    """
    first, last = (0.95, 0.45) if dark else (0.05, 0.6)
    return ["#" + f"{round(255 * level):02x}" * 3 for level in np.linspace(first, last, heads)]


def sequential(paper: str, colour: str, *, dark: bool) -> Colours:
    """256 colours from paper through a colour to near black (near white on dark), even in
    lightness.
    """
    start, middle = _oklab(parse_hex(paper)), _oklab(parse_hex(colour))
    end = np.array([0.96, 0.3 * middle[1], 0.3 * middle[2]]) if dark else _deep(middle)
    # The colour itself is placed by its lightness, so that lightness changes evenly along the
    # scale.
    turn = np.clip((middle[0] - start[0]) / (end[0] - start[0]), 0.25, 0.75)
    return _between([(0.0, start), (float(turn), middle), (1.0, end)])


def diverging(negative: str, middle: str, positive: str) -> Colours:
    """256 colours from one pole through the middle to the other."""
    colour_stops = zip((0.0, 0.5, 1.0), (negative, middle, positive), strict=True)
    return _between([(stop, _oklab(parse_hex(colour))) for stop, colour in colour_stops])


def text_on(colour: UInt8[np.ndarray, " 3"]) -> str:
    """Black or white, whichever can be read better on a colour."""
    # Black has the higher WCAG contrast where (L + .05) / .05 > 1.05 / (L + .05).
    return "#000000" if (luminance(colour) + 0.05) ** 2 > 1.05 * 0.05 else "#ffffff"


def luminance(colour: UInt8[np.ndarray, " 3"]) -> float:
    """Relative luminance as WCAG defines it, 0 to 1."""
    return float(_linear(colour / 255) @ np.array([0.2126, 0.7152, 0.0722]))


@cache
def parse_hex(colour: str) -> UInt8[np.ndarray, " 3"]:
    """Red, green, blue of ``#rrggbb``."""
    return np.frombuffer(bytes.fromhex(colour[1:]), np.uint8)


def _deep(middle: Float[np.ndarray, " 3"]) -> Float[np.ndarray, " 3"]:
    lightness = min(0.24, 0.6 * middle[0])
    return np.array([lightness, 0.45 * middle[1], 0.45 * middle[2]])


def _between(colour_stops: list[tuple[float, np.ndarray]]) -> Colours:
    at = np.linspace(0, 1, 256)
    stops = np.array([stop for stop, _ in colour_stops])
    lab = np.stack(
        [np.interp(at, stops, [colour[axis] for _, colour in colour_stops]) for axis in range(3)],
        axis=1,
    )
    return _srgb(lab)


# OKLab (Ottosson 2020), a colour space in which equal steps look equal.
TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def _oklab(colour: UInt8[np.ndarray, " 3"]) -> Float[np.ndarray, " 3"]:
    return TO_LAB @ np.cbrt(TO_CONES @ _linear(colour / 255))


def _srgb(lab: Float[np.ndarray, "step 3"]) -> Colours:
    linear = (lab @ np.linalg.inv(TO_LAB).T) ** 3 @ np.linalg.inv(TO_CONES).T
    linear = np.clip(linear, 0, 1)
    encoded = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return np.rint(255 * encoded).astype(np.uint8)


def _linear(channel: Float[np.ndarray, " 3"]) -> Float[np.ndarray, " 3"]:
    return np.where(channel <= 0.04045, channel / 12.92, ((channel + 0.055) / 1.055) ** 2.4)
