"""Views made of cells: of one head, or the mean of several, query by key; of all heads, a tile for
each (overview and model with their weights, pair with one query and one key).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headscope.patterns import KINDS, head_kinds
from headscope.views.constants import KIND_NAMES
from headscope.views.figures import _numbers, charts
from headscope.views.figures._frame import heading, named_every
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


def draw_matrix(sheet: Sheet, plan: FigurePlan) -> list[str]:
    """Rows are queries, columns are keys; colour is the number."""
    style, em, shown = plan.style, plan.style.em, plan.shown
    values = _numbers.mean_of(shown.lifts(plan.layer, plan.heads, plan.without))
    values = values[np.ix_(plan.from_, plan.to)]
    scale = shown.scale(style, _numbers.largest_of(values), plan.layer.size[1], plan.colour)
    heading(sheet, plan, plan.where)
    (_, rows), (_, columns) = plan.sides
    # Whether beside the rows stands what of their weights was cut before headscope saw it.
    cut = plan.layer.partial and shown.weights and not plan.without
    most, gap, y = WIDEST_NAME * sheet.width, GAP * em, sheet.y
    widest = max(sheet.width_of(sheet.token_name(plan.stack.query, row)) for row in rows)
    left = max(min(most, widest), sheet.width_of("from (query)", style.small)) + gap
    cell = min(TALLEST / len(rows), LARGEST_CELL * em)
    cell = min(cell, (sheet.width - left - STRIP * em * cut) / len(columns))
    size, every = sheet.naming(cell, max(len(rows), len(columns)))
    is_numbered = every > MOST_LEFT_OUT
    names = (sheet.width_of(sheet.token_name(plan.stack.key, at), size) for at in columns)
    top = y + 1.4 * em + gap + (1.2 * em if is_numbered else min(most, max(names)))
    sheet.note(left, y + 0.7 * em, "to (key)")
    beside = y + 0.7 * em if is_numbered else top - 0.75 * em
    sheet.note(left - gap, beside, "from (query)", anchor="right")
    box = (left, top, len(columns) * cell, len(rows) * cell)
    blocks = _numbers.pooled(values, int(max(box[2:]) / 25.4 * DOTS), mean=scale.lifts)
    sheet.cells(scale.rgb(blocks), at=box[:2], size=box[2:], hidden=np.isnan(blocks))
    if cut:
        long = (STRIP - GAP) * em - sheet.width_of(".00", style.small)
        _draw_not_kept(sheet, plan.not_kept[rows], (left + box[2] + gap, top, long, box[3]))
    for is_key in (False, True):
        _draw_side(sheet, plan, box, is_key=is_key)
        _draw_borders(sheet, plan, box, is_key=is_key)
    sheet.y = top + box[3] + 0.8 * em
    is_masked = bool(np.isnan(values).any())
    charts.colour_bar(sheet, scale, shown.scale_label, masked=is_masked)
    positions = "tokens stand too close for their names: positions from 0"
    return [
        positions if is_numbered else named_every(every),
        _numbers.pooling_words(mean=scale.lifts, signed=scale.signed) * (blocks is not values),
        plan.heads_in_words(mean=True) * (len(plan.heads) > 1 or shown.whole),
        scale.words,
    ]


def _draw_not_kept(sheet: Sheet, shares: np.ndarray, box: Box) -> None:
    """Draw next to each row the share of its weight that was cut before headscope saw it, with its
    number where it fits.
    """
    axes, rows = sheet.axes(box), []
    sheet.note(box[0], box[1] - 0.75 * sheet.style.em, "not kept")
    for share in shares.tolist():
        is_shown = share >= LEAST
        rows.append(charts.Row({"": (share,)} if is_shown else {}, short_weight(share) * is_shown))
    axes.set_xlim(0, 1)
    marks = charts.RowMarks(rows=rows, looks={"": (sheet.style.faint, "bar")})
    marks.draw_marks(sheet, axes, box)


def _draw_side(sheet: Sheet, plan: FigurePlan, box: Box, *, is_key: bool) -> None:
    """The names of queries on the left or of keys above; round positions where tokens are too close
    for these.
    """
    style, (left, top, width, height) = plan.style, box
    tokens, positions = plan.sides[is_key]
    cell = (width if is_key else height) / len(positions)
    size, every = sheet.naming(cell, int(max(plan.from_.sum(), plan.to.sum())))
    most, gap, tick = WIDEST_NAME * sheet.width, GAP * style.em, 0.2 * style.em
    last = max(of[-1] for _, of in plan.sides)
    room, is_numbered = 1.6 * sheet.width_of(str(last), style.small), every > MOST_LEFT_OUT
    step = STEPS[int(np.searchsorted(np.array(STEPS) * cell, room))]
    for index, position in enumerate(positions):
        x, y, name = left + (index + 0.5) * cell, top + (index + 0.5) * cell, str(position)
        if (position % step) if is_numbered else (index % every):
            continue
        if not is_numbered:
            place = ((left - gap, y), (x, top - gap))[is_key]
            look = ({"anchor": "right"}, {"upright": True})[is_key]
            sheet.name(tokens, position, place, most, size=size, **look)
        elif not is_key:
            sheet.line((left - tick, left), (y, y), style.muted, 0.4)
            sheet.note(left - gap, y, name, anchor="right")
        elif x + sheet.width_of(name) / 2 < sheet.width + 0.5:
            sheet.line((x, x), (top - tick, top), style.muted, 0.4)
            sheet.note(x, top - 0.75 * style.em, name, anchor="center")


def _draw_borders(sheet: Sheet, plan: FigurePlan, box: Box, *, is_key: bool) -> None:
    """Lines through the whole grid: thin ones between the texts of a pair, and one before what the
    model wrote.
    """
    style, (left, top, width, height) = plan.style, box
    tokens, positions = plan.sides[is_key]
    cell = (width if is_key else height) / len(positions)
    edges = np.flatnonzero(np.diff(np.array(tokens.segments)[positions])) + 1
    looks = [(at, style.faint, 0.4) for at in edges.tolist()]
    before = sum(position < (plan.first_written(tokens) or 0) for position in positions)
    if 0 < before < len(positions):
        looks.insert(0, (before, style.accent, 0.9))
    for at, colour, wide in looks:
        x, y = left + at * cell, top + at * cell
        ends = ((x, x), (top, top + height)) if is_key else ((left, left + width), (y, y))
        sheet.line(*ends, colour, wide)


CELLS = 48
"""Rows and columns of a thumbnail at most."""
TALLEST_GRID, LARGEST_THUMBNAIL, SMALLEST_THUMBNAIL = 215.0, 22.0, 16.0
"""Millimetres of the grid, and of a thumbnail."""
TALLEST_TILE = 1.9
"""Height of a tile with a number at most, in units of the font size."""
Tiles = dict[charts.Cell, np.ndarray]
"""The numbers of each tile, by row and head."""


def draw_overview(sheet: Sheet, plan: FigurePlan) -> list[str]:
    """A grid of layers and heads; each thumbnail is a head's matrix in the colour of its kind, and
    all share one scale.
    """
    shown, layers, tiles = plan.shown, plan.layers, {}
    for row, layer in enumerate(layers):
        # Of weights, multiples of the even share.
        values = shown.lifts(layer, layer.head_numbers)[:, plan.from_][:, :, plan.to]
        for head, each in zip(_columns(plan, row), values, strict=True):
            tiles[row, head] = _numbers.pooled(each, CELLS, mean=shown.weights)
    columns = f"× {counted(max(layer.heads for layer in layers), 'head')}"
    if shown.whole:
        columns = f"· {plan.heads_in_words() if shown.heads else shown.label}"
    queries, keys = int(plan.from_.sum()), int(plan.to.sum())
    of = "numbers" if shown.explanation else f"{shown.label}s"
    notes = ["rows are queries, columns are keys", f"{queries} × {keys} {of}"]
    if max(queries, keys) > CELLS:
        notes.append(_numbers.pooling_words(mean=shown.weights, signed=shown.signed))
    aspect = float(np.clip(queries / keys, 0.4, 2.5))
    cell = min(LARGEST_THUMBNAIL, TALLEST_GRID / len(layers) / aspect)
    title = f"{counted(len(layers), 'layer')} {columns}"
    return [*notes, *_draw_tiles(sheet, plan, title, tiles, aspect=aspect, cell=cell)]


def draw_pair(sheet: Sheet, plan: FigurePlan) -> list[str]:
    """A tile for each head of each layer, with its number."""
    shown, words, tiles = plan.shown, {}, {}
    of = (slice(None), [plan.query or 0], [plan.key or 0])
    least = LEAST if shown.weights else -np.inf
    for row, layer in enumerate(plan.layers):
        values = shown.lifts(layer, layer.head_numbers)[of]
        numbers = shown.numbers(layer, layer.head_numbers)[of][:, 0].tolist()
        for head, each, number in zip(_columns(plan, row), values, numbers, strict=True):
            tiles[row, head] = each[:, None]
            words[row, head] = shown.words(number) * (number >= least)
    title = " → ".join(sheet.quoted(plan.label(side)) for side in ("query", "key"))
    unit = "token" if shown.units is None else "word"
    notes = [f"{unit} {plan.query} looks at {unit} {plan.key}"]
    notes += ["no number: below .0005"] * (shown.weights and "" in words.values())
    # Numbers are wider than tall: a tile need not be higher than a line of text.
    look = {"words": words, "cell": LARGEST_THUMBNAIL, "high": TALLEST_TILE * plan.style.em}
    return [*notes, *_draw_tiles(sheet, plan, title, tiles, **look)]


def _draw_tiles(sheet: Sheet, plan: FigurePlan, title: str, tiles: Tiles, **look: Any) -> list[str]:
    """Draw the tiles of all heads, with words where these have room, below their title; a frame is
    around the chosen layer, or around each of its chosen heads. Give notes about them.
    """
    style, shown, layers = plan.style, plan.shown, plan.layers
    heading(sheet, plan, plan.stack_words + title)
    of_heads = shown.weights and not shown.whole
    # Colour can be what heads do; the overview counts them without colours too.
    has_kinds = of_heads and (style.colour or plan.view == "overview")
    scale = shown.scale(style, max(map(_numbers.largest_of, tiles.values())), len(plan.stack.key))
    scales = _kind_scales(sheet, plan) if has_kinds else {}
    pictures, frames = {}, []
    for (row, head), values in tiles.items():
        # Hidden where the query may not look at the key: there is no number.
        of = scales.get((layers[row].layer, head), scale)
        pictures[row, head] = of.rgb(values), np.isnan(values)
    if plan.chosen and plan.layer in layers:
        is_all = shown.whole or len(plan.heads) == plan.layer.heads
        frames = [(layers.index(plan.layer), head) for head in ((-1,) if is_all else plan.heads)]
    if shown.whole:
        _draw_layers(sheet, plan, pictures, frames=frames, **look)
    else:
        heads, kv = max(each.heads for each in layers), max(each.kv_heads for each in layers)
        look |= {"shared": heads // kv if kv < heads else heads, "below": range(heads)}
        names = [layer.layer for layer in layers]
        charts.draw_panels(
            sheet, [charts.Cells(names=names, pictures=pictures, frames=frames, **look)]
        )
    if has_kinds:
        # The bar has the colour of weights at rest, which is grey where heads have colours.
        scale = shown.scale(style, 0.0, len(plan.stack.key), style.kind("resting"))
    is_masked = any(hidden.any() for _, hidden in pictures.values())
    charts.colour_bar(sheet, scale, shown.scale_label, masked=is_masked)
    numbers = [layer.layer for layer in plan.stack.layers]
    gone = ", ".join(map(str, sorted({*range(max(numbers))} - {*numbers})))
    is_shared = any(each.kv_heads < each.heads for each in layers)
    return [
        scale.words,
        "kinds describe this one text" * has_kinds,
        "heads that share keys and values stand together" * (is_shared and not shown.whole),
        "layers from above, heads from the left" * (not shown.whole),
        f"without layers {gone}: not in the record" * bool(gone),
        "heads without a tile were not captured"
        * any(layer.held_heads is not None for layer in layers),
    ]


def _draw_layers(sheet: Sheet, plan: FigurePlan, pictures: Any, **look: Any) -> None:
    """One tile for each layer, in lines, its number above it."""
    words, frames, panels = look.pop("words", {}), look.pop("frames"), []
    for row, layer in enumerate(plan.layers):
        of: dict[str, Any] = {"pictures": {(0, 0): pictures[row, 0]}, "below": [""], **look}
        of["words"] = {(0, 0): words[row, 0]} if words else {}
        of["frames"] = [(0, 0)] * ((row, -1) in frames)
        panels.append(charts.Cells(note=f"layer {layer.layer}", **of))
    charts.draw_panels(sheet, panels, least=SMALLEST_THUMBNAIL, gap=0.5)


def _columns(plan: FigurePlan, row: int) -> Sequence[int]:
    return [0] if plan.shown.whole else plan.layers[row].head_numbers


def _kind_scales(sheet: Sheet, plan: FigurePlan) -> dict[tuple[int, int], Scale]:
    """The scale of each layer and head, in the colour of its kind on this text; draw a legend that
    counts them.
    """
    style, scales, entries = plan.style, {}, []
    # What heads do is told of tokens, also where words are drawn.
    kinds, drawn = head_kinds(plan.record[plan.stack.name]), [each.layer for each in plan.layers]
    numbers = kinds.number("kind")
    for number, kind in enumerate(KINDS):
        cells = np.argwhere(numbers == number).tolist()
        cells = [(kinds.layers[row], head) for row, head in cells if kinds.layers[row] in drawn]
        scale = plan.shown.scale(style, 0.0, len(plan.stack.key), style.kind(kind))
        scales |= dict.fromkeys(cells, scale)
        entries += [(style.kind(kind), f"{len(cells)} {KIND_NAMES[kind]}")] * bool(cells)
    sheet.legend(entries)
    sheet.y += 0.4 * style.em
    return scales
