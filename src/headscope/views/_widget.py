"""The live widget: a view whose selection Python reads and sets, and whose data is sent on
request.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import unquote, urlsplit

import traitlets

from headscope.errors import HeadscopeError, PageError
from headscope.views import _html
from headscope.views._selection import changed_selection
from headscope.views.answers import figure_file
from headscope.views.options import PageOptions
from headscope.views.widget_base import AnyWidget

if TYPE_CHECKING:
    from headscope.views.opening import View


class ViewWidget(AnyWidget):
    """A view that a running notebook and Python share. Made by `View.widget`.

    ``selection`` is what the view shows, as a dictionary of the options of `view`; setting it
    changes the view, and what the reader chooses can be read from it. ``widget.observe(function,
    "selection")`` calls back on changes.

    Args:
        shown: the view that the widget shows.
    """

    selection: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)
    _header: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)

    def __init__(self, shown: View) -> None:
        self._shown = shown
        self._given = shown.on_demand
        header = self._given.header
        super().__init__(
            _esm=_html.bundle("live.js"), _header=dict(header), selection=dict(header["selection"])
        )
        self.on_msg(self._answer)

    def select(self, **changes: Unpack[PageOptions]) -> None:
        """Change what is shown; everything else stays.

        Args:
            **changes: options of `view` that can change while it is shown, such as ``layer=2,
                head=0``.

        Raises:
            PageError: an option that is unknown or cannot change, or a value that the view does not
                hold.
        """
        self.selection = dict(changed_selection(self._given.header, self.selection, changes))

    def __repr__(self) -> str:
        # A saved notebook that is open without a kernel shows this text.
        return f"<live view of {self._shown.record.model.name or 'arrays'}: run the cell again>"

    @traitlets.validate("selection")
    def _checked(self, proposal: Any) -> dict[str, Any]:
        # From the first selection, so that a dictionary may name only what differs from it.
        first = self._given.header["selection"]
        return dict(changed_selection(self._given.header, first, proposal["value"]))

    def _answer(self, _: Any, content: Any, __: Any) -> None:
        """Send the bytes of the chunk, or of the figure, whose path the view asks for."""
        if not isinstance(content, dict) or content.get("type") != "ask":
            return
        answer = {"type": "answer", "id": content.get("id"), "status": 200, "more": False}
        try:
            data = self._data(str(content.get("path")))
        except HeadscopeError as error:
            self.send(answer | {"status": 400}, buffers=[str(error).encode()])
            return
        self.send(answer, buffers=[_html.packed(data)])

    def _data(self, path: str) -> bytes:
        where = urlsplit(path)
        kind, _, name = unquote(where.path).partition("/")
        if kind == "figure":
            options = json.loads(unquote(where.query).removeprefix("options="))
            return figure_file(self._shown.record, name, options, self._shown.options)
        data = self._given.chunk(name)
        if data is None:
            raise PageError(f"This view holds no data {name!r}. Run the cell again.")
        return data
