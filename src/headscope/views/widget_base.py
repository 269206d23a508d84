"""Base class of the widgets for notebooks, with types, which ipywidgets does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from headscope.views import _html

if TYPE_CHECKING:

    class AnyWidget(traitlets.HasTraits):
        """What a reader of `anywidget.AnyWidget` needs of it."""

        layout: Any
        """Its size on the page; see ipywidgets."""

        def __init__(self, **traits: Any) -> None: ...

        def send(self, content: dict[str, Any], buffers: list[Any] | None = None) -> None:
            """Send a message to the page."""

        def on_msg(self, callback: Callable[[Any, Any, Any], None], remove: bool = False) -> None:
            """Be called with the widget, each message of the page, and its buffers."""

        def close(self) -> None:
            """Take it off the page."""
else:
    AnyWidget = anywidget.AnyWidget


def script_of(name: str) -> str:
    """The script of a widget.

    Args:
        name: name of the bundle, such as ``model.js``.

    Raises:
        PageError: where the viewer bundle was not built.
    """
    return _html.bundle(name)
