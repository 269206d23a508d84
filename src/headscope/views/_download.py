"""The figure behind the download button of a live page: the same bytes as `figure` writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Lock
from typing import Any, get_origin

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
    check_sent_options(options)
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


def check_sent_options(options: Any) -> None:
    """Raise where options that a page sent do not have the types that `figure` takes.

    Raises:
        FigureError: an option that a page cannot send, or a value of another type.
    """
    if not isinstance(options, Mapping):
        raise FigureError(f"Options of a figure are a JSON object, not {options!r}")
    for name, value in options.items():
        wanted = _wanted(name)
        if wanted is None:
            known = [each for each in declared(WrittenFigureOptions) if each not in NOT_SENT]
            raise FigureError(
                f"figure has no option {name!r} that a page could send; there are "
                f"{', '.join(known)}"
            )
        words, fits = wanted
        if value is not None and not fits(value):
            raise FigureError(f"{name} must be {words}, not {value!r}")


def _wanted(name: str) -> tuple[str, Callable[[Any], bool]] | None:
    """What the value of an option must be, in words and as a test; None for an unknown option."""
    option = declared(WrittenFigureOptions).get(name)
    if option is None or name in NOT_SENT:
        return None
    if name in ("query", "key"):
        return SENT[int]  # a page sends tokens as positions
    is_list = get_origin(option.written) is list
    return SENT[str if option.choices and not is_list else option.written]


def _is_whole(value: Any) -> bool:
    # True and False are integers in Python, but not for a reader of the error.
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


SENT: Mapping[Any, tuple[str, Callable[[Any], bool]]] = {
    str: ("a text", _is_text),
    int: ("a whole number", _is_whole),
    float: ("a number", _is_number),
    bool: ("true or false", lambda value: isinstance(value, bool)),
    list[int]: (
        "a list of whole numbers",
        lambda value: isinstance(value, list | tuple) and all(map(_is_whole, value)),
    ),
    list[str]: (
        "a list of texts",
        lambda value: isinstance(value, list) and all(map(_is_text, value)),
    ),
}
"""What a value of each type must be, in words and as a test."""
