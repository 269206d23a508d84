"""Views made of cells: of one head, or the mean of several, query by key; of all heads, a tile for
each (overview and model with their weights, pair with one query and one key).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from headscope.patterns import KINDS, head_kinds
from headscope.views.figures import charts
from headscope.views.figures._frame import CLAUSES, closing, heading, named_every
from headscope.views.figures._numbers import (
    largest_of,
    lifted,
    mean_of,
    numbers_of,
    pooled,
    pooling_words,
)
from headscope.views.figures._panels import draw_panels
from headscope.views.figures._plan import FigurePlan
from headscope.views.figures._sheet import Box, Sheet
from headscope.views.figures._style import Scale, counted, short_weight

TALLEST = 200.0
"""Millimetres."""
LARGEST_CELL = 2.6
"""In units of the font size."""
WIDEST_NAME, GAP = 0.22, 0.4
DOTS = 300
"""Number of cells in an inch at most: more would be lost in print, so each block of cells becomes
one.
"""
STRIP = 5.0
"""Room for the bars of weight that was not kept, in units of the font size."""
LEAST = 0.0005
"""Smallest share that is drawn or written."""
MOST_LEFT_OUT = 2
"""Positions are written instead of names where fewer than every second token has room for its
name.
"""
STEPS = (1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000, 10**9)
Sides = tuple[Sequence[int], Sequence[int]]
"""Positions of the queries and of the keys that are shown."""


def draw_matrix(sheet: Sheet, plan: FigurePlan) -> None:
    """Rows are queries, columns are keys; colour is the number."""
    style, em, shown = plan.style, plan.style.em, plan.shown
    values = mean_of(lifted(plan.layer, plan.heads, shown, plan.without))
    values = values[np.ix_(plan.from_, plan.to)]
    scale = shown.scale(style, largest_of(values), plan.layer.size[1], plan.colour)
    y, line = heading(sheet, plan, plan.where), 1.4 * em
    rows, columns = (np.flatnonzero(each).tolist() for each in (plan.from_, plan.to))
    # Whether beside the rows stands what of their weights was cut before headscope saw it.
    cut = plan.layer.partial and plan.shown.weights and not plan.without
    most, gap = WIDEST_NAME * sheet.width, GAP * em
    widest = max(sheet.width_of(sheet.token_name(plan.stack.query, row)) for row in rows)
    left = max(min(most, widest), sheet.width_of("from (query)", style.small)) + gap
    cell = min(TALLEST / len(rows), LARGEST_CELL * em)
    cell = min(cell, (sheet.width - left - STRIP * em * cut) / len(columns))
    size, every = sheet.naming(cell, max(len(rows), len(columns)))
    is_numbered = every > MOST_LEFT_OUT
    names = (sheet.width_of(sheet.token_name(plan.stack.key, at), size) for at in columns)
    top = y + line + gap + (1.2 * em if is_numbered else min(most, max(names)))
    beside = y + line / 2 if is_numbered else top - 0.75 * em
    sheet.note(left, y + line / 2, "to (key)")
    sheet.note(left - gap, beside, "from (query)", anchor="right")
    box = (left, top, len(columns) * cell, len(rows) * cell)
    blocks = pooled(values, int(max(box[2:]) / 25.4 * DOTS), mean=scale.lifts)
    sheet.cells(scale.rgb(blocks), at=box[:2], size=box[2:], hidden=np.isnan(blocks))
    if cut:
        long = (STRIP - GAP) * em - sheet.width_of(".00", style.small)
        _draw_not_kept(sheet, plan.not_kept[rows], (left + box[2] + gap, top, long, box[3]))
    _names(sheet, plan, (rows, columns), box, every=every, size=size)
    _borders(sheet, plan, (rows, columns), box)
    y, is_masked = top + box[3] + 0.8 * em, bool(np.isnan(values).any())
    y = charts.colour_bar(sheet, scale, shown.scale_label, y=y, masked=is_masked)
    positions = "tokens stand too close for their names: positions from 0"
    notes = [
        positions if is_numbered else named_every(every),
        pooling_words(mean=scale.lifts, signed=scale.signed) * (blocks is not values),
        plan.heads_in_words(mean=True) * (len(plan.heads) > 1 or shown.whole),
        scale.words,
    ]
    closing(sheet, plan, y, notes)


def _draw_not_kept(sheet: Sheet, shares: np.ndarray, box: Box) -> None:
    """Draw next to each row the share of its weight that was cut before headscope saw it, with its
    number where it fits.
    """
    style, axes, rows = sheet.style, sheet.axes(box), []
    sheet.note(box[0], box[1] - 0.75 * style.em, "not kept")
    for share in shares.tolist():
        is_shown = share >= LEAST
        rows.append(charts.Row({"": (share,)} if is_shown else {}, short_weight(share) * is_shown))
    axes.set_xlim(0, 1)
    charts.RowMarks(rows=rows, looks={"": (style.faint, "bar")}).draw_marks(sheet, axes, box)


def _names(
    sheet: Sheet, plan: FigurePlan, sides: Sides, box: Box, *, every: int, size: float
) -> None:
    """The names of queries on the left and of keys above; round positions where tokens are too
    close for their names.
    """
    style, (rows, columns), (left, top, *_) = plan.style, sides, box
    cell, gap, most = box[2] / len(columns), GAP * style.em, WIDEST_NAME * sheet.width
    tick = 0.2 * style.em
    room = 1.6 * sheet.width_of(str(max(*rows, *columns)), style.small)
    step = next(step for step in STEPS if step * cell >= room)
    is_numbered = every > MOST_LEFT_OUT

    def shown(positions: Sequence[int]) -> Iterator[tuple[float, int]]:
        for index, position in enumerate(positions):
            if not (position % step if is_numbered else index % every):
                yield (index + 0.5) * cell, position

    for along, position in shown(rows):
        y, name = top + along, {"size": size, "anchor": "right"}
        if is_numbered:
            sheet.line((left - tick, left), (y, y), colour=style.muted, line=0.4)
            sheet.note(left - gap, y, str(position), anchor="right")
        else:
            sheet.name(plan.stack.query, position, (left - gap, y), most, **name)
    for along, position in shown(columns):
        x, name = left + along, {"size": size, "upright": True}
        if not is_numbered:
            sheet.name(plan.stack.key, position, (x, top - gap), most, **name)
        elif x + sheet.width_of(str(position)) / 2 < sheet.width + 0.5:
            sheet.line((x, x), (top - tick, top), colour=style.muted, line=0.4)
            sheet.note(x, top - 0.75 * style.em, str(position), anchor="center")


def _borders(sheet: Sheet, plan: FigurePlan, sides: Sides, box: Box) -> None:
    """Lines through the whole grid: thin ones between the texts of a pair, and one before what the
    model wrote.
    """
    style, (rows, columns), (left, top, width, height) = plan.style, sides, box
    cell = width / len(columns)
    for tokens, positions in ((plan.stack.query, rows), (plan.stack.key, columns)):
        segments = [tokens.segments[position] for position in positions]
        edges = np.flatnonzero(np.diff(segments)) + 1
        looks = [(at, style.faint, 0.4) for at in edges.tolist()]
        before = sum(position < (plan.first_written(tokens) or 0) for position in positions)
        if 0 < before < len(positions):
            looks.insert(0, (before, style.accent, 0.9))
        for at, colour, line in looks:
            x, y = left + at * cell, top + at * cell
            if positions is columns:
                sheet.line((x, x), (top, top + height), colour=colour, line=line)
            else:
                sheet.line((left, left + width), (y, y), colour=colour, line=line)


CELLS = 48
"""Rows and columns of a thumbnail at most."""
TALLEST_GRID, LARGEST_THUMBNAIL, SMALLEST_THUMBNAIL = 215.0, 22.0, 16.0
"""Millimetres of the grid, and of a thumbnail."""
TALLEST_TILE = 1.9
"""Height of a tile with a number at most, in units of the font size."""
Scales = Callable[[int, int], Scale]
"""The scale of a layer and head."""
Tiles = dict[charts.Cell, np.ndarray]
"""The numbers of each tile, by row and head."""


def draw_overview(sheet: Sheet, plan: FigurePlan) -> None:
    """A grid of layers and heads; each thumbnail is a head's matrix in the colour of its kind, and
    all share one scale.
    """
    shown, layers, tiles = plan.shown, plan.layers, {}
    for row, layer in enumerate(layers):
        # Of weights, multiples of the even share.
        values = lifted(layer, layer.head_numbers, shown)[:, plan.from_][:, :, plan.to]
        for head, each in zip(_columns(plan, row), values, strict=True):
            tiles[row, head] = pooled(each, CELLS, mean=shown.weights)
    columns = f"× {counted(max(layer.heads for layer in layers), 'head')}"
    if shown.whole:
        columns = f"· {plan.heads_in_words() if shown.combined.heads else shown.label}"
    queries, keys = int(plan.from_.sum()), int(plan.to.sum())
    of = "numbers" if shown.explanation else f"{shown.label}s"
    notes = ["rows are queries, columns are keys", f"{queries} × {keys} {of}"]
    if max(queries, keys) > CELLS:
        notes.append(pooling_words(mean=shown.weights, signed=shown.signed))
    aspect = float(np.clip(queries / keys, 0.4, 2.5))
    cell = min(LARGEST_THUMBNAIL, TALLEST_GRID / len(layers) / aspect)
    title = f"{counted(len(layers), 'layer')} {columns}"
    _draw_tiles(sheet, plan, title, tiles, notes=notes, aspect=aspect, cell=cell)


def draw_pair(sheet: Sheet, plan: FigurePlan) -> None:
    """A tile for each head of each layer, with its number."""
    shown, words, tiles = plan.shown, {}, {}
    of = (slice(None), [plan.query or 0], [plan.key or 0])
    least = LEAST if shown.weights else -np.inf
    for row, layer in enumerate(plan.layers):
        values = lifted(layer, layer.head_numbers, shown)[of]
        numbers = numbers_of(layer, layer.head_numbers, shown)[of][:, 0].tolist()
        for head, each, number in zip(_columns(plan, row), values, numbers, strict=True):
            tiles[row, head] = each[:, None]
            words[row, head] = shown.words(number) * (number >= least)
    title = " → ".join(sheet.quoted(plan.label(side)) for side in ("query", "key"))
    unit = "token" if shown.combined.words is None else "word"
    notes = [f"{unit} {plan.query} looks at {unit} {plan.key}"]
    notes += ["no number: below .0005"] * (shown.weights and "" in words.values())
    # Numbers are wider than tall: a tile need not be higher than a line of text.
    look = {"words": words, "cell": LARGEST_THUMBNAIL, "high": TALLEST_TILE * plan.style.em}
    _draw_tiles(sheet, plan, title, tiles, notes=notes, **look)


def _draw_tiles(
    sheet: Sheet, plan: FigurePlan, title: str, tiles: Tiles, *, notes: list[str], **look: Any
) -> None:
    """Draw the tiles of all heads, with words where these have room, below their title; a frame is
    around the chosen layer, or around each of its chosen heads.
    """
    style, shown, layers = plan.style, plan.shown, plan.layers
    y = heading(sheet, plan, plan.stack_words + title)
    scales, y = _scales(sheet, plan, max(map(largest_of, tiles.values())), y)
    pictures, frames = {}, []
    for (row, head), values in tiles.items():
        # Hidden where the query may not look at the key: there is no number.
        pictures[row, head] = scales(layers[row].layer, head).rgb(values), np.isnan(values)
    if plan.chosen and plan.layer in layers:
        is_all = shown.whole or len(plan.heads) == plan.layer.heads
        frames = [(layers.index(plan.layer), head) for head in ((-1,) if is_all else plan.heads)]
    if shown.whole:
        y = _draw_layers(sheet, plan, y, pictures, frames=frames, **look)
    else:
        heads, kv = max(each.heads for each in layers), max(each.kv_heads for each in layers)
        look |= {"shared": heads // kv if kv < heads else heads, "below": range(heads)}
        names = [layer.layer for layer in layers]
        grid = charts.Cells(names=names, pictures=pictures, frames=frames, **look)
        y = draw_panels(sheet, y, [grid])
    # The bar has the colour of weights at rest, which is grey where heads have colours of kinds.
    scale = shown.scale(style, 0.0, len(plan.stack.key), style.kind("resting"))
    if not _shows_kinds(plan):
        scale = scales(0, 0)
    is_masked = any(hidden.any() for _, hidden in pictures.values())
    y = charts.colour_bar(sheet, scale, shown.scale_label, y=y, masked=is_masked)
    closing(sheet, plan, y, [*notes, scale.words, *_layer_notes(plan)])


def _draw_layers(sheet: Sheet, plan: FigurePlan, y: float, pictures: Any, **look: Any) -> float:
    """One tile for each layer, in lines, its number above it; return the next y."""
    words, frames = look.pop("words", {}), look.pop("frames")
    panels = []
    for row, layer in enumerate(plan.layers):
        of: dict[str, Any] = {"pictures": {(0, 0): pictures[row, 0]}, "below": [""], **look}
        of["words"] = {(0, 0): words[row, 0]} if words else {}
        of["frames"] = [(0, 0)] * ((row, -1) in frames)
        panels.append(charts.Cells(note=f"layer {layer.layer}", **of))
    return draw_panels(sheet, y, panels, least=SMALLEST_THUMBNAIL, gap=0.5)


def _columns(plan: FigurePlan, row: int) -> Sequence[int]:
    return [0] if plan.shown.whole else plan.layers[row].head_numbers


def _scales(sheet: Sheet, plan: FigurePlan, largest: float, y: float) -> tuple[Scales, float]:
    """The scale of each head: of weights in the colour of its kind on this text, which a legend
    counts; return the next y too.
    """
    style, keys = plan.style, len(plan.stack.key)
    plain = plan.shown.scale(style, largest, keys)
    if not _shows_kinds(plan):
        return lambda _layer, _head: plain, y
    # What heads do is told of tokens, also where words are drawn.
    kinds = head_kinds(plan.record[plan.stack.name])
    of = {kind: plan.shown.scale(style, largest, keys, style.kind(kind)) for kind in KINDS}
    entries = []
    numbers = kinds.number("kind")[[kinds.layers.index(layer.layer) for layer in plan.layers]]
    for number, kind in enumerate(KINDS):
        if count := int((numbers == number).sum()):
            entries.append((style.kind(kind), f"{count} {CLAUSES[kind]}"))
    y = sheet.legend(entries, y) + 0.4 * style.em
    return lambda layer, head: of[kinds.kind(layer, head)], y


def _shows_kinds(plan: FigurePlan) -> bool:
    """Whether colour can be what heads do: of their weights, where there are colours; the overview
    counts them without colours too.
    """
    of_heads = plan.shown.weights and not plan.shown.whole
    return of_heads and (plan.style.colour or plan.view == "overview")


def _layer_notes(plan: FigurePlan) -> Iterator[str]:
    if _shows_kinds(plan):
        yield "kinds describe this one text"
    if not plan.shown.whole and any(each.kv_heads < each.heads for each in plan.layers):
        yield "heads that share keys and values stand together"
    if not plan.shown.whole:
        yield "layers from above, heads from the left"
    numbers = [layer.layer for layer in plan.stack.layers]
    gone = sorted({*range(max(numbers))} - {*numbers})
    if gone:
        yield f"without layers {', '.join(map(str, gone))}: not in the record"
    if any(layer.held_heads is not None for layer in plan.layers):
        yield "heads without a tile were not captured"
