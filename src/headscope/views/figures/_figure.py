"""A record as a figure for print, and the recipe in its files."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from importlib.metadata import version
from inspect import signature
from pathlib import Path
from typing import Any, Unpack

from headscope._version import __version__
from headscope.errors import FigureError, PageError, check_option_names
from headscope.record import Record
from headscope.results import Result, drawing_of, draws, no_figure
from headscope.storage import written_whole
from headscope.views.figure_options import FigureOptions, ResultOptions
from headscope.views.figures import _plan
from headscope.views.figures._cells import draw_matrix, draw_overview, draw_pair
from headscope.views.figures._frame import closing, draw_tray
from headscope.views.figures._head import draw_head
from headscope.views.figures._heads_plane import draw_scatter
from headscope.views.figures._neuron import draw_neuron
from headscope.views.figures._sheet import Sheet, size_of
from headscope.views.figures._style import Style, style_of
from headscope.views.figures._text import draw_input, draw_text
from headscope.views.options import Default, Option

WIDTH_OF_RESULTS = 180.0
"""Millimetres: both columns of most journals."""
NO_VERSIONS: Mapping[str, str] = {}
TOO_LONG = ("quantities", "evidence", "classes")
"""Options whose values are too long to be written into a call."""


@contextmanager
def our_settings(drawn: str = "this figure") -> Generator[None]:
    """Settings of matplotlib: its defaults and ours, so that a reader's style file changes nothing.

    Args:
        drawn: what is drawn with them, for the message where there is too little memory.

    Raises:
        FigureError: where matplotlib is missing, or memory.
    """
    try:
        import matplotlib as mpl
    except ImportError:
        raise FigureError("Figures need matplotlib: pip install 'headscope[figures]'") from None
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(
            {
                "font.sans-serif": ["Arial", "Helvetica", "DejaVu Sans"],
                # Every point of a curve is kept, whatever the resolution.
                "path.simplify": False,
                # Text stays text: TrueType fonts in PDF, <text> in SVG.
                "pdf.fonttype": 42,
                "svg.fonttype": "none",
                # Otherwise ids in an SVG are random, and two files of one figure differ.
                "svg.hashsalt": "headscope",
                # A token such as "$x$" is not a formula.
                "text.parse_math": False,
                # Hinted text is up to a tenth wider at some resolutions than it was measured.
                "text.hinting": "none",
                "text.usetex": False,
            }
        )
        try:
            yield
        except PageError as error:
            # A check that a page makes too.
            raise FigureError(str(error)) from None
        except MemoryError as error:
            raise FigureError(
                f"There is too little memory to draw {drawn} ({error or 'nothing is left'}); draw "
                "fewer heads at once (heads=) or one layer (layer=), or give a shorter text"
            ) from error


Recipe = dict[str, Any]
"""How a figure was made, and from which record: ``call`` draws it again from the same record;
``view``, ``stack``, ``layers``, ``heads``, ``query``, ``key`` and ``quantity`` are what is drawn,
``words`` whether pieces were joined to words, ``mean_layers`` the layers whose mean it is (none for
one layer), ``mean_heads`` whether it is the mean of ``heads``; ``model``, ``revision``,
``model_type``, ``dtype``, ``verified``, and ``changed``: whether nothing stands behind the weights,
and what was done to the model on purpose;
``text_sha256`` of the texts, or of the tokens where there are none, as one JSON list in UTF-8;
``tokens``, the number of queries and of keys; ``fonts`` and ``versions``.
"""


def recipe_of(view: str, plan: _plan.FigurePlan, options: Mapping[str, Any]) -> Recipe:
    """The recipe of a planned figure."""
    model, shown = plan.record.model, plan.shown
    layers = [layer.layer for layer in shown.layers[plan.layer.layer]]
    heads, means = list(plan.heads), layers if len(layers) > 1 else []
    if plan.view in (*_plan.OF_ALL_LAYERS, "scatter"):
        layers = [layer.layer for layer in plan.layers]
        heads = list(shown.heads or range(plan.stack.heads))
    shows_mean = plan.view in ("matrix", "text", "texts") and len(plan.heads) > 1
    return _recipe(
        plan.style,
        call=_call("record", options),
        view=view,
        stack=plan.stack.name,
        layers=layers,
        heads=heads,
        query=plan.query,
        key=plan.key,
        quantity=shown.name,
        words=shown.units is not None,
        mean_layers=means,
        mean_heads=bool(shown.heads) or (shows_mean and not shown.whole),
        model=model.name,
        revision=model.revision,
        model_type=model.model_type,
        dtype=model.dtype,
        text_sha256=text_hash(plan.record),
        tokens=[len(plan.stack.query), len(plan.stack.key)],
        verified=plan.record.verified,
        changed=[*filter(None, [plan.record.unverified]), *plan.record.changes],
        versions=model.versions,
    )


def _recipe(style: Style, versions: Mapping[str, str] = NO_VERSIONS, **known: Any) -> Recipe:
    """A recipe, empty in what a result over many texts does not have."""
    ours = {"headscope": __version__, "matplotlib": version("matplotlib")}
    empty = {"stack": "", "query": None, "key": None, "revision": None, "verified": None}
    of_model = {"model_type": "", "dtype": "", "tokens": [], "fonts": list(style.families[:2])}
    return {**empty, **of_model, **known, "versions": {**versions, **ours}}


def _call(drawn: str, options: Mapping[str, Any]) -> str:
    """The Python call; what cannot be written, such as another record, becomes ``...``."""
    arguments = [drawn]
    for name, value in options.items():
        arguments.append(f"{name}={'...' if name in TOO_LONG else _literal(value)}")
    return f"headscope.figure({', '.join(arguments)})"


def _literal(value: Any) -> str:
    """A value as it is written in a call."""
    if isinstance(value, Mapping):
        entries = ", ".join(f"{name!r}: {_literal(of)}" for name, of in value.items())
        return f"{{{entries}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, tuple):
        # A comma after the last entry, without which a tuple of one entry is not a tuple.
        entries = " ".join(f"{_literal(of)}," for of in value)
        return f"({entries})"
    return repr(value) if isinstance(value, str | int | float | None) else "..."


def text_hash(record: Record) -> str:
    """SHA-256 of the texts, or of the tokens where there are none, as one JSON list."""
    hashed: list[Any] = list(record.texts)
    if not hashed:
        for stack in record.stacks.values():
            hashed += [list(stack.query.pieces), list(stack.key.pieces)]
    return _hash(hashed)


def _hash(texts: Iterable[Any]) -> str:
    return hashlib.sha256(json.dumps(list(texts)).encode()).hexdigest()


METADATA = {
    "svg": ("Creator", "Description", "Date"),
    "pdf": ("Creator", "Subject", "CreationDate"),
    "png": ("Software", "Description"),
}
"""Of each kind of file the fields of what made it, of the recipe, and of a date."""


def metadata(recipe: Recipe, kind: str) -> dict[str, Any]:
    """The metadata of a file in the form of matplotlib's writers."""
    document = json.dumps(recipe)
    title = f"Attention of {recipe['model'] or 'a model'}: view {recipe['view']}"
    if layers := sorted(recipe["layers"]):
        mean = "mean of " * bool(recipe.get("mean_layers"))
        title += f", {mean}layer{'s' * (len(layers) > 1)} {', '.join(map(str, layers))}"
    # XML and PDF refuse control characters, which the name of a model may hold.
    title = "".join(character if character.isprintable() else "?" for character in title)
    # Without a date, so that files are the same each time.
    creator, content, *date = METADATA[kind]
    made = {"Title": title, creator: f"headscope {__version__}", content: document}
    return made | dict.fromkeys(date)


FORMATS = ("svg", "pdf", "png")
DPI = Option("dpi", float, "", Default(300, between=(30, 2400)))
DRAWINGS: Mapping[str, Callable[[Sheet, _plan.FigurePlan], list[str]]] = {
    "overview": draw_overview,
    "head": draw_head,
    "model": draw_overview,
    "matrix": draw_matrix,
    "neuron": draw_neuron,
    "text": draw_text,
    "texts": draw_text,
    "input": draw_input,
    "pair": draw_pair,
    "scatter": draw_scatter,
}
"""Each draws a view below its heading, and returns notes about it."""


def draw_view(sheet: Sheet, plan: _plan.FigurePlan) -> None:
    """Draw a view, with its heading and notes."""
    closing(sheet, plan, DRAWINGS[plan.view](sheet, plan))


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
            raise FigureError(f"Expected a path that ends in .svg, .pdf or .png, got {path}")
        data = self.to_bytes(kind, dpi=dpi)
        with written_whole(path) as temporary:
            temporary.write_bytes(data)
        return Path(path)

    def to_bytes(self, kind: str, *, dpi: float | int = 300) -> bytes:
        """The content of a file: ``"svg"``, ``"pdf"`` or ``"png"``."""
        buffer = io.BytesIO()
        DPI.check(dpi, FigureError)
        with our_settings():
            self.matplotlib.savefig(
                buffer, format=kind, dpi=float(dpi), metadata=metadata(self.recipe, kind)
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
    given = _plan.plain_options(options)
    if ax is not None:
        if "width" in given:
            raise FigureError("With ax= the width is that of the axes; leave width= out")
        given["width"] = size_of(ax)[0]
    with our_settings(", ".join(map(repr, record.stacks.values()))):
        view = _plan.check_names(given)
        if view == "compare":
            if ax is not None:
                raise FigureError("A tray fits into no axes; leave ax= out")
            sheet, plan = draw_tray(record, given, draw_view)
        else:
            plan = _plan.parse_options(record, given)
            sheet = Sheet(plan.width, plan.style, onto=ax)
            draw_view(sheet, plan)
    return Figure(sheet.matplotlib, recipe_of(view, plan, given), "".join(sorted(sheet.missing)))


def _of_result(result: Any, ax: Any, options: Mapping[str, Any]) -> Figure:
    """The figure of a result.

    Raises:
        FigureError: where it is not a result, or has no figure; and the errors of that figure.
    """
    kind, draw = type(result).__name__, drawing_of(result)
    if draw is None and isinstance(result, Result):
        raise FigureError(no_figure(result))
    if draw is None:
        raise FigureError(
            f"figure draws a Record, and was given a {kind}; capture one: "
            "figure(headscope.capture(model, tokenizer, text))"
        )
    if ax is not None:
        raise FigureError(f"The figure of a {kind} fits into no axes; leave ax= out")
    return draw(result, **options)


@dataclass(frozen=True, kw_only=True)
class Spec:
    """The figure of a result.

    Args:
        title: the default title.
        body: draws it.
        note: the line below the title.
        notes: what is written below the figure.
        cells: layer and head of what is drawn, -1 for no single head; by default all of the result.
        texts: the texts that the result is based on; by default those of its sums.
    """

    title: str
    body: Callable[[Sheet], None]
    note: str = ""
    notes: Sequence[str] = ()
    cells: Iterable[tuple[int, int]] | None = None
    texts: Iterable[str] | None = None


def specified(*kinds: str) -> Callable[[Callable[..., Spec]], Callable[..., Figure]]:
    """Decorate a function that specifies the figure of kinds of results; its further parameters are
    options of that figure, besides those of `ResultOptions`.
    """

    def enter(spec_of: Callable[..., Spec]) -> Callable[..., Figure]:
        own = [*signature(spec_of).parameters][1:]

        @wraps(spec_of)
        def drawn(result: Any, **options: Any) -> Figure:
            known = (*own, *ResultOptions.__annotations__)
            check_option_names("A figure of a result", options, known, FigureError)
            given = {name: options[name] for name in own if name in options}
            look = {name: value for name, value in options.items() if name not in own}
            return _draw_spec(result, spec_of(result, **given), look, given)

        for kind in kinds:
            draws(kind)(drawn)
        return drawn

    return enter


def _draw_spec(
    result: Any, spec: Spec, options: Mapping[str, Any], own: Mapping[str, Any]
) -> Figure:
    """Title and note, what the body draws, notes; and the recipe."""
    with our_settings():
        _plan.check_values(options)
        style = style_of(options)
        sheet = Sheet(float(options.get("width", WIDTH_OF_RESULTS)), style)
        sheet.title(options.get("title", spec.title), bold=True)
        sheet.y += 0.1 * style.em
        sheet.paragraph([spec.note])
        sheet.y += 0.5 * style.em
        spec.body(sheet)
        sheet.y += 0.3 * style.em
        sheet.paragraph(spec.notes)
        sheet.finish()
    cells, texts = spec.cells, spec.texts
    cells = [each[-2:] for each in (getattr(result, "cells", ()) if cells is None else cells)]
    kind = result.KIND.removesuffix(" study")
    recipe = _recipe(
        style,
        call=_call("result", {**own, **options}),
        view=kind,
        layers=sorted({layer for layer, _ in cells}),
        heads=sorted({head for _, head in cells if head >= 0}),
        quantity=kind,
        model=getattr(result, "model", ""),
        text_sha256=_hash(result.sums.texts if texts is None else texts),
    )
    return Figure(sheet.matplotlib, recipe, "".join(sorted(sheet.missing)))
