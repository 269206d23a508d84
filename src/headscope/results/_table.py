"""Tables as text and as HTML: at most 100 columns wide, with a legend below."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

WIDTH = 100
"""Characters of a line: about as many as a terminal over half of a laptop's screen shows."""
GAP = "  "
LEAST_WRAPPED = 28
"""Smallest number of characters left on a line for a column of words to be wrapped there."""


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Args:
        name: its title.
        cells: its cells as they are printed.
        says: what the numbers are, for the legend; empty where the title is enough.
        align: alignment of the cells.
        wraps: whether a cell may take several lines, broken between words.
    """

    name: str
    cells: tuple[str, ...]
    says: str = ""
    align: Literal["left", "right"] = "left"
    wraps: bool = False


@dataclass(frozen=True)
class TextTable:
    """A table for print. Columns that do not fit side by side are printed below, after the same
    first column.

    Args:
        columns: columns from left to right; the first names the rows.
        title: the line above it; empty for none.
        width: largest number of characters of a line.
    """

    columns: tuple[Column, ...]
    title: str = ""
    width: int = WIDTH

    @classmethod
    def of_rows(
        cls,
        rows: Sequence[Sequence[str]],
        *,
        says: Mapping[str, str] | None = None,
        title: str = "",
        align: Literal["left", "right"] = "left",
        wraps: Sequence[str] = (),
    ) -> TextTable:
        """A table of rows, the first of which holds the titles of the columns.

        Args:
            rows: rows of one length.
            says: what columns hold, by title, for the legend.
            title: the line above it.
            align: alignment of all columns but the first, which is aligned to the left.
            wraps: titles of the columns that may take several lines.
        """
        legend = says or {}
        columns = []
        for index, (name, *cells) in enumerate(zip(*rows, strict=True)):
            side = "left" if index == 0 else align
            columns.append(Column(name, tuple(cells), legend.get(name, ""), side, name in wraps))
        return cls(tuple(columns), title)

    def __str__(self) -> str:
        parts = ["\n".join(_lines(part)) for part in self._parts()]
        if self.title:
            parts[0] = f"{wrapped(self.title, self.width)}\n{parts[0]}"
        below = [wrapped(self.legend, self.width)] if self.legend else []
        return "\n".join(["\n\n".join(parts), *below])

    @property
    def legend(self) -> str:
        """What each column holds, one after the other; empty where all titles are enough."""
        told = [f"{each.name}: {each.says}" for each in self.columns if each.says]
        return "; ".join(dict.fromkeys(told))

    def html(self) -> str:
        """The table as HTML; every string is escaped."""
        head = "".join(f"<th>{html.escape(column.name)}</th>" for column in self.columns)
        rows = []
        for row in zip(*(column.cells for column in self.columns), strict=True):
            cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in row)
            rows.append(f"<tr>{cells}</tr>")
        title = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        note = f"<p><small>{html.escape(self.legend)}</small></p>" if self.legend else ""
        top = f"<thead><tr>{head}</tr></thead>"
        return f"<table>{title}{top}<tbody>{''.join(rows)}</tbody></table>{note}"

    def _parts(self) -> list[list[Column]]:
        """Groups of columns that fit side by side, each after the first column."""
        key, *rest = self.columns
        parts, part, room = [], [key], self.width - _size(key)
        for column in rest:
            fits = _size(column) + len(GAP) <= room
            # A column that may wrap stays in its row as long as a few words fit on each of its
            # lines.
            if not fits and len(part) > 1 and not (column.wraps and room >= LEAST_WRAPPED):
                parts.append(part)
                part, room = [key], self.width - _size(key)
                fits = _size(column) + len(GAP) <= room
            # Alone after the first column and still too wide: its cells are broken, whatever they
            # hold.
            part.append(column if fits else _broken(column, room - len(GAP)))
            room -= _size(part[-1]) + len(GAP)
        return [*parts, part]


def _size(column: Column) -> int:
    lines = [line for cell in (column.name, *column.cells) for line in cell.split("\n")]
    return max(map(len, lines))


def _broken(column: Column, room: int) -> Column:
    """The column with its cells in lines of at most so many characters."""
    cells = tuple(
        "\n".join(textwrap.wrap(cell, room, break_on_hyphens=False)) for cell in column.cells
    )
    return Column(column.name, cells, column.says, column.align, column.wraps)


def _lines(part: Sequence[Column]) -> list[str]:
    """The lines of columns side by side; a row is as high as its highest cell."""
    sizes = [_size(column) for column in part]
    lines = []
    for row in zip(*((column.name, *column.cells) for column in part), strict=True):
        cells = [cell.split("\n") for cell in row]
        for number in range(max(map(len, cells))):
            words = [cell[number] if number < len(cell) else "" for cell in cells]
            placed = []
            for word, size, column in zip(words, sizes, part, strict=True):
                placed.append(word.ljust(size) if column.align == "left" else word.rjust(size))
            lines.append(GAP.join(placed).rstrip())
    return lines


def wrapped(text: str, width: int = WIDTH) -> str:
    """Text with lines broken between words where they are longer than so many characters."""
    lines = []
    for line in text.split("\n"):
        inset = line[: len(line) - len(line.lstrip())]
        lines += textwrap.wrap(
            line,
            width,
            subsequent_indent=inset,
            # Names of files and models are copied from tables, so that they stay in one piece.
            break_long_words=False,
            break_on_hyphens=False,
            drop_whitespace=True,
            # textwrap returns no line for an empty one, which separates paragraphs here.
        ) or [""]
    return "\n".join(lines)
