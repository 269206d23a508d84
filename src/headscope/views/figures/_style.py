"""The look of a figure: numbers as text, colours, and scales from numbers to colours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8

from headscope.views.constants import KIND_COLOURS, NEGATIVE, POSITIVE
from headscope.views.figures.fonts import families


def short_weight(weight: float) -> str:
    """``".21"``, ``".004"``, ``"<.001"``: an attention weight in a narrow column."""
    if weight >= 0.995:
        return "1.0"
    if weight >= 0.0095:
        return f"{weight:.2f}"[1:]
    if weight >= 0.0005:
        return f"{weight:.3f}"[1:]
    return "<.001" if weight > 0 else "0"


def two_digits(weight: float) -> str:
    """``".86"``, ``".015"``, ``"1.0"``: the end of a scale."""
    if weight >= 0.995:
        return "1.0"
    return (f"{weight:.2f}" if weight >= 0.095 else f"{weight:.2g}").removeprefix("0")


def times(multiple: float) -> str:
    """``"31 ×"``, ``"1.2 ×"``, ``"<.1 ×"``: how often the even share."""
    if 0 < multiple < 0.05:
        return "<.1 ×"
    text = f"{multiple:,.0f}" if multiple >= 9.95 else f"{multiple:.1f}".removesuffix(".0")
    return f"{text.removeprefix('0') or '0'} ×"


def signed(number: float, digits: int) -> str:
    """With so many digits and a true minus, but none before what was rounded to zero."""
    text = f"{abs(number):.{digits}f}"
    return f"−{text}" if number < 0 and float(text) else text


def short_score(score: float) -> str:
    """``"12"``, ``"3.4"``, ``"−0.21"``."""
    return signed(score, 2 - (abs(score) >= 0.995) - (abs(score) >= 9.95))


def percent(part: float) -> str:
    """``"86 %"``, and never 0 % or 100 % for something in between."""
    if 0 < part < 0.005:
        return "<1 %"
    if 0.995 <= part < 1:
        return "100 %" if part >= 0.9995 else ">99 %"
    return f"{100 * part:.0f} %"


def number_written(value: float) -> str:
    """``"−0.5"``: at most two digits behind the point, and a true minus."""
    text = f"{abs(value):.2f}".rstrip("0").rstrip(".") or "0"
    return f"−{text}" if value < -1e-9 else text


def percent_written(value: float) -> str:
    """``"25 %"``."""
    return f"{number_written(100 * value)} %"


def short_change(value: float, largest: float) -> str:
    """``"−0.013"``: with as many digits as show the largest change with two."""
    return signed(value, int(np.clip(1 - np.floor(np.log10(largest or 1.0)), 0, 6)))


def counted(number: int, noun: str) -> str:
    """``"1 head"``, ``"12 heads"``, ``"1,120 lines"``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


Colours = UInt8[np.ndarray, "step 3"]

# Chosen so that any two can be distinguished with normal and with colour-blind eyes: by simulated
# annealing in OKLCH over normal, protan, deutan and tritan vision.
_ON_BOTH = (
    "#3c9ffb #a00b27 #9a973f #d665b0 #a95c10 #008c74 #2e48b5 #fd99a4 #47cfe4 #a5cc36 "
    "#753b79 #7e63da",
    "#9cc1ff #d56407 #d1e26c #b764a5 #b68ffe #4ccf7d #6b7ae5 #d3a500 #1af4fb #73a26e "
    "#f47aba #ffb2bd",
)
SERIES = [*zip(*map(str.split, _ON_BOTH), strict=True)]
"""Colours of series on light and on dark paper, those first that are easiest to distinguish."""


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
    lightness, part = (0.96, 0.3) if dark else (min(0.24, 0.6 * middle[0]), 0.45)
    end = np.array([lightness, part * middle[1], part * middle[2]])
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


def _between(colour_stops: list[tuple[float, np.ndarray]]) -> Colours:
    at, (stops, colours) = np.linspace(0, 1, 256), zip(*colour_stops, strict=True)
    lab = np.stack([np.interp(at, stops, axis) for axis in np.transpose(colours)], axis=1)
    linear = (lab @ np.linalg.inv(TO_LAB).T) ** 3 @ np.linalg.inv(TO_CONES).T
    linear = np.clip(linear, 0, 1)
    encoded = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return np.rint(255 * encoded).astype(np.uint8)


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


def _linear(channel: Float[np.ndarray, " 3"]) -> Float[np.ndarray, " 3"]:
    return np.where(channel <= 0.04045, channel / 12.92, ((channel + 0.055) / 1.055) ** 2.4)


COLOUR, STRENGTH = 0.35, 0.72
"""Shares that are kept of a picture's colour, and of its contrast to the paper."""
VEIL = 0.72
"""Opacity of the largest number over a picture."""
MOST_TIMES = 16.0
"""How often the even share is drawn in full over a picture, where many patches are faint."""
FULL = {False: 173, True: 212}
"""The step of a scale, by whether it is signed, that colours the heat; later steps are almost black
or white.
"""
# Weights of red, green and blue in the luma of ITU-R BT.601.
GREY = (0.299, 0.587, 0.114)
GREYS = (191.0, 64.0)
"""Light and dark of a picture, over which the bar of its scale is drawn."""
STEPS = 128
"""Colours of the bar of a scale."""
POINTS = 2.0
"""Dots for each row or column of patches at least, so that the edges of patches are sharp."""


@dataclass(frozen=True, eq=False)
class Scale:
    """Colours of weights (from 0) or of signed numbers (symmetric around 0).

    Over pictures larger numbers hide more, by ``VEIL * |number / largest|^0.75``.

    Args:
        colours: colours of the whole range, from its lower to its upper end.
        largest: the number that gets the last colour.
        signed: whether the range begins at ``-largest`` instead of 0.
        power: colour moves with ``|number| ** power``.
        masked: colour of NaN: where a query may not look.
        lifts: whether the numbers are multiples of the even share, coloured by their doublings from
            1 on.
        written: writes numbers from 0 below the bar.
        paper: the paper, where numbers are drawn over pictures; else empty.
    """

    colours: Colours
    largest: float
    signed: bool
    power: float
    masked: str
    written: Callable[[float], str] = two_digits
    lifts: bool = False
    paper: str = ""

    def over_pictures(self, paper: str) -> Scale:
        """The same scale over pictures on this paper."""
        largest = min(self.largest, MOST_TIMES) if self.lifts else self.largest
        return replace(self, largest=largest, paper=paper)

    @property
    def words(self) -> str:
        """A note about the scale besides its bar."""
        if self.lifts:
            return "even: the same weight on every key that a query may attend to" * (
                not self.paper
            )
        which = "bar" if self.paper else "colour"
        return f"{which} on a square-root scale" if self.power == 0.5 else ""

    def position(self, values: np.ndarray) -> np.ndarray:
        """Positions of numbers on the bar, from 0 to 1."""
        if self.lifts:
            return np.log2(np.clip(values, 1, self.largest)) / np.log2(self.largest)
        size = self._sizes(values) ** self.power
        return np.asarray(0.5 + 0.5 * np.sign(values) * size if self.signed else size)

    def _sizes(self, values: np.ndarray) -> np.ndarray:
        return np.clip(np.abs(values) / (self.largest or 1.0), 0, 1)

    def rgb(self, values: Float[np.ndarray, "*axes"]) -> UInt8[np.ndarray, "*axes 3"]:
        """Red, green, blue of each number."""
        hidden = np.isnan(values)
        known = np.where(hidden, 0.0, values)
        if self.paper:
            rgb = self.over(parse_hex(self.paper).astype(float), known)
        else:
            rgb = self.colours[np.rint(255 * self.position(known)).astype(int)]
        return np.where(hidden[..., None], parse_hex(self.masked), rgb)

    def over(
        self, ground: Float[np.ndarray, "*axes 3"], values: Float[np.ndarray, "*axes"]
    ) -> UInt8[np.ndarray, "*axes 3"]:
        """Colours of numbers over a picture or paper."""
        sizes = self.position(values) if self.lifts else self._sizes(values) ** 0.75
        steps = np.where(values < 0, 255 - FULL[True], FULL[self.signed])
        mixed = ground + VEIL * sizes[..., None] * (self.colours[steps].astype(float) - ground)
        return np.rint(mixed).astype(np.uint8)

    def bar(self) -> UInt8[np.ndarray, "row column 3"]:
        """Red, green, blue of the bar that explains it, from its lower to its upper end; over
        pictures over what is light and what is dark in them.
        """
        if not self.paper:
            return self.colours[np.linspace(0, 255, STEPS).astype(int)][None]
        parts = np.linspace(-1 if self.signed else 0, 1, STEPS)
        values = np.sign(parts) * np.abs(parts) ** (1 / self.power) * (self.largest or 1.0)
        values = self.largest**parts if self.lifts else values
        ground = pale(np.array(GREYS)[:, None, None].repeat(3, axis=-1), self.paper)
        return self.over(ground, np.stack([values, values]))

    def ticks(self) -> list[tuple[float, str]]:
        """Position on the bar and text of each number that is written below it."""
        if self.lifts:
            marks = (1.0, 2.0 ** round(np.log2(self.largest) / 2), self.largest)
            return [(float(self.position(np.array([mark]))[0]), times(mark)) for mark in marks]
        if self.signed:
            return [(0.0, short_score(-self.largest)), (0.5, "0"), (1.0, short_score(self.largest))]
        if self.largest == 0:
            return [(0.0, "0")]
        # The number whose colour is in the middle of the bar.
        middle = 0.5 ** (1 / self.power) * self.largest
        return [(0.0, "0"), (0.5, self.written(middle)), (1.0, self.written(self.largest))]


POINT = 25.4 / 72
"""One point in millimetres."""


@dataclass(frozen=True, kw_only=True)
class Style:
    """Colours of the surfaces, and sizes of type.

    Args:
        paper: the background.
        ink: text.
        muted: text of notes.
        faint: tokens that take no part.
        edge: thin lines.
        masked: where a query may not look.
        accent: attention where no single head has its own colour.
        positive: numbers above 0.
        negative: numbers below 0.
        dark: whether paper is dark.
        colour: whether there are colours, or only greys.
        size: of text, in points.
        families: families of fonts, in the order in which they are tried for a character.
    """

    paper: str
    ink: str
    muted: str
    faint: str
    edge: str
    masked: str
    accent: str
    positive: str
    negative: str
    dark: bool
    colour: bool
    size: float
    families: tuple[str, ...]

    @property
    def small(self) -> float:
        """Size of notes in points."""
        # Not below 5 points, where print becomes hard to read, unless all text is smaller.
        return max(min(5.0, self.size), 0.86 * self.size)

    @property
    def em(self) -> float:
        """The size of text in millimetres."""
        return self.size * POINT

    def kind(self, kind: str) -> str:
        """Colour of a kind of heads, grey for none."""
        return KIND_COLOURS[kind][self.dark] if self.colour and kind else self.muted

    def hues(self, colours: Sequence[tuple[str, str]]) -> list[str]:
        """Of each pair the colour on light or on dark paper, or greys where there are no
        colours.
        """
        if not self.colour:
            return head_greys(len(colours), dark=self.dark)
        return [pair[self.dark] for pair in colours]

    def series(self, count: int) -> list[str]:
        """A colour for each of several series, or a grey where there are no colours."""
        return self.hues([SERIES[number % len(SERIES)] for number in range(count)])

    def shades(self, kind: str, count: int) -> list[str]:
        """Colours of so many heads of a kind, from the one that stands out most to the palest."""
        if count == 1:
            return [self.kind(kind)]
        ramp = sequential(self.paper, self.kind(kind), dark=self.dark)
        return ["#" + bytes(ramp[int(step)]).hex() for step in np.linspace(205, 95, count)]

    def weight_scale(
        self,
        largest: float,
        colour: str | None = None,
        *,
        power: float = 0.5,
        words: Callable[[float], str] = two_digits,
    ) -> Scale:
        """Paper for 0, through a colour, to the darkest (on dark paper: the lightest) for the
        largest number.
        """
        colours = sequential(
            self.paper, colour if colour and self.colour else self.accent, dark=self.dark
        )
        return Scale(colours, largest, signed=False, power=power, masked=self.masked, written=words)

    def score_scale(self, largest: float, *, power: float = 0.7) -> Scale:
        """Two colours for the largest numbers of both signs; paper for 0, or middle grey where only
        greys are used.
        """
        if self.colour:
            colours = diverging(self.negative, self.paper, self.positive)
        else:
            colours = diverging("#ffffff", "#9b9b9b", "#000000")
        return Scale(colours, largest, signed=True, power=power, masked=self.masked)


def named_scale(style: Style, colours: Sequence[str]) -> Scale:
    """The colours of numbers that stand for names: 0 for the first, 1 for the second, and so on."""
    rgb = np.array([*map(parse_hex, colours)])
    return Scale(rgb, largest=255.0, signed=False, power=1.0, masked=style.masked)


SURFACES = ("paper", "ink", "muted", "faint", "edge", "masked", "accent", "positive", "negative")
LOOKS = {
    (False, True): "#ffffff #15181d #5d646f #aab0b9 #d5d9df #eceef1 {0} {0} {1}",
    (True, True): "#111419 #e8eaee #98a0ac #5b6370 #343b46 #22272f {0} {0} {1}",
    (False, False): "#ffffff #111111 #5f5f5f #adadad #d4d4d4 #ededed #6a6a6a #222222 #b4b4b4",
    (True, False): "#141414 #ededed #a3a3a3 #606060 #3c3c3c #282828 #9a9a9a #e4e4e4 #6a6a6a",
}
"""The colours of `SURFACES` on light and on dark paper, in colour and in greys; braces stand for
the colours of the two signs.
"""


def style_of(options: Mapping[str, Any]) -> Style:
    """Colours and type of a figure with these options."""
    dark, colour = options.get("theme") == "dark", options.get("colour", True)
    colours = LOOKS[dark, colour].format(POSITIVE[dark], NEGATIVE[dark]).split()
    look: dict[str, Any] = dict(zip(SURFACES, colours, strict=True))
    size, fonts = float(options.get("font_size", 8)), families(options.get("font"))
    return Style(**look, dark=dark, colour=colour, size=size, families=fonts)


def pale(pixels: Float[np.ndarray, "*axes 3"], paper: str) -> Float[np.ndarray, "*axes 3"]:
    """Pixels with less colour and less contrast to the paper, so that the heat stands out."""
    white, grey = np.array(parse_hex(paper), float), (pixels @ np.array(GREY))[..., None]
    return white + STRENGTH * (grey + COLOUR * (pixels - grey) - white)


def veiled(
    pixels: UInt8[np.ndarray, "height width 3"],
    values: Float[np.ndarray, "row column"],
    scale: Scale,
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
