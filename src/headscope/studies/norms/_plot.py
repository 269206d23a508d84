"""The picture of the study of norms: shares by weight beside shares by norm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from headscope.studies.shared._canvas import canvas

COLOURS = {
    "[CLS]": "#0072B2",
    "[SEP]": "#D55E00",
    "first": "#009E73",
    "period, comma": "#A0608F",
    "other": "#5A5A5A",
}
"""Okabe and Ito's, the lighter ones darkened for lines on white."""
TITLES = ("by weight  a", "by norm  ‖a f(x)‖")
LEAST_APART = 0.06
"""How far labels at the ends of lines stand apart, as a share of the height."""

Line = tuple[np.ndarray, np.ndarray]


def plot(
    path: Path, panels: Sequence[Mapping[str, Line]], layers: Sequence[int], caption: str
) -> Path:
    """Draw lines over layers, one panel beside the other, on one scale.

    Args:
        path: where to.
        panels: for each the mean ``[layer]`` and interval ``[layer 2]`` of each class.
        layers: their numbers.
        caption: what is said above.

    Raises:
        FigureError: where matplotlib is missing, or the suffix is none of ours.
        FileError: where the file cannot be written.
    """
    with canvas(path, (6.8, 3.0), caption) as figure:
        from matplotlib.ticker import PercentFormatter

        axes = figure.subplots(1, 2, sharey=True)
        for axis, lines, title in zip(axes, panels, TITLES, strict=True):
            _panel(axis, lines, layers)
            axis.set_title(title, loc="left", fontsize=9)
            axis.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes[0].set_ylabel("share of a row, mean over heads")
    return path


def _panel(axis, lines: Mapping[str, Line], layers: Sequence[int]) -> None:  # noqa: ANN001
    top = 1.0
    for name, (mean, ends) in lines.items():
        axis.plot(layers, mean, color=COLOURS[name], marker="o", markersize=3, linewidth=1.4)
        axis.fill_between(
            layers, ends[:, 0], ends[:, 1], color=COLOURS[name], alpha=0.2, linewidth=0
        )
    known = {name: float(mean[-1]) for name, (mean, _) in lines.items() if not np.isnan(mean[-1])}
    last = layers[-1] + 0.25 * max(1, (layers[-1] - layers[0]) / 5)
    for name, height in _apart(known, LEAST_APART * top).items():
        axis.text(last, height, name, color=COLOURS[name], va="center", fontsize=8)
    axis.set_ylim(0, top)
    span = max(1, layers[-1] - layers[0])
    axis.set_xlim(layers[0] - 0.04 * span, layers[-1] + 0.34 * span)
    axis.set_xticks(
        list(layers) if len(layers) <= 12 else list(layers)[:: max(1, len(layers) // 8)]
    )
    axis.set_xlabel("layer")
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", color="#E5E5E5", linewidth=0.6)
    axis.set_axisbelow(True)


def _apart(heights: Mapping[str, float], least: float) -> dict[str, float]:
    """Heights of labels, moved up where two would touch."""
    found: dict[str, float] = {}
    below = -least / 2
    for name, height in sorted(heights.items(), key=lambda entry: entry[1]):
        found[name] = below = max(height, below + least)
    return found
