"""View text: the running text, with attention as the colour behind each word; view texts: many
texts below each other, with their labels and predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.errors import FigureError
from headscope.record import Record, Tokens
from headscope.views.figures._charts import colour_bar
from headscope.views.figures._frame import (
    closing,
    heading,
)
from headscope.views.figures._numbers import even_of, largest_of, lifts_of, mean_of, numbers_of
from headscope.views.figures._options import parse_options
from headscope.views.figures._picture_heat import (
    LONGEST,
    LONGEST_OF_SEVERAL,
    PictureHeat,
    PlacedPicture,
    draw_pictured,
    framed,
)
from headscope.views.figures._plan import FigurePlan
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import Scale, counted, text_on

PITCH, HEIGHT, PADDING, SPACE, PATCH_GAP, GAP = 1.75, 1.36, 0.16, 0.3, 0.1, 0.5
"""In units of the font size."""
NEW_LINES = ("\n", "\u010a")
"""A line break in a token: itself, or the character that byte-level vocabularies write for it."""
WIDTH = 174.0
"""Millimetres of many texts: two columns of most journals."""
MOST = 60
"""Number of texts; more do not fit on one page."""
COLUMNS = ("labels", "predictions")
WIDEST_COLUMN = 0.2
"""Largest share of the width for a column of labels."""
WRONG = "≠ "
"""Mark before a prediction that is not the label."""


@dataclass(frozen=True)
class PlacedToken:
    """A token in the running text: its text, and its position and width in millimetres."""

    token: int
    text: str
    x: float
    y: float
    width: float


def draw_text(sheet: Sheet, plan: FigurePlan) -> None:
    """Draw the running text; the colour behind a word is what it receives, what one query gives it,
    or what it gives to one key.
    """
    if plan.query is not None and plan.key is not None:
        raise FigureError(
            "View 'text' shows one query or one key, and both were given; view 'pair' shows both"
        )
    style = plan.style
    tokens, takes_part = _written(plan)
    heat = _heat_of(plan)
    scale = _heat_scale(plan, largest_of(heat), plan.layer.size[1])
    veil, side = PictureHeat.of(scale, style), "key" if plan.query is None else "query"
    y = heading(sheet, plan, _title(plan, lambda: sheet.quoted(plan.label(side))))
    placed, pictures, y = _place(sheet, plan, tokens, y)
    scale, chosen = veil if pictures else scale, _framed_token(plan)
    for picture in pictures:
        draw_pictured(sheet, picture, heat, veil, takes_part=takes_part)
        if chosen in picture.tokens:
            sheet.rect(*picture.cell(chosen), edge=style.ink, line=0.9, layer=3)
    _draw_words(sheet, plan, placed, heat=heat, scale=scale)
    masked = bool(np.isnan(heat[takes_part]).any())
    label = plan.shown.scale_label
    y = colour_bar(sheet, scale, label, y=y + 0.6 * style.em, masked=masked)
    place, one = plan.where.rpartition(" · ")[0], plan.focused
    over = "" if one else f", mean over {int(plan.from_.sum())} queries"
    notes = [
        f"{place[0].lower()}{place[1:]}, {plan.heads_in_words(mean=True)}{over}",
        scale.words,
        "what is large hides more of the picture" if pictures else "",
        f"{side} {getattr(plan, side)}" if one else "",
    ]
    closing(sheet, plan, y, notes)


def _title(plan: FigurePlan, token: Callable[[], str]) -> str:
    """What is shown of which token."""
    if plan.query is not None:
        return f"Where {token()} looks"
    return plan.shown.received if plan.key is None else f"What looks at {token()}"


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
    return plan.shown.scale(plan.style, largest, keys, colour, power=0.5 if one else 1.0)


def _heat_of(plan: FigurePlan) -> Float[np.ndarray, " token"]:
    """One number for each token that is written, of weights a multiple of the even share; NaN where
    it is masked or takes no part.
    """
    heat = _of_tokens(plan, mean_of(numbers_of(plan.layer, plan.heads, plan.shown, plan.without)))
    if plan.shown.weights:
        return lifts_of(heat, _of_tokens(plan, even_of(plan.layer, plan.shown, plan.without)))
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


def _place(
    sheet: Sheet, plan: FigurePlan, tokens: Tokens, y: float
) -> tuple[list[PlacedToken], list[PlacedPicture], float]:
    """Place the tokens as running text, and patches over their picture, or in rows and columns
    where it is not known.
    """
    placed: list[PlacedToken] = []
    pictured: list[PlacedPicture] = []
    known, pictures = plan.record.pictures, tokens.pictures or (None,) * len(tokens)
    for picture, words in groupby(tokens.whole_words.tokens, key=lambda word: pictures[word[0]]):
        if picture is None:
            more, y = _set_text(sheet, tokens, list(words), y, room=sheet.width)
            placed += more
            continue
        patches = [token for word in words for token in word]
        places = list(filter(None, map((tokens.places or ()).__getitem__, patches)))
        if known:
            room = min(sheet.width, LONGEST if len(known) == 1 else LONGEST_OF_SEVERAL)
            grid = tokens.grids[picture]
            shown = framed(known[picture], grid, places, tokens=patches, room=room, y=y)
            pictured.append(shown)
            y += shown.size[1] + GAP * sheet.style.em
            continue
        more, y = _place_patches(sheet, tokens, patches, places, y=y)
        placed += more
    return placed, pictured, y


def _place_patches(
    sheet: Sheet, tokens: Tokens, patches: list[int], places: list[tuple[int, int]], *, y: float
) -> tuple[list[PlacedToken], float]:
    """Place patches in rows and columns, with their names where there is room."""
    em, names = sheet.style.em, [sheet.shown(tokens.labels[token]) for token in patches]
    rows, columns = (max(numbers) + 1 for numbers in zip(*places, strict=True))
    widest = max(map(sheet.width_of, names)) + 2 * PADDING * em
    pitch = min(widest + PATCH_GAP * em, sheet.width / columns)
    width, placed = pitch - PATCH_GAP * em, []
    for token, name, (row, column) in zip(patches, names, places, strict=True):
        at = (column * pitch, y + (row + 0.5) * PITCH * em)
        placed.append(PlacedToken(token, name if widest <= width else "", *at, width))
    return placed, y + rows * PITCH * em


def _set_text(
    sheet: Sheet, tokens: Tokens, words: Sequence[Sequence[int]], y: float, *, room: float
) -> tuple[list[PlacedToken], float]:
    """Place running text in this room; pieces of a word stay together, and the second text of a
    pair begins a new line.
    """
    em, segments = sheet.style.em, tokens.segments
    placed, x, line = [], 0.0, y + 0.5 * PITCH * em
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
    return placed, max(word.y for word in placed) + 0.5 * PITCH * em


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


def _draw_words(
    sheet: Sheet,
    plan: FigurePlan,
    placed: Sequence[PlacedToken],
    *,
    heat: np.ndarray,
    scale: Scale,
) -> None:
    """Each token on its colour, faint where it takes no part; the chosen one is framed, and a line
    stands before what the model wrote.
    """
    style, em, (tokens, takes_part) = sheet.style, sheet.style.em, _written(plan)
    first, chosen, colours = plan.first_written(tokens), _framed_token(plan), scale.rgb(heat)
    for word in placed:
        box, rgb = (word.x, word.y - HEIGHT / 2 * em, word.width, HEIGHT * em), colours[word.token]
        colour = style.faint
        if takes_part[word.token]:
            sheet.rect(*box, fill="#" + bytes(rgb).hex(), round=0.2 * em)
            colour = text_on(rgb)
        sheet.text(word.x + PADDING * em, word.y, word.text, colour=colour)
        if word.token == chosen:
            sheet.rect(*box, edge=style.ink, line=0.9, round=0.2 * em)
        if word.token == first:
            ends = (word.y - 0.8 * em, word.y + 0.8 * em)
            sheet.line((word.x - 0.1 * em,) * 2, ends, colour=style.accent, line=1.2)


def draw_texts(record: Record, options: Mapping[str, Any]) -> tuple[Sheet, FigurePlan]:
    """Draw all texts on one sheet and one scale; return it with the plan of the first of them.

    Raises:
        FigureError: something that is not a record, too many texts, labels that are not one for
            each text, or an option that view ``text`` does not have.
        RecordError: a stack, layer or head that a record does not have.
    """
    records, columns = [record, *_beside(options.get("beside"))], {}
    common: dict[str, Any] = {"width": WIDTH, **options, "view": "text"}
    common.pop("beside", None)
    for name in COLUMNS:
        if name in common:
            columns[name] = _column(name, common.pop(name), len(records))
    plans = [replace(parse_options(of, common), view="texts") for of in records]
    first, heats = plans[0], [_heat_of(plan) for plan in plans]
    sheet, em = Sheet(first.width, first.style), first.style.em
    # One scale for the words of all texts, so that equal colours are equal numbers.
    largest = max(map(largest_of, heats))
    scale = _heat_scale(first, largest, max(plan.layer.size[1] for plan in plans))
    y = heading(sheet, first, _title(first, lambda: "the framed token"))
    widths = [_width_of(sheet, name, cells) for name, cells in columns.items()]
    room = sheet.width - sum(widths)
    lefts = [room + sum(widths[:at]) for at in range(len(widths))]
    for name, left in zip(columns, lefts, strict=True):
        sheet.note(left, y + 0.5 * em, name.removesuffix("s"))
    y += 1.3 * em if columns else 0.0
    for at, (plan, heat) in enumerate(zip(plans, heats, strict=True)):
        sheet.line((0, sheet.width), (y, y), colour=sheet.style.edge, line=0.4)
        y += 0.25 * em
        is_wrong = len(columns) == 2 and columns["labels"][at] != columns["predictions"][at]
        for (name, cells), left, width in zip(columns.items(), lefts, widths, strict=True):
            marked = name == "predictions" and is_wrong
            text = sheet.fitted(f"{WRONG * marked}{sheet.shown(cells[at])}", width - 0.5 * em)
            sheet.text(left, y + 0.5 * PITCH * em, text, bold=marked)
        tokens, _ = _written(plan)
        if tokens.places is not None:
            raise FigureError(
                "View 'texts' shows texts, and a record is of a picture; leave it out"
            )
        placed, y = _set_text(sheet, tokens, tokens.whole_words.tokens, y, room=room - em)
        _draw_words(sheet, plan, placed, heat=heat, scale=scale)
        y += 0.25 * em
    y = colour_bar(sheet, scale, first.shown.scale_label, y=y + 0.6 * em)
    differ = "≠: the prediction is not the label" if len(columns) == len(COLUMNS) else ""
    place = f"{first.layers_in_words}, {first.heads_in_words(mean=True)}"
    closing(sheet, first, y, [place, "all texts on one scale", scale.words, differ])
    return sheet, first


def _width_of(sheet: Sheet, name: str, cells: Sequence[str]) -> float:
    """Width of a column in millimetres: of its widest cell, but at most a fifth of the sheet."""
    texts = [name, *(f"{WRONG}{sheet.shown(cell)}" for cell in cells)]
    widest = 1.1 * max(map(sheet.width_of, texts)) + sheet.style.em
    return min(widest, WIDEST_COLUMN * sheet.width)


def _beside(given: Any) -> list[Record]:
    """The further records, in their order.

    Raises:
        FigureError: what is not a list or mapping of records, or too many.
    """
    if given is None:
        return []
    if not isinstance(given, Mapping | Sequence) or isinstance(given, str):
        raise FigureError(f"beside is a {type(given).__name__}; give records: beside=[other]")
    records = list(given.values() if isinstance(given, Mapping) else given)
    if len(records) >= MOST:
        raise FigureError(
            f"View 'texts' shows up to {MOST} texts, and {len(records) + 1} were given; leave some "
            "out"
        )
    for record in records:
        if not isinstance(record, Record):
            raise FigureError(f"beside has a {type(record).__name__}; give records: beside=[other]")
    return records


def _column(name: str, given: Any, texts: int) -> list[str]:
    """A word for each text.

    Raises:
        FigureError: where they are not one for each.
    """
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise FigureError(f"{name} is a {type(given).__name__}; give one for each text, as a list")
    if len(given) != texts:
        raise FigureError(
            f"{name} has {len(given)} and there are {texts} texts; give one for each, in their "
            "order"
        )
    return [" ".join(str(cell).split()) for cell in given]


LANE = 1.7
"""Distance of two lanes, in units of the font size."""
CELL = 1.36
"""Height of a cell, in the same units."""
INSET = 0.3
CELL_GAP = 0.15
BETWEEN = 0.9
"""Gap between two lines of tokens."""
PALE = "33"
"""Opacity of a cell's colour, as two hexadecimal digits after ``#rrggbb``."""


@dataclass(frozen=True)
class InputRow:
    """One row of cells: its name, and a word and a colour for each token."""

    name: str
    cells: Sequence[str]
    colours: Sequence[str]


def draw_input(sheet: Sheet, plan: FigurePlan) -> None:
    """Draw the lanes of a text below each other, in as many lines as it needs, and the layers.

    Raises:
        FigureError: where the tokens are parts of a picture.
    """
    tokens = plan.stack.query
    if tokens.places is not None:
        raise FigureError("View 'input' shows texts, and this record is of a picture")
    style = sheet.style
    y = heading(sheet, plan, "What the model reads")
    lanes = _lanes(sheet, plan)
    left = max(sheet.width_of(lane.name, style.small) for lane in lanes) + 0.8 * style.em
    widths = [
        max(sheet.width_of(lane.cells[token]) for lane in lanes) + 2 * INSET * style.em
        for token in range(len(tokens))
    ]
    for line in _lines(widths, sheet.width - left, CELL_GAP * style.em):
        for lane in lanes:
            x, middle = left, y + 0.5 * LANE * style.em
            sheet.note(0, middle, lane.name)
            for token in line:
                colour, size = lane.colours[token], (widths[token], CELL * style.em)
                fill = colour + PALE if lane.name == "+ text" else style.paper
                place, round_ = (x, middle - size[1] / 2), 0.2 * style.em
                sheet.rect(*place, *size, fill=fill, edge=colour, line=0.5, round=round_)
                sheet.text(x + size[0] / 2, middle, lane.cells[token], anchor="center")
                x += size[0] + CELL_GAP * style.em
            y += LANE * style.em
        y += BETWEEN * style.em
    y = _draw_layers(sheet, plan, left, y)
    note = "each column is added up, where the model has its parts"
    if lanes[-1].name == "position":
        note = "positions are not added: they turn the queries and keys of every layer"
    closing(sheet, plan, y, [f"{len(tokens)} tokens", note])


def _lanes(sheet: Sheet, plan: FigurePlan) -> list[InputRow]:
    """The rows: tokens; for a pair of texts the text of each token; and positions."""
    style, tokens = sheet.style, plan.stack.query
    blue, orange = (style.positive, style.negative) if style.colour else (style.muted, style.faint)
    names = [sheet.fitted(sheet.shown(label), 30 * style.em) for label in tokens.labels]
    edges = [style.faint if special else style.edge for special in tokens.special]
    lanes = [InputRow("token", names, edges)]
    if {*tokens.segments} == {0, 1}:
        texts = ["AB"[segment] for segment in tokens.segments]
        lanes.append(InputRow("+ text", texts, [(blue, orange)[of] for of in tokens.segments]))
    # Rotary positions are not added to the embeddings, so that their row has no plus before it.
    rotary = plan.stack.layers[0].rotary is not None
    numbers = [str(index) for index in range(len(tokens))]
    lanes.append(InputRow("position" if rotary else "+ position", numbers, edges))
    return lanes


def _lines(widths: Sequence[float], room: float, gap: float) -> list[range]:
    """The tokens of each line."""
    lines, start, taken = [], 0, 0.0
    for token, width in enumerate(widths):
        if token > start and taken + width > room:
            lines.append(range(start, token))
            start, taken = token, 0.0
        taken += width + gap
    return [*lines, range(start, len(widths))]


def _draw_layers(sheet: Sheet, plan: FigurePlan, left: float, y: float) -> float:
    """Draw an arrow to a box for all layers; return the next y."""
    style, em = sheet.style, sheet.style.em
    middle, tip, half, height = (left + sheet.width) / 2, y + 0.2 * em, 0.35 * em, 1.9 * em
    sheet.line((middle, middle), (y - 0.8 * em, tip), colour=style.muted, line=0.8)
    xs, ys = (middle - half, middle, middle + half), (tip - half, tip, tip - half)
    sheet.line(xs, ys, colour=style.muted, line=0.8)
    top, room = tip + 0.2 * em, sheet.width - left
    sheet.rect(left, top, room, height, edge=style.accent, line=0.8, round=1.0)
    words = f"{counted(len(plan.stack.layers), 'layer')} of {counted(plan.stack.heads, 'head')}"
    further = f"{words}: in each head the query of a token meets the keys of all"
    text = further if sheet.width_of(further) <= room - em else words
    sheet.text(middle, top + height / 2, text, anchor="center")
    return top + height + 0.6 * em
