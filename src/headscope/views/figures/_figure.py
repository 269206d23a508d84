"""A record as a figure for print."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typing_extensions import Unpack

from headscope.errors import FigureError
from headscope.record import Record
from headscope.storage import written_whole
from headscope.views.figures._frame import Drawing
from headscope.views.figures._head import draw_head
from headscope.views.figures._matrix import draw_matrix
from headscope.views.figures._model import draw_model
from headscope.views.figures._neuron import draw_neuron
from headscope.views.figures._options import FigureOptions, between, parse_options, plain_options
from headscope.views.figures._pair import draw_pair
from headscope.views.figures._recipe import Recipe, metadata, recipe_of
from headscope.views.figures._scatter import draw_scatter
from headscope.views.figures._sheet import our_settings
from headscope.views.figures._text import draw_text

FORMATS = ("svg", "pdf", "png")
DRAWINGS: dict[str, Drawing] = {
    "head": draw_head,
    "model": draw_model,
    "matrix": draw_matrix,
    "neuron": draw_neuron,
    "text": draw_text,
    "pair": draw_pair,
    "scatter": draw_scatter,
}


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure: it displays itself in a notebook, goes into a file, and can be drawn on further.

    Args:
        matplotlib: the ``matplotlib.figure.Figure``; what is changed there is saved too.
        recipe: what the figure was made of; every file carries it in its metadata.
        missing: characters that no installed font can write; a square stands for each.
    """

    matplotlib: Any
    recipe: Recipe
    missing: str = ""

    def save(self, path: str | os.PathLike, *, dpi: float | int = 300) -> Path:
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
            raise FigureError(f"A figure can be saved as .svg, .pdf or .png, and the path is {path}")
        data = self.to_bytes(kind, dpi=dpi)
        with written_whole(path) as temporary:
            temporary.write_bytes(data)
        return Path(path)

    def to_bytes(self, kind: str, *, dpi: float | int = 300) -> bytes:
        """The content of a file: ``"svg"``, ``"pdf"`` or ``"png"``."""
        buffer = io.BytesIO()
        with our_settings():
            dots = between("dpi", dpi, 30, 2400)
            self.matplotlib.savefig(buffer, format=kind, dpi=dots, metadata=metadata(self.recipe, kind))
        return buffer.getvalue()

    def _repr_svg_(self) -> str:
        text = self.to_bytes("svg").decode("utf-8")
        return text[text.index("<svg") :]


def figure(record: Record, **options: Unpack[FigureOptions]) -> Figure:
    """A view of a record as a figure for print: millimetres, points, real text, its recipe in the metadata.

    Args:
        record: what to draw.
        **options: see `FigureOptions`.

    Raises:
        FigureError: an option or value that there is not, or matplotlib is missing.
        RecordError: a stack, layer or head that the record does not have, or scores that it does not keep.

    Example:
        >>> figure(record, view="head", layer=2, head=0).save("fig.pdf")
    """
    with our_settings():
        given = plain_options(options)
        plan = parse_options(record, given)
        sheet = DRAWINGS[plan.view](plan)
    return Figure(sheet.matplotlib, recipe_of(plan, given), "".join(sorted(sheet.missing)))
