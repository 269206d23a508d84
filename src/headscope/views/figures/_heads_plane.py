"""Heads as points in a plane, by two of their measures or on the map of like heads; view scatter
and figures of heads draw it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.errors import FigureError
from headscope.measures import stress
from headscope.patterns import CLASSES, MEASURES, Heads
from headscope.views.constants import KIND_OF_LABEL
from headscope.views.figures import charts
from headscope.views.figures._frame import heading
from headscope.views.figures._plan import FigurePlan
from headscope.views.figures._sheet import Box, Sheet
from headscope.views.figures._style import POINT, counted

DOT = 1.7
"""Millimetres across a head."""
RING = 2.9
"""Millimetres across the ring of a chosen head."""
TALLEST = 95.0
MAP = "map"
Cell = tuple[int, int]
Point = tuple[float, float]


def draw_scatter(sheet: Sheet, plan: FigurePlan) -> list[str]:
    """Draw a dot for each head in the colour of its label, with a ring around chosen heads."""
    evidence, options = plan.options["evidence"], plan.options
    axes = (options.get("x", "distance"), options.get("y", "entropy"))
    title = f"{counted(len(evidence.cells), 'head')} over {counted(evidence.texts, 'text')}"
    heading(sheet, plan, title)
    chosen = {(plan.layer.layer, head) for head in plan.heads} if plan.chosen else set()
    draw_plane(sheet, evidence, axes, chosen=chosen)
    draw_labels(sheet, evidence, plain=plan.style.faint)
    return [
        *label_notes(evidence),
        "seen on one text only, which is no evidence for others" * (evidence.texts == 1),
        "candidates only: too few texts to tell" * shows_candidates(evidence),
        "rings: the chosen heads" * bool(chosen),
    ]


def rarest_labels(result: Heads) -> dict[Cell, str]:
    """The rarest label of each head, the most specific; candidates where no label holds."""
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


def draw_plane(
    sheet: Sheet, result: Heads, axes: tuple[str, str], *, chosen: Collection[Cell] = ()
) -> None:
    """Heads by two of their measures, across and up; or by the first axis `MAP` on the map of all
    heads (Clark et al. 2019, section 6).
    """
    look: dict[str, Any] = {"result": result, "chosen": chosen}
    if axes[0] == MAP:
        far = stress(result.distances, result.map)
        note = f"like heads close together, {result.texts} texts; stress {far:.2f}"
        look |= {"title": "map of all heads", "values": result.map}
    else:
        there = axes_of(result)
        units = (f", {MEASURES[name].unit}" if name in MEASURES else "" for name in axes)
        named = zip(axes, units, strict=True)
        under, over = (sheet.shown(name) + unit.rstrip(", ") for name, unit in named)
        look |= {"note": over, "under": under, "is_map": False}
        look["values"] = np.stack([axis_values(there, name) for name in axes], axis=1)
        left_out = int(np.isnan(look["values"]).any(axis=1).sum())
        note = f"{left_out} heads have no such number and are left out" * bool(left_out)
        if left_out == len(result.cells):
            raise FigureError(f"No head has both {axes[0]} and {axes[1]}; choose other measures")
    charts.draw_panels(sheet, [Plane(**look)])
    sheet.paragraph([note])


@dataclass(frozen=True, kw_only=True, eq=False)
class Plane(charts.Panel):
    """A dot for each head in the colour of its label, a ring around each that is chosen, and names
    next to the dots where there is room, of chosen heads and rare labels first.

    Args:
        result: the heads.
        values: two numbers of each head, across and up; NaN where one is unknown.
        chosen: heads with a ring.
        is_map: whether both numbers have one scale, and no axes.
    """

    result: Heads
    values: Float[np.ndarray, "head 2"]
    chosen: Collection[Cell]
    is_map: bool = True

    @cached_property
    def corners(self) -> Float[np.ndarray, "corner 2"]:
        """The smallest and the largest numbers, with some room around all dots."""
        low, high = np.nanmin(self.values, axis=0), np.nanmax(self.values, axis=0)
        # All heads may have the same value: the axis then still needs a length.
        room = np.where(high > low, 0.06 * (high - low), 0.5 * np.maximum(np.abs(high), 1e-6))
        return np.stack([low - room, high + room])

    @property
    def beside(self) -> tuple[Sequence[str], Sequence[str]]:
        """On the left the numbers of the upright axis."""
        return () if self.is_map else [*map(_tick, self.corners[:, 1])], ()

    def tall(self, wide: float, em: float) -> float:
        """Height of it where it is so wide."""
        across, up = self.corners[1] - self.corners[0]
        return min(TALLEST, wide * (up / across if self.is_map else 0.7))

    def draw(self, sheet: Sheet, box: Box) -> None:
        """Draw axes, dots, and names."""
        (x, y, wide, tall), (low, high) = box, self.corners
        scale, middle = np.array([wide, -tall]) / (high - low), (x + wide / 2, y + tall / 2)
        if self.is_map:
            scale = np.full(2, np.abs(scale).min())
        for axis in () if self.is_map else (1, 0):
            ends = (low[axis], high[axis])
            charts.draw_grid(sheet, box, ends, _tick, level=axis == 1, has_zero=False)
        points = (middle + (self.values - (low + high) / 2) * scale).tolist()
        dots = dict(zip(self.result.cells, points, strict=True))
        known = {cell: (x, y) for cell, (x, y) in dots.items() if not np.isnan(x + y)}
        self.draw_dots(sheet, known, between=(x * (not self.is_map), x + wide))

    def draw_dots(
        self, sheet: Sheet, points: Mapping[Cell, Point], *, between: tuple[float, float]
    ) -> None:
        """Draw dots at these points, and names that stay between two edges."""
        style, labels = sheet.style, rarest_labels(self.result)
        counts, colours = Counter(labels.values()), label_colours(self.result, sheet)
        taken, high = [], style.small * POINT
        for cell, (x, y) in points.items():
            fill = colours.get(labels.get(cell, ""), style.faint)
            sheet.dot(x, y, DOT, facecolor=fill, edgecolor=style.paper, linewidth=0.3)
            if cell in self.chosen:
                sheet.dot(x, y, RING, edgecolor=style.ink, linewidth=0.8, zorder=4)
            taken.append((x - DOT / 2, y - DOT / 2, x + DOT / 2, y + DOT / 2))

        def order(cell: Cell) -> tuple[bool, int]:
            return cell not in self.chosen, counts.get(labels.get(cell, ""), len(points))

        for cell in sorted(points, key=order):
            (x, y), name = points[cell], "{}-{}".format(*cell)
            wide, away = sheet.width_of(name, style.small), RING if cell in self.chosen else DOT
            # On the right of its dot, else on the left, else not at all.
            for left in (x + 0.7 * away, x - 0.7 * away - wide):
                box = np.array([left, y - high / 2, left + wide, y + high / 2])
                others = np.array(taken)
                overlaps = (box[:2] < others[:, 2:]) & (others[:, :2] < box[2:])
                is_inside = between[0] <= left and left + wide <= between[1]
                if is_inside and not overlaps.all(axis=1).any():
                    taken.append(tuple(box))
                    sheet.note(left, y, name)
                    break


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


def _tick(tick: float) -> str:
    # Adding zero turns -0.0, which would be written with a minus, into 0.0.
    return f"{round(tick, 9) + 0.0:g}"
