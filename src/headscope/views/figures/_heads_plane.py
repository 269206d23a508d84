"""Heads as points in a plane, by two of their measures or on the map of like heads; view scatter
and figures of heads draw it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

import numpy as np
from jaxtyping import Float

from headscope.errors import FigureError
from headscope.measures import stress
from headscope.patterns import CLASSES, MEASURES, Heads
from headscope.views.figures import charts
from headscope.views.figures._frame import heading
from headscope.views.figures._plan import FigurePlan
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import POINT, counted

DOT = 1.7
"""Millimetres across a head."""
RING = 2.9
"""Millimetres across the ring of a chosen head."""
TALLEST = 95.0
MAP = "map"
LABELS_OF_KINDS = {
    "next": ("next", "positional-next"),
    "previous": ("previous", "positional-previous", "previous-token"),
    "same": ("same", "same-other"),
    "resting": ("delimiter", "first-token", "sink", "sink-elsewhere"),
    "broad": ("bag",),
}
KIND_OF_LABEL = {label: kind for kind, labels in LABELS_OF_KINDS.items() for label in labels}
"""The kind that a label says, as in the browser; several labels are one kind."""
Cell = tuple[int, int]
Point = tuple[float, float]


def draw_scatter(sheet: Sheet, plan: FigurePlan) -> list[str]:
    """Draw a dot for each head in the colour of its label, with a ring around chosen heads."""
    evidence, options = plan.options["evidence"], plan.options
    axes = (options.get("x", "distance"), options.get("y", "entropy"))
    title = f"{counted(len(evidence.cells), 'head')} over {counted(evidence.texts, 'text')}"
    heading(sheet, plan, title)
    chosen = {(plan.layer.layer, head) for head in plan.heads} if plan.chosen else set()
    if axes[0] == MAP:
        draw_map(sheet, evidence, chosen=chosen)
    else:
        draw_by_measures(sheet, evidence, axes, chosen=chosen)
    draw_labels(sheet, evidence, plain=plan.style.faint)
    return [
        *label_notes(evidence),
        "seen on one text only, which is no evidence for others" * (evidence.texts == 1),
        "candidates only: too few texts to tell" * shows_candidates(evidence),
        "rings: the chosen heads" * bool(chosen),
    ]


def rarest_labels(result: Heads) -> dict[Cell, str]:
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
    """One colour for each label that some head holds: a shade of the kind that it says, or one of
    its own.
    """
    names = [pattern.name for pattern in result.tally.patterns]
    held = [name for name in names if name in set(rarest_labels(result).values())]
    style, of_kinds, colours = sheet.style, {}, {}
    for name in held:
        of_kinds.setdefault(KIND_OF_LABEL.get(name, "") if style.colour else "", []).append(name)
    for kind, labels in of_kinds.items():
        shades = style.shades(kind, len(labels)) if kind else style.series(len(labels))
        colours |= zip(labels, shades, strict=True)
    return {name: colours[name] for name in held}


def axes_of(result: Heads, *, of_maps: bool = False) -> dict[str, Float[np.ndarray, " head"]]:
    """A number for each head, NaN where it is unknown, by name: the layer, measures, shares of
    Kovaleva's classes, scores of patterns; or of the maps of layers and heads: patterns and
    measures.
    """
    measures = {name: of for name, of in result.measures.items() if not np.isnan(of).all()}
    classes = {f"class {name}": np.asarray(result.classes[name], float) for name in CLASSES}
    layers = np.array([float(layer) for layer, _ in result.cells])
    scores: dict[str, np.ndarray] = {}
    for label in result.all_labels:
        of = scores.setdefault(label.pattern, np.full(len(result.cells), np.nan))
        of[result.cells.index((label.layer, label.head))] = label.score
    return scores | measures if of_maps else {"layer": layers} | measures | classes | scores


def axis_values(
    known: Mapping[str, np.ndarray], name: str, of_what: str = "of heads"
) -> Float[np.ndarray, " head"]:
    """The numbers of this name.

    Raises:
        FigureError: where there are none.
    """
    if name not in known:
        raise FigureError(f"There is no {name!r} {of_what}; there are {', '.join(known)}")
    return known[name]


def draw_by_measures(
    sheet: Sheet, result: Heads, axes: tuple[str, str], *, chosen: Collection[Cell] = ()
) -> None:
    """Heads by two of their measures, with ticks and titles."""
    style, line = sheet.style, 1.35 * sheet.style.em
    there = axes_of(result)
    values = np.stack([axis_values(there, name) for name in axes], axis=1)
    known = ~np.isnan(values).any(axis=1)
    if not known.any():
        raise FigureError(f"No head has both {axes[0]} and {axes[1]}; choose other measures")
    low, high = values[known].min(axis=0), values[known].max(axis=0)
    # All heads may have the same value: the axis then still needs a length.
    room = 0.06 * (high - low)
    room = np.where(room > 0, room, 0.5 * np.maximum(np.abs(high), 1e-6))
    low, high = low - room, high + room
    left, right, top = 3.2 * style.em, sheet.width - DOT, sheet.y + 1.15 * line
    wide, tall = right - left, min(0.62 * (right - left), TALLEST)
    units = [f", {MEASURES[name].unit}" if name in MEASURES else "" for name in axes]
    titles = [sheet.shown(name) + unit.rstrip(", ") for name, unit in zip(axes, units, strict=True)]
    sheet.note(0, sheet.y + line / 2, titles[1])
    for axis in (1, 0):
        ends, box = (low[axis], high[axis]), (left, top, wide, tall)
        charts.draw_grid(sheet, box, ends, _tick, level=axis == 1, has_zero=False)
    sheet.y = top + tall + 0.9 * style.em
    sheet.note(right, sheet.y + line, titles[0], anchor="right")
    sheet.y += 1.8 * line
    points = np.array([left, top + tall]) + (values - low) / (high - low) * [wide, -tall]
    dots = {result.cells[at]: tuple(points[at].tolist()) for at in np.flatnonzero(known)}
    _dots(sheet, result, dots, chosen, between=(left, right))
    note = f"{(~known).sum()} heads have no such number and are left out"
    sheet.paragraph([] if known.all() else [note])


def draw_map(sheet: Sheet, result: Heads, *, chosen: Collection[Cell] = ()) -> None:
    """All heads, like heads close together (Clark et al. 2019, section 6)."""
    style, plane, middle = sheet.style, result.map, sheet.y + 0.6 * sheet.style.em
    title = "map of all heads"
    sheet.text(0, middle, title)
    apart = f"like heads close together, {result.texts} texts"
    words = f"{apart}; stress {stress(result.distances, plane):.2f}"
    if sheet.width_of(title) + sheet.width_of(words, style.small) > sheet.width:
        sheet.y += 1.2 * style.em
        sheet.paragraph([words])
        sheet.y += 0.6 * style.em
    else:
        sheet.note(sheet.width, middle, words, anchor="right")
        sheet.y += 1.8 * style.em
    low, span = plane.min(axis=0), np.maximum(np.ptp(plane, axis=0), 1e-9)
    room = sheet.width - 4 * DOT - sheet.width_of("00-00", style.small)
    scale = min(room / span[0], TALLEST / span[1])
    left = (room - scale * span[0]) / 2 + 2 * DOT
    points = np.array([left, sheet.y + DOT]) + scale * (plane - low)
    dots = dict(zip(result.cells, map(tuple, points.tolist()), strict=True))
    _dots(sheet, result, dots, chosen, between=(0.0, sheet.width))
    sheet.y += scale * span[1] + 2 * DOT + 0.6 * style.em


def draw_labels(sheet: Sheet, result: Heads, *, plain: str) -> None:
    """What the colours of labels mean, that of no label too."""
    counts, colours = Counter(rarest_labels(result).values()), label_colours(result, sheet)
    entries = [(of, f"{sheet.shown(name)} ({counts[name]})") for name, of in colours.items()]
    sheet.legend([*entries, (plain, "no label")])
    sheet.y += 0.2 * sheet.style.em


def label_notes(result: Heads) -> list[str]:
    """A note about heads with several labels."""
    shown, held = set(rarest_labels(result).values()), {each.pattern for each in result.labels}
    return ["a head with several labels shows the rarest"] * (len(shown) < len(held))


def _dots(
    sheet: Sheet,
    result: Heads,
    points: Mapping[Cell, Point],
    chosen: Collection[Cell],
    *,
    between: tuple[float, float],
) -> None:
    """A dot for each head in the colour of its label, a ring around each that is chosen, and names
    next to the dots where there is room, of chosen heads and rare labels first.
    """
    style, labels, colours = sheet.style, rarest_labels(result), label_colours(result, sheet)
    counts, high = Counter(labels.values()), style.small * POINT
    for cell, (x, y) in points.items():
        fill = colours.get(labels.get(cell, ""), style.faint)
        sheet.dot(x, y, DOT, facecolor=fill, edgecolor=style.paper, linewidth=0.3)
        if cell in chosen:
            sheet.dot(x, y, RING, edgecolor=style.ink, linewidth=0.8, zorder=4)
    taken = [(x - DOT / 2, y - DOT / 2, x + DOT / 2, y + DOT / 2) for x, y in points.values()]

    def order(cell: Cell) -> tuple[bool, int]:
        return cell not in chosen, counts.get(labels.get(cell, ""), len(points))

    for cell in sorted(points, key=order):
        (x, y), name = points[cell], "{}-{}".format(*cell)
        wide, away = sheet.width_of(name, style.small), 0.7 * (RING if cell in chosen else DOT)
        # On the right of its dot, else on the left, else not at all.
        for left in (x + away, x - away - wide):
            box = np.array([left, y - high / 2, left + wide, y + high / 2])
            others = np.array(taken)
            overlaps = (box[:2] < others[:, 2:]).all(axis=1) & (others[:, :2] < box[2:]).all(axis=1)
            if between[0] <= left and left + wide <= between[1] and not overlaps.any():
                taken.append(tuple(box))
                sheet.note(left, y, name)
                break


def _tick(tick: float) -> str:
    # Adding zero turns -0.0, which would be written with a minus, into 0.0.
    return f"{round(tick, 9) + 0.0:g}"
