"""The figure that a live page's download button gives: that of `figure`, byte for byte."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from threading import Lock
from typing import Any

from headscope.errors import FigureError
from headscope.record import Record
from headscope.views._differences import other_pictures
from headscope.views._quantities import OTHER

MEDIA_TYPES = {"svg": "image/svg+xml", "pdf": "application/pdf", "png": "image/png"}
ONE_AT_A_TIME = Lock()
"""The settings of matplotlib belong to the whole process."""


def figure_file(record: Record, kind: str, options: Any, shown: Mapping[str, Any]) -> bytes:
    """The content of the file that ``figure(record, **options).save("figure.KIND")`` writes.

    Args:
        record: what is drawn.
        kind: svg, pdf or png.
        options: those of `FigureOptions`, as the page sends them.
        shown: what the page was made with: of its options, numbers in place of weights and what is known of heads.

    Raises:
        FigureError: an option, value or kind that there is not, or matplotlib is missing.
        RecordError: a stack, layer or head that the record does not have, or scores that it does not keep.
    """
    from headscope.views.figures import figure

    if kind not in MEDIA_TYPES:
        raise FigureError(f"A figure can be svg, pdf or png, not {kind!r}")
    if not isinstance(options, Mapping):
        raise FigureError(f"Options of a figure are a JSON object, not {options!r}")
    quantities = shown.get("quantities") or {}
    given = {"quantities": quantities} if options.get("quantity") in quantities else {}
    if options.get("view") == "scatter":
        given["evidence"] = shown.get("evidence")
    compared = shown.get("comparison")
    if options.get("quantity") == OTHER and compared is not None:
        pictures = other_pictures(compared, record)
        record = record if pictures is None else replace(record, pictures=pictures)
    with ONE_AT_A_TIME:
        return figure(record, **options, **given).to_bytes(kind)
