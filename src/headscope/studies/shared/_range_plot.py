"""Shares as dots on a line each, with intervals, beside their baselines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from headscope.errors import FigureError
from headscope.studies.shared._canvas import FAINT, canvas

Mark = tuple[float, tuple[float, float] | None]
"""A share, and the ends of its interval."""
STYLES = (
    {"marker": "o", "color": "#0072B2", "markersize": 5},
    {"marker": "|", "color": "#1A1A1A", "markersize": 11, "markeredgewidth": 1.8},
    {"marker": "D", "markerfacecolor": "none", "color": "#9A4E00", "markersize": 4.5},
    {"marker": "^", "markerfacecolor": "none", "color": "#007A58", "markersize": 5},
    {"marker": "s", "markerfacecolor": "none", "color": "#A0608F", "markersize": 4.5},
)
"""Okabe and Ito's colours, the lighter ones darkened; shapes differ, too."""


def range_plot(
    path: Path, rows: Mapping[str, tuple[str, Mapping[str, Mark]]], caption: str
) -> Path:
    """Draw shares, a line each.

    Args:
        path: where to: .svg, .pdf or .png.
        rows: for each label a note for the right margin and the share of every series; the first
            series is drawn last.
        caption: what is said above.

    Raises:
        FigureError: where matplotlib is missing, the suffix is none of ours, or there is nothing to
            draw.
        FileError: where the file cannot be written.
    """
    if not rows:
        raise FigureError("There is nothing to draw: no row has enough in it")
    with canvas(path, (6.8, 1.15 + 0.19 * len(rows)), caption) as figure:
        from matplotlib.ticker import PercentFormatter

        axis = figure.subplots()
        _draw(axis, rows)
        axis.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        names = list(dict.fromkeys(name for _, marks in rows.values() for name in marks))
        handles = axis.get_legend_handles_labels()[0][: len(names)][::-1]
        figure.legend(
            handles=handles,
            loc="outside lower left",
            ncols=len(names),
            frameon=False,
            handletextpad=0.3,
        )
    return path


def _draw(axis, rows: Mapping[str, tuple[str, Mapping[str, Mark]]]) -> None:  # noqa: ANN001
    heights = np.arange(len(rows))[::-1]
    names = list(dict.fromkeys(name for _, marks in rows.values() for name in marks))
    axis.hlines(heights, 0, 1, color="#EAEAEA", linewidth=0.6, zorder=0)
    for number, name in reversed(list(enumerate(names))):
        marks = [marks.get(name, (np.nan, None)) for _, marks in rows.values()]
        style = STYLES[number % len(STYLES)]
        axis.plot(
            [mark[0] for mark in marks],
            heights,
            linestyle="none",
            label=name,
            zorder=3,
            clip_on=False,
            **style,
        )
        for height, (_, ends) in zip(heights, marks, strict=True):
            if ends is not None:
                axis.plot(
                    ends,
                    (height, height),
                    color=style["color"],
                    linewidth=1.6,
                    alpha=0.55,
                    zorder=2,
                )
    axis.set_yticks(heights, list(rows))
    axis.tick_params(axis="y", length=0)
    for height, (note, _) in zip(heights, rows.values(), strict=True):
        axis.text(1.02, height, note, va="center", fontsize=7, color=FAINT)
    axis.set_xlim(0, 1)
    axis.set_ylim(-0.7, len(rows) - 0.3)
    axis.spines[["top", "right", "left"]].set_visible(False)
