"""Around every view: a title above, notes and what the model wrote below; and view compare, up to
six pictures in one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from headscope.errors import FigureError
from headscope.patterns import KINDS, head_kinds
from headscope.record import Generation, Record
from headscope.views._tray import no_record, parse_entries, records_beside
from headscope.views.constants import KIND_NAMES, MOST_IN_TRAY
from headscope.views.figures import _plan
from headscope.views.figures._numbers import WORDS_NOTE, find_sinks
from headscope.views.figures._sheet import MARGIN, Sheet
from headscope.views.figures._style import percent


def heading(sheet: Sheet, plan: _plan.FigurePlan, title: str) -> None:
    """Write the title on the left, the model on the right or below it, and of a picture in a row
    its letter and the kind of its head.
    """
    style, em, given = sheet.style, sheet.style.em, plan.options.get("title")
    wanted = title if given is None else " ".join(given.split())
    if not wanted:
        sheet.y = 0.35 * em
        return
    if sheet.letter:
        left = title_left(sheet, sheet.letter)
        sheet.text(0, 0.6 * em, sheet.letter, bold=True)
        if plan.kind:
            sheet.title(KIND_NAMES[plan.kind], left, bold=True, colour=plan.colour)
        sheet.title(wanted, left)
        sheet.y = max(sheet.y, sheet.title_room) + 0.3 * em
        return
    sheet.title(wanted, bold=True)
    model = sheet.shown(plan.record.model.name.rstrip("/").rpartition("/")[2], None)
    # A title of the user's own does not say what is shown.
    model = " · ".join(filter(None, [title if given else "", model]))
    last = sheet.lines(sheet.shown(wanted, None).split(" · "), sheet.width, bold=True)[-1]
    room = sheet.width - sheet.width_of(last, bold=True) - em
    if sheet.width_of(model, style.small) <= room:
        sheet.note(sheet.width, sheet.y - 0.75 * em, model, anchor="right")
    else:
        sheet.paragraph([model])
    sheet.y += 0.5 * em


def title_left(sheet: Sheet, letter: str) -> float:
    """Where the title of a picture of a row begins, behind its letter."""
    return sheet.width_of(letter, bold=True) + 0.7 * sheet.style.em


def closing(sheet: Sheet, plan: _plan.FigurePlan, notes: Iterable[str]) -> None:
    """Draw what the model wrote, write what the figure shows and hides, and end the sheet."""
    notes = [plan.record.changed * (plan.view != "texts"), plan.shown.explanation, *notes]
    if not sheet.letter and (generation := plan.generation) is not None:
        _draw_generation(sheet, generation)
        likely = sum(rank == 1 for rank in generation.ranks)
        notes += [
            f"below the rule the model wrote: {len(generation)} tokens, {likely} of them the most "
            "probable",
            f"entropy up to {max(generation.entropies):.1f} nats",
            "the last token written was never read, and has no row",
        ]
    notes += [WORDS_NOTE] * (plan.shown.units is not None) + list(plan.hiding)
    if plan.shown.weights and plan.view != "scatter":
        notes += _weights_notes(sheet, plan)
    notes.append("□ stands for a character that no font here can write" * bool(sheet.missing))
    sheet.notes = [note for note in notes if note]
    # The notes of a row of pictures are written once for all of them.
    sheet.paragraph([] if sheet.letter else sheet.notes)
    sheet.finish()


def _weights_notes(sheet: Sheet, plan: _plan.FigurePlan) -> Iterator[str]:
    """Notes about keys that take most of the attention, and about rows that do not sum to 1."""
    if plan.view in _plan.OF_ONE_LAYER and not plan.without:
        names = []
        for key, part in find_sinks(plan.layer, plan.heads).items():
            if plan.to[key]:
                names.append(f"{sheet.quoted(plan.stack.key.labels[key])} {percent(part)}")
        if names:
            yield f"keys that take most of the attention: {', '.join(names)}"
    of_all = plan.view in _plan.OF_ALL_LAYERS
    layers = plan.layers if of_all else (plan.layer,)
    if cut := [layer.not_kept for layer in layers if layer.partial]:
        share, of = sum(cut) / len(cut), "the attention"
        if plan.query is not None and not of_all:
            share = float(plan.not_kept[plan.query])
            of = f"what {sheet.quoted(plan.label('query'))} looks at"
        elif not of_all:
            rows, of = plan.not_kept[plan.from_ & ~plan.layer.dead], f"{of} of {plan.of_heads}"
            share = float(rows.mean()) if rows.size else 0.0
        yield f"not kept: {percent(share)} of {of}, cut before it came here"
    elif any(layer.has("sinks") for layer in layers):
        yield "rows sum to less than 1: the rest goes to a learned sink that is not a token"


def named_every(every: int) -> str:
    """A note about tokens without a name."""
    return f"one of {every} tokens is named" if every > 1 else ""


TALLEST_BAR = 7.0
"""Height in millimetres of a probability of 1, and of the largest entropy."""
WIDEST = 3.4
"""Distance of two tokens at most, in units of the font size."""
NAMES_ROOM = 11.0
"""Room in millimetres for the names of generated tokens, which are written upright."""


def _draw_generation(sheet: Sheet, generation: Generation) -> None:
    """Probability and entropy of each written token, below what is drawn."""
    style, count = sheet.style, len(generation)
    left = sheet.width_of("probability", style.small) + 0.8 * style.em
    pitch = min(WIDEST * style.em, (sheet.width - left) / count)
    sheet.y += 0.6 * style.em
    largest = max(generation.entropies) or 1.0
    for name, values, colour in (
        ("probability", np.array(generation.probabilities), style.accent),
        ("entropy", np.array(generation.entropies) / largest, style.muted),
    ):
        sheet.note(left - 0.5 * style.em, sheet.y + TALLEST_BAR / 2, name, anchor="right")
        axes = sheet.axes((left, sheet.y, count * pitch, TALLEST_BAR))
        axes.bar(range(count), np.clip(values, 0, 1), 0.72, color=colour)
        axes.axhline(0.0, color=style.faint, linewidth=0.4)
        axes.set(xlim=(-0.5, count - 0.5), ylim=(0, 1))
        sheet.y += TALLEST_BAR + 0.5 * style.em
    # The tokens stand upright below their bars; only some where they are close.
    size, every = sheet.naming(pitch, count)
    names = [sheet.shown(name) for name in generation.tokens.labels[:count:every]]
    look = {"rotation": 90, "size": size, "color": style.ink}
    names = [sheet.fitted(name, NAMES_ROOM, size) for name in names]
    axes.set_xticks(range(0, count, every), names, **look)
    sheet.y += NAMES_ROOM + 0.6 * style.em


ROW_GAP = 3.0
"""Millimetres between two pictures."""
SMALL_TYPE = 45.0
"""Pictures narrower than this have smaller text, unless a size was given."""
OF_ALL = ("theme", "font", "font_size", "colour", "words")
"""Options that all pictures share."""


def draw_tray(
    record: Record, options: Mapping[str, Any], draw: Callable[[Sheet, _plan.FigurePlan], None]
) -> tuple[Sheet, _plan.FigurePlan]:
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
    width = float(options.get("width", _plan.WIDTHS["compare"]))
    each = (width - ROW_GAP * (len(entries) - 1)) / len(entries)
    common = {"font_size": 5.5} if each < SMALL_TYPE else {}
    common |= {name: options[name] for name in OF_ALL if name in options}
    given, plans = options.get("quantities"), []
    for of, entry in entries:
        is_held = not isinstance(given, Mapping) or entry.get("quantity") in given
        held = {"quantities": given} if given is not None and is_held else {}
        plans.append(replace(_plan.parse_options(of, {**entry, **common, **held}), width=each))
    whole, em = Sheet(width, plans[0].style), plans[0].style.em
    if title := " ".join(str(options.get("title") or "").split()):
        whole.title(title, bold=True)
        whole.y += 0.3 * em
    # The pictures begin at one height, that of the longest title.
    room = each - 2 * MARGIN - title_left(whole, "m")
    lines = max(len(whole.lines(plan.where.split(" · "), room)) for plan in plans)
    letters, models, sheets = {}, {}, []
    for letter, plan in zip("abcdef", plans, strict=False):
        axes = whole.matplotlib.add_axes((0, 0, 1, 1), label=letter)
        sheet = Sheet(each, plan.style, letter=letter, onto=axes)
        sheet.narrow = each < SMALL_TYPE
        sheet.title_room = (1.2 * lines + 1.5 * any(plan.kind for plan in plans)) * em
        draw(sheet, plan)
        sheets.append(sheet)
        for note in dict.fromkeys(sheet.notes):
            letters.setdefault(note, []).append(letter)
        models.setdefault(plan.record.model.name, []).append(letter)
    models.pop("", None)
    if len(models) == 1:
        models = dict.fromkeys(models, plans)
    notes, top = [], whole.y
    for note, of in (models | letters).items():
        notes.append(note if len(of) == len(plans) else f"{', '.join(of)}: {note}")
    whole.y += max(sheet.height for sheet in sheets)
    whole.paragraph(notes)
    whole.finish()
    for at, sheet in enumerate(sheets):
        sheet.put(at * (each + ROW_GAP), top + MARGIN, whole)
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
    """The record of each picture, and its options as those of a figure.

    A page can only name records, because its state is text in its address. A figure also takes the
    records themselves.
    """
    named, entries = records_beside(beside), parse_entries(tray)
    if not entries:
        raise FigureError('tray=[] has no picture; give one or more, such as tray=["2-0", "7-3"]')
    pictures, known = [], [(None, record), *named.items()]
    for entry in entries:
        given = entry.pop("record", None)
        of = next((each for name, each in known if name == given), given)
        if not isinstance(of, Record):
            raise FigureError(
                f"tray: record={given!r} must be a Record, or the name of one; {no_record(named)}"
            )
        pictures.append((of, _figure_options(entry)))
    return pictures


def _figure_options(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a figure for a picture of a tray, which has at most one query and one key."""
    options = {name: value for name, value in entry.items() if name != "direction"}
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
