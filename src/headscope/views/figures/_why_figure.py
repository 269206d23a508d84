"""Figure of why a model said a word: the lines of the graph that keeps enough of its lead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.errors import FigureError
from headscope.views._why_page import why_picture
from headscope.views.constants import ALONG, BY_LOOKING, EACH_TOKEN, KIND_NAMES, LEAST
from headscope.views.figures._figure import Spec, specified
from headscope.views.figures._sheet import Sheet
from headscope.views.why_contract import WhyPicture

WIDEST, CLOSE, FLAT = 16.0, 1.05, 3.5
"""Millimetres between columns at most; ems from which on all columns are drawn, and from which on
words are not upright.
"""
NUMBERED = 18.0
"""Millimetres of the width for each number on a line."""


@dataclass(frozen=True)
class WhyColumn:
    """A token, a part of a long text, or tokens of it that no line touches.

    Args:
        label: its name.
        share: what it carries of the lead.
        bottom: the row it begins at.
    """

    label: str
    share: float
    bottom: int


@dataclass(frozen=True)
class WhyLine:
    """What a head takes from one column to another.

    Args:
        name: layer and head.
        kind: of the head.
        columns: the one it comes from, and the one it goes to.
        rows: the same.
        carried: part of the lead.
        measured: change of the lead when it alone is cut, as part of it.
        by_looking: whether it acts through where later heads look.
    """

    name: str
    kind: str
    columns: tuple[int, int]
    rows: tuple[int, int]
    carried: float
    measured: float
    by_looking: bool


@dataclass(frozen=True)
class Drawing:
    """What is drawn, and where it stands in millimetres.

    Args:
        columns: all of them.
        lines: the strongest first.
        xs: of each column that is drawn.
        ys: of each row.
        step: between columns.
        rise: between rows.
    """

    columns: Sequence[WhyColumn]
    lines: Sequence[WhyLine]
    xs: dict[int, float]
    ys: Sequence[float]
    step: float
    rise: float


@specified("why")
def why_figure(why: Any) -> Spec:
    """Columns are tokens, rows layers, and each line is what a head takes from one to another.

    Hue is the kind of the head, width what the line carries, its number the change of the lead that
    was measured when it alone was cut; dotted lines act through where later heads look, pale ones
    are against the answer.

    Args:
        why: a `headscope.why.Why`.

    Raises:
        FigureError: where no path is claimed.

    Example:
        >>> why(model, tokenizer, "Once upon a time, there was a girl named").plot("why.pdf")
    """
    if why.refusal:
        raise FigureError(f"There is no picture: {why.refusal}; the printed result has the numbers")
    picture = why_picture(why, {})
    return Spec(
        title=picture["title"],
        body=partial(_draw, picture=picture),
        note=" ".join(why.sentences),
        notes=[
            "width: what a line carries of the lead; number: what the lead changes by when it is "
            "cut alone",
            "dotted: acts through where later heads look; pale: against the answer",
            f"below a word: what it carries; biases {_share(picture['words'][-1]) or '0 %'}",
        ],
        cells=[(why.cells[index][1], head) for index, head in why.links[why.lines(), :2].tolist()],
        texts=why.tokens,
    )


def _columns(picture: WhyPicture, ends: set[int]) -> tuple[list[WhyColumn], list[int]]:
    """Columns, and the one of each token: in a long text those that lines touch are alone where
    they are in no part.
    """
    tokens, sources, at = picture["tokens"], picture["sources"], picture["position"]
    below = sum(name.startswith("encoder") for name in picture["rows"])
    part_of, places = np.array(picture["part_of"]), np.arange(len(tokens))
    alone = (len(tokens) <= EACH_TOKEN) | (places == at)
    alone |= (part_of < 0) & np.isin(places, list(ends))
    group = np.where(alone, places + len(picture["parts"]), part_of)
    first = np.r_[True, group[1:] != group[:-1]] | (places == sources)
    starts = np.flatnonzero(first)
    shares = np.add.reduceat(picture["words"][: len(tokens)], starts).tolist()
    names = [*picture["parts"], *tokens, "…"]
    columns = [
        WhyColumn(names[group[start]], share, below * (0 < sources <= start))
        for start, share in zip(starts.tolist(), shares, strict=True)
    ]
    return columns, (np.cumsum(first) - 1).tolist()


def _line(picture: WhyPicture, at: int, column_of: Sequence[int]) -> WhyLine:
    carried, _, measured, later = picture["shares"][at]
    (query, key), (first, last) = picture["links"][at][2:], picture["row_of"][at]
    by_looking = abs(later) > BY_LOOKING * abs(measured) and abs(measured) > abs(carried)
    columns, head = (column_of[key], column_of[query]), (picture["names"][at], picture["kinds"][at])
    return WhyLine(*head, columns, (first, last), carried, measured, by_looking)


def _read(picture: WhyPicture) -> tuple[list[WhyColumn], list[WhyLine], int]:
    """Columns, the lines of the chosen graph, and the column of the answer."""
    chosen = [at for at, of in enumerate(picture["graph_of"]) if of <= picture["chosen"]]
    columns, column_of = _columns(picture, {of for at in chosen for of in picture["links"][at][2:]})
    return columns, [_line(picture, at, column_of) for at in chosen], column_of[picture["position"]]


def _draw(sheet: Sheet, *, picture: WhyPicture) -> None:
    style, em, rows = sheet.style, sheet.style.em, ["words", *picture["rows"]]
    columns, lines, answer = _read(picture)
    # Without colours all kinds have one grey.
    if style.colour:
        kinds = dict.fromkeys(line.kind for line in lines)
        sheet.legend([(style.kind(kind), KIND_NAMES[kind]) for kind in kinds])
    touched = {answer, *(end for line in lines for end in line.columns)}
    xs, step = _across(sheet, sheet.widest(rows), len(columns), touched)
    rise, top = float(np.clip(75 / len(rows), 5, 18)), sheet.y + 2.5 * em
    ys = (top + rise * np.arange(len(rows))[::-1]).tolist()
    drawing = Drawing(columns, lines, xs, ys, step, rise)
    said = f"{sheet.quoted(picture['answer'])} {picture['probability']:.0%}".replace("%", " %")
    sheet.text(sheet.width, top - 1.4 * em, said, anchor="right", bold=True)
    sheet.dot(xs[answer], top, 0.9 * em, facecolor=style.ink, zorder=4)
    _ground(sheet, drawing, rows, answer)
    _curves(sheet, drawing)
    sheet.y = ys[0] + _words(sheet, drawing)
    sheet.paragraph(["columns that no line touches are left out"] * (len(xs) < len(columns)))


def _across(
    sheet: Sheet, left: float, count: int, touched: set[int]
) -> tuple[dict[int, float], float]:
    """Where columns stand, and how far from each other; without room for all, those that lines
    touch.
    """
    em, room = sheet.style.em, sheet.width - left - 4.5 * sheet.style.em
    shown = range(count) if room >= CLOSE * em * (count - 1) else sorted(touched)
    step = min(WIDEST, room / max(1, len(shown) - 1))
    first = sheet.width - 2 * em - step * (len(shown) - 1)
    return {at: first + step * place for place, at in enumerate(shown)}, step


def _ground(sheet: Sheet, drawing: Drawing, rows: Sequence[str], answer: int) -> None:
    """The names of rows, and in each column its rows and how far up lines go from its word."""
    ys, tops = drawing.ys, {answer: len(drawing.ys) - 1}
    for name, y in zip(rows, ys, strict=True):
        sheet.note(0, y, name)
    for line in drawing.lines:
        for column, row in zip(line.columns, line.rows, strict=True):
            tops[column] = max(tops.get(column, 0), row)
    for at, x in drawing.xs.items():
        bottom = drawing.columns[at].bottom
        sheet.line((x, x), (ys[bottom], ys[max(bottom, tops.get(at, 0))]), sheet.style.edge, 1.5)
        for y in ys[bottom:]:
            sheet.dot(x, y, 0.5, facecolor=sheet.style.faint)


def _words(sheet: Sheet, drawing: Drawing) -> float:
    """Words and what they carry, upright where columns are narrow; and how far down they reach."""
    em, deep = sheet.style.em, 3.2 * sheet.style.em
    size, every = sheet.naming(drawing.step, len(drawing.xs))
    for place, (at, x) in enumerate(drawing.xs.items()):
        column = drawing.columns[at]
        foot, share = drawing.ys[column.bottom], _share(column.share)
        name = sheet.shown(column.label, 14)
        if drawing.step >= FLAT * em:
            sheet.text(x, foot + 1.2 * em, sheet.fitted(name, drawing.step), anchor="center")
            sheet.note(x, foot + 2.3 * em, share, anchor="center")
        elif place % every == 0:
            words = f"{name} {share}".strip()
            sheet.text(x, foot + 0.8 * em, words, anchor="right", size=size, upright=True)
            deep = max(deep, sheet.width_of(words, size) + 1.6 * em)
    return deep


def _curves(sheet: Sheet, drawing: Drawing) -> None:
    """The lines, and the numbers of those whose cut changes most."""
    taken: list[np.ndarray] = []
    for line in sorted(drawing.lines, key=lambda line: -abs(line.measured)):
        curve = _curve(line, drawing)
        least, dots = (1.0, (0, (1, 1.2))) if line.by_looking else (0.6, "solid")
        look = {"edgecolor": sheet.style.kind(line.kind), "linestyle": dots, "zorder": 3}
        wide, alpha = np.clip(16 * abs(line.carried), least, 6.0), 0.4 if line.carried < 0 else 0.92
        sheet.curves(curve[None], linewidth=wide, alpha=alpha, **look)
        if len(taken) < sheet.width // NUMBERED:
            _number(sheet, line, curve, taken)


def _number(
    sheet: Sheet, line: WhyLine, curve: Float[np.ndarray, "4 2"], taken: list[np.ndarray]
) -> None:
    """The measured change on a line, where it hides no other."""
    text = f"{line.name} {_share(line.measured)}"
    size = np.array([sheet.width_of(text, sheet.style.small) + 1.2, 1.5 * sheet.style.em])
    for part in ALONG:
        middle = np.array([(1 - part) ** 3, 3 * part * (1 - part) ** 2, 3 * part**2 * (1 - part)])
        at = np.r_[middle, part**3] @ curve
        is_inside = size[0] / 2 <= at[0] <= sheet.width - size[0] / 2
        if is_inside and all((np.abs(at - other) > size).any() for other in taken):
            taken.append(at)
            look = {"facecolor": sheet.style.paper, "edgecolor": sheet.style.edge, "zorder": 4}
            sheet.rect(*(at - size / 2), *size, round=0.7, **look)
            sheet.note(*at, text, anchor="center")
            return


def _curve(line: WhyLine, drawing: Drawing) -> Float[np.ndarray, "4 2"]:
    """The ends and handles of a line; those between the same places are side by side."""
    ends = (line.columns, line.rows)
    beside = [other for other in drawing.lines if (other.columns, other.rows) == ends]
    aside = beside.index(line) - (len(beside) - 1) / 2
    aside *= min(1.4, 0.8 * drawing.rise / len(beside))
    first, last = (drawing.xs[column] for column in line.columns)
    low, high = (drawing.ys[row] for row in line.rows)
    turns = [[first, (low + high) / 2 + aside], [last, low + 0.6 * (high - low) + aside]]
    if first == last:
        out, third = first + 2.4 + aside, (high - low) / 3
        turns = [[out, low + third], [out, high - third]]
    return np.array([[first, low], *turns, [last, high]])


def _share(part: float) -> str:
    if abs(part) < LEAST:
        return ""
    return f"{part:+.{0 if abs(part) >= 0.0995 else 1}%}".replace("-", "−").replace("%", " %")
