"""Where one picture of a row stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, eq=False)
class Panel:
    """A picture in a row of pictures, on paper that all of them share.

    Args:
        matplotlib: the figure of the row.
        letter: what the picture is called below it.
        narrow: whether there is room for little more than the picture.
        lines: lines of its title.
        notes: takes what the picture says of itself, which the row writes once for all.
    """

    matplotlib: Any
    letter: str
    narrow: bool = False
    lines: int = 1
    notes: list[str] = field(default_factory=list)
