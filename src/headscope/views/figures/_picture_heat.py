"""Heat of patches over their picture, which can be seen through it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, UInt8

from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import Scale, Style, parse_hex

LONGEST, LONGEST_OF_SEVERAL = 68.0, 42.0
"""Millimetres."""
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


@dataclass(frozen=True, eq=False)
class PlacedPicture:
    """A picture at its position on the sheet, in millimetres.

    Args:
        pixels: pixels of the part that is shown.
        grid: number of rows and columns of patches in that part.
        places: row and column of each patch in it.
        tokens: positions of the patches among the tokens.
        at: x and y of the upper left corner.
        size: width and height.
    """

    pixels: UInt8[np.ndarray, "height width 3"]
    grid: tuple[int, int]
    places: list[tuple[int, int]]
    tokens: list[int]
    at: tuple[float, float]
    size: tuple[float, float]

    def cell(self, token: int) -> tuple[float, float, float, float]:
        """X and y of the upper left corner of a patch, its width and height."""
        row, column = self.places[self.tokens.index(token)]
        width, height = self.size[0] / self.grid[1], self.size[1] / self.grid[0]
        return self.at[0] + column * width, self.at[1] + row * height, width, height


def framed(
    picture: UInt8[np.ndarray, "height width 3"],
    grid: tuple[int, int],
    places: list[tuple[int, int]],
    *,
    tokens: list[int],
    room: float,
    y: float,
) -> PlacedPicture:
    """The part of a picture that these patches cover, as large as the room allows.

    Args:
        picture: the whole picture.
        grid: number of rows and columns of all its patches.
        places: row and column of each of these patches.
        tokens: positions of the patches among the tokens.
        room: longest side in millimetres.
        y: y of its upper side.
    """
    first = tuple(min(numbers) for numbers in zip(*places, strict=True))
    stop = tuple(max(numbers) + 1 for numbers in zip(*places, strict=True))
    rows, columns = (
        slice(round(start * side / count), round(end * side / count))
        for start, end, side, count in zip(first, stop, picture.shape[:2], grid, strict=True)
    )
    pixels = picture[rows, columns]
    height, width = pixels.shape[:2]
    scale = room / max(height, width)
    return PlacedPicture(
        pixels=pixels,
        grid=(stop[0] - first[0], stop[1] - first[1]),
        places=[(row - first[0], column - first[1]) for row, column in places],
        tokens=tokens,
        at=(0.0, y),
        size=(width * scale, height * scale),
    )


def draw_pictured(
    sheet: Sheet,
    shown: PlacedPicture,
    heat: Float[np.ndarray, " token"],
    scale: PictureHeat,
    *,
    takes_part: Bool[np.ndarray, " token"],
) -> None:
    """Draw a picture and the heat of its patches over it."""
    values = np.zeros(shown.grid)
    for token, place in zip(shown.tokens, shown.places, strict=True):
        values[place] = heat[token] if takes_part[token] else 0.0
    sheet.cells(
        veiled(shown.pixels, np.nan_to_num(values), scale),
        at=shown.at,
        size=shown.size,
        framed=False,
    )


def veiled(
    pixels: UInt8[np.ndarray, "height width 3"],
    values: Float[np.ndarray, "row column"],
    scale: PictureHeat,
) -> UInt8[np.ndarray, "down along 3"]:
    """A pale picture under colours that hide more of it where numbers are larger.

    The pixels of small pictures are repeated, so that each patch covers several dots.
    """
    height, width = pixels.shape[:2]
    times = int(
        np.ceil(
            POINTS
            * max(rows / side for rows, side in zip(values.shape, (height, width), strict=True))
        )
    )
    dots = pixels.repeat(times, axis=0).repeat(times, axis=1).astype(float)
    down, along = (
        np.arange(side) * count // side
        for side, count in zip(dots.shape[:2], values.shape, strict=True)
    )
    return scale.over(pale(dots, scale.paper), values[down[:, None], along[None, :]])
