"""Common parts of figures of results: options, heading, notes, and the recipe in their files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from typing import Any, TypedDict

from headscope._version import __version__
from headscope.errors import FigureError
from headscope.views.figure_options import FigureTheme
from headscope.views.figures._figure import Figure
from headscope.views.figures._options import between
from headscope.views.figures._recipe import Recipe
from headscope.views.figures._sheet import Sheet, our_settings
from headscope.views.figures._style import Style, style_for

Body = Callable[[Sheet, float], tuple[float, list[str]]]
"""A function that draws a result from a y on, and returns the next y and the notes below."""
WIDTH = 180.0
"""Millimetres: both columns of most journals."""


class ResultOptions(TypedDict, total=False):
    """Options of figures of results; they mean what they mean in `FigureOptions`."""

    theme: FigureTheme
    """``"light"`` (default) or ``"dark"``."""
    title: str
    """Title over the figure; by default what is shown. ``""`` for none."""
    width: float
    """Width in millimetres, 40 to 1000; by default 180, both columns of most journals."""
    font_size: float
    """Size of text in points, 4 to 24; by default 8."""
    font: str
    """Font family that is tried first."""
    colour: bool
    """False for greys only."""


def draw_result(  # noqa: PLR0913 - what a recipe holds
    result: Any,
    options: ResultOptions,
    body: Body,
    *,
    title: str,
    note: str = "",
    kind: str = "",
    layers: Iterable[int] = (),
    heads: Iterable[int] = (),
    texts: Iterable[str] = (),
    chosen: str = "",
) -> Figure:
    """The figure of a result: title and note, what the body draws, notes; and its recipe.

    Args:
        result: that is drawn.
        options: as given by the user.
        body: draws it.
        title: the default title.
        note: the line below it.
        kind: of result, in a word; by default its own.
        layers: numbers of the layers that are drawn.
        heads: numbers of the heads that are drawn.
        texts: the texts that the result is based on.
        chosen: options of this kind of figure alone, as they are written in a call.

    Raises:
        FigureError: an unknown option or value, or matplotlib is missing.
    """
    with our_settings():
        width, style = parse_result_options(options)
        sheet = Sheet(width, style)
        y = result_heading(sheet, options.get("title", title), note)
        y, notes = body(sheet, y)
        sheet.finish(sheet.paragraph(y, notes) + 0.3 * style.em)
    recipe = result_recipe(
        kind or result.KIND,
        model=getattr(result, "model", ""),
        layers=layers,
        heads=heads,
        texts=texts,
        call=f"headscope.figure(result{chosen}{written_options(options)})",
        style=style,
    )
    return Figure(sheet.matplotlib, recipe, "".join(sorted(sheet.missing)))


def parse_result_options(options: Mapping[str, Any]) -> tuple[float, Style]:
    """Width and style.

    Raises:
        FigureError: an unknown option or value.
    """
    unknown = [name for name in options if name not in ResultOptions.__annotations__]
    if unknown:
        raise FigureError(
            f"A figure of a result has no option {unknown[0]!r}; there are "
            f"{', '.join(ResultOptions.__annotations__)}"
        )
    theme = options.get("theme", "light")
    if theme not in ("light", "dark"):
        raise FigureError(f"theme is {theme!r}; give 'light' or 'dark'")
    style = style_for(
        dark=theme == "dark",
        colour=bool(options.get("colour", True)),
        size=between("font_size", options.get("font_size", 8.0), 4, 24),
        font=options.get("font"),
    )
    return between("width", options.get("width", WIDTH), 40, 1000), style


def result_heading(sheet: Sheet, title: str, note: str) -> float:
    """Title above, a note below it; give the y where the figure begins."""
    em = sheet.style.em
    y = 0.0
    if title:
        y = sheet.titles(0.0, [(0.0, title)], sheet.width, bold=True) + 0.1 * em
    if note:
        y = sheet.paragraph(y, [note])
    return y + 0.5 * em


def result_recipe(
    view: str,
    *,
    model: str,
    layers: Iterable[int],
    heads: Iterable[int],
    texts: Iterable[str],
    call: str,
    style: Style,
) -> Recipe:
    """The recipe of a figure of a result over texts."""
    return {
        "call": call,
        "view": view,
        "stack": "",
        "layers": sorted(set(layers)),
        "heads": sorted(set(heads)),
        "query": None,
        "key": None,
        "quantity": view,
        "model": model,
        "revision": None,
        "model_type": "",
        "dtype": "",
        "text_sha256": hashlib.sha256(json.dumps(list(texts)).encode()).hexdigest(),
        "tokens": [],
        "verified": None,
        "fonts": list(style.families[:2]),
        "versions": {"headscope": __version__, "matplotlib": version("matplotlib")},
    }


def written_options(options: Mapping[str, Any]) -> str:
    """Options as they are written in a call."""
    return "".join(f", {name}={value!r}" for name, value in options.items())
