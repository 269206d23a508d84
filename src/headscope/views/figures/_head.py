"""View head: lines from query to key between two columns of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from headscope.views.constants import BEND, KIND_NAMES, SPREAD
from headscope.views.figures import _style
from headscope.views.figures._frame import heading, named_every
from headscope.views.figures._numbers import top_share
from headscope.views.figures._plan import FigurePlan
from headscope.views.figures._sheet import Sheet

PITCH, GAP = 1.42, 0.45
"""Height of a token, and the gap between a name and its lines, in units of the font size."""
WIDEST_NAME = 0.27
"""Share of the width that names may take on each side."""
TALLEST = 205.0
"""Largest height of the columns in millimetres: a page of A4 with a caption."""
BUDGET = 5000
"""Number of lines that are drawn where the reader sets no percentage."""
FAINTEST = 0.006
LEVELS = np.geomspace(FAINTEST, 1.0, 24)
"""Opacities of lines. Lines of one head and one opacity are one path, which keeps files small."""
SAMPLES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
ABOVE_EVEN = 1 + 1e-6
"""Times the even share from which a weight has a line."""
SIDES = ("query", "key")
FEW = 4
"""Heads of a kind that stay on one line with its words."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Position of the two columns, in millimetres; of each side the first is the query's.

    Args:
        edges: x at which lines begin and end.
        names: width of the names of each side.
        middles: y of the middle of each token of each side.
        height: height of the longer column.
        pitch: height of one token.
        size: size of the names, in points.
        every: 1 where all tokens have a name, n where every nth has.
        line: thickness of a line, in points.
    """

    edges: tuple[float, float]
    names: tuple[float, float]
    middles: list[np.ndarray]
    height: float
    pitch: float
    size: float
    every: int
    line: float


@dataclass(frozen=True, eq=False)
class LinesOfHeads:
    """The lines of a figure.

    Args:
        values: axes head, query, key; the chosen quantity, NaN where hidden.
        sizes: its magnitude, 0 where hidden.
        drawn: whether a line is drawn.
        above: whether only what is above the even share is drawn.
        cut: whether only the strongest are drawn, as many as can be printed.
        opacity: gives that of a line of some size.
    """

    values: np.ndarray
    sizes: np.ndarray
    drawn: np.ndarray
    above: bool
    cut: bool
    opacity: Callable[[Any], Any]


def draw_head(sheet: Sheet, plan: FigurePlan) -> list[str]:
    """Lines between two columns of tokens; colour is what the head does, opacity its weight."""
    heading(sheet, plan, plan.where)
    if len(plan.maps) > 1:
        _draw_chips(sheet, plan)
    columns = _place_columns(sheet, plan)
    lines = lines_of(plan, columns)
    _draw_lines(sheet, plan, lines, columns)
    for side in (0, 1):
        _write_names(sheet, plan, columns, side)
        _draw_readouts(sheet, plan, lines, columns, side=side)
    sheet.y += 0.7 * plan.style.em
    _draw_samples(sheet, plan, lines)
    return _notes(sheet, plan, lines, columns.every)


def _draw_chips(sheet: Sheet, plan: FigurePlan) -> None:
    """One numbered square for each head, those of one kind behind each other and before its words,
    on one line where they fit.
    """
    em, small, blocks = plan.style.em, plan.style.small, []
    side = max(1.55 * small * _style.POINT, sheet.widest(["00", *map(str, plan.maps)]) + 0.5 * em)
    pitch = side + 0.18 * em
    for kind in dict.fromkeys(plan.kinds.values()):
        heads = [head for head in plan.maps if plan.kinds[head] == kind]
        words = KIND_NAMES.get(kind, "")
        room = sheet.widest([words]) + 1.5 * em
        # Of more than a line a few stay with the words.
        last = heads if len(heads) * pitch + room <= sheet.width else heads[-FEW:]
        blocks += [([head], "", side) for head in heads[: -len(last)]]
        blocks.append((last, words, len(last) * pitch + room))
    places = sheet.flow([width for *_, width in blocks], gap=pitch - side)
    for (heads, words, _), (x, line) in zip(blocks, places, strict=True):
        middle = sheet.y + (line + 0.5) * 1.8 * em
        for head in heads:
            fill = plan.colours[head]
            sheet.rect(x, middle - side / 2, side, side, facecolor=fill, round=0.24 * side)
            ink = _style.text_on(_style.parse_hex(fill))
            sheet.text(x + side / 2, middle, str(head), size=small, colour=ink, anchor="center")
            x += pitch  # noqa: PLW2901 - the next square
        sheet.note(x + 0.32 * em, middle, words)
    sheet.y += (places[-1][1] + 1) * 1.8 * em + 0.3 * em


def _place_columns(sheet: Sheet, plan: FigurePlan) -> Columns:
    """Place the columns, with room for bars where a token is chosen, and write their titles."""
    style, sides, y = plan.style, (plan.stack.query, plan.stack.key), sheet.y
    em, small, most = style.em, style.small, max(map(len, sides))
    pitch, gap = min(PITCH * em, TALLEST / most), GAP * em
    size, every = sheet.naming(pitch, most)
    words = ("from", "to") if sheet.narrow else ("from (query)", "to (key)")
    names = []
    for tokens, title in zip(sides, words, strict=True):
        written = (sheet.token_name(tokens, at) for at in range(len(tokens)))
        widest = max(sheet.width_of(name, size) for name in written)
        wide = min(WIDEST_NAME * sheet.width, 1.06 * widest)
        names.append(max(wide, sheet.width_of(title, small)))
    margin = 0.0
    if any({*tokens.segments} == {0, 1} for tokens in sides):
        margin = (0.7 if sheet.narrow else 1.3) * em
    bars = _bar_width(sheet) + sheet.width_of("<.001", small) + gap
    left = margin + names[0] + gap + bars * (plan.key is not None)
    right = sheet.width - margin - names[1] - gap - bars * (plan.query is not None)
    sheet.note(left - gap, y + 0.75 * em, words[0], anchor="right")
    sheet.note(right + gap, y + 0.75 * em, words[1])
    # The shorter column stands in the middle of the longer one.
    counts = [np.arange(len(of)) + (most - len(of)) / 2 + 0.5 for of in sides]
    middles = [y + 1.5 * em + count * pitch for count in counts]
    sheet.y += 1.5 * em + most * pitch
    wide = (0.056, 0.07)[len(plan.maps) == 1]
    line = float(np.clip(wide * pitch / _style.POINT, 0.3, 1.2))
    edges, both = (left, right), (names[0], names[1])
    return Columns(edges, both, middles, most * pitch, pitch, size, every, line)


def _bar_width(sheet: Sheet) -> float:
    """Millimetres of the longest bar next to a name."""
    return min(14.0, 0.1 * sheet.width)


def _write_names(sheet: Sheet, plan: FigurePlan, columns: Columns, side: int) -> None:
    """Write every nth token of a side, a line between the prompt and what the model wrote, and a
    thin line and a letter next to each text of a pair.
    """
    style, tokens, chosen = plan.style, getattr(plan.stack, SIDES[side]), getattr(plan, SIDES[side])
    middles, room, takes_part = columns.middles[side], columns.names[side], (plan.from_, plan.to)
    x, anchor = columns.edges[side] + (2 * side - 1) * GAP * style.em, ("right", "left")[side]
    for position in range(len(tokens)):
        # The chosen token always has its name, however close tokens are.
        if position % columns.every and position != chosen:
            continue
        look = {"size": columns.size, "anchor": anchor, "bold": chosen == position}
        if not takes_part[side][position] or chosen not in (None, position):
            look["colour"] = style.faint
        sheet.name(tokens, position, (x, middles[position]), room, **look)
    first = plan.first_written(tokens)
    if first is not None:
        start, y = x if side else x - room, middles[first] - columns.pitch / 2
        sheet.line((start, start + room), (y, y), style.accent, 0.9)
    _draw_brackets(sheet, columns, side, tokens.segments)


def _draw_brackets(sheet: Sheet, columns: Columns, side: int, segments: Sequence[int]) -> None:
    """A thin line and a letter next to each text of a pair."""
    em, middles, half = sheet.style.em, columns.middles[side], 0.4 * columns.pitch
    inset = (0.3 if sheet.narrow else 0.95) * em
    x, outer = (sheet.width - inset, sheet.width) if side else (inset, 0.0)
    changes = (np.flatnonzero(np.diff(segments)) + 1).tolist()
    for start, end in pairwise([0, *changes, len(segments)] if changes else ()):
        ends = (middles[start] - half, middles[end - 1] + half)
        sheet.line((x, x), ends, sheet.style.edge, 0.6)
        letter = "AB"[segments[start]] * (not sheet.narrow)
        sheet.note(outer, sum(ends) / 2, letter, anchor=("left", "right")[side])


def lines_of(plan: FigurePlan, columns: Columns) -> LinesOfHeads:
    """The lines of a plan: what is above even attention; the strongest of each row where a share is
    chosen, else as many as can be printed.
    """
    values = plan.shown.numbers(plan.layer, plan.maps, plan.without)
    sizes = np.abs(np.nan_to_num(values)) * plan.from_[:, None] * plan.to
    focus, share = plan.focused, plan.options.get("top_percent")
    above = plan.shown.weights and not focus and share is None
    if above:
        even = np.nan_to_num(plan.shown.even(plan.layer, plan.without))
        sizes *= sizes > ABOVE_EVEN * even
    if plan.query is not None:
        sizes *= (np.arange(sizes.shape[1]) == plan.query)[:, None]
    if plan.key is not None:
        sizes *= np.arange(sizes.shape[2]) == plan.key
    largest = sizes.max(initial=0.0) or 1.0
    # The gain gives every figure the same mean darkness: one head or twelve, 20 tokens or 128.
    coverage = sizes.sum() * columns.line * _style.POINT / columns.height
    gain, gamma = 2.8 if plan.shown.weights else 2.8 / largest, 1.0
    if focus:
        gain, gamma = min(12.0, 2.2 / largest**0.85), 0.85
    elif coverage > 0:
        gain = float(min(gain, (0.55 if plan.style.dark else 0.68) / coverage))

    def opacity(size: Any) -> Any:
        return 1 - np.exp(-gain * size**gamma)

    drawn = (opacity(sizes) >= FAINTEST) & (sizes > 0)
    if share is not None:
        drawn &= top_share(sizes, share)
    cut = share is None and not focus and int(drawn.sum()) > BUDGET
    if cut:
        drawn &= sizes > np.sort(sizes[drawn])[-BUDGET - 1]
    return LinesOfHeads(values, sizes, drawn, above, cut, opacity)


def _draw_lines(sheet: Sheet, plan: FigurePlan, lines: LinesOfHeads, columns: Columns) -> None:
    """Faint lines first; each path holds the lines of one head, opacity and sign."""
    starts, ends = columns.middles
    # Boundaries are half-way between two levels on a logarithmic scale, as the levels are spaced.
    bounds = LEVELS[1:] / np.sqrt(LEVELS[1] / LEVELS[0])
    level = np.digitize(lines.opacity(lines.sizes), bounds)
    along = np.linspace(*columns.edges, 4)
    # `(1 - BEND) u + BEND u² (3 - 2 u)` is a cubic and so a Bézier curve exactly.
    rise = np.array([0, (1 - BEND) / 3, (2 + BEND) / 3, 1])
    for index, head in enumerate(plan.maps):
        port = ((index + 0.5) / len(plan.maps) - 0.5) * SPREAD * columns.pitch
        look: dict[str, Any] = {"edgecolor": plan.colours[head], "linewidth": columns.line}
        for style in ("solid", (0, (3, 2))):
            chosen = lines.drawn[index] & ((lines.values[index] < 0) == (style != "solid"))
            for step in np.unique(level[index][chosen]):
                query, key = np.nonzero(chosen & (level[index] == step))
                first, last = starts[query, None] + port, ends[key, None] + port
                heights = first + (last - first) * rise
                points = np.stack([np.broadcast_to(along, heights.shape), heights], axis=-1)
                look |= {"alpha": float(LEVELS[step]), "zorder": 1 + step / len(LEVELS)}
                sheet.curves(points, linestyle=style, **look)


def _draw_samples(sheet: Sheet, plan: FigurePlan, lines: LinesOfHeads) -> None:
    """Draw sample lines as dark as in the figure, of round weights or of parts of the largest
    number.
    """
    style, size, largest = plan.style, plan.style.small, lines.sizes.max(initial=0.0)
    marks = [part * largest for part in (0.1, 0.25, 0.5, 1.0)]
    if plan.shown.weights:
        marks = [mark for mark in SAMPLES if mark <= 1.2 * largest][-5:]
    short = _style.short_weight if plan.shown.weights else _style.short_score
    length = 3.0 if sheet.narrow else 4.8
    colour = plan.colours[plan.maps[0]] if len(plan.maps) == 1 else style.ink

    def sample(sheet: Sheet, mark: float, x: float, middle: float) -> None:
        points = np.array([[[x + (step / 3 - 0.5) * length, middle] for step in range(4)]])
        opacity = float(lines.opacity(mark))
        sheet.curves(points, edgecolor=colour, linewidth=1.1, alpha=opacity, zorder=2)

    sheet.note(0, sheet.y + 0.75 * style.em, plan.shown.label)
    left = sheet.width_of(plan.shown.label, size) + 0.9 * style.em
    named = [(mark, short(mark)) for mark in marks[-2 * sheet.narrow :]]
    sheet.legend(named, sample, x=left, side=length)


def _draw_readouts(
    sheet: Sheet, plan: FigurePlan, lines: LinesOfHeads, columns: Columns, *, side: int
) -> None:
    """Draw a bar and a number, the mean of the heads, at each token linked to the chosen one."""
    style, position, other = plan.style, getattr(plan, SIDES[side]), 1 - side
    if position is None:
        return
    parts = np.take(lines.sizes, position, axis=1 + side) / len(plan.maps)
    means = np.take(np.nan_to_num(lines.values), position, axis=1 + side).mean(axis=0)
    sums = parts.sum(axis=0)
    # Weights below 0.1 do not fill the bar: they would look as strong as large ones.
    largest = max(sums.max(initial=0.0), 0.1 if plan.shown.weights else 1e-12)
    middles, sign, anchor = columns.middles[other], 2 * other - 1, ("right", "left")[other]
    gap, long = GAP * style.em, _bar_width(sheet)
    start = columns.edges[other] + sign * (2 * gap + columns.names[other])
    box = (min(start, start + sign * long), 0.0, long, middles[-1] + columns.pitch)
    axes, tokens = sheet.axes(box), np.flatnonzero(sums >= min(0.005, largest / 10))
    axes.set(xlim=(0, largest)[::sign], ylim=(box[3], 0))
    ends = np.cumsum(parts[:, tokens], axis=0)
    for part, end, head in zip(parts[:, tokens], ends, plan.maps, strict=True):
        look = {"height": 0.5 * columns.pitch, "color": plan.colours[head]}
        axes.barh(middles[tokens], part, left=end - part, **look)
    look = {"size": min(style.small, columns.size), "colour": style.muted, "anchor": anchor}
    for token in tokens:
        words = plan.shown.words(means[token])
        sheet.text(start + sign * (long + gap), middles[token], words, **look)


def _notes(sheet: Sheet, plan: FigurePlan, lines: LinesOfHeads, every: int) -> list[str]:
    total = np.abs(np.nan_to_num(lines.values)).sum()
    part = _style.percent(float(lines.sizes[lines.drawn].sum() / total) if total else 0.0)
    count = _style.counted(int(lines.drawn.sum()), "line")
    sides, share = (("query", "from"), ("key", "to")), plan.options.get("top_percent", 100)
    chosen = [(side, words) for side, words in sides if getattr(plan, side) is not None]
    several = len(plan.maps) > 1
    return [
        *(f"only {words} {sheet.quoted(plan.label(side))}" for side, words in reversed(chosen)),
        f"{count}, {part} of {plan.shown.mass} of {plan.of_heads}",
        "lines: above even attention to the keys that a query may attend to" * lines.above,
        f"strongest {share} % of each row" * (share < 100),
        "the strongest lines" * lines.cut,
        "at each token heads leave in order, the lowest number on top" * several,
        "numbers at tokens: mean of these heads" * (several and plan.focused),
        "dashed lines are below 0" * bool(plan.shown.signed and (lines.values < 0).any()),
        named_every(every),
    ]
