"""Registry of the functions that draw, show and read results, by kind of result.

Studies may not import views, and yet ``result.figure()`` draws a result. So the views register here
what they can draw and show, and each `Result` its kind; this module imports none of them. `PLUGINS`
names the packages that register functions: they are imported when the first function is looked up.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

PLUGINS: dict[str, tuple[str, ...]] = {
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
_ENTRIES: dict[tuple[str, str], Callable[..., Any]] = {}
KINDS: dict[str, type] = {}
"""The class of each kind of result, which `Result` enters here."""


def draws(kind: str) -> Callable[[Function], Function]:
    """Decorate a function that draws results of a kind: ``function(result, **options)`` gives a
    figure.

    Args:
        kind: the ``KIND`` of a `Result`, such as ``"relations"``.

    Example:
        >>> @draws("lengths")
        ... def lengths_figure(lengths, **options): ...
    """
    return partial(_enter, ("figure", kind))


def shows(kind: str) -> Callable[[Function], Function]:
    """Decorate a function that shows results of a kind: ``function(result, **options)`` gives a
    view. An entry for `EVERY_KIND` shows those that have none of their own.
    """
    return partial(_enter, ("view", kind))


def drawing_of(result: Any) -> Callable[..., Any] | None:
    """The function that draws this result; None where there is none."""
    return _entry("figure", result)


def view_of(result: Any) -> Callable[..., Any] | None:
    """The function that shows this result; None where there is none."""
    return _entry("view", result)


def class_of(kind: str) -> Any:
    """The class of results of this kind; None where there is none."""
    _import("file")
    return KINDS.get(kind)


def _enter(entry: tuple[str, str], function: Function) -> Function:
    _ENTRIES[entry] = function
    return function


def _entry(use: str, result: Any) -> Callable[..., Any] | None:
    kind = getattr(result, "KIND", None)
    if kind is None:
        return None
    _import(use)
    return _ENTRIES.get((use, kind), _ENTRIES.get((use, EVERY_KIND)))


def _import(use: str) -> None:
    # Importing registers; after the first time it costs nothing.
    for package in PLUGINS[use]:
        if find_spec(package) is not None:  # that of an extra may be missing
            importlib.import_module(package)
