"""Registry of the functions that draw, show and read results, by kind of result.

Studies may not import views, and yet ``result.figure()`` draws a result. So the views register here
what they can draw and show, and the studies which files they can read; this module imports none of
them. `PLUGINS` names the packages that register functions: they are imported when the first
function is looked up.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Literal, TypeVar

Door = Literal["figure", "view", "file"]
Function = TypeVar("Function", bound=Callable[..., Any])

PLUGINS: dict[Door, tuple[str, ...]] = {
    "figure": ("headscope.views.figures",),
    "view": (
        "headscope.views.opening",
        "headscope.views.atlas_comparison_page",
        "headscope.views.atlas_page",
        "headscope.headvis",
    ),
    "file": ("headscope.atlases", "headscope.comparison", "headscope.headvis", "headscope.studies"),
}
"""Packages with functions for each use of a result. Names and not imports, because these packages
import this one.
"""
EVERY_KIND = "*"
"""A function for this kind serves all kinds that have none of their own."""
_ENTRIES: dict[Door, dict[str, Callable[..., Any]]] = {"figure": {}, "view": {}, "file": {}}


def draws(kind: str) -> Callable[[Function], Function]:
    """Decorate a function that draws results of a kind: ``function(result, **options)`` gives a
    figure.

    Args:
        kind: the ``KIND`` of a `Result`, such as ``"relations"``.

    Example:
        >>> @draws("lengths")
        ... def lengths_figure(lengths, **options): ...
    """
    return _enter("figure", kind)


def shows(kind: str) -> Callable[[Function], Function]:
    """Decorate a function that shows results of a kind: ``function(result, **options)`` gives a
    view. An entry for `EVERY_KIND` shows those that have none of their own.
    """
    return _enter("view", kind)


def reads(kind: str) -> Callable[[Function], Function]:
    """Decorate a function that reads a file of a kind: ``function(path)`` gives the result."""
    return _enter("file", kind)


def drawing_of(result: Any) -> Callable[..., Any] | None:
    """The function that draws this result; None where there is none."""
    return _entry("figure", getattr(result, "KIND", None))


def view_of(result: Any) -> Callable[..., Any] | None:
    """The function that shows this result; None where there is none."""
    return _entry("view", getattr(result, "KIND", None))


def reader_of(kind: str) -> Callable[..., Any] | None:
    """The function that reads a file of this kind; None where there is none."""
    return _entry("file", kind)


def _enter(door: Door, kind: str) -> Callable[[Function], Function]:
    def entered(function: Function) -> Function:
        _ENTRIES[door][kind] = function
        return function

    return entered


def _entry(door: Door, kind: str | None) -> Callable[..., Any] | None:
    if kind is None:
        return None
    # Importing registers; after the first time it costs nothing.
    for package in PLUGINS[door]:
        if find_spec(package) is not None:  # that of an extra may be missing
            importlib.import_module(package)
    return _ENTRIES[door].get(kind, _ENTRIES[door].get(EVERY_KIND))
