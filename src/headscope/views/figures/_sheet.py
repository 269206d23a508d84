"""A sheet of paper in millimetres, from the upper left corner down; the only module that draws with
matplotlib.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, UInt8

from headscope.errors import FigureError
from headscope.record import Tokens
from headscope.views.figures._style import POINT, Style, parse_hex
from headscope.views.figures.fonts import LONGEST, em_width, in_quotes, readable, writable

Anchor = Literal["left", "center", "right"]
Length = float | int
"""Millimetres."""
Box = tuple[float, float, float, float]
"""Left and upper edge, width and height in millimetres."""

RISE = 0.31
"""Distance of the baseline below the middle of a line of text, in units of the font size."""
LEADING = 1.4
"""Height of a line of small text, in units of the font size."""
SHARPNESS = 600
"""Dots in an inch of pictures of cells at least: viewers of PDF and SVG then do not smooth them."""
MOST_DOTS = 4096
HATCH, HATCH_LINE = 1.1, 0.16
"""Distance and thickness of hatching lines in millimetres, where a query may not look."""
MARGIN = 1.2
"""Width of the margin around everything in millimetres."""
INCH = 25.4


def size_of(axes: Any) -> tuple[float, float]:
    """Width and height of axes in millimetres.

    Raises:
        FigureError: where they are not axes of matplotlib.
    """
    if not hasattr(axes, "get_window_extent") or not hasattr(axes, "add_patch"):
        raise FigureError(
            f"ax must be matplotlib Axes, such as plt.subplots() gives, not {type(axes).__name__}"
        )
    box = axes.get_position()
    width, height = axes.get_figure(root=True).get_size_inches()
    return box.width * width * INCH, box.height * height * INCH


class Sheet:
    """A matplotlib figure of fixed width whose height is set when all is drawn.

    ``width`` is the room without the margins; x and y count from the corner inside them. What is
    drawn below each other begins at ``y``, and moves it on to its own lower edge.

    Args:
        width: width of the paper in millimetres.
        style: colours and type.
        letter: that of a picture in a row, which is placed by `put`.
        onto: axes which are drawn into in place of paper: the reader's own, or those of a picture
            in a row.
    """

    narrow: bool = False
    """Whether there is room for little more than the picture."""
    title_room: float = 0.0
    """Height of the highest title of a row, in millimetres."""

    def __init__(self, width: float, style: Style, *, letter: str = "", onto: Any = None) -> None:
        from matplotlib.figure import Figure

        self.width: float = width - 2 * MARGIN
        self.y: float = 0.0
        self.height: float = 0.0
        self.style = style
        self.missing: set[str] = set()
        self.letter = letter
        self.notes: list[str] = []
        self._room: float | None = None if onto is None or letter else size_of(onto)[1]
        if onto is None:
            onto = Figure(figsize=(width / INCH, 1), facecolor=style.paper).add_axes((0, 0, 1, 1))
        self.matplotlib: Any = onto.get_figure(root=True)
        self.page: Any = onto
        self.page.set_axis_off()
        self.page.set_xlim(-MARGIN, width - MARGIN)
        # Patches would change the limits, and a millimetre would no longer be a millimetre.
        self.page.set_autoscale_on(False)

    def finish(self) -> None:
        """Make the sheet as high as what is drawn.

        Raises:
            FigureError: where it is more than the reader's own axes have.
        """
        self.height = self.y + 0.3 * self.style.em + 2 * MARGIN
        room = self.height if self._room is None else self._room
        if self.height > room + 0.05:
            raise FigureError(
                f"The drawing is {self.height:.0f} mm high and the axes {room:.0f} mm; make "
                "the figure higher, or the drawing lower (font_size=, fewer heads or tokens)"
            )
        # The larger limit first: y then runs down from the upper edge.
        self.page.set_ylim(room - MARGIN, -MARGIN)
        if self._room is None and not self.letter:
            self.matplotlib.set_size_inches((self.width + 2 * MARGIN) / INCH, room / INCH)

    def put(self, left: float, top: float, paper: Sheet) -> None:
        """Place a finished picture of a row, in millimetres from the upper left corner of a
        finished sheet.
        """
        width, height = paper.width + 2 * MARGIN, paper.height
        part = (self.width + 2 * MARGIN) / width
        self.page.set_position(
            (left / width, 1 - (top + self.height) / height, part, self.height / height)
        )

    def axes(self, box: Box) -> Any:
        """Axes of matplotlib over a box of the sheet, with nothing but what is drawn in them."""
        style, place = self.style, self.page.transData
        axes = self.page.inset_axes(box, transform=place, facecolor="none", zorder=1)
        axes.set_frame_on(False)
        look = {"length": 0, "labelsize": style.small, "labelcolor": style.muted}
        families = [*style.families, "sans-serif"]
        axes.tick_params(**look, pad=0.4 * style.size, labelfontfamily=families)
        axes.set(xticks=[], yticks=[], axisbelow=True)
        return axes

    def shown(self, token: str, longest: int | None = LONGEST) -> str:
        """A token as it can be written with the fonts of this machine; of a longer one its
        beginning.
        """
        text = readable(token, longest)
        written, missing = writable(text, self.style.families)
        self.missing |= missing
        return written

    def naming(self, pitch: float, count: int = 0) -> tuple[float, int]:
        """Size in points of the names of so many tokens at this distance, in millimetres, and 1
        where all have room for their name, n where only every nth has.
        """
        size = float(np.clip(pitch / POINT / 1.08, 4.0, self.style.size))
        # Less a little: a name that fits exactly must not be left out by a rounding error.
        return size, max(1, int(np.ceil(size * POINT / pitch - 1e-9))) if count else 1

    def token_name(self, tokens: Tokens, position: int) -> str:
        """A token as it is written, with a dash where it continues a word."""
        return ("–" if tokens.continues[position] else "") + self.shown(tokens.labels[position])

    def name(
        self, tokens: Tokens, position: int, at: tuple[float, float], room: float, **look: Any
    ) -> None:
        """Write a token at a point as `text` does, cut to the room; special ones are muted."""
        colour = self.style.muted if tokens.special[position] else self.style.ink
        name = self.fitted(self.token_name(tokens, position), room, look.get("size"))
        look = {"colour": colour, **look}
        self.text(at[0], at[1], name, **look)

    def quoted(self, label: str) -> str:
        """A token in quotation marks."""
        return in_quotes(self.shown(label))

    def width_of(self, text: str, size: float | None = None, *, bold: bool = False) -> float:
        """Width of a text in millimetres."""
        return em_width(text, self.style.families, bold=bold) * (size or self.style.size) * POINT

    def widest(self, texts: Iterable[str], *, of_notes: bool = True) -> float:
        """Width of the widest of these texts in small type, or in that of all text; 0 of none."""
        size = self.style.small if of_notes else None
        return max((self.width_of(text, size) for text in texts), default=0.0)

    def fitted(self, text: str, room: float, size: float | None = None, *, tail: int = 0) -> str:
        """The text, cut where it is wider than the room, before its last ``tail`` letters."""
        if self.width_of(text, size) <= room:
            return text
        # Longer cuts are wider, so that the longest one that fits can be found by bisection.
        stop = len(text) - tail
        cuts = [f"{text[:end].rstrip()}…{text[stop:]}" for end in range(1, stop)]
        fit = bisect_right(cuts, room, key=lambda cut: self.width_of(cut, size))
        return ["…", *cuts][fit]

    def text(
        self, x: Length, y: Length, text: str, *, anchor: Anchor = "left", **look: Any
    ) -> None:
        """Write a line; y is its middle. Upright text runs upwards from y, and x is its middle.

        Look is ``size`` in points, ``colour``, and whether it is ``bold`` or ``upright``.
        """
        if not text:
            return
        size, upright = look.get("size") or self.style.size, look.get("upright", False)
        # Positions are converted to baselines, which matplotlib places alike in all fonts.
        fall = RISE * size * POINT
        right, down = (fall, 0.0) if upright else (0.0, fall)
        self.page.text(
            x + right,
            y + down,
            writable(text, self.style.families)[0],
            size=size,
            color=look.get("colour") or self.style.ink,
            family=[*self.style.families, "sans-serif"],
            weight="bold" if look.get("bold") else "normal",
            ha=anchor,
            va="baseline",
            rotation=90 if upright else 0,
            rotation_mode="anchor",
            parse_math=False,
            zorder=5,
        )

    def note(self, x: Length, y: Length, text: str, *, anchor: Anchor = "left") -> None:
        """Write a line of small muted text."""
        self.text(x, y, text, size=self.style.small, colour=self.style.muted, anchor=anchor)

    def title(self, title: str, x: float = 0.0, room: float | None = None, **look: Any) -> None:
        """Write a title from x on, by default over the rest of the width, in as many lines as it
        needs, which break at middle dots where they can.
        """
        bold, room = look.get("bold", False), self.width - x if room is None else room
        pitch = (1.5 if bold else 1.2) * self.style.em
        for line in (
            self.lines(self.shown(title, None).split(" · "), room, bold=bold) if title else ()
        ):
            self.text(x, self.y + 0.5 * pitch, line, **look)
            self.y += pitch

    def paragraph(self, parts: Sequence[str]) -> None:
        """Write small muted text over the width, each part on one line where it fits."""
        pitch = LEADING * self.style.small * POINT
        for line in self.lines([*filter(None, parts)], self.width, self.style.small):
            self.note(0, self.y + pitch / 2, line)
            self.y += pitch

    def rect(self, x: Length, y: Length, width: Length, height: Length, **look: Any) -> None:
        """A rectangle; look is that of a patch, and ``round`` millimetres of its corners."""
        from matplotlib.patches import FancyBboxPatch, Rectangle

        if radius := min(look.pop("round", 0.0), width / 2, height / 2):
            look["boxstyle"] = f"round,pad=0,rounding_size={radius}"
        self._add(FancyBboxPatch if radius else Rectangle, (x, y), width, height, **look)

    def dot(self, x: Length, y: Length, across: Length, **look: Any) -> None:
        """A circle around a point; look is that of a patch."""
        from matplotlib.patches import Circle

        self._add(Circle, (x, y), across / 2, **{"zorder": 3} | look)

    def _add(self, patch: Any, *place: Any, **look: Any) -> None:
        usual = {"facecolor": "none", "edgecolor": "none", "linewidth": 0.5, "zorder": 2}
        self.page.add_patch(patch(*place, **usual | look))

    def line(self, xs: Sequence[Length], ys: Sequence[Length], colour: str, wide: float) -> None:
        """A line through points, of this width in points."""
        look = {"color": colour, "linewidth": wide, "solid_capstyle": "butt", "zorder": 2}
        self.page.plot(xs, ys, scalex=False, scaley=False, **look)

    def curves(self, points: Float[np.ndarray, "curve 4 2"], **look: Any) -> None:
        """Cubic curves of one look, that of a patch."""
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        codes = np.tile([Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4], len(points))
        path = Path(points.reshape(-1, 2), codes)
        self.page.add_patch(PathPatch(path, fill=False, capstyle="butt", **look))

    def cells(
        self,
        rgb: UInt8[np.ndarray, "row column 3"],
        *,
        at: tuple[float, float],
        size: tuple[float, float],
        hidden: Bool[np.ndarray, "row column"] | None = None,
        framed: bool = True,
    ) -> None:
        """A picture of cells that are all equally large, in millimetres; hidden ones are hatched.

        Args:
            rgb: red, green, blue of each cell.
            at: x and y of the upper left corner.
            size: width and height.
            hidden: True where a query may not look.
            framed: whether a thin line is around it.
        """
        width, height = size
        rows, columns = rgb.shape[:2]
        down, along = _dots(height, rows), _dots(width, columns)
        large = rgb.repeat(down, axis=0).repeat(along, axis=1)
        if hidden is not None and hidden.any():
            under = hidden.repeat(down, axis=0).repeat(along, axis=1)
            y, x = np.indices(under.shape, sparse=True)
            # Millimetres along a diagonal: a line at each multiple of the distance between lines.
            diagonal = y * (height / under.shape[0]) + x * (width / under.shape[1])
            large[under & (diagonal % HATCH < HATCH_LINE)] = parse_hex(self.style.edge)
        extent = (at[0], at[0] + width, at[1] + height, at[1])
        self.page.imshow(large, extent=extent, interpolation="none", aspect="auto", zorder=1)
        if framed:
            self.rect(*at, *size, edgecolor=self.style.edge, linewidth=0.35, zorder=3)

    def flow(
        self, widths: Iterable[float], *, left: float = 0.0, gap: float, leftward: bool = False
    ) -> list[tuple[float, int]]:
        """The x and the line of boxes of these widths, in as many lines as they need, from the left
        or leftward from the right.
        """
        x, line, places = left, 0, []
        for width in widths:
            if x > left and x + width > self.width + 1e-9:
                x, line = left, line + 1
            places.append((left + self.width - x - width if leftward else x, line))
            x += width + gap
        return places

    def legend(
        self,
        entries: Sequence[tuple[Any, str]],
        draw: Callable[[Sheet, Any, float, float], None] | None = None,
        *,
        x: float = 0.0,
        side: float | None = None,
    ) -> None:
        """Write words behind their marks side by side, in as many lines as they need.

        Args:
            entries: a mark and its words.
            draw: draws a mark around a point; by default marks are colours of squares.
            x: the left edge.
            side: width of a mark.
        """
        style, em = self.style, self.style.em
        side, high = side or 0.9 * em, 1.5 * em
        widths = [side + 0.5 * em + self.width_of(words, style.small) for _, words in entries]
        places = self.flow(widths, left=x, gap=1.4 * em)
        for (mark, words), (left, line) in zip(entries, places, strict=True):
            middle = self.y + (line + 0.5) * high
            (draw or _square)(self, mark, left + side / 2, middle)
            self.note(left + side + 0.5 * em, middle, words)
        self.y += high * (1 + max((line for _, line in places), default=0))

    def lines(
        self, parts: Sequence[str], room: float, size: float | None = None, *, bold: bool = False
    ) -> list[str]:
        """Lines of ``part · part``; a part that is wider than the room is broken at blanks, and a
        word that is wider between two characters.
        """

        def width(text: str) -> float:
            return self.width_of(text, size, bold=bold)

        lines = [""]
        for part in parts:
            joined = f"{lines[-1]} · {part}" if lines[-1] else part
            if width(joined) <= room:
                lines[-1] = joined
                continue
            lines.append("")
            for word in part.split(" "):
                longer = f"{lines[-1]} {word}".strip()
                if width(longer) <= room:
                    lines[-1] = longer
                    continue
                rest = word
                while len(rest) > 1 and width(rest) > room:
                    ends = range(1, len(rest))
                    cut = max(1, bisect_right(ends, room, key=lambda end: width(rest[:end])))
                    lines.append(rest[:cut])
                    rest = rest[cut:]
                lines.append(rest)
        return [line for line in lines if line]


def _square(sheet: Sheet, colour: str, x: float, y: float) -> None:
    side = 0.9 * sheet.style.em
    look = {"facecolor": colour, "edgecolor": sheet.style.edge, "linewidth": 0.3}
    sheet.rect(x - side / 2, y - side / 2, side, side, **look)


def _dots(length: float, count: int) -> int:
    """Number of dots for each of so many cells along a length in millimetres: enough to be sharp in
    print, and at most `MOST_DOTS` for all cells.
    """
    sharp = round(SHARPNESS * length / INCH / count)
    return max(1, min(sharp, MOST_DOTS // count))


def apart(heights: Mapping[str, float], least: float, lowest: float) -> dict[str, float]:
    """Heights of names, moved down or up so that none overlap and none is below the lowest."""
    names, placed, above = sorted(heights, key=heights.__getitem__), {}, -np.inf
    for name in names:
        placed[name] = above = max(heights[name], above + least)
    for name in reversed(names):
        placed[name] = min(placed[name], lowest)
        lowest = placed[name] - least
    return placed
