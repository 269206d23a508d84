"""Runs to medians, ratios and a Markdown table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

Run = Mapping[str, object]
NAMES = {"headscope": "headscope", "bertviz": "BertViz"}


@dataclass(frozen=True)
class Measure:
    """One column of the table: the key in a run, its heading, and how a value is written."""

    key: str
    heading: str
    unit: str
    scale: float = 1


MEASURES = (
    Measure("page_bytes", "page", "MB", 1e-6),
    Measure("write_s", "written in", "s"),
    Measure("first_drawing_s", "first drawing", "s"),
    Measure("main_thread_cpu_s", "main-thread CPU", "s"),
    Measure("renderer_peak_mib", "renderer memory", "MiB"),
)
DRAWING = "first_drawing_s"
ALL_KEYS = tuple(measure.key for measure in MEASURES)
PAGE_KEYS = ("page_bytes", "write_s")


def summarise(runs: list[Run]) -> list[dict[str, object]]:
    """One row for each length and tool: the median and the best of every measure.

    Where a run drew nothing the row says why, and holds no time for the drawing.
    """
    groups: dict[tuple[int, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run["tokens"], run["tool"]), []).append(run)
    return [
        {
            "tokens": tokens,
            "tool": tool,
            "runs": len(group),
            "failure": next((run["failure"] for run in group if run["failure"]), None),
            "median": _each_measure(group, median),
            "best": _each_measure(group, min),
        }
        for (tokens, tool), group in groups.items()
    ]


def _each_measure(group: list[Run], statistic: object) -> dict[str, float | None]:
    """The statistic of every measure that all runs of the group have."""
    columns = {measure.key: [run[measure.key] for run in group] for measure in MEASURES}
    return {key: None if None in values else statistic(values) for key, values in columns.items()}


def markdown(document: Mapping[str, object]) -> str:
    """The whole report: machine, table, and what the table does not say."""
    machine, settings = document["machine"], document["settings"]
    return "\n".join(
        [
            f"Measured on {machine['date']}: {machine['processor']}, {machine['cores']} cores, "
            f"{machine['memory_gib']} GiB of memory (load {machine['load_at_start']} at the "
            f"start); Chromium {machine['chromium']} without GPU; Python {machine['python']}, "
            f"torch {machine['torch']}, transformers {machine['transformers']}; headscope "
            f"{machine['headscope']}, BertViz {machine['bertviz']}.",
            "",
            table(document["summary"]),
            "",
            f"Medians; rounds: {settings['rounds']}, the tools taking turns; "
            "a page that drew nothing was not tried again. "
            f"A page is ended after {settings['seconds']:g} s or at {settings['gibibytes']:g} GiB. "
            "Model: all-MiniLM-L6-v2, 6 layers of 12 heads. MB are 10⁶ bytes.",
            "",
        ]
    )


def table(summary: list[dict[str, object]]) -> str:
    """A Markdown table with a line for each tool, and one for the ratio where both were
    measured.
    """
    lines = [
        "| tokens | tool | " + " | ".join(measure.heading for measure in MEASURES) + " |",
        "| ---: | --- | " + " | ".join("---:" for _ in MEASURES) + " |",
    ]
    for tokens in dict.fromkeys(row["tokens"] for row in summary):
        rows = {row["tool"]: row for row in summary if row["tokens"] == tokens}
        lines += [_line(tokens, NAMES[tool], _cells(row)) for tool, row in rows.items()]
        if len(rows) == len(NAMES):
            lines.append(_line(tokens, "*BertViz ÷ headscope*", _ratios(rows)))
    return "\n".join(lines)


def _line(tokens: int, name: str, cells: list[str]) -> str:
    return f"| {tokens} | {name} | " + " | ".join(cells) + " |"


def _cells(row: Mapping[str, object]) -> list[str]:
    cells = []
    for measure in MEASURES:
        value = row["median"][measure.key]
        if value is not None:
            cells.append(f"{_short(value * measure.scale)} {measure.unit}")
        else:
            cells.append(row["failure"] if measure.key == DRAWING and row["failure"] else "–")
    return cells


def _ratios(rows: Mapping[str, Mapping[str, object]]) -> list[str]:
    """The ratio of every measure; of the page alone where one tool drew nothing."""
    theirs, ours = rows["bertviz"], rows["headscope"]
    comparable = PAGE_KEYS if theirs["failure"] or ours["failure"] else ALL_KEYS
    return [
        _ratio(theirs["median"][measure.key], ours["median"][measure.key])
        if measure.key in comparable
        else "–"
        for measure in MEASURES
    ]


def _ratio(theirs: float | None, ours: float | None) -> str:
    return f"{_short(theirs / ours)} ×" if theirs is not None and ours else "–"


def _short(value: float) -> str:
    """Two figures that count, every figure before the decimal point, and nothing below a
    thousandth.
    """
    if value >= 10:
        return f"{value:.0f}"
    if value >= 1:
        return f"{value:.1f}"
    return f"{value:#.2g}" if value >= 0.01 else f"{value:.3f}"
