"""Figure of a mechanism: the neurons that carry a head's scores, by position of the query."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Unpack

import numpy as np

from headscope.errors import FigureError
from headscope.results import draws
from headscope.views.figures._figure import Figure
from headscope.views.figures._palette import parse_hex
from headscope.views.figures._result import ResultOptions, draw_result
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import POINT
from headscope.views.figures._words import two_digits

MOST = 12
PANEL = 56.0
ROW = 1.1
"""Height of a position in millimetres."""


NOTES = [
    "colour: share of texts in which a neuron is among the fewest that carry the score, "
    "paper for 0",
    "rows: position of the query, from 0; columns: neurons of the head, from 0",
    "Jaccard: how alike the sets of two positions are",
]


@draws("mechanism")
def mechanism_figure(
    mechanism: Any,
    *,
    at: Collection[tuple[int, int]] | None = None,
    of: str = "margin",
    **options: Unpack[ResultOptions],
) -> Figure:
    """For each head, in how many texts each neuron carries the score of the query at each position.

    Neurons that carry a pattern at every position are stripes from top to bottom; neurons that
    change with the position make a pattern along the rows.

    Args:
        mechanism: the result of `headscope.mechanism`.
        at: layer and head of up to 12 heads to draw; by default all that were analysed.
        of: ``"margin"`` or ``"score"``, see `Mechanism`.
        **options: see `ResultOptions`.

    Raises:
        FigureError: more heads than 12, an unknown option, or matplotlib is missing.
        RecordError: a head that was not analysed, or an unknown reading.

    Example:
        >>> mechanism_figure(mechanism(records, [(2, 0), (7, 3)])).save("neurons.pdf")
    """
    cells = list(mechanism.cells if at is None else at)
    if not 0 < len(cells) <= MOST:
        raise FigureError(
            f"{len(cells)} heads were asked for; the figure has room for 1 to {MOST}, give "
            "at=[(2, 0)]"
        )
    is_plain = all(len(member) == 1 for cell in cells for member in _members(mechanism, cell))
    what = "neurons" if is_plain else "units"
    looks = "what each query looks at"
    if mechanism.pattern is not None:
        looks = f"“{mechanism.pattern.name}”"
    layers, heads = zip(*cells, strict=True)

    def draw(sheet: Sheet, y: float) -> tuple[float, list[str]]:
        shares = [(cell, mechanism.carried_at(*cell, of=of)) for cell in cells]
        return _panels(sheet, mechanism, shares, y, of=of), NOTES

    return draw_result(
        mechanism,
        options,
        draw,
        title=f"{mechanism.model or 'Heads'}: {what} that carry attention",
        note=f"{looks}, {mechanism.texts} texts, read by the {of}",
        layers=layers,
        heads=heads,
        texts=mechanism.sums.texts,
        chosen=f", at={cells!r}, of={of!r}",
    )


def _members(mechanism: Any, cell: tuple[int, int]) -> tuple:
    return mechanism.units[cell[0]].members


def _panels(
    sheet: Sheet,
    mechanism: Any,
    shares: Sequence[tuple[tuple[int, int], np.ndarray]],
    y: float,
    *,
    of: str,
) -> float:
    """Draw a panel for each head, as many side by side as there is room for; return the next y."""
    em, rows = (
        sheet.style.em,
        max(mechanism.seen_often(*cell) for cell, _ in shares),
    )
    gap = 2 * em
    columns = max(1, min(len(shares), int((sheet.width + gap) / (PANEL + gap))))
    size = ((sheet.width - (columns - 1) * gap) / columns, rows * ROW)
    tall = 3.2 * em + size[1] + 1.6 * em
    for number, (cell, values) in enumerate(shares):
        corner = ((number % columns) * (size[0] + gap), y + (number // columns) * tall)
        _panel(sheet, mechanism, cell, values[:rows], of=of, at=corner, size=size)
    return y + -(-len(shares) // columns) * tall


def _panel(
    sheet: Sheet,
    mechanism: Any,
    cell: tuple[int, int],
    shares: np.ndarray,
    *,
    of: str,
    at: tuple[float, float],
    size: tuple[float, float],
) -> None:
    style = sheet.style
    columns = mechanism.columns()
    keys = zip(columns["layer"], columns["head"], columns["of"], strict=True)
    row = list(keys).index((*cell, of))
    side = sheet.width_of("00", style.small) + 0.5 * style.em
    (x, y), (wide, tall) = at, size
    numbers = {name: columns[name][row] for name in ("neurons", "units", "overlap", "chance")}
    sheet.text(x + side, y + 0.6 * style.em, f"head {cell[0]}-{cell[1]}")
    note = (
        f"{numbers['neurons']:.1f} of {numbers['units']}, "
        f"Jaccard {two_digits(numbers['overlap'])} (chance {two_digits(numbers['chance'])})"
    )
    sheet.note(x + side, y + 1.8 * style.em, note)
    top = y + 2.7 * style.em
    rgb = style.weight_scale(1.0, power=1.0).rgb(np.where(np.isnan(shares), 0.0, shares))
    rgb[np.isnan(shares)] = parse_hex(style.masked)
    sheet.cells(rgb, at=(x + side, top), size=(wide - side, tall))
    sheet.rect(x + side, top, wide - side, tall, edge=style.edge, line=0.35, layer=3)
    every = max(1, int(np.ceil(1.6 * style.small * POINT / ROW)), len(shares) // 8)
    for index in range(0, len(shares), every):
        sheet.note(x + side - 0.4 * style.em, top + (index + 0.5) * ROW, str(index), anchor="right")
    pitch = (wide - side) / shares.shape[1]
    step = max(1, int(np.ceil(1.5 * sheet.width_of("00", style.small) / pitch)))
    for unit in range(0, shares.shape[1], step):
        sheet.note(
            x + side + (unit + 0.5) * pitch, top + tall + 0.7 * style.em, str(unit), anchor="center"
        )
