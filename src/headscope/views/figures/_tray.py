"""View compare: up to six pictures in one row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from headscope.errors import FigureError, PageError
from headscope.patterns import KINDS, head_kinds
from headscope.record import Record
from headscope.views._tray import no_record, parse_entries, records_beside
from headscope.views.constants import MOST_IN_TRAY
from headscope.views.figures._frame import panel_left
from headscope.views.figures._options import parse_options
from headscope.views.figures._plan import FigurePlan, Panel
from headscope.views.figures._sheet import MARGIN, Sheet

WIDTH = 174.0
"""Millimetres: two columns of most journals."""
GAP = 3.0
"""Millimetres between two pictures."""
SMALL_TYPE = 45.0
"""Pictures narrower than this have smaller text, unless a size was given."""
OF_ALL = ("theme", "font", "font_size", "colour", "words")
"""Options that all pictures share."""
PAGE_ONLY = ("direction",)
"""Options of a picture of a page that print does not have."""


def draw_tray(
    record: Record,
    options: Mapping[str, Any],
    drawings: Mapping[str, Callable[[Sheet, FigurePlan], None]],
) -> tuple[Sheet, FigurePlan]:
    """Draw all pictures of a tray on one sheet; return it with the plan of the first of them.

    Raises:
        FigureError: a tray that is empty or too long, or a picture that cannot be drawn.
        RecordError: a stack, layer or head that a record does not have, or scores that it does not
            keep.
    """
    tray = options["tray"]
    if isinstance(tray, str) and tray == "kinds":
        tray = clearest_of_each(record)
    entries = _entries(record, tray, options.get("beside"))
    width = float(options.get("width", WIDTH))
    each = (width - GAP * (len(entries) - 1)) / len(entries)
    narrow = each < SMALL_TYPE
    common = {"font_size": 5.5} if narrow else {}
    common |= {name: options[name] for name in OF_ALL if name in options}
    given, plans = options.get("quantities"), []
    for of, entry in entries:
        is_held = not isinstance(given, Mapping) or entry.get("quantity") in given
        held = {"quantities": given} if given is not None and is_held else {}
        plans.append(parse_options(of, {**entry, **common, **held}))
    whole, em = Sheet(width, plans[0].style), plans[0].style.em
    title = " ".join(str(options.get("title") or "").split())
    top = 0.0
    if title:
        top = whole.titles(top, [(0.0, title)], whole.width, bold=True) + 0.3 * em
    # The pictures begin at one height, that of the longest title.
    room = each - 2 * MARGIN - panel_left(whole, "m")
    lines = max(len(whole.lines(plan.where.split(" · "), room)) for plan in plans)
    titles = (1.2 * lines + 1.5 * any(plan.kind for plan in plans)) * em
    for at, letter in enumerate("abcdef"[: len(plans)]):
        panel = Panel(whole.matplotlib, letter, narrow=narrow, titles=titles)
        plans[at] = replace(plans[at], width=each, panel=panel)
    sheets = [Sheet(plan.width, plan.style, plan.panel) for plan in plans]
    for sheet, plan in zip(sheets, plans, strict=True):
        drawings[plan.view](sheet, plan)
    y = top + max(sheet.height for sheet in sheets)
    panels = [plan.panel for plan in plans if plan.panel is not None]
    notes = _notes([(panel.letter, panel.notes) for panel in panels])
    whole.finish(whole.paragraph(y, [*_models(plans), *notes]) + 0.3 * em)
    for at, sheet in enumerate(sheets):
        sheet.put(at * (each + GAP), top + MARGIN, (width, whole.height))
        whole.missing |= sheet.missing
    return whole, plans[0]


def clearest_of_each(record: Record) -> list[dict[str, Any]]:
    """The clearest head of each kind on the text of the first stack, six kinds at most, as pictures
    of a tray.
    """
    stack = next(iter(record.stacks.values()))
    kinds = head_kinds(stack)
    of, score = kinds.number("kind"), kinds.number("score")
    clearest: dict[str, dict[str, Any]] = {}
    for kind, name in enumerate(KINDS):
        if name == "none" or not (of == kind).any():
            continue
        row, head = np.unravel_index(np.nanargmax(np.where(of == kind, score, -np.inf)), of.shape)
        clearest[name] = {"layer": kinds.layers[row], "heads": [int(head)]}
    if len(clearest) > MOST_IN_TRAY:
        clearest.pop("near", None)
    return list(clearest.values())[:MOST_IN_TRAY]


def _entries(record: Record, tray: Any, beside: Any) -> list[tuple[Record, dict[str, Any]]]:
    """The record of each picture, and its options as those of a figure."""
    given, unnamed = _named(tray)
    try:
        named, entries = records_beside(beside), parse_entries(given)
    except PageError as error:
        raise FigureError(str(error)) from None
    if not entries:
        raise FigureError('tray=[] has no picture; give one or more, such as tray=["2-0", "7-3"]')
    known, pictures = {None: record, **named, **unnamed}, []
    for entry in entries:
        name = entry.pop("record", None)
        if name not in known:
            raise FigureError(f"tray: record={name!r}; {no_record(named)}")
        pictures.append((known[name], _figure_options(entry)))
    return pictures


def _named(tray: Any) -> tuple[Any, dict[str, Record]]:
    """The pictures with names in place of records, and the records by these names.

    A page can only name records, because its state is text in its address. A figure also takes the
    records themselves.
    """
    unnamed: dict[str, Record] = {}
    if not isinstance(tray, Sequence) or isinstance(tray, str):
        return tray, unnamed
    given = list(tray)
    for at, entry in enumerate(given):
        of = entry.get("record", "") if isinstance(entry, Mapping) else ""
        if isinstance(of, str):
            continue
        if not isinstance(of, Record):
            raise FigureError(
                f"tray: record must be a Record, or the name of one, not a {type(of).__name__}"
            )
        given[at], unnamed[f"#{at}"] = {**entry, "record": f"#{at}"}, of
    return given, unnamed


def _figure_options(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a figure for a picture of a tray, which has at most one query and one key."""
    options = {name: value for name, value in entry.items() if name not in PAGE_ONLY}
    for name in ("query", "key"):
        tokens = options.pop(name, ())
        if len(tokens) > 1:
            raise FigureError(
                f"tray: a picture in print follows one {name}, not {tokens}; give one"
            )
        if tokens:
            options[name] = tokens[0]
    if options.get("neurons") == "hidden":
        # Without its neurons the view is that of lines between words.
        options["view"] = "head"
    if options.get("view") != "neuron":
        options.pop("neurons", None)
    elif "heads" in options:
        options["head"] = options.pop("heads")[0]
    return options


def _models(plans: Sequence[FigurePlan]) -> list[str]:
    """The name of the model, or the letters and names of several models."""
    of: dict[str, str] = {}
    for letter, plan in zip("abcdef", plans, strict=False):
        if name := plan.record.model.name:
            of[name] = f"{of[name]}, {letter}" if name in of else letter
    return [*of] if len(of) < 2 else [f"{letters}: {name}" for name, letters in of.items()]


def _notes(notes_of: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """The notes of all pictures: once where all have it, else after the letters of its pictures."""
    letters: dict[str, list[str]] = {}
    for letter, notes in notes_of:
        for note in dict.fromkeys(notes):
            letters.setdefault(note, []).append(letter)
    return [
        note if len(of) == len(notes_of) else f"{', '.join(of)}: {note}"
        for note, of in letters.items()
    ]
