"""What kind of heads a model has, drawn: maps of layers and heads, and the map of all heads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Literal

import numpy as np
from jaxtyping import Float
from typing_extensions import Unpack

from headscope.errors import FigureError
from headscope.measures import stress
from headscope.patterns import Heads
from headscope.views.figures._figure import Figure
from headscope.views.figures._palette import head_colours, head_greys, parse_hex, text_on
from headscope.views.figures._result import (
    ResultOptions,
    parse_result_options,
    result_heading,
    result_recipe,
    written_options,
)
from headscope.views.figures._sheet import Sheet, our_settings
from headscope.views.figures._words import two_digits

PANEL = 38.0
"""Millimetres that a map of layers and heads is wide, about."""
LARGEST_CELL = 5.0
DOT = 1.7
"""Millimetres across a head on the map of all heads."""
UNITS = {"entropy": "nats", "distance": "tokens"}


def heads_figure(
    found: Heads,
    *,
    show: Collection[str] | None = None,
    mds: bool | Literal["only"] | None = None,
    **options: Unpack[ResultOptions],
) -> Figure:
    """Labels and measures as maps of layers and heads, and all heads as points of a plane.

    The first map has the label of each head; where it holds several, that which fewest heads hold. Then come patterns
    and measures by their mean over texts; dots mark the heads that hold the label.

    Args:
        found: what was told of the heads.
        show: patterns and measures, by name; by default every pattern that some text shows and every measure.
        mds: whether to draw the map of all heads (Clark et al. 2019), or nothing else; by default where the distances
            of heads were added up.
        **options: see `ResultOptions`.

    Raises:
        FigureError: an option or pattern that there is not, or matplotlib is missing.
        RecordError: a map of all heads whose distances were not added up.

    Example:
        >>> heads_figure(heads(records, distances=True)).save("heads.pdf")
    """
    with our_settings():
        width, style = parse_result_options(options)
        sheet = Sheet(width, style)
        title = options.get("title", found.tally.model or "Heads")
        texts = "1 text: what it shows says nothing of others" if found.texts == 1 else f"{found.texts} texts"
        y = result_heading(sheet, title, f"{len(found.cells)} heads over {texts}")
        colours = _colours(found, sheet)
        wants_map = found.tally.distances is not None if mds is None else bool(mds)
        if mds != "only":
            y = _maps(sheet, found, _chosen(found, show), colours=colours, y=y)
        if wants_map:
            y = _plane(sheet, found, colours, y)
        sheet.finish(_legend(sheet, found, colours, y))
    call = f"headscope.heads_figure(found, show={show!r}, mds={mds!r}{written_options(options)})"
    layers, numbers = zip(*found.cells, strict=True)
    shown = found.tally.shown.values()
    recipe = result_recipe(
        "heads", model=found.tally.model, layers=layers, heads=numbers, texts=shown, call=call, style=style
    )
    return Figure(sheet.matplotlib, recipe)


def told(found: Heads) -> dict[tuple[int, int], str]:
    """The label that says most of each head: that which fewest heads hold. One text alone gives what it shows."""
    held = [label for label in found.all_labels if label.holds or label.only_one_text]
    counts = Counter(label.pattern for label in held)
    order = sorted(held, key=lambda label: (-counts[label.pattern], label.score))
    return {(label.layer, label.head): label.pattern for label in order}


def _chosen(found: Heads, show: Collection[str] | None) -> list[str]:
    scored = list(dict.fromkeys(label.pattern for label in found.all_labels))
    known = [*scored, *(name for name, values in found.measures.items() if not np.isnan(values).all())]
    for name in show or ():
        if name not in known:
            raise FigureError(f"There is no {name!r} to draw; there are {', '.join(known)}")
    return known if show is None else list(show)


def _colours(found: Heads, sheet: Sheet) -> dict[str, str]:
    """One colour for each label that some head holds, the same whatever else is held."""
    names = [pattern.name for pattern in found.tally.patterns]
    held = [name for name in names if name in set(told(found).values())]
    style = sheet.style
    if not style.colour:
        return dict(zip(held, head_greys(len(held), dark=style.dark), strict=True)) if held else {}
    palette = head_colours(len(names), dark=style.dark)
    return {name: palette[names.index(name)] for name in held}


def _maps(sheet: Sheet, found: Heads, names: list[str], *, colours: dict[str, str], y: float) -> float:
    """Small maps beside each other; give the next y."""
    style = sheet.style
    layers = list(dict.fromkeys(layer for layer, _ in found.cells))
    heads = max(head for _, head in found.cells) + 1
    gap = 1.6 * style.em
    columns = max(1, min(len(names) + 1, int((sheet.width + gap) / (PANEL + gap))))
    width = (sheet.width - (columns - 1) * gap) / columns
    side = sheet.width_of(str(layers[-1]), style.small) + 0.5 * style.em
    cell = min(LARGEST_CELL, (width - side) / heads)
    tall = 1.5 * style.em + len(layers) * cell + 1.6 * style.em
    for number, name in enumerate(["label", *names]):
        x, top = (number % columns) * (width + gap), y + (number // columns) * tall
        rgb, holds, scale = _panel(sheet, found, name, colours)
        sheet.text(x + side, top + 0.6 * style.em, name)
        sheet.note(x + side + heads * cell, top + 0.6 * style.em, scale, anchor="right")
        grid = np.broadcast_to(parse_hex(style.paper), (len(layers), heads, 3)).copy()
        at = (x + side, top + 1.4 * style.em)
        for (layer, head), colour in zip(found.cells, rgb, strict=True):
            grid[layers.index(layer), head] = colour
        sheet.cells(grid, at=at, size=(heads * cell, len(layers) * cell))
        for (layer, head), marked, colour in zip(found.cells, holds, rgb, strict=True):
            if marked:
                dot = 0.3 * cell
                place = (at[0] + (head + 0.5) * cell - dot / 2, at[1] + (layers.index(layer) + 0.5) * cell - dot / 2)
                sheet.rect(*place, dot, dot, fill=text_on(colour), round=dot / 2, layer=4)
        every = max(1, int(np.ceil(1.3 * style.small * 0.353 / cell)))
        for row, layer in enumerate(layers[::every]):
            sheet.note(x + side - 0.4 * style.em, at[1] + (row * every + 0.5) * cell, str(layer), anchor="right")
        last = at[1] + len(layers) * cell + 0.6 * style.em
        step = max(1, int(np.ceil(1.3 * sheet.width_of(str(heads), style.small) / cell)))
        for head in range(0, heads, step):
            sheet.note(at[0] + (head + 0.5) * cell, last, str(head), anchor="center")
    return y + -(-(len(names) + 1) // columns) * tall + 0.3 * style.em


def _panel(sheet: Sheet, found: Heads, name: str, colours: dict[str, str]) -> tuple[np.ndarray, list[bool], str]:
    """Colour of each head, whether it has a dot, and what the colours mean."""
    style = sheet.style
    if name == "label":
        labels = told(found)
        rgb = [parse_hex(colours[labels[cell]] if cell in labels else style.masked) for cell in found.cells]
        return np.array(rgb), [False] * len(rgb), ""
    if name in found.measures:
        values = found.measures[name]
        largest = float(np.nanmax(values)) or 1.0
        scale = f"0–{two_digits(largest) if largest < 1 else f'{largest:.1f}'} {UNITS.get(name, '')}".rstrip()
        return style.weight_scale(largest, power=1.0).rgb(values), [False] * len(values), scale
    mine = {(label.layer, label.head): label for label in found.all_labels if label.pattern == name}
    values = np.array([mine[cell].score if cell in mine else np.nan for cell in found.cells])
    holds = [cell in mine and mine[cell].holds for cell in found.cells]
    shades = style.weight_scale(1.0, power=1.0).rgb(np.where(np.isnan(values), values, np.clip(values, 0, 1)))
    return shades, holds, f"0–1, {sum(holds)} hold" if any(holds) else "0–1"


def _plane(sheet: Sheet, found: Heads, colours: dict[str, str], y: float) -> float:
    """All heads as points; names where there is room, of the rarest labels first."""
    style = sheet.style
    places = found.map
    sheet.text(0, y + 0.6 * style.em, "map of all heads")
    apart = f"like heads close together, {found.texts} texts"
    sheet.note(
        sheet.width, y + 0.6 * style.em, f"{apart}; stress {stress(found.distances, places):.2f}", anchor="right"
    )
    top, labels = y + 1.8 * style.em, told(found)
    low, span = places.min(axis=0), np.maximum(np.ptp(places, axis=0), 1e-9)
    room = sheet.width - 4 * DOT - sheet.width_of("00-00", style.small)
    scale = min(room / span[0], 95.0 / span[1])
    left = (room - scale * span[0]) / 2 + 2 * DOT
    points = np.stack([left + scale * (places[:, 0] - low[0]), top + DOT + scale * (places[:, 1] - low[1])], axis=1)
    for cell, (x, height) in zip(found.cells, points, strict=True):
        fill = colours[labels[cell]] if cell in labels else style.faint
        sheet.rect(
            x - DOT / 2, height - DOT / 2, DOT, DOT, fill=fill, edge=style.paper, line=0.3, round=DOT / 2, layer=3
        )
    _names(sheet, found, points, labels)
    return top + scale * span[1] + 2 * DOT + 0.6 * style.em


def _names(sheet: Sheet, found: Heads, points: Float[np.ndarray, "head 2"], labels: dict[tuple[int, int], str]) -> None:
    counts = Counter(labels.values())
    order = sorted(range(len(points)), key=lambda number: counts.get(labels.get(found.cells[number], ""), len(points)))
    size = sheet.style.small
    high = size * 0.353
    taken = [(x - DOT / 2, y - DOT / 2, x + DOT / 2, y + DOT / 2) for x, y in points]
    for number in order:
        x, y = points[number]
        name = "{}-{}".format(*found.cells[number])
        wide = sheet.width_of(name, size)
        for left in (x + 0.7 * DOT, x - 0.7 * DOT - wide):
            box = (left, y - high / 2, left + wide, y + high / 2)
            if not any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken):
                taken.append(box)
                sheet.note(left, y, name)
                break


def _legend(sheet: Sheet, found: Heads, colours: dict[str, str], y: float) -> float:
    style = sheet.style
    counts = Counter(told(found).values())
    entries = [(colour, f"{name} ({counts[name]})") for name, colour in colours.items()]
    entries.append((style.masked, "no label"))
    x, pitch = 0.0, 1.5 * style.small * 0.353
    for colour, words in entries:
        wide = DOT + 0.5 * style.em + sheet.width_of(words, style.small) + 1.2 * style.em
        if x + wide > sheet.width and x > 0:
            x, y = 0.0, y + pitch
        sheet.rect(x, y + (pitch - DOT) / 2, DOT, DOT, fill=colour, edge=style.edge, line=0.3)
        sheet.note(x + DOT + 0.5 * style.em, y + pitch / 2, words)
        x += wide
    notes = ["rows are layers, columns are heads, both from 0"]
    notes.append("a dot: the label holds" if found.texts > 1 else "one text gives no label: what it shows")
    if len(set(counts)) < len({label.pattern for label in found.labels}):
        notes.append("a head with several labels shows the rarest")
    return sheet.paragraph(y + 1.3 * pitch, notes) + 0.3 * style.em
