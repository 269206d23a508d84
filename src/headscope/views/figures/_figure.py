"""A record as a figure for print."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from headscope.errors import FigureError
from headscope.record import Record
from headscope.results import Result, drawing_of, no_figure
from headscope.storage import written_whole
from headscope.views.figure_options import FigureOptions
from headscope.views.figures._frame import Drawing
from headscope.views.figures._head import draw_head
from headscope.views.figures._input import draw_input
from headscope.views.figures._matrix import draw_matrix
from headscope.views.figures._model import draw_model
from headscope.views.figures._neuron import draw_neuron
from headscope.views.figures._options import between, check_names, parse_options, plain_options
from headscope.views.figures._overview import draw_overview
from headscope.views.figures._pair import draw_pair
from headscope.views.figures._recipe import Recipe, metadata, recipe_of
from headscope.views.figures._scatter import draw_scatter
from headscope.views.figures._sheet import drawing_onto, our_settings, size_of
from headscope.views.figures._text import draw_text
from headscope.views.figures._texts import draw_texts
from headscope.views.figures._tray import draw_tray

FORMATS = ("svg", "pdf", "png")
DRAWINGS: dict[str, Drawing] = {
    "overview": draw_overview,
    "head": draw_head,
    "model": draw_model,
    "matrix": draw_matrix,
    "neuron": draw_neuron,
    "text": draw_text,
    "input": draw_input,
    "pair": draw_pair,
    "scatter": draw_scatter,
}


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure: it displays itself in a notebook, can be saved, and can be drawn on further.

    Args:
        matplotlib: the ``matplotlib.figure.Figure``; changes to it are saved too.
        recipe: how the figure was made; every file holds it in its metadata.
        missing: characters that no installed font can write; a square is drawn for each.
    """

    matplotlib: Any
    recipe: Recipe
    missing: str = ""

    def save(self, path: str | os.PathLike[str], *, dpi: float | int = 300) -> Path:
        """Write the figure, whole or not at all; the same record and options give the same bytes.

        Args:
            path: ends in ``.svg``, ``.pdf`` or ``.png``.
            dpi: dots in an inch of a PNG, 30 to 2400.

        Raises:
            FigureError: another suffix, or another dpi.
            FileError: where it cannot be written.
        """
        kind = Path(path).suffix.lower().removeprefix(".")
        if kind not in FORMATS:
            raise FigureError(
                f"A figure can be saved as .svg, .pdf or .png, and the path is {path}"
            )
        data = self.to_bytes(kind, dpi=dpi)
        with written_whole(path) as temporary:
            temporary.write_bytes(data)
        return Path(path)

    def to_bytes(self, kind: str, *, dpi: float | int = 300) -> bytes:
        """The content of a file: ``"svg"``, ``"pdf"`` or ``"png"``."""
        buffer = io.BytesIO()
        with our_settings():
            dots = between("dpi", dpi, 30, 2400)
            self.matplotlib.savefig(
                buffer, format=kind, dpi=dots, metadata=metadata(self.recipe, kind)
            )
        return buffer.getvalue()

    def _repr_svg_(self) -> str:
        text = self.to_bytes("svg").decode("utf-8")
        # Without the XML declaration before it, which is not allowed inside the HTML of a notebook.
        return text[text.index("<svg") :]


def figure(record: Any, *, ax: Any = None, **options: Unpack[FigureOptions]) -> Figure:
    """A view of a record, or the result of a study, as a figure for print: millimetres, points,
    real text.

    Its recipe is in the metadata of every file.

    Args:
        record: what to draw: a `Record`, or a result such as what `heads` or `ablate` gave.
        ax: matplotlib axes of yours to draw into, whose width then is the drawing's; by default a
            figure of its own.
        **options: see `FigureOptions`; of a result those of `ResultOptions`.

    Raises:
        FigureError: an unknown option or value, a result that has no figure, or
            matplotlib is missing.
        RecordError: a stack, layer or head that the record does not have, or scores that it does
            not keep.

    Example:
        >>> figure(record, view="head", layer=2, head=0).save("fig.pdf")
        >>> _, (left, right) = plt.subplots(1, 2, figsize=(7, 4))
        >>> figure(record, view="matrix", layer=2, head=0, ax=left)
    """
    if not isinstance(record, Record):
        return _of_result(record, ax, options)
    given = plain_options(options)
    if ax is not None:
        if "width" in given:
            raise FigureError(
                "width= is that of the axes where ax= is given; leave one of them out"
            )
        given["width"] = size_of(ax)[0]
    with our_settings(", ".join(map(repr, record.stacks.values()))), drawing_onto(ax):
        view = check_names(given)
        if view == "texts":
            sheet, plan = draw_texts(record, given)
        elif view == "compare":
            if ax is not None:
                raise FigureError(
                    "A tray is a figure of its own and fits into no axes; leave ax= out"
                )
            sheet, plan = draw_tray(record, given, DRAWINGS)
        else:
            plan = parse_options(record, given)
            sheet = DRAWINGS[plan.view](plan)
    return Figure(sheet.matplotlib, recipe_of(plan, given), "".join(sorted(sheet.missing)))


def _of_result(result: Any, ax: Any, options: Mapping[str, Any]) -> Figure:
    """The figure of a result.

    Raises:
        FigureError: where it is not a result, or has no figure; and the errors of that figure.
    """
    draw = drawing_of(result)
    if draw is None:
        raise FigureError(_not_drawn(result))
    if ax is not None:
        raise FigureError(
            f"The figure of a {type(result).__name__} is one of its own and fits into no axes; "
            "leave ax= out"
        )
    return draw(result, **options)


def _not_drawn(given: Any) -> str:
    """The error for something that has no figure."""
    if isinstance(given, Result):
        return no_figure(given)
    return (
        f"figure draws a Record, and was given a {type(given).__name__}; capture one: "
        "figure(headscope.capture(model, tokenizer, text))"
    )
