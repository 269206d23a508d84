"""Heads as points in a plane: by two of their measures, or on the map of like heads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import numpy as np
from jaxtyping import Float

from headscope.errors import FigureError
from headscope.measures import stress
from headscope.patterns import CLASSES, Heads
from headscope.views.figures._palette import head_colours, head_greys
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import POINT

DOT = 1.7
"""Millimetres across a head."""
RING = 2.9
"""Millimetres across the ring of a chosen head."""
TALLEST = 95.0
UNITS = {"entropy": "nats", "distance": "tokens"}
MAP = "map"
Cell = tuple[int, int]
Point = tuple[float, float]
Box = tuple[float, float, float, float]


def rarest_labels(result: Heads) -> dict[tuple[int, int], str]:
    """The rarest label of each head, which says most about it; candidates where no label holds."""
    held = result.labels or result.candidates
    counts = Counter(label.pattern for label in held)
    # The last entry of a head wins in the dictionary: its rarest label, by score where equally
    # rare.
    order = sorted(held, key=lambda label: (-counts[label.pattern], label.score))
    return {(label.layer, label.head): label.pattern for label in order}


def shows_candidates(result: Heads) -> bool:
    """Whether `rarest_labels` gives candidates: several texts, but too few for labels."""
    return result.texts > 1 and not result.labels and bool(result.candidates)


def label_colours(result: Heads, sheet: Sheet) -> dict[str, str]:
    """One colour for each label that some head holds, whatever other labels there are."""
    names = [pattern.name for pattern in result.tally.patterns]
    held = [name for name in names if name in set(rarest_labels(result).values())]
    style = sheet.style
    if not style.colour:
        return dict(zip(held, head_greys(len(held), dark=style.dark), strict=True)) if held else {}
    palette = head_colours(len(names), dark=style.dark)
    return {name: palette[names.index(name)] for name in held}


def axis_names(result: Heads) -> list[str]:
    """Names of the axes: the layer, measures, shares of Kovaleva's classes, scores of patterns."""
    measured = [name for name, values in result.measures.items() if not np.isnan(values).all()]
    scored = list(dict.fromkeys(label.pattern for label in result.all_labels))
    return ["layer", *measured, *(f"class {name}" for name in CLASSES), *scored]


def axis_values(result: Heads, name: str) -> Float[np.ndarray, " head"]:
    """One number for each head; NaN where it is unknown.

    Raises:
        FigureError: where there is no such measure.
    """
    if name not in axis_names(result):
        raise FigureError(
            f"There is no {name!r} of heads; there are {', '.join(axis_names(result))}"
        )
    if name == "layer":
        return np.array([float(layer) for layer, _ in result.cells])
    if name in result.measures:
        return np.asarray(result.measures[name], float)
    if name.removeprefix("class ") in CLASSES:
        return np.asarray(result.classes[name.removeprefix("class ")], float)
    scores = {
        (label.layer, label.head): label.score
        for label in result.all_labels
        if label.pattern == name
    }
    return np.array([scores.get(cell, np.nan) for cell in result.cells])


def draw_by_measures(
    sheet: Sheet, result: Heads, axes: tuple[str, str], y: float, *, chosen: Collection[Cell] = ()
) -> float:
    """Heads by two of their measures, with ticks and titles; return the next y."""
    style = sheet.style
    values = [axis_values(result, name) for name in axes]
    known = ~np.isnan(values[0] + values[1])
    if not known.any():
        raise FigureError(f"No head has both {axes[0]} and {axes[1]}; choose other measures")
    ends = [_ends(each[known]) for each in values]
    ticks = [_ticks(*each) for each in ends]
    line = 1.35 * style.em
    left = max(sheet.width_of(_tick(tick), style.small) for tick in ticks[1]) + 0.9 * style.em
    right = sheet.width - DOT
    top, tall = y + 1.15 * line, min(0.62 * (right - left), TALLEST)
    sheet.note(0, y + line / 2, _title(sheet, axes[1]))
    sheet.rect(left, top, right - left, tall, edge=style.edge, line=0.4)

    across = left + _parts(np.array(ticks[0]), ends[0]) * (right - left)
    up = top + tall - _parts(np.array(ticks[1]), ends[1]) * tall
    _draw_ticks(sheet, zip(ticks[0], across.tolist(), strict=True), below=top + tall)
    _draw_ticks(sheet, zip(ticks[1], up.tolist(), strict=True), left_of=left)
    bottom = top + tall + 0.9 * style.em + line
    sheet.note(right, bottom, _title(sheet, axes[0]), anchor="right")
    xs = left + _parts(values[0], ends[0]) * (right - left)
    heights = top + tall - _parts(values[1], ends[1]) * tall
    each_head = zip(result.cells, xs.tolist(), heights.tolist(), known, strict=True)
    dots = {cell: (x, height) for cell, x, height, there in each_head if there}
    _dots(sheet, result, dots, chosen)
    _names(sheet, result, dots, chosen, between=(left, right))
    missing = int((~known).sum())
    note = [f"{missing} heads have no such number and are left out"] if missing else []
    return sheet.paragraph(bottom + 0.8 * line, note) if note else bottom + 0.8 * line


def _draw_ticks(
    sheet: Sheet,
    ticks: Iterable[tuple[float, float]],
    *,
    below: float | None = None,
    left_of: float = 0.0,
) -> None:
    """Write the numbers of an axis, below the plane or on its left."""
    style = sheet.style
    for tick, at in ticks:
        if below is not None:
            sheet.line((at, at), (below, below + 0.8), colour=style.muted, line=0.4)
            sheet.note(at, below + 0.9 * style.em, _tick(tick), anchor="center")
        else:
            sheet.line((left_of - 0.8, left_of), (at, at), colour=style.muted, line=0.4)
            sheet.note(left_of - 0.5 * style.em, at, _tick(tick), anchor="right")


def draw_map(sheet: Sheet, result: Heads, y: float, *, chosen: Collection[Cell] = ()) -> float:
    """All heads, like heads close together (Clark et al. 2019, section 6); return the next y."""
    style = sheet.style
    plane = result.map
    sheet.text(0, y + 0.6 * style.em, "map of all heads")
    apart = f"like heads close together, {result.texts} texts"
    sheet.note(
        sheet.width,
        y + 0.6 * style.em,
        f"{apart}; stress {stress(result.distances, plane):.2f}",
        anchor="right",
    )
    top = y + 1.8 * style.em
    low, span = plane.min(axis=0), np.maximum(np.ptp(plane, axis=0), 1e-9)
    room = sheet.width - 4 * DOT - sheet.width_of("00-00", style.small)
    scale = min(room / span[0], TALLEST / span[1])
    left = (room - scale * span[0]) / 2 + 2 * DOT
    points = np.array([left, top + DOT]) + scale * (plane - low)
    dots = {
        cell: (float(x), float(height))
        for cell, (x, height) in zip(result.cells, points, strict=True)
    }
    _dots(sheet, result, dots, chosen)
    _names(sheet, result, dots, chosen, between=(0.0, sheet.width))
    return top + scale * span[1] + 2 * DOT + 0.6 * style.em


def draw_legend(
    sheet: Sheet, result: Heads, y: float, notes: Iterable[str], *, plain: str
) -> float:
    """What the colours of labels mean, that of no label too, and notes; return the next y."""
    style, colours = sheet.style, label_colours(result, sheet)
    counts = Counter(rarest_labels(result).values())
    entries = [
        (colour, f"{sheet.shown(name)} ({counts[name]})") for name, colour in colours.items()
    ]
    entries.append((plain, "no label"))
    x, pitch = 0.0, 1.5 * style.small * POINT
    for colour, words in entries:
        wide = DOT + 0.5 * style.em + sheet.width_of(words, style.small) + 1.2 * style.em
        if x + wide > sheet.width and x > 0:
            x, y = 0.0, y + pitch
        sheet.rect(x, y + (pitch - DOT) / 2, DOT, DOT, fill=colour, edge=style.edge, line=0.3)
        sheet.note(x + DOT + 0.5 * style.em, y + pitch / 2, words)
        x += wide
    more = (
        ["a head with several labels shows the rarest"]
        if len(set(counts)) < _patterns(result)
        else []
    )
    return sheet.paragraph(y + 1.3 * pitch, [*notes, *more])


def _patterns(result: Heads) -> int:
    return len({label.pattern for label in result.labels})


def _dots(
    sheet: Sheet, result: Heads, points: Mapping[Cell, Point], chosen: Collection[Cell]
) -> None:
    """A dot for each head in the colour of its label, a ring around each that is chosen."""
    style, labels, colours = sheet.style, rarest_labels(result), label_colours(result, sheet)
    for cell, (x, y) in points.items():
        fill = colours[labels[cell]] if cell in labels else style.faint
        sheet.dot(x, y, DOT, fill=fill, edge=style.paper, line=0.3)
        if cell in chosen:
            sheet.dot(x, y, RING, edge=style.ink, line=0.8, layer=4)


def _names(
    sheet: Sheet,
    result: Heads,
    points: Mapping[Cell, Point],
    chosen: Collection[Cell],
    *,
    between: tuple[float, float],
) -> None:
    """Names next to the dots where there is room, of chosen heads and rare labels first."""
    labels = rarest_labels(result)
    counts = Counter(labels.values())
    order = sorted(
        points, key=lambda cell: (cell not in chosen, counts.get(labels.get(cell, ""), len(points)))
    )
    size = sheet.style.small
    high = size * POINT
    taken = [(x - DOT / 2, y - DOT / 2, x + DOT / 2, y + DOT / 2) for x, y in points.values()]
    for cell in order:
        x, y = points[cell]
        name, away = "{}-{}".format(*cell), 0.7 * (RING if cell in chosen else DOT)
        wide = sheet.width_of(name, size)
        # On the right of its dot, else on the left, else not at all.
        for left in (x + away, x - away - wide):
            box = (left, y - high / 2, left + wide, y + high / 2)
            inside = between[0] <= left and left + wide <= between[1]
            if inside and not _overlaps(box, taken):
                taken.append(box)
                sheet.note(left, y, name)
                break


def _overlaps(box: Box, others: Collection[Box]) -> bool:
    left, top, right, bottom = box
    return any(left < o[2] and o[0] < right and top < o[3] and o[1] < bottom for o in others)


def _ends(values: Float[np.ndarray, " head"]) -> tuple[float, float]:
    """Lowest and highest value with some room around them."""
    low, high = float(values.min()), float(values.max())
    # All heads may have the same value: the axis then still needs a length.
    room = 0.06 * (high - low) or 0.5 * max(abs(high), 1e-6)
    return low - room, high + room


def _parts(values: Float[np.ndarray, " n"], ends: tuple[float, float]) -> Float[np.ndarray, " n"]:
    """Positions between the ends, 0 for the lower end and 1 for the upper one."""
    return (values - ends[0]) / (ends[1] - ends[0])


def _ticks(low: float, high: float) -> list[float]:
    from matplotlib.ticker import MaxNLocator

    ticks = MaxNLocator(nbins=6, steps=[1, 2, 5, 10]).tick_values(low, high)
    return [float(tick) for tick in ticks if low <= tick <= high]


def _tick(tick: float) -> str:
    # Adding zero turns -0.0, which would be written with a minus, into 0.0.
    return f"{round(tick, 9) + 0.0:g}"


def _title(sheet: Sheet, name: str) -> str:
    return f"{name}, {UNITS[name]}" if name in UNITS else sheet.shown(name)
