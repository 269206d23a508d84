"""The picture of a probe: its scores beside those of its controls, and over the layers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.studies.probes._score import PROBE, SELECTIVITY, Score
from headscope.studies.shared._canvas import canvas

if TYPE_CHECKING:
    from headscope.studies.probes._probing import Probing

BLUE, GREY, LINES = "#0072B2", "#8A8A8A", "#E5E5E5"
PROBES = (PROBE, "both directions")
"""What is drawn as a probe; all else is a control."""
ROW, ABOVE, OVER_LAYERS = 0.24, 1.0, 2.2
"""Inches for a bar, for title, axis and caption, and for lines over layers."""


def plot(path: Path, found: Probing) -> Path:
    """Draw one panel of bars for each task, and one of lines where layers were probed.

    Args:
        path: where to.
        found: what to draw.

    Raises:
        FigureError: where matplotlib is missing, or the suffix is none of ours.
        FileError: where the file cannot be written.
    """
    shown = [(task, found.measures(task)[0]) for task in found.tasks]
    bars = [_bars(found, *what) for what in shown]
    layers = [found.per_layer(*what) for what in shown]
    heights = [
        ABOVE + ROW * max(map(len, bars)),
        *([OVER_LAYERS] * any(len(each) > 1 for each in layers)),
    ]
    learnt, _, test = found.sentences
    caption = (
        f"{found.model or 'a model'}, {found.kind} probe: {learnt} sentences learnt from, {test} "
        "others scored"
    )
    with canvas(path, (6.8 if len(shown) > 1 else 4.6, sum(heights)), caption) as figure:
        axes = figure.subplots(len(heights), len(shown), squeeze=False, height_ratios=heights)
        for place, (task, measure) in enumerate(shown):
            _draw_bars(axes[0, place], bars[place], found.confidence)
            axes[0, place].set_title(f"{task}: {measure}", loc="left", fontsize=9)
            if len(heights) > 1:
                _draw_layers(axes[1, place], layers[place], found.confidence)
    return path


def _bars(found: Probing, task: str, measure: str) -> list[Score]:
    """The probe first, then its controls; layers have a panel of their own."""
    return [
        each
        for each in found.scores
        if (each.task, each.measure) == (task, measure)
        and each.of != SELECTIVITY
        and (not each.of.startswith("layer") or each.of == "layer 0")
    ]


def _draw_bars(axis: Any, scores: list[Score], confidence: float) -> None:
    values = np.array([each.value for each in scores])
    ends = np.array([each.interval(confidence) for each in scores])
    places = np.arange(len(scores))
    reach = np.abs(np.nan_to_num(ends - values[:, None])).T
    colours = [BLUE if each.of in PROBES else GREY for each in scores]
    axis.barh(
        places,
        values,
        height=0.62,
        color=colours,
        xerr=reach,
        error_kw={"elinewidth": 0.9, "ecolor": "#222222"},
    )
    for place, (value, end) in enumerate(zip(values, np.fmax(ends[:, 1], values), strict=True)):
        text = f"{100 * value:.1f}" if scores[place].lengths is None else f"{value:.2f}"
        axis.text(end + 0.015, place, text, va="center", fontsize=8, color="#222222")
    axis.set_yticks(places, [_name(each.of) for each in scores])
    axis.invert_yaxis()
    axis.set_xlim(0, 1.12)
    axis.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100 %"])
    _plain(axis, "x")
    axis.tick_params(axis="y", length=0)


def _draw_layers(axis: Any, layers: dict[int, Score], confidence: float) -> None:
    numbers = sorted(layers)
    values = np.array([layers[number].value for number in numbers])
    ends = np.array([layers[number].interval(confidence) for number in numbers])
    axis.plot(numbers, values, color=BLUE, marker="o", markersize=3, linewidth=1.4)
    axis.fill_between(numbers, ends[:, 0], ends[:, 1], color=BLUE, alpha=0.2, linewidth=0)
    is_upto = any(" to " in layers[number].of for number in numbers)
    axis.set_xlabel("layers 0 to ..." if is_upto else "layer (0: embeddings)")
    axis.set_xticks(numbers if len(numbers) <= 13 else numbers[:: len(numbers) // 8])
    low = max(0.0, float(np.nanmin(ends)) - 0.05)
    axis.set_ylim(low, min(1.0, float(np.nanmax(ends)) + 0.05))
    axis.locator_params(axis="y", nbins=6, steps=[1, 2, 5, 10])
    axis.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    _plain(axis, "y")


def _name(of: str) -> str:
    return "embeddings (layer 0)" if of == "layer 0" else of


def _plain(axis: Any, lines: str) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis=lines, color=LINES, linewidth=0.6)
    axis.set_axisbelow(True)
