"""View text: the running text, with attention as the colour behind each word; view texts: many
texts below each other, with their labels and predictions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from headscope.errors import FigureError
from headscope.record import Tokens
from headscope.views._tray import listed_records
from headscope.views.figures._frame import heading
from headscope.views.figures._numbers import largest_of, lifts_of, mean_of
from headscope.views.figures._plan import FigurePlan, parse_options
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import Scale, counted, text_on, veiled
from headscope.views.figures.charts import colour_bar
from headscope.views.figures.fonts import levels_of, mostly_left, runs_left

PITCH, HEIGHT, PADDING, SPACE, GAP = 1.75, 1.36, 0.16, 0.3, 0.5
"""In units of the font size."""
LONGEST, LONGEST_OF_SEVERAL = 68.0, 42.0
"""Longest side of a picture in millimetres."""
NEW_LINES = ("\n", "\u010a")
"""A line break in a token: itself, or the character that byte-level vocabularies write for it."""
MOST = 60
"""Number of texts; more do not fit on one page."""
WIDEST_COLUMN = 0.2
"""Largest share of the width for a column of labels."""
WRONG = "≠ "
"""Mark before a prediction that is not the label."""


class PlacedToken(NamedTuple):
    """A token in the running text: its text, and its position and width in millimetres; y is its
    middle.
    """

    token: int
    text: str
    x: float
    y: float
    width: float


class Heat(NamedTuple):
    """A number for each token, NaN where it is masked or takes no part; and their colours."""

    numbers: Float[np.ndarray, " token"]
    scale: Scale


def draw_text(sheet: Sheet, plan: FigurePlan) -> list[str]:
    """Draw the running text, or many texts with their labels on one scale; the colour behind a word
    is what it receives, what one query gives it, or what it gives to one key.

    Raises:
        FigureError: both a query and a key, something that is not a record, too many texts, or
            labels that are not one for each text.
        RecordError: a stack, layer or head that a record does not have.
    """
    if plan.query is not None and plan.key is not None:
        raise FigureError(
            "View 'text' shows one query or one key, and both were given; view 'pair' shows both"
        )
    em, is_many = plan.style.em, plan.view == "texts"
    side = "key" if plan.query is None else "query"
    records = listed_records(plan.options.get("beside"))
    if len(records) >= MOST:
        raise FigureError(f"View 'texts' shows up to {MOST} texts, got {len(records) + 1}")
    plans = [plan, *(parse_options(of, plan.options) for of in records)]
    heats = [*map(_heat_of, plans)]
    # One scale for the words of all texts, so that equal colours are equal numbers.
    keys = max(each.layer.size[1] for each in plans)
    scale = _heat_scale(plan, max(map(largest_of, heats)), keys)
    token = "the framed token" if is_many else sheet.quoted(plan.label(side))
    heading(sheet, plan, _title(plan, token))
    columns = _columns(sheet, plan, len(plans))
    sheet.y += 1.3 * em * bool(columns)
    room = min([sheet.width, *(left for left, _ in columns.values())]) - em * is_many
    for at, (each, heat) in enumerate(zip(plans, heats, strict=True)):
        if is_many:
            sheet.line((0, sheet.width), (sheet.y, sheet.y), sheet.style.edge, 0.4)
            _label(sheet, columns, at)
        sheet.y += 0.25 * em * is_many
        _draw_one(sheet, each, room, Heat(heat, scale))
        sheet.y += 0.25 * em * is_many
    masked = not is_many and bool(np.isnan(heats[0][_written(plan)[1]]).any())
    sheet.y += 0.6 * em
    colour_bar(sheet, scale, plan.shown.scale_label, masked=masked)
    place = plan.where.rpartition(" · ")[0]
    over = f", mean over {int(plan.from_.sum())} queries" * (not plan.focused and not is_many)
    notes = [
        f"{place[0].lower()}{place[1:]}, {plan.heads_in_words(mean=True)}{over}",
        scale.words,
        "what is large hides more of the picture" * bool(scale.paper),
        f"{side} {getattr(plan, side)}" * (plan.focused and not is_many),
    ]
    if is_many:
        told = [f"text {at} {each.record.changed}" for at, each in enumerate(plans, 1)]
        notes += ["all texts on one scale", *(note for note in told if not note.endswith(" "))]
        notes.append("≠: the prediction is not the label" * (len(columns) == 2))
    return notes


def _columns(sheet: Sheet, plan: FigurePlan, texts: int) -> dict[str, tuple[float, list[str]]]:
    """The left edge of each column next to the texts, and its words; write their names.

    Raises:
        FigureError: where these are not one for each text.
    """
    columns, left, em = {}, sheet.width, sheet.style.em
    for name in ("predictions", "labels"):
        given = plan.options.get(name, [""] * texts)
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise FigureError(
                f"{name} is a {type(given).__name__}; give one for each text, as a list"
            )
        if len(given) != texts:
            raise FigureError(f"{name} has {len(given)} entries for {texts} texts; give as many")
        if name not in plan.options:
            continue
        words = [" ".join(str(cell).split()) for cell in given]
        # As wide as its widest cell, but at most a fifth of the sheet.
        shown = [name, *(WRONG + sheet.shown(word) for word in words)]
        widest = 1.1 * sheet.widest(shown, of_notes=False) + em
        left -= min(widest, WIDEST_COLUMN * sheet.width)
        columns[name] = left, words
        sheet.note(left, sheet.y + 0.5 * em, name.removesuffix("s"))
    return columns


def _label(sheet: Sheet, columns: Mapping[str, tuple[float, list[str]]], at: int) -> None:
    """Write the label and the prediction of a text, in bold where they differ."""
    right, em = sheet.width, sheet.style.em
    is_wrong = len({words[at] for _, words in columns.values()}) > 1
    for name, (left, words) in columns.items():
        marked = name == "predictions" and is_wrong
        text = sheet.fitted(WRONG * marked + sheet.shown(words[at]), right - left - 0.5 * em)
        sheet.text(left, sheet.y + (0.25 + 0.5 * PITCH) * em, text, bold=marked)
        right = left


def _draw_one(sheet: Sheet, plan: FigurePlan, room: float, heat: Heat) -> None:
    """Draw the words and pictures of one record."""
    tokens, _ = _written(plan)
    pictures = tokens.pictures or (None,) * len(tokens)
    if plan.view == "texts" and tokens.places is not None:
        raise FigureError("View 'texts' shows texts; a record is of a picture: leave it out")
    of_words = groupby(tokens.whole_words.tokens, key=lambda word: pictures[word[0]])
    for picture, words in of_words:
        run = list(words)
        patches = [token for word in run for token in word]
        if picture is not None:
            _draw_picture(sheet, plan, patches, heat)
            continue
        placed = _in_reading_order(_set_text(sheet, tokens, run, room), tokens, room)
        _draw_words(sheet, plan, placed, heat)


def _title(plan: FigurePlan, token: str) -> str:
    """What is shown of which token."""
    if plan.query is not None:
        return f"Where {token} looks"
    return plan.shown.received if plan.key is None else f"What looks at {token}"


def _written(plan: FigurePlan) -> tuple[Tokens, np.ndarray]:
    """The tokens that are written, and which of them take part."""
    if plan.key is not None:
        return plan.stack.query, plan.from_
    return plan.stack.key, plan.to


def _framed_token(plan: FigurePlan) -> int | None:
    """The chosen token, where queries and keys are the same tokens."""
    if plan.stack.query != plan.stack.key:
        return None
    return plan.query if plan.query is not None else plan.key


def _heat_scale(plan: FigurePlan, largest: float, keys: int) -> Scale:
    """Colours of the numbers of `_heat_of`, up to the largest, among so many keys."""
    one, colour = plan.focused, plan.colour
    if plan.record.pictures and colour in map(plan.style.kind, ("", "resting", "none")):
        # Grey would not be seen over a picture.
        colour = plan.style.accent
    # What many queries give is more even than what one gives, and needs no square root to be seen.
    power = 0.5 if one else 1.0
    scale = plan.shown.scale(plan.style, largest, keys, colour, power=power)
    pictures = _written(plan)[0].pictures or ()
    if plan.record.pictures and any(picture is not None for picture in pictures):
        # A picture is seen through its heat, and the words are coloured by the same scale.
        return scale.over_pictures(plan.style.paper)
    return scale


def _heat_of(plan: FigurePlan) -> Float[np.ndarray, " token"]:
    """One number for each token that is written, of weights a multiple of the even share; NaN where
    it is masked or takes no part.
    """
    numbers = plan.shown.numbers(plan.layer, plan.heads, plan.without)
    heat = _of_tokens(plan, mean_of(numbers))
    if plan.shown.weights:
        return lifts_of(heat, _of_tokens(plan, plan.shown.even(plan.layer, plan.without)))
    return heat


def _of_tokens(plan: FigurePlan, values: Float[np.ndarray, "query key"]) -> np.ndarray:
    if plan.query is not None:
        return np.where(plan.to, values[plan.query], np.nan)
    if plan.key is not None:
        return np.where(plan.from_, values[:, plan.key], np.nan)
    if not plan.shown.signed:
        # A masked key receives nothing from that query; a masked score has no such value.
        values = np.nan_to_num(values)
    return np.where(plan.to, mean_of(values[plan.from_]), np.nan)


def _draw_picture(sheet: Sheet, plan: FigurePlan, patches: list[int], heat: Heat) -> None:
    """Draw the part of a picture that these patches cover, under their heat; where the record holds
    no pixels, plain cells.
    """
    (tokens, takes_part), known, y = _written(plan), plan.record.pictures, sheet.y
    places = np.array([(tokens.places or ())[token] for token in patches])
    first, stop = places.min(axis=0), places.max(axis=0) + 1
    values = np.zeros(stop - first)
    values[*(places - first).T] = np.where(takes_part, heat.numbers, 0.0)[patches]
    shape, rgb = values.shape, heat.scale.rgb(values)
    if known:
        picture = (tokens.pictures or ())[patches[0]] or 0
        patch = np.array(known[picture].shape[:2]) / tokens.grids[picture]
        (top, left), (bottom, right) = (np.rint(edge * patch).astype(int) for edge in (first, stop))
        pixels = known[picture][top:bottom, left:right]
        shape, rgb = pixels.shape[:2], veiled(pixels, np.nan_to_num(values), heat.scale)
    longest = min(sheet.width, LONGEST if len(known) < 2 else LONGEST_OF_SEVERAL)
    tall, wide = (longest * side / max(shape) for side in shape)
    sheet.cells(rgb, at=(0.0, y), size=(wide, tall), framed=not known)
    if (chosen := _framed_token(plan)) in patches:
        (row, column), (rows, columns) = places[patches.index(chosen)] - first, values.shape
        box = (column * wide / columns, y + row * tall / rows, wide / columns, tall / rows)
        sheet.rect(*box, edgecolor=sheet.style.ink, linewidth=0.9, zorder=3)
    sheet.y += tall + GAP * sheet.style.em


def _set_text(
    sheet: Sheet, tokens: Tokens, words: Sequence[Sequence[int]], room: float
) -> list[PlacedToken]:
    """Place running text in this room; pieces of a word stay together, and the second text of a
    pair begins a new line.
    """
    em, segments = sheet.style.em, tokens.segments
    placed, x, line = [], 0.0, sheet.y + 0.5 * PITCH * em
    for word in words:
        first = word[0]
        texts = [sheet.fitted(sheet.shown(tokens.labels[each]), room - em) for each in word]
        widths = [sheet.width_of(text) + 2 * PADDING * em for text in texts]
        gap = SPACE * em if _spaced(tokens, first) else 0.04 * em
        begins_text = bool(placed) and first > 0 and segments[first] != segments[first - 1]
        if begins_text or (x > 0 and x + gap + sum(widths) > room):
            x, line = 0.0, line + PITCH * em
        elif x > 0:
            x += gap
        for token, text, width in zip(word, texts, widths, strict=True):
            if x > 0 and x + width > room:
                x, line = 0.0, line + PITCH * em
            placed.append(PlacedToken(token, text, x, line, width))
            x += width
        if any(mark in tokens.pieces[word[-1]] for mark in NEW_LINES):
            x, line = 0.0, line + PITCH * em
    sheet.y = max(word.y for word in placed) + 0.5 * PITCH * em
    return placed


def _in_reading_order(
    placed: Sequence[PlacedToken], tokens: Tokens, room: float
) -> list[PlacedToken]:
    """The same lines, where words of Hebrew or Arabic run from right to left; where most letters
    do, the whole line runs so.
    """
    texts = _worded(tokens)
    base, ordered = int(mostly_left(texts)), []
    for _, of in groupby(placed, key=lambda each: each.y):
        line = list(of)
        levels = levels_of([texts[each.token] for each in line], base)
        for level in (1, 2):
            for turns, run in groupby(range(len(line)), key=lambda at: levels[at] >= level):
                ats = list(run) if turns else []
                ends = [end for at in ats for end in (line[at].x, line[at].x + line[at].width)]
                both = room if level == base else min(ends, default=0) + max(ends, default=0)
                for at in ats:
                    line[at] = line[at]._replace(x=both - line[at].x - line[at].width)
        ordered += line
    return ordered


def _worded(tokens: Tokens) -> list[str]:
    """The labels of the tokens, none for special ones."""
    return [label * (not tokens.special[at]) for at, label in enumerate(tokens.labels)]


def _spaced(tokens: Tokens, token: int) -> bool:
    """Whether the text has a space before a token; True where that is unknown."""
    if tokens.offsets is None or token == 0:
        return True
    before, now = tokens.offsets[token - 1], tokens.offsets[token]
    if before is None or now is None or tokens.segments[token] != tokens.segments[token - 1]:
        return True
    text = tokens.texts[tokens.segments[token]]
    # Some tokenizers leave the space between two tokens, others make it part of the second one.
    return now[0] > before[1] or text[now[0] : now[0] + 1].isspace()


def _draw_words(sheet: Sheet, plan: FigurePlan, placed: Sequence[PlacedToken], heat: Heat) -> None:
    """Each token on its colour, faint where it takes no part; the chosen one is framed, and a line
    stands before what the model wrote.
    """
    style, em, (tokens, takes_part) = sheet.style, sheet.style.em, _written(plan)
    first, chosen, colours = (
        plan.first_written(tokens),
        _framed_token(plan),
        heat.scale.rgb(heat.numbers),
    )
    for token, text, x, y, width in placed:
        box, colour = (x, y - HEIGHT / 2 * em, width, HEIGHT * em), style.faint
        if takes_part[token]:
            sheet.rect(*box, facecolor=colours[token] / 255, round=0.2 * em)
            colour = text_on(colours[token])
        sheet.text(x + PADDING * em, y, text, colour=colour)
        if token == chosen:
            sheet.rect(*box, edgecolor=style.ink, linewidth=0.9, round=0.2 * em)
        if token == first:
            before = x + width + 0.1 * em if runs_left(text) else x - 0.1 * em
            sheet.line((before, before), (y - 0.8 * em, y + 0.8 * em), style.accent, 1.2)


LANE, CELL, INSET, CELL_GAP, BETWEEN = 1.7, 1.36, 0.3, 0.15, 0.9
"""Of view input: distance of two lanes, height of a cell, room beside its word, gap between cells
and between two lines of tokens, in units of the font size.
"""
PALE = "33"
"""Opacity of a cell's colour, as two hexadecimal digits after ``#rrggbb``."""
POSITIONS = (
    ("+ position", "each column is added up, where the model has its parts"),
    ("position", "positions are not added: they turn the queries and keys of every layer"),
)
"""The name of the row of positions and a note, where they are added to the embeddings and where
they are not.
"""
Lane = tuple[str, Sequence[str], Sequence[str]]
"""The name of a row of cells, and a word and a colour for each token."""


def draw_input(sheet: Sheet, plan: FigurePlan) -> list[str]:
    """Draw the lanes of a text below each other, in as many lines as it needs, and the layers.

    Raises:
        FigureError: where the tokens are parts of a picture.
    """
    tokens, style, em = plan.stack.query, plan.style, plan.style.em
    if tokens.places is not None:
        raise FigureError("View 'input' shows texts, and this record is of a picture")
    heading(sheet, plan, "What the model reads")
    is_turned = plan.stack.layers[0].rotary is not None
    lanes = _lanes(sheet, plan, POSITIONS[is_turned][0])
    left, high = sheet.widest(name for name, *_ in lanes) + 0.8 * em, len(lanes) * LANE + BETWEEN
    of_tokens = zip(*(cells for _, cells, _ in lanes), strict=True)
    widths = [sheet.widest(cells, of_notes=False) + 2 * INSET * em for cells in of_tokens]
    places = sheet.flow(widths, left=left, gap=CELL_GAP * em, leftward=mostly_left(_worded(tokens)))
    for number, (name, cells, colours) in enumerate(lanes):
        for token, (x, line) in enumerate(places):
            middle = sheet.y + (line * high + (number + 0.5) * LANE) * em
            if not token or line > places[token - 1][1]:
                sheet.note(0, middle, name)
            look: dict[str, Any] = {"edgecolor": colours[token], "round": 0.2 * em}
            look["facecolor"] = colours[token] + PALE if name == "+ text" else style.paper
            sheet.rect(x, middle - CELL / 2 * em, widths[token], CELL * em, **look)
            sheet.text(x + widths[token] / 2, middle, cells[token], anchor="center")
    sheet.y += (places[-1][1] + 1) * high * em
    _draw_layers(sheet, plan, left)
    return [f"{len(tokens)} tokens", POSITIONS[is_turned][1]]


def _lanes(sheet: Sheet, plan: FigurePlan, positions: str) -> list[Lane]:
    """The rows: tokens; for a pair of texts the text of each token; and positions."""
    style, tokens = sheet.style, plan.stack.query
    pair = (style.positive, style.negative) if style.colour else (style.muted, style.faint)
    names = [sheet.fitted(sheet.shown(label), 30 * style.em) for label in tokens.labels]
    edges = [style.faint if special else style.edge for special in tokens.special]
    lanes: list[Lane] = [("token", names, edges)]
    if {*tokens.segments} == {0, 1}:
        texts = ["AB"[segment] for segment in tokens.segments]
        lanes.append(("+ text", texts, [pair[segment] for segment in tokens.segments]))
    return [*lanes, (positions, [str(index) for index in range(len(tokens))], edges)]


def _draw_layers(sheet: Sheet, plan: FigurePlan, left: float) -> None:
    """Draw an arrow to a box for all layers."""
    style, em, room = sheet.style, sheet.style.em, sheet.width - left
    middle, tip, half, height = (left + sheet.width) / 2, sheet.y + 0.2 * em, 0.35 * em, 1.9 * em
    sheet.line((middle, middle), (sheet.y - 0.8 * em, tip), style.muted, 0.8)
    xs, ys = (middle - half, middle, middle + half), (tip - half, tip, tip - half)
    sheet.line(xs, ys, style.muted, 0.8)
    top, look = tip + 0.2 * em, {"edgecolor": style.accent, "linewidth": 0.8}
    sheet.rect(left, top, room, height, round=1.0, **look)
    words = f"{counted(len(plan.stack.layers), 'layer')} of {counted(plan.stack.heads, 'head')}"
    further = f"{words}: in each head the query of a token meets the keys of all"
    text = further if sheet.width_of(further) <= room - em else words
    sheet.text(middle, top + height / 2, text, anchor="center")
    sheet.y = top + height + 0.6 * em
