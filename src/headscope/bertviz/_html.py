"""BertViz's two actions on a view: show it, or return it as HTML."""

from __future__ import annotations

from typing import Any

from headscope.errors import HeadscopeError, PageError
from headscope.record import Record
from headscope.views import view


def check_action(html_action: str) -> None:
    """Raise before any work where the action is neither of BertViz's two.

    Raises:
        PageError: naming both.
    """
    if html_action not in ("view", "return"):
        raise PageError(f"html_action must be 'view' or 'return', not {html_action!r}")


def theme_of(display_mode: str) -> str:
    """Our name for BertViz's display mode, which is the same.

    Raises:
        PageError: where it is neither of BertViz's two modes.
    """
    if display_mode not in ("dark", "light"):
        raise PageError(f"display_mode must be 'dark' or 'light', not {display_mode!r}")
    return display_mode


def shown(record: Record, html_action: str, **options: Any) -> Any:
    """Display the view and return None, or return it as one `IPython.display.HTML`.

    Args:
        record: the record to show.
        html_action: an action that `check_action` has accepted.
        **options: options of `headscope.view`; those that are None are not given.
    """
    made = view(record, **{name: value for name, value in options.items() if value is not None})
    try:
        from IPython.display import HTML, display
    except ModuleNotFoundError:
        raise HeadscopeError(
            "BertViz's calls need the package IPython: pip install 'headscope[notebook]'; "
            "without it, headscope.view(record).save('page.html') writes the page"
        ) from None
    shown_html = HTML(made._repr_html_())
    if html_action == "return":
        return shown_html
    display(shown_html)
    return None
