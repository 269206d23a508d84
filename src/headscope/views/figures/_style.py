"""The look of a figure: colours and type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from headscope.views.constants import KIND_COLOURS, NEGATIVE, POSITIVE
from headscope.views.figures._palette import diverging, head_colours, head_greys, sequential
from headscope.views.figures._scale import Scale
from headscope.views.figures._words import short_weight
from headscope.views.figures.fonts import families

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

    def heads(self, chosen: tuple[int, ...], count: int) -> dict[int, str]:
        """Colour of each chosen head of a layer with so many heads."""
        if not self.colour:
            return dict(zip(chosen, head_greys(len(chosen), dark=self.dark), strict=True))
        colours = head_colours(count, dark=self.dark)
        return {head: colours[head] for head in chosen}

    def kind(self, kind: str) -> str:
        """Colour of a kind of heads."""
        return KIND_COLOURS[kind][self.dark] if self.colour else self.muted

    def weight_scale(
        self,
        largest: float,
        colour: str | None = None,
        *,
        power: float = 0.5,
        words: Callable[[float], str] = short_weight,
    ) -> Scale:
        """Paper for 0, through a colour, to the darkest (on dark paper: the lightest) for the
        largest number.
        """
        colours = sequential(
            self.paper, colour if colour and self.colour else self.accent, dark=self.dark
        )
        return Scale(colours, largest, signed=False, power=power, masked=self.masked, written=words)

    def lift_scale(self, largest: float, colour: str | None = None) -> Scale:
        """Paper up to the even share, through a colour, to the darkest for so many times that."""
        return replace(self.weight_scale(largest, colour), lifts=True)

    def score_scale(self, largest: float) -> Scale:
        """Two colours for the largest numbers of both signs; paper for 0, or middle grey where only
        greys are used.
        """
        if self.colour:
            colours = diverging(self.negative, self.paper, self.positive)
        else:
            colours = diverging("#ffffff", "#9b9b9b", "#000000")
        return Scale(colours, largest, signed=True, power=0.7, masked=self.masked)


LIGHT = {
    "paper": "#ffffff",
    "ink": "#15181d",
    "muted": "#5d646f",
    "faint": "#aab0b9",
    "edge": "#d5d9df",
    "masked": "#eceef1",
    "accent": POSITIVE[0],
    "positive": POSITIVE[0],
    "negative": NEGATIVE[0],
}
DARK = {
    "paper": "#111419",
    "ink": "#e8eaee",
    "muted": "#98a0ac",
    "faint": "#5b6370",
    "edge": "#343b46",
    "masked": "#22272f",
    "accent": POSITIVE[1],
    "positive": POSITIVE[1],
    "negative": NEGATIVE[1],
}
LIGHT_GREYS = {
    "ink": "#111111",
    "muted": "#5f5f5f",
    "faint": "#adadad",
    "edge": "#d4d4d4",
    "masked": "#ededed",
    "accent": "#6a6a6a",
    "positive": "#222222",
    "negative": "#b4b4b4",
}
DARK_GREYS = {
    "paper": "#141414",
    "ink": "#ededed",
    "muted": "#a3a3a3",
    "faint": "#606060",
    "edge": "#3c3c3c",
    "masked": "#282828",
    "accent": "#9a9a9a",
    "positive": "#e4e4e4",
    "negative": "#6a6a6a",
}


def style_for(*, dark: bool, colour: bool, size: float, font: str | None) -> Style:
    """The style of a theme, in colour or in greys."""
    surfaces = DARK if dark else LIGHT
    if not colour:
        surfaces = surfaces | (DARK_GREYS if dark else LIGHT_GREYS)
    return Style(**surfaces, dark=dark, colour=colour, size=size, families=families(font))
