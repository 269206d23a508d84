"""View head: lines from query to key between two columns of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from headscope.record import Tokens
from headscope.views.constants import BEND, SPREAD
from headscope.views.figures._frame import (
    CLAUSES,
    closing,
    heading,
    named_every,
)
from headscope.views.figures._numbers import affordable_share, even_of, numbers_of, top_share
from headscope.views.figures._plan import FigurePlan
from headscope.views.figures._sheet import LEADING, Sheet
from headscope.views.figures._style import (
    POINT,
    counted,
    parse_hex,
    percent,
    short_score,
    short_weight,
    text_on,
)

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
AIM = {False: 0.68, True: 0.55}
"""Mean coverage on light and on dark paper."""
SAMPLES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
ABOVE_EVEN = 1 + 1e-6
"""Times the even share from which a weight has a line."""


@dataclass(frozen=True)
class Columns:
    """Position of the two columns, in millimetres.

    Args:
        left: x at which lines begin.
        right: x at which lines end.
        names: width of the names on the left and on the right.
        top: top of the longer column.
        height: height of the longer column.
        pitch: height of one token.
        size: size of the names, in points.
    """

    left: float
    right: float
    names: tuple[float, float]
    top: float
    height: float
    pitch: float
    size: float

    def middle(self, count: int) -> Float[np.ndarray, " token"]:
        """The middle of each token of a column of so many tokens."""
        start = self.top + (self.height - count * self.pitch) / 2
        return start + (np.arange(count) + 0.5) * self.pitch


@dataclass(frozen=True, eq=False)
class Lines:
    """The lines of a figure.

    Args:
        values: axes head, query, key; the chosen quantity, NaN where hidden.
        sizes: its magnitude, 0 where hidden.
        drawn: whether a line is drawn.
        above: whether only what is above the even share is drawn.
        share: percent of each row's mass that was allowed.
        gain: opacity is ``1 - exp(-gain * size ** gamma)``.
        gamma: see gain.
    """

    values: np.ndarray
    sizes: np.ndarray
    drawn: np.ndarray
    above: bool
    share: int
    gain: float
    gamma: float

    def opacity(self, sizes: np.ndarray | float) -> np.ndarray | float:
        """Opacity of the lines of numbers."""
        return 1 - np.exp(-self.gain * sizes**self.gamma)


def draw_head(sheet: Sheet, plan: FigurePlan) -> None:
    """Lines between two columns of tokens; colour is what the head does, opacity its weight."""
    y = heading(sheet, plan, plan.where)
    if len(plan.maps) > 1:
        y = _chips(sheet, plan, y)
    columns = _place_columns(sheet, plan, y)
    lines = lines_of(plan, columns)
    _draw_lines(sheet, plan, lines, columns)
    _, every = sheet.naming(columns.pitch, max(len(plan.stack.query), len(plan.stack.key)))
    for side in ("query", "key"):
        _write_names(sheet, plan, columns, side, every=every)
        _readouts(sheet, plan, lines, columns, side=side)
    y = _samples(sheet, plan, lines, columns.top + columns.height + 0.7 * plan.style.em)
    closing(sheet, plan, y, _notes(sheet, plan, lines, every))


def _chips(sheet: Sheet, plan: FigurePlan, y: float) -> float:
    """One numbered square for each head, those of one kind behind each other and before its words;
    return the next y.
    """
    style, x = plan.style, 0.0
    side = max(1.55 * style.small * POINT, sheet.width_of("00", style.small) + 0.5 * style.em)
    step = side + 0.18 * style.em
    for kind in dict.fromkeys(plan.kinds.values()):
        heads = [head for head in plan.maps if plan.kinds[head] == kind]
        words = sheet.width_of(CLAUSES.get(kind, ""), style.small)
        if x > 0 and x + len(heads) * step + words > sheet.width:
            x, y = 0.0, y + step
        for head in heads:
            if x + side > sheet.width:
                x, y = 0.0, y + step
            fill, middle = plan.colours[head], (x + side / 2, y + side / 2)
            sheet.rect(x, y, side, side, fill=fill, round=0.24 * side)
            ink = text_on(parse_hex(fill))
            sheet.text(*middle, str(head), size=style.small, colour=ink, anchor="center")
            x += step
        if kind:
            if x + words > sheet.width:
                x, y = 0.0, y + step
            sheet.note(x + 0.1 * style.em, y + side / 2, CLAUSES[kind])
            x += words + 1.1 * style.em
    return y + step + 0.5 * style.em


def _place_columns(sheet: Sheet, plan: FigurePlan, y: float) -> Columns:
    """Place the columns below y, with room for bars where a token is chosen; write their titles."""
    style, sides = plan.style, (plan.stack.query, plan.stack.key)
    most = max(map(len, sides))
    pitch = min(PITCH * style.em, TALLEST / most)
    (size, _), gap = sheet.naming(pitch), GAP * style.em
    words = ("from", "to") if plan.narrow else ("from (query)", "to (key)")
    names = []
    for tokens, title in zip(sides, words, strict=True):
        widest = max(
            sheet.width_of(sheet.token_name(tokens, at), size) for at in range(len(tokens))
        )
        names.append(
            max(min(WIDEST_NAME * sheet.width, 1.06 * widest), sheet.width_of(title, style.small))
        )
    margin = 0.0
    if any({*tokens.segments} == {0, 1} for tokens in sides):
        margin = (0.7 if plan.narrow else 1.3) * style.em
    bars = _bar_width(sheet) + sheet.width_of("<.001", style.small) + gap
    left = margin + names[0] + gap + bars * (plan.key is not None)
    right = sheet.width - margin - names[1] - gap - bars * (plan.query is not None)
    line = 1.5 * style.em
    sheet.note(left - gap, y + line / 2, words[0], anchor="right")
    sheet.note(right + gap, y + line / 2, words[1])
    return Columns(left, right, (names[0], names[1]), y + line, most * pitch, pitch, size)


def _bar_width(sheet: Sheet) -> float:
    """Millimetres of the longest bar next to a name."""
    return min(14.0, 0.1 * sheet.width)


def _write_names(
    sheet: Sheet, plan: FigurePlan, columns: Columns, side: str, *, every: int
) -> None:
    """Write every nth token of a side, a line between the prompt and what the model wrote, and a
    thin line and a letter next to each text of a pair.
    """
    style, tokens, is_left = plan.style, getattr(plan.stack, side), side == "query"
    middles, room = columns.middle(len(tokens)), columns.names[not is_left]
    gap, chosen = GAP * style.em, getattr(plan, side)
    x, anchor, takes_part = columns.right + gap, "left", plan.to
    if is_left:
        x, anchor, takes_part = columns.left - gap, "right", plan.from_
    for position in range(len(tokens)):
        # The chosen token always has its name, however close tokens are.
        if position % every and position != chosen:
            continue
        colour = style.muted if tokens.special[position] else style.ink
        if not takes_part[position] or chosen not in (None, position):
            colour = style.faint
        name = sheet.fitted(sheet.token_name(tokens, position), room, columns.size)
        place, is_bold = (x, middles[position]), chosen == position
        sheet.text(*place, name, size=columns.size, colour=colour, anchor=anchor, bold=is_bold)
    first = plan.first_written(tokens)
    if first is not None:
        y, start = middles[first] - columns.pitch / 2, x - room if is_left else x
        sheet.line((start, start + room), (y, y), colour=style.accent, line=0.9)
    _brackets(sheet, plan, tokens, middles, is_left=is_left)


def _brackets(
    sheet: Sheet, plan: FigurePlan, tokens: Tokens, middles: np.ndarray, *, is_left: bool
) -> None:
    if {*tokens.segments} != {0, 1}:
        return
    style, half = plan.style, 0.4 * (middles[1] - middles[0])
    inset = (0.3 if plan.narrow else 0.95) * style.em
    x, outer = (inset, 0.0) if is_left else (sheet.width - inset, sheet.width)
    changes = np.flatnonzero(np.diff(tokens.segments)) + 1
    for start, end in pairwise([0, *changes.tolist(), len(tokens)]):
        ends = (middles[start] - half, middles[end - 1] + half)
        sheet.line((x, x), ends, colour=style.edge, line=0.6)
        if not plan.narrow:
            letter, anchor = "AB"[tokens.segments[start]], "left" if is_left else "right"
            sheet.note(outer, sum(ends) / 2, letter, anchor=anchor)


def lines_of(plan: FigurePlan, columns: Columns) -> Lines:
    """The lines of a plan: what is above even attention, of each row the strongest, as many as were
    chosen or as can be printed.
    """
    values = numbers_of(plan.layer, plan.maps, plan.shown, plan.without)
    sizes = np.abs(np.nan_to_num(values)) * plan.from_[:, None] * plan.to
    focus = plan.focused
    above = plan.shown.weights and not focus and plan.share is None
    if above:
        even = np.nan_to_num(even_of(plan.layer, plan.shown, plan.without))
        sizes *= sizes > ABOVE_EVEN * even
    if plan.query is not None:
        sizes *= (np.arange(sizes.shape[1]) == plan.query)[:, None]
    if plan.key is not None:
        sizes *= np.arange(sizes.shape[2]) == plan.key
    largest = sizes.max(initial=0.0) or 1.0
    # The gain gives every figure the same mean darkness: one head or twelve, 20 tokens or 128.
    coverage = sizes.sum() * _thickness(plan, columns) * POINT / columns.height
    gain, gamma = 2.8 if plan.shown.weights else 2.8 / largest, 1.0
    if focus:
        gain, gamma = min(12.0, 2.2 / largest**0.85), 0.85
    elif coverage > 0:
        gain = float(min(gain, AIM[plan.style.dark] / coverage))
    lines = Lines(values, sizes, sizes > 0, above, plan.share or 100, gain, gamma)
    seen = (lines.opacity(sizes) >= FAINTEST) & (sizes > 0)
    share = plan.share or (100 if focus else affordable_share(sizes, seen, BUDGET))
    return Lines(values, sizes, top_share(sizes, share) & seen, above, share, gain, gamma)


def _thickness(plan: FigurePlan, columns: Columns) -> float:
    """Thickness of a line in points."""
    wide = 0.07 if len(plan.maps) == 1 else 0.056
    return float(np.clip(wide * columns.pitch / POINT, 0.3, 1.2))


def _draw_lines(sheet: Sheet, plan: FigurePlan, lines: Lines, columns: Columns) -> None:
    """Faint lines first; each path holds the lines of one head, opacity and sign."""
    starts, ends = columns.middle(lines.sizes.shape[1]), columns.middle(lines.sizes.shape[2])
    # Boundaries are half-way between two levels on a logarithmic scale, as the levels are spaced.
    bounds = LEVELS[1:] / np.sqrt(LEVELS[1] / LEVELS[0])
    level = np.digitize(lines.opacity(lines.sizes), bounds)
    along = np.linspace(columns.left, columns.right, 4)
    # `(1 - BEND) u + BEND u² (3 - 2 u)` is a cubic and so a Bézier curve exactly.
    rise = np.array([0, (1 - BEND) / 3, (2 + BEND) / 3, 1])
    thickness = _thickness(plan, columns)
    for index, head in enumerate(plan.maps):
        port = ((index + 0.5) / len(plan.maps) - 0.5) * SPREAD * columns.pitch
        for negative in (False, True):
            chosen = lines.drawn[index] & ((lines.values[index] < 0) == negative)
            for step in np.unique(level[index][chosen]):
                query, key = np.nonzero(chosen & (level[index] == step))
                first, last = starts[query, None] + port, ends[key, None] + port
                heights = first + (last - first) * rise
                points = np.stack([np.broadcast_to(along, heights.shape), heights], axis=-1)
                sheet.curves(
                    points,
                    dashed=negative,
                    colour=plan.colours[head],
                    line=thickness,
                    opacity=float(LEVELS[step]),
                    layer=1 + step / len(LEVELS),
                )


def _samples(sheet: Sheet, plan: FigurePlan, lines: Lines, y: float) -> float:
    """Draw sample lines as dark as in the figure; return the next y."""
    style, size, marks = plan.style, plan.style.small, _marks(plan, lines.sizes.max(initial=0.0))
    middle = y + 0.7 * size * POINT
    sheet.note(0, middle, plan.shown.label)
    x = sheet.width_of(plan.shown.label, size) + 0.9 * style.em
    colour = plan.colours[plan.maps[0]] if len(plan.maps) == 1 else style.ink
    length = 3.0 if plan.narrow else 4.8
    for mark, words in marks:
        wide = length + 0.7 + sheet.width_of(words, size)
        if x + wide > sheet.width:
            break
        points = np.array([[[x + step * length / 3, middle] for step in range(4)]])
        opacity = float(lines.opacity(mark))
        sheet.curves(points, colour=colour, line=1.1, opacity=opacity, layer=2)
        sheet.note(x + length + 0.7, middle, words)
        x += wide + 1.1 * style.em
    return y + LEADING * size * POINT + 0.1 * style.em


def _marks(plan: FigurePlan, largest: float) -> list[tuple[float, str]]:
    """Numbers of the sample lines: round weights, or parts of the largest number."""
    marks = [(part * largest, short_score(part * largest)) for part in (0.1, 0.25, 0.5, 1.0)]
    if plan.shown.weights:
        marks = [(mark, short_weight(mark)) for mark in SAMPLES if mark <= 1.2 * largest][-5:]
    return marks[-2:] if plan.narrow else marks


def _readouts(sheet: Sheet, plan: FigurePlan, lines: Lines, columns: Columns, *, side: str) -> None:
    """Draw a bar and a number, the mean of the heads, at each token linked to the chosen one."""
    style, position, is_query = plan.style, getattr(plan, side), side == "query"
    if position is None:
        return
    axis = 1 if is_query else 2
    parts = np.take(lines.sizes, position, axis=axis) / len(plan.maps)
    means = np.take(np.nan_to_num(lines.values), position, axis=axis).mean(axis=0)
    sums = parts.sum(axis=0)
    # Weights below 0.1 do not fill the bar: they would look as strong as large ones.
    largest = max(sums.max(initial=0.0), 0.1 if plan.shown.weights else 1e-12)
    middles, sign = columns.middle(len(sums)), 1 if is_query else -1
    gap, height = GAP * style.em, 0.5 * columns.pitch
    edge = columns.right if is_query else columns.left
    start = edge + sign * (2 * gap + columns.names[is_query])
    size = min(style.small, columns.size)
    for token in np.nonzero(sums >= min(0.005, largest / 10))[0]:
        x = start
        for index, head in enumerate(plan.maps):
            length = sign * _bar_width(sheet) * parts[index, token] / largest
            box = (min(x, x + length), middles[token] - height / 2, abs(length), height)
            sheet.rect(*box, fill=plan.colours[head])
            x += length
        at, anchor = start + sign * (_bar_width(sheet) + gap), "left" if is_query else "right"
        words = plan.shown.words(means[token])
        sheet.text(at, middles[token], words, size=size, colour=style.muted, anchor=anchor)


def _notes(sheet: Sheet, plan: FigurePlan, lines: Lines, every: int) -> Sequence[str]:
    total = np.abs(np.nan_to_num(lines.values)).sum()
    part = float(lines.sizes[lines.drawn].sum() / total) if total else 0.0
    notes = [
        f"{counted(int(lines.drawn.sum()), 'line')}, {percent(part)} of {plan.shown.mass} of "
        f"{plan.of_heads}"
    ]
    for side, words in (("query", "from"), ("key", "to")):
        if getattr(plan, side) is not None:
            notes.insert(0, f"only {words} {sheet.quoted(plan.label(side))}")
    if lines.above:
        notes.append("lines: above even attention to the keys that a query may attend to")
    if lines.share < 100:
        notes.append(f"strongest {lines.share} % of each row")
    if len(plan.maps) > 1:
        notes.append("at each token heads leave in order, the lowest number on top")
        if plan.query is not None or plan.key is not None:
            notes.append("numbers at tokens: mean of these heads")
    if plan.shown.signed and (lines.values < 0).any():
        notes.append("dashed lines are below 0")
    return [*notes, named_every(every)]
