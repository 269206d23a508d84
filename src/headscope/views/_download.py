"""The figure behind the download button of a live page: the same bytes as `figure` writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from threading import Lock
from typing import Any

from headscope.errors import FigureError
from headscope.record import Record
from headscope.views._differences import other_pictures
from headscope.views.figure_options import WrittenFigureOptions
from headscope.views.options import declared
from headscope.views.quantities import OTHER

MEDIA_TYPES = {"svg": "image/svg+xml", "pdf": "application/pdf", "png": "image/png"}
NOT_SENT = ("labels", "predictions")
"""Options of figures that no page has."""
ONE_AT_A_TIME = Lock()
"""Figures are drawn one at a time: the settings of matplotlib belong to the whole process."""


def figure_file(record: Record, kind: str, options: Any, shown: Mapping[str, Any]) -> bytes:
    """The content of the file that ``figure(record, **options).save("figure.KIND")`` writes.

    Args:
        record: the record that is drawn.
        kind: svg, pdf or png.
        options: options of `FigureOptions`, as the page sends them.
        shown: the options that the page was made with; their quantities and evidence are used.

    Raises:
        FigureError: an unknown option, value or kind, or matplotlib is missing.
        RecordError: a stack, layer or head that the record does not have, or scores that it does
            not keep.
    """
    from headscope.views.figures import figure

    if kind not in MEDIA_TYPES:
        raise FigureError(f"A figure can be svg, pdf or png, not {kind!r}")
    _check_sent(options)
    given = _given(options, shown)
    compared = shown.get("comparison")
    # Weights of the first record are drawn over its own pictures, not those of the second.
    if options.get("quantity") == OTHER and compared is not None:
        pictures = other_pictures(compared, record)
        record = record if pictures is None else replace(record, pictures=pictures)
    with ONE_AT_A_TIME:
        return figure(record, **options, **given).to_bytes(kind)


def _given(options: Mapping[str, Any], shown: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the page that the figure needs too; it refuses options that its view lacks."""
    given: dict[str, Any] = {}
    quantities = shown.get("quantities") or {}
    if options.get("tray"):
        given |= {"quantities": quantities} if quantities else {}
        given |= {"beside": shown["beside"]} if shown.get("beside") else {}
    elif options.get("quantity") in quantities:
        given["quantities"] = quantities
    if options.get("view") == "scatter":
        given["evidence"] = shown.get("evidence")
    return given


def _check_sent(options: Any) -> None:
    """Raise where options are none that a page sends, or of another type."""
    if not isinstance(options, Mapping):
        raise FigureError(f"Options of a figure are a JSON object, not {options!r}")
    known = {
        name: of for name, of in declared(WrittenFigureOptions).items() if name not in NOT_SENT
    }
    for name, value in options.items():
        if name not in known:
            raise FigureError(
                f"figure has no option {name!r} that a page could send; there are "
                f"{', '.join(known)}"
            )
        if value is not None:
            known[name].check(value, FigureError)
