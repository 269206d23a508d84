"""One picture in a row of pictures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, eq=False)
class Panel:
    """A picture in a row of pictures, on a sheet that all of them share.

    Args:
        matplotlib: the figure of the row.
        letter: the letter of the picture.
        narrow: whether there is room for little more than the picture.
        kind: the kind of heads that it is the clearest of; empty in any other row.
        titles: height of the highest title of the row, in millimetres.
        notes: takes the notes of the picture, which the row writes once for all pictures.
    """

    matplotlib: Any
    letter: str
    narrow: bool = False
    kind: str = ""
    titles: float = 0.0
    notes: list[str] = field(default_factory=list)
