"""View texts: many texts below each other, with attention as colour, and their labels and
predictions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from headscope.errors import FigureError
from headscope.record import Record, Tokens
from headscope.views.figures._frame import (
    closing,
    colour_bar,
    heading,
    heads_in_words,
    layers_in_words,
)
from headscope.views.figures._numbers import largest_of
from headscope.views.figures._options import FigurePlan, parse_options
from headscope.views.figures._scale import Scale
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._text import PITCH, draw_word, heat_of, heat_scale, set_text

WIDTH = 174.0
"""Millimetres: two columns of most journals."""
MOST = 60
"""Number of texts; more do not fit on one page."""
COLUMNS = ("labels", "predictions")
WIDEST_COLUMN = 0.2
"""Largest share of the width for a column of labels."""
WRONG = "≠ "
"""Mark before a prediction that is not the label."""
OF_ALL = ("beside", *COLUMNS)


def draw_texts(record: Record, options: Mapping[str, Any]) -> tuple[Sheet, FigurePlan]:
    """Draw all texts on one sheet and one scale; return it with the plan of the first of them.

    Raises:
        FigureError: something that is not a record, too many texts, labels that are not one for
            each text, or an option that view ``text`` does not have.
        RecordError: a stack, layer or head that a record does not have.
    """
    records = [record, *_beside(options.get("beside"))]
    columns = {
        name: _column(name, options[name], len(records)) for name in COLUMNS if name in options
    }
    plans = _plans(records, options)
    first = plans[0]
    sheet = Sheet(first.width, first.style)
    heats = [heat_of(plan) for plan in plans]
    largest = max(largest_of(heat) for heat in heats)
    # One scale for the words of all texts, so that equal colours are equal numbers.
    scale = heat_scale(first, largest, max(plan.layer.size[1] for plan in plans))

    y = heading(sheet, first, _title(first))
    widths = [_width_of(sheet, name, cells) for name, cells in columns.items()]
    room = sheet.width - sum(widths)
    lefts = [room + sum(widths[:at]) for at in range(len(widths))]
    for name, left in zip(columns, lefts, strict=True):
        sheet.note(left, y + 0.5 * sheet.style.em, name.removesuffix("s"))
    y += 1.3 * sheet.style.em if columns else 0.0
    wrong = _wrong(columns)
    for at, (plan, heat) in enumerate(zip(plans, heats, strict=True)):
        sheet.line((0, sheet.width), (y, y), colour=sheet.style.edge, line=0.4)
        middle = y + 0.25 * sheet.style.em + 0.5 * PITCH * sheet.style.em
        for (name, cells), left, width in zip(columns.items(), lefts, widths, strict=True):
            marked = name == "predictions" and at in wrong
            _cell(sheet, (left, middle), width, cells[at], marked=marked)
        y = _row(sheet, plan, heat, scale, at=(y + 0.25 * sheet.style.em, room))
    y = colour_bar(sheet, scale, first.shown.scale_label, y=y + 0.6 * sheet.style.em)
    differ = "≠: the prediction is not the label" if len(columns) == len(COLUMNS) else ""
    mean = heads_in_words(first, mean=True)
    closing(
        sheet,
        first,
        y,
        [f"{layers_in_words(first)}, {mean}", "all texts on one scale", scale.words, differ],
    )
    return sheet, first


def _plans(records: Sequence[Record], options: Mapping[str, Any]) -> list[FigurePlan]:
    """Each text as a figure of view ``text`` with the same options."""
    common: dict[str, Any] = {"width": WIDTH}
    for name, value in options.items():
        if name not in OF_ALL:
            common[name] = value
    common["view"] = "text"
    return [replace(parse_options(of, common), view="texts") for of in records]


def _wrong(columns: Mapping[str, Sequence[str]]) -> set[int]:
    """The texts whose prediction is not their label, where both are given."""
    if not {*COLUMNS} <= {*columns}:
        return set()
    pairs = zip(columns["labels"], columns["predictions"], strict=True)
    return {at for at, (label, prediction) in enumerate(pairs) if label != prediction}


def _cell(sheet: Sheet, at: tuple[float, float], width: float, words: str, *, marked: bool) -> None:
    """A label or prediction next to its text; a wrong prediction is bold and marked."""
    text = f"{WRONG if marked else ''}{sheet.shown(words)}"
    sheet.text(*at, sheet.fitted(text, width - 0.5 * sheet.style.em), bold=marked)


def _title(plan: FigurePlan) -> str:
    if plan.query is not None:
        return "Where the framed token looks"
    if plan.key is not None:
        return "What looks at the framed token"
    return plan.shown.received


def _row(
    sheet: Sheet, plan: FigurePlan, heat: np.ndarray, scale: Scale, *, at: tuple[float, float]
) -> float:
    """One text from this y on, in this room; returns the next y."""
    y, room = at
    side = "query" if plan.key is not None else "key"
    tokens: Tokens = getattr(plan.stack, side)
    if tokens.places is not None:
        raise FigureError("View 'texts' shows texts, and a record is of a picture; leave it out")
    takes_part = plan.from_ if side == "query" else plan.to
    placed, end = set_text(sheet, tokens, tokens.whole_words.tokens, y, room=room - sheet.style.em)
    chosen = plan.query if plan.query is not None else plan.key
    for word in placed:
        rgb = scale.rgb(heat[word.token : word.token + 1])[0]
        draw_word(sheet, word, rgb, takes_part=bool(takes_part[word.token]))
        if word.token == chosen and plan.stack.query == plan.stack.key:
            height = 1.36 * sheet.style.em
            sheet.rect(
                word.x,
                word.y - height / 2,
                word.width,
                height,
                edge=sheet.style.ink,
                line=0.9,
                round=0.2 * sheet.style.em,
            )
    return end + 0.25 * sheet.style.em


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
