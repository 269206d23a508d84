"""Charts beside each other, with what stands around each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headscope.views.figures._sheet import Box, Sheet
from headscope.views.figures._style import number_written

Ends = tuple[float, float]
ROW = 1.75
"""Height of a row, in units of the font size."""
MOST_SIDE, BESIDE_ROWS = 0.4, 0.6
"""Shares of the width: of names of rows and of titles beside rows at most, and of matrices beside
rows.
"""
LARGEST_CELL = 7.0
"""Millimetres of a cell of a matrix."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Panel:
    """A chart with what stands around it.

    Args:
        title: over it, in as many lines as it needs.
        note: small, below the title.
        under: name of its numbers, below it.
        names: of its rows, on the left.
        high: height of a row in millimetres, or of lines; by default what is needed.
        cell: of a matrix the width of a cell at most, in millimetres.
        aspect: of a cell: its height in units of its width.
        ends: the numbers at both ends of its axis.
        written: how these are written.
    """

    title: str = ""
    note: str = ""
    under: str = ""
    names: Sequence[object] = ("",)
    high: float | None = None
    cell: float = LARGEST_CELL
    aspect: float = 1.0
    ends: Ends = (0.0, 1.0)
    written: Callable[[float], str] = number_written

    @property
    def columns(self) -> int:
        """Cells side by side; 0 of what is no matrix."""
        return 0

    @property
    def beside(self) -> tuple[Sequence[str], Sequence[str]]:
        """Words of its own on its left and its right."""
        return (), ()

    def draw(self, sheet: Sheet, box: Box) -> None:
        """Draw it in a box."""
        raise NotImplementedError


def draw_panels(
    sheet: Sheet,
    y: float,
    panels: Sequence[Panel],
    *,
    least: float = 1000.0,
    gap: float = 1.6,
    cells: float = BESIDE_ROWS,
) -> float:
    """Draw panels side by side, in as many lines as they need; return the next y.

    Panels that all have the same rows have the names of these once in each line.

    Args:
        sheet: what is drawn on.
        y: where they begin.
        panels: in their order.
        least: smallest width of a chart in millimetres; by default they stand below each other.
        gap: between two panels, in units of the font size.
        cells: share of the width that matrices take beside rows.
    """
    em, gap = sheet.style.em, gap * sheet.style.em
    is_numbered = not isinstance(panels[0].names[0], str)
    side = max(sheet.widest(map(str, each.names), of_notes=is_numbered) for each in panels)
    side = min(side, MOST_SIDE * sheet.width / min(2, len(panels))) + 0.8 * em * (side > 0)
    is_shared = len({(*each.names,) for each in panels}) == 1
    sides = []
    for each in panels:
        left, right = map(sheet.widest, each.beside)
        left += 0.6 * em * (left > 0) + side * (not is_shared)
        if not each.columns:
            # At least half of the last number of the axis stands beside it.
            right = max(right + 0.8 * em, 0.5 * sheet.widest([each.written(each.ends[1])]))
        sides.append((left, right))
    start, around = side * is_shared, [left + right + gap for left, right in sides]
    room = sheet.width - start + gap
    columns = min(len(panels), max(1, int(room / (least + max(around)))))
    columns = -(-len(panels) // -(-len(panels) // columns))
    for first in range(0, len(panels), columns):
        part = slice(first, first + columns)
        line, x = [], start
        rest = room * len(panels[part]) / columns - sum(around[part])
        wide = _widths(sheet, panels[part], rest, cells)
        for each, (left, right), (of, taken) in zip(panels[part], sides[part], wide, strict=True):
            line.append((each, x + left, of))
            x += left + taken + right + gap
        y = _draw_line(sheet, y, line, side, is_shared=is_shared)
    return y


def _draw_line(
    sheet: Sheet,
    y: float,
    line: Sequence[tuple[Panel, float, float]],
    side: float,
    *,
    is_shared: bool,
) -> float:
    """Draw panels, each at its left edge and so wide, with what stands around them; the next y."""
    em, titled = sheet.style.em, [(x, each.title) for each, x, _ in line if each.title]
    stops = [*(x - 0.6 * em for x, _ in titled[1:]), sheet.width][: len(titled)]
    tops = [sheet.titles(y, [of], end - of[0]) for of, end in zip(titled, stops, strict=True)]
    y = max([y, *tops]) + (0.4 + 1.3 * any(each.note for each, *_ in line)) * em
    tall = [_tall(each, of, em) for each, _, of in line]
    matrices = [of for of, (each, *_) in zip(tall, line, strict=True) if each.columns]
    if len(matrices) < len(line) and matrices:
        # Rows are as high as those of the matrices beside them.
        tall = [max(matrices)] * len(line)
    for number, ((each, x, of), high) in enumerate(zip(line, tall, strict=True)):
        box = (x, y, of, high)
        sheet.note(x, y - 1.0 * em, each.note)
        if not (is_shared and number):
            _draw_names(sheet, each, box, side)
        each.draw(sheet, box)
        sheet.note(x + of / 2, y + high + 2.0 * em, each.under, anchor="center")
    return y + max(tall) + (2.2 + any(each.under for each, *_ in line)) * em


def _widths(sheet: Sheet, line: Sequence[Panel], room: float, cells: float) -> list[Ends]:
    """The width of each chart of a line and the room that it takes: equal ones, but beside rows
    cells are square, and have room for their title.
    """
    counts = [each.columns for each in line]
    if not any(counts) or all(counts):
        return [(room / len(line), room / len(line))] * len(line)
    cell, taken = min(LARGEST_CELL, cells * room / sum(counts)), []
    for count, each in zip(counts, line, strict=True):
        title = min(sheet.width_of(each.title), MOST_SIDE * sheet.width)
        taken.append(max(count * cell, title) if count else 0.0)
    rest = (room - sum(taken)) / counts.count(0)
    return [(count * cell or rest, of or rest) for count, of in zip(counts, taken, strict=True)]


def _tall(panel: Panel, wide: float, em: float) -> float:
    """Height of a panel where it is so wide."""
    row = ROW * em
    if panel.columns:
        row = panel.aspect * min(panel.cell, wide / panel.columns)
    return len(panel.names) * (panel.high or row)


def _draw_names(sheet: Sheet, panel: Panel, box: Box, side: float) -> None:
    """The names of rows on the left of a box, numbers in small; some where they stand close."""
    style, (x, y, _, tall), names = sheet.style, box, panel.names
    pitch = tall / len(names)
    size, every = sheet.naming(pitch, len(names))
    for row in range(0, len(names), every) if side else ():
        look: dict[str, Any] = {"size": size, "anchor": "right"}
        if not isinstance(names[row], str):
            look |= {"size": min(size, style.small), "colour": style.muted}
        name = sheet.fitted(str(names[row]), side - 0.5 * style.em, look["size"])
        sheet.text(x - 0.5 * style.em, y + (row + 0.5) * pitch, name, **look)
