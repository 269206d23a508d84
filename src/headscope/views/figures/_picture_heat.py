"""Heat of patches over their picture, which can be seen through it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int, UInt8

from headscope.views.figures._style import Scale, Style, parse_hex

COLOUR, STRENGTH = 0.35, 0.72
"""Shares that are kept of a picture's colour, and of its contrast to the paper."""
VEIL = 0.72
"""Opacity of the largest number."""
MOST_TIMES = 16.0
"""How often the even share is drawn in full."""
FULL = {False: 173, True: 212}
"""The step of a scale, by whether it is signed, that colours the heat; later steps are almost black
or white.
"""
# Weights of red, green and blue in the luma of ITU-R BT.601.
GREY = (0.299, 0.587, 0.114)
CHEQUER = (191, 64)
"""Light and dark grey of the chequer below the colour bar, in place of a picture."""
STEPS = 4
"""Steps of the colour bar in a square of the chequer."""
POINTS = 2.0
"""Dots for each row or column of patches at least, so that the edges of patches are sharp."""


@dataclass(frozen=True, eq=False)
class PictureHeat(Scale):
    """A scale over a picture: larger numbers hide more, by ``VEIL * |value / largest|^0.75``."""

    paper: str = ""

    @classmethod
    def of(cls, scale: Scale, style: Style) -> PictureHeat:
        """The same scale over a picture; of multiples a shorter one, as many patches are faint."""
        largest = min(scale.largest, MOST_TIMES) if scale.lifts else scale.largest
        return cls(**vars(replace(scale, largest=largest)), paper=style.paper)

    @property
    def words(self) -> str:
        """A note about the scale besides its bar."""
        return "" if self.lifts or self.power != 0.5 else "bar on a square-root scale"

    def over(
        self, ground: Float[np.ndarray, "*axes 3"], values: Float[np.ndarray, "*axes"]
    ) -> UInt8[np.ndarray, "*axes 3"]:
        """Colours of numbers over a background."""
        if self.lifts:
            sizes = self.position(values)
        else:
            sizes = np.clip(np.abs(values) / (self.largest or 1.0), 0, 1) ** 0.75
        hidden = VEIL * sizes[..., None]
        steps = np.where(values < 0, 255 - FULL[True], FULL[self.signed])
        return np.rint(ground + hidden * (self.colours[steps].astype(float) - ground)).astype(
            np.uint8
        )

    def rgb(self, values: Float[np.ndarray, "*axes"]) -> UInt8[np.ndarray, "*axes 3"]:
        """Red, green, blue of each number over paper."""
        hidden = np.isnan(values)
        paper = np.broadcast_to(np.array(parse_hex(self.paper), float), (*values.shape, 3))
        rgb = self.over(paper, np.where(hidden, 0.0, values))
        return np.where(hidden[..., None], parse_hex(self.masked), rgb)

    def bar(self, squares: int) -> UInt8[np.ndarray, "row column 3"]:
        """The colour bar over a chequer, which is drawn in place of a picture."""
        positions = np.linspace(-1 if self.signed else 0, 1, STEPS * squares)
        values = np.sign(positions) * np.abs(positions) ** (1 / self.power) * (self.largest or 1.0)
        if self.lifts:
            values = self.largest**positions
        row, square = np.indices((2, STEPS * squares)) // np.array([1, STEPS])[:, None, None]
        greys = np.array(CHEQUER, float)[(row + square) % 2][..., None].repeat(3, axis=-1)
        return self.over(pale(greys, self.paper), np.broadcast_to(values, (2, len(values))))


def pale(pixels: Float[np.ndarray, "*axes 3"], paper: str) -> Float[np.ndarray, "*axes 3"]:
    """Pixels with less colour and less contrast to the paper, so that the heat stands out."""
    white, grey = np.array(parse_hex(paper), float), (pixels @ np.array(GREY))[..., None]
    return white + STRENGTH * (grey + COLOUR * (pixels - grey) - white)


def part_of(
    picture: UInt8[np.ndarray, "height width 3"],
    grid: tuple[int, int],
    places: Int[np.ndarray, "token 2"],
) -> tuple[UInt8[np.ndarray, "down along 3"], Int[np.ndarray, "token 2"]]:
    """The part of a picture that these patches cover, and their rows and columns in it.

    Args:
        picture: the whole picture.
        grid: number of rows and columns of all its patches.
        places: row and column of each of these patches.
    """
    first, stop = places.min(axis=0), places.max(axis=0) + 1
    patch = np.array(picture.shape[:2]) / grid
    (top, left), (bottom, right) = (np.rint(edge * patch).astype(int) for edge in (first, stop))
    return picture[top:bottom, left:right], places - first


def veiled(
    pixels: UInt8[np.ndarray, "height width 3"],
    values: Float[np.ndarray, "row column"],
    scale: PictureHeat,
) -> UInt8[np.ndarray, "down along 3"]:
    """A pale picture under colours that hide more of it where numbers are larger.

    The pixels of small pictures are repeated, so that each patch covers several dots.
    """
    least = max(rows / side for rows, side in zip(values.shape, pixels.shape[:2], strict=True))
    times = int(np.ceil(POINTS * least))
    dots = pixels.repeat(times, axis=0).repeat(times, axis=1).astype(float)
    down, along = (
        np.arange(side) * count // side
        for side, count in zip(dots.shape[:2], values.shape, strict=True)
    )
    return scale.over(pale(dots, scale.paper), values[down[:, None], along[None, :]])
