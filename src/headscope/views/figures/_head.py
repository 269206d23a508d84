"""View head: lines from query to key between two columns of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from headscope.record import Tokens
from headscope.views.figures._frame import closing, heading, heads_in_words, quoted, spaced, token_size, where
from headscope.views.figures._numbers import affordable_share, numbers_of, top_share
from headscope.views.figures._options import Plan
from headscope.views.figures._palette import parse_hex, text_on
from headscope.views.figures._sheet import LEADING, Sheet
from headscope.views.figures._style import POINT
from headscope.views.figures._words import counted, ordinal, percent, short_score, short_weight

BEND = 0.62
"""Shape of a line: 0 is straight, 1 leaves both tokens level; with this cubic it is the live viewer's curve."""
SPREAD = 0.62
"""Heads leave a token over this part of its height."""
PITCH = 1.42
GAP = 0.45
"""Between a name and its lines, in units of the font size."""
WIDEST_NAME = 0.27
"""Part of the width that names may take on each side."""
TALLEST = 225.0
"""Height in millimetres that the columns may take: a page of A4 with its caption."""
BUDGET = 5000
"""Lines that are drawn unasked."""
FAINTEST = 0.006
LEVELS = np.geomspace(FAINTEST, 1.0, 24)
"""Opacities; lines of one head and one opacity are one path."""
AIM = {False: 0.68, True: 0.55}
SAMPLES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


@dataclass(frozen=True)
class Columns:
    """Where the two columns stand, in millimetres.

    Args:
        left: where lines begin.
        right: where lines end.
        names: width of the names on the left and on the right.
        top: of the longer column.
        height: of the longer column.
        pitch: height of one token.
        size: of the names, in points.
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
    """What is drawn.

    Args:
        values: axes head, query, key; what was asked for, NaN where hidden.
        sizes: their magnitude, 0 where hidden.
        drawn: whether there is a line.
        opacity: of each line.
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


def draw_head(plan: Plan) -> Sheet:
    """Lines between two columns of tokens, colour = head, opacity = weight."""
    sheet = Sheet(plan.width, plan.style)
    y = heading(sheet, plan, where(plan))
    if len(plan.heads) > 1:
        y = _chips(sheet, plan, y)
    columns = _columns(sheet, plan, y)
    lines = _lines(plan, columns)
    _draw_lines(sheet, plan, lines, columns)
    every = _names(sheet, plan, columns)
    _readouts(sheet, plan, lines, columns)
    y = _samples(sheet, plan, lines, columns.top + columns.height + 0.7 * plan.style.em)
    closing(sheet, plan, y, _notes(sheet, plan, lines, every))
    return sheet


def _columns(sheet: Sheet, plan: Plan, y: float) -> Columns:
    style, stack = plan.style, plan.stack
    most = max(len(stack.query), len(stack.key))
    pitch = min(PITCH * style.em, TALLEST / most)
    size = token_size(pitch, style.size)
    names = (_name_width(sheet, stack.query, size), _name_width(sheet, stack.key, size))
    pair = {0, 1} in ({*stack.query.segments}, {*stack.key.segments})
    margin = 1.3 * style.em if pair else 0.0
    bars = _bar_width(sheet) + sheet.width_of("<.001", style.small) + GAP * style.em
    left = margin + names[0] + GAP * style.em + (bars if plan.key is not None else 0.0)
    right = sheet.width - margin - names[1] - GAP * style.em - (bars if plan.query is not None else 0.0)
    title = 1.5 * style.em
    looks = {"size": style.small, "colour": style.muted}
    sheet.text(left - GAP * style.em, y + title / 2, "from (query)", anchor="right", **looks)
    sheet.text(right + GAP * style.em, y + title / 2, "to (key)", **looks)
    return Columns(left, right, names, y + title, most * pitch, pitch, size)


def _name_width(sheet: Sheet, tokens: Tokens, size: float) -> float:
    widest = max(sheet.width_of(_name(sheet, tokens, position), size) for position in range(len(tokens)))
    return min(WIDEST_NAME * sheet.width, 1.06 * widest)


def _name(sheet: Sheet, tokens: Tokens, position: int) -> str:
    return ("–" if tokens.continues[position] else "") + sheet.shown(tokens.labels[position])


def _bar_width(sheet: Sheet) -> float:
    return min(14.0, 0.1 * sheet.width)


def _lines(plan: Plan, columns: Columns) -> Lines:
    values = numbers_of(plan.layer, plan.heads, plan.quantity)
    sizes = np.abs(np.nan_to_num(values)) * plan.from_[:, None] * plan.to
    focus = plan.query is not None or plan.key is not None
    if plan.query is not None:
        sizes *= (np.arange(sizes.shape[1]) == plan.query)[:, None]
    if plan.key is not None:
        sizes *= np.arange(sizes.shape[2]) == plan.key
    largest = sizes.max(initial=0.0) or 1.0
    gamma, gain = (0.85, min(12.0, 2.2 / largest**0.85)) if focus else (1.0, _exposure(plan, sizes, columns))
    opacity = 1 - np.exp(-gain * sizes**gamma)
    seen = np.where(opacity >= FAINTEST, sizes, 0.0)
    share = plan.share or (100 if focus else affordable_share(seen, BUDGET))
    return Lines(values, sizes, top_share(sizes, share) & (seen > 0), opacity, share, gain, gamma)


def _exposure(plan: Plan, sizes: np.ndarray, columns: Columns) -> float:
    """The gain that gives every figure the same mean darkness: one head or twelve, 20 tokens or 128."""
    coverage = sizes.sum() * _thickness(plan, columns) * POINT / columns.height
    most = 2.8 if plan.quantity == "weight" else 2.8 / (sizes.max(initial=0.0) or 1.0)
    return float(min(most, AIM[plan.style.dark] / coverage)) if coverage > 0 else most


def _thickness(plan: Plan, columns: Columns) -> float:
    """Thickness of a line in points."""
    wide = 0.07 if len(plan.heads) == 1 else 0.056
    return float(np.clip(wide * columns.pitch / POINT, 0.3, 1.2))


def _draw_lines(sheet: Sheet, plan: Plan, lines: Lines, columns: Columns) -> None:
    """Faint lines first; each path holds the lines of one head, opacity and sign."""
    starts, ends = columns.middle(lines.sizes.shape[1]), columns.middle(lines.sizes.shape[2])
    level = np.digitize(lines.opacity, LEVELS[1:] / np.sqrt(LEVELS[1] / LEVELS[0]))
    thickness = _thickness(plan, columns)
    for index, head in enumerate(plan.heads):
        port = ((index + 0.5) / len(plan.heads) - 0.5) * SPREAD * columns.pitch if len(plan.heads) > 1 else 0.0
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


def _curves(columns: Columns, starts: np.ndarray, ends: np.ndarray) -> Float[np.ndarray, "line 4 2"]:
    """Control points of ``(1 - BEND) u + BEND u² (3 - 2 u)``, a cubic and so a Bézier curve exactly."""
    along = np.linspace(columns.left, columns.right, 4)
    rise = np.array([0, (1 - BEND) / 3, (2 + BEND) / 3, 1])
    heights = starts[:, None] + (ends - starts)[:, None] * rise
    return np.stack([np.broadcast_to(along, heights.shape), heights], axis=-1)


def _names(sheet: Sheet, plan: Plan, columns: Columns) -> int:
    """The tokens on both sides; give every how many have their name."""
    every = spaced(max(len(plan.stack.query), len(plan.stack.key)), columns.pitch, columns.size)
    for side, tokens in (("query", plan.stack.query), ("key", plan.stack.key)):
        middles = columns.middle(len(tokens))
        left = side == "query"
        x = columns.left - GAP * plan.style.em if left else columns.right + GAP * plan.style.em
        for position in range(len(tokens)):
            focused = getattr(plan, side) == position
            if position % every and not focused:
                continue
            sheet.text(
                x,
                middles[position],
                sheet.fitted(_name(sheet, tokens, position), columns.names[not left], columns.size),
                size=columns.size,
                colour=_name_colour(plan, side, position),
                anchor="right" if left else "left",
                bold=focused,
            )
        _brackets(sheet, plan, columns, side, tokens)
    return every


def _name_colour(plan: Plan, side: str, position: int) -> str:
    style = plan.style
    shown = (plan.from_ if side == "query" else plan.to)[position]
    if not shown or getattr(plan, side) not in (None, position):
        return style.faint
    return style.muted if getattr(plan.stack, side).special[position] else style.ink


def _brackets(sheet: Sheet, plan: Plan, columns: Columns, side: str, tokens: Tokens) -> None:
    """A thin line beside each text of a pair, and its letter."""
    if {*tokens.segments} != {0, 1}:
        return
    middles, style = columns.middle(len(tokens)), plan.style
    x = 0.95 * style.em if side == "query" else sheet.width - 0.95 * style.em
    edges = [0, *(at for at in range(1, len(tokens)) if tokens.segments[at] != tokens.segments[at - 1]), len(tokens)]
    for start, end in pairwise(edges):
        ends = (middles[start] - 0.4 * columns.pitch, middles[end - 1] + 0.4 * columns.pitch)
        sheet.line((x, x), ends, colour=style.edge, line=0.6)
        letter = "AB"[tokens.segments[start]]
        outer = 0.0 if side == "query" else sheet.width
        anchor = "left" if side == "query" else "right"
        sheet.text(outer, sum(ends) / 2, letter, size=style.small, colour=style.muted, anchor=anchor)


def _chips(sheet: Sheet, plan: Plan, y: float) -> float:
    """One numbered square for each head; give the next y."""
    style = plan.style
    side = max(1.55 * style.small * POINT, sheet.width_of("00", style.small) + 0.5 * style.em)
    step = side + 0.18 * style.em
    most = max(1, int((sheet.width + 0.18 * style.em) // step))
    for index, head in enumerate(plan.heads):
        row, column = divmod(index, most)
        x, top = column * step, y + row * step
        colour = plan.colours[head]
        sheet.rect(x, top, side, side, fill=colour, round=0.24 * side)
        ink = text_on(parse_hex(colour))
        sheet.text(x + side / 2, top + side / 2, str(head), size=style.small, colour=ink, anchor="center")
    return y + -(-len(plan.heads) // most) * step + 0.5 * style.em


def _samples(sheet: Sheet, plan: Plan, lines: Lines, y: float) -> float:
    """Lines as dark as those of some weights; give the next y."""
    style = plan.style
    size, largest = style.small, lines.sizes.max(initial=0.0)
    if plan.quantity == "weight":
        marks = [(mark, short_weight(mark)) for mark in SAMPLES if mark <= 1.2 * largest][-5:]
    else:
        marks = [(part * largest, short_score(part * largest)) for part in (0.1, 0.25, 0.5, 1.0)]
    sheet.text(0, y + 0.7 * size * POINT, plan.quantity, size=size, colour=style.muted)
    x = sheet.width_of(plan.quantity, size) + 0.9 * style.em
    colour = plan.colours[plan.head] if plan.head is not None else style.ink
    for mark, words in marks:
        opacity = float(1 - np.exp(-lines.gain * mark**lines.gamma))
        points = np.array([[[x + step * 1.6, y + 0.7 * size * POINT] for step in range(4)]])
        sheet.curves(points, colour=colour, line=1.1, opacity=opacity, layer=2)
        sheet.text(x + 5.5, y + 0.7 * size * POINT, words, size=size, colour=style.muted)
        x += 5.5 + sheet.width_of(words, size) + 1.1 * style.em
    return y + LEADING * size * POINT + 0.1 * style.em


def _readouts(sheet: Sheet, plan: Plan, lines: Lines, columns: Columns) -> None:
    """A bar and a number, mean of the heads, at each token that the chosen one is joined with."""
    style = plan.style
    for side, other, axis in (("query", "key", 1), ("key", "query", 2)):
        position = getattr(plan, side)
        if position is None:
            continue
        parts = np.take(lines.sizes, position, axis=axis)
        means = np.take(np.nan_to_num(lines.values), position, axis=axis).mean(axis=0)
        largest = max(parts.mean(axis=0).max(initial=0.0), 0.1)
        middles = columns.middle(len(getattr(plan.stack, other)))
        sign = 1 if other == "key" else -1
        edge = columns.right if other == "key" else columns.left
        start = edge + sign * (2 * GAP * style.em + columns.names[other == "key"])
        for token in np.nonzero(parts.mean(axis=0) >= min(0.005, largest / 10))[0]:
            x = start
            for index, head in enumerate(plan.heads):
                length = _bar_width(sheet) * parts[index, token] / len(plan.heads) / largest
                left = min(x, x + sign * length)
                sheet.rect(left, middles[token] - 0.25 * columns.pitch, length, 0.5 * columns.pitch, fill=plan.colours[head])
                x += sign * length
            words = short_weight(means[token]) if plan.quantity == "weight" else short_score(means[token])
            at = start + sign * (_bar_width(sheet) + GAP * style.em)
            anchor = "left" if other == "key" else "right"
            sheet.text(at, middles[token], words, size=min(style.small, columns.size), colour=style.muted, anchor=anchor)


def _notes(sheet: Sheet, plan: Plan, lines: Lines, every: int) -> list[str]:
    mass = "the attention" if plan.quantity == "weight" else "the scores' magnitude"
    notes = [f"{counted(int(lines.drawn.sum()), 'line')}, {percent(lines.part)} of {mass} of {heads_in_words(plan)}"]
    if plan.query is not None:
        notes.insert(0, f"only from {quoted(sheet, plan, 'query')}")
    if plan.key is not None:
        notes.insert(0, f"only to {quoted(sheet, plan, 'key')}")
    if lines.share < 100:
        notes.append(f"strongest {lines.share} % of each row")
    if len(plan.heads) > 1 and (len(plan.heads) > 16 or not plan.style.colour):
        notes.append("at each token heads leave in order, the lowest number on top")
    if plan.quantity == "score" and (lines.values < 0).any():
        notes.append("dashed lines are below 0")
    if every > 1:
        notes.append(f"every {ordinal(every)} token is named")
    return notes
