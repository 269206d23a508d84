"""The lines of view head: which are drawn, how dark they are, and their curves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from headscope.views.constants import BEND, SPREAD
from headscope.views.figures._columns import Columns
from headscope.views.figures._numbers import affordable_share, numbers_of, top_share
from headscope.views.figures._options import FigurePlan
from headscope.views.figures._sheet import LEADING, Sheet
from headscope.views.figures._style import POINT
from headscope.views.figures._words import short_score, short_weight

BUDGET = 5000
"""Number of lines that are drawn where the reader sets no percentage."""
FAINTEST = 0.006
LEVELS = np.geomspace(FAINTEST, 1.0, 24)
"""Opacities of lines. Lines of one head and one opacity are one path, which keeps files small."""
AIM = {False: 0.68, True: 0.55}
"""Mean coverage on light and on dark paper."""
SAMPLES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


@dataclass(frozen=True, eq=False)
class Lines:
    """The lines of a figure.

    Args:
        values: axes head, query, key; the chosen quantity, NaN where hidden.
        sizes: its magnitude, 0 where hidden.
        drawn: whether a line is drawn.
        opacity: opacity of each line.
        share: percent of each row's mass that was allowed.
        gain: opacity is ``1 - exp(-gain * size ** gamma)``.
        gamma: see gain.
    """

    values: np.ndarray
    sizes: np.ndarray
    drawn: np.ndarray
    opacity: np.ndarray
    share: int
    gain: float
    gamma: float

    @property
    def part(self) -> float:
        """Part of all mass of these heads that is drawn."""
        total = np.abs(np.nan_to_num(self.values)).sum()
        return float(self.sizes[self.drawn].sum() / total) if total else 0.0


def lines_of(plan: FigurePlan, columns: Columns) -> Lines:
    """The lines of a plan: the strongest of each row, as many as were chosen or as can be
    printed.
    """
    values = numbers_of(plan.layer, plan.maps, plan.shown, plan.without)
    sizes = np.abs(np.nan_to_num(values)) * plan.from_[:, None] * plan.to
    focus = plan.query is not None or plan.key is not None
    if plan.query is not None:
        sizes *= (np.arange(sizes.shape[1]) == plan.query)[:, None]
    if plan.key is not None:
        sizes *= np.arange(sizes.shape[2]) == plan.key
    largest = sizes.max(initial=0.0) or 1.0
    gamma, gain = (
        (0.85, min(12.0, 2.2 / largest**0.85)) if focus else (1.0, _exposure(plan, sizes, columns))
    )
    opacity = 1 - np.exp(-gain * sizes**gamma)
    seen = (opacity >= FAINTEST) & (sizes > 0)
    share = plan.share or (100 if focus else affordable_share(sizes, seen, BUDGET))
    return Lines(values, sizes, top_share(sizes, share) & seen, opacity, share, gain, gamma)


def draw_lines(sheet: Sheet, plan: FigurePlan, lines: Lines, columns: Columns) -> None:
    """Faint lines first; each path holds the lines of one head, opacity and sign."""
    starts, ends = columns.middle(lines.sizes.shape[1]), columns.middle(lines.sizes.shape[2])
    # Boundaries are half-way between two levels on a logarithmic scale, as the levels are spaced.
    level = np.digitize(lines.opacity, LEVELS[1:] / np.sqrt(LEVELS[1] / LEVELS[0]))
    thickness = _thickness(plan, columns)
    for index, head in enumerate(plan.maps):
        port = (
            ((index + 0.5) / len(plan.maps) - 0.5) * SPREAD * columns.pitch
            if len(plan.maps) > 1
            else 0.0
        )
        for negative in (False, True):
            chosen = lines.drawn[index] & ((lines.values[index] < 0) == negative)
            for step in np.unique(level[index][chosen]):
                query, key = np.nonzero(chosen & (level[index] == step))
                points = _curves(columns, starts[query] + port, ends[key] + port)
                sheet.curves(
                    points,
                    dashed=negative,
                    colour=plan.colours[head],
                    line=thickness,
                    opacity=float(LEVELS[step]),
                    layer=1 + step / len(LEVELS),
                )


def draw_samples(sheet: Sheet, plan: FigurePlan, lines: Lines, y: float) -> float:
    """Draw sample lines for some round weights, as dark as in the figure; return the next y."""
    style = plan.style
    size = style.small
    marks = _marks(plan, lines.sizes.max(initial=0.0))
    sheet.note(0, y + 0.7 * size * POINT, plan.shown.label)
    x = sheet.width_of(plan.shown.label, size) + 0.9 * style.em
    colour = plan.colours[plan.maps[0]] if len(plan.maps) == 1 else style.ink
    narrow = plan.panel is not None and plan.panel.narrow
    length = 3.0 if narrow else 4.8
    for mark, words in marks[-2:] if narrow else marks:
        if x + length + 0.7 + sheet.width_of(words, size) > sheet.width:
            break
        opacity = float(1 - np.exp(-lines.gain * mark**lines.gamma))
        points = np.array([[[x + step * length / 3, y + 0.7 * size * POINT] for step in range(4)]])
        sheet.curves(points, colour=colour, line=1.1, opacity=opacity, layer=2)
        sheet.note(x + length + 0.7, y + 0.7 * size * POINT, words)
        x += length + 0.7 + sheet.width_of(words, size) + 1.1 * style.em
    return y + LEADING * size * POINT + 0.1 * style.em


def _marks(plan: FigurePlan, largest: float) -> list[tuple[float, str]]:
    """Numbers of the sample lines: round weights, or parts of the largest number."""
    if plan.shown.weights:
        return [(mark, short_weight(mark)) for mark in SAMPLES if mark <= 1.2 * largest][-5:]
    return [(part * largest, short_score(part * largest)) for part in (0.1, 0.25, 0.5, 1.0)]


def _exposure(plan: FigurePlan, sizes: np.ndarray, columns: Columns) -> float:
    """The gain that gives every figure the same mean darkness: one head or twelve, 20 tokens or
    128.
    """
    coverage = sizes.sum() * _thickness(plan, columns) * POINT / columns.height
    most = 2.8 if plan.shown.weights else 2.8 / (sizes.max(initial=0.0) or 1.0)
    return float(min(most, AIM[plan.style.dark] / coverage)) if coverage > 0 else most


def _thickness(plan: FigurePlan, columns: Columns) -> float:
    """Thickness of a line in points."""
    wide = 0.07 if len(plan.maps) == 1 else 0.056
    return float(np.clip(wide * columns.pitch / POINT, 0.3, 1.2))


def _curves(
    columns: Columns, starts: np.ndarray, ends: np.ndarray
) -> Float[np.ndarray, "line 4 2"]:
    """Control points of ``(1 - BEND) u + BEND u² (3 - 2 u)``, a cubic and so a Bézier curve
    exactly.
    """
    along = np.linspace(columns.left, columns.right, 4)
    rise = np.array([0, (1 - BEND) / 3, (2 + BEND) / 3, 1])
    heights = starts[:, None] + (ends - starts)[:, None] * rise
    return np.stack([np.broadcast_to(along, heights.shape), heights], axis=-1)
