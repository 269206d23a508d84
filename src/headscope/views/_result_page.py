"""A result as a page: what was found in plain words, its figure, and its tables. No script."""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from headscope.errors import FigureError, PageError, RecordError
from headscope.results import EVERY_KIND, Result, drawing_of, shows
from headscope.views.file_page import FilePage, whole_page

THEMES = ("light", "dark")
STYLES = """
.headscope-result { max-width: 64rem; margin: 0 auto; padding: 1.5rem; line-height: 1.45;
  font: 0.875rem/1.45 system-ui, sans-serif; color: #15181d; background: #ffffff; }
.headscope-result.dark { color: #e8eaee; background: #111419; }
.headscope-result h1 { font-size: 1.125rem; margin: 0 0 0.5rem; }
.headscope-result p { max-width: 50rem; white-space: pre-line; }
.headscope-result img { display: block; max-width: 100%; height: auto; margin: 1rem 0; }
.headscope-result table { border-collapse: collapse; margin: 1rem 0 0.5rem; }
.headscope-result caption { text-align: left; font-weight: 600; padding: 0.25rem 0; }
.headscope-result th, .headscope-result td { text-align: left; padding: 0.2rem 0.9rem 0.2rem 0;
  border-bottom: 1px solid #d5d9df; font-variant-numeric: tabular-nums; white-space: nowrap; }
.headscope-result.dark th, .headscope-result.dark td { border-color: #343b46; }
"""
PAPER = {"light": "#ffffff", "dark": "#111419"}


@dataclass(frozen=True, repr=False)
class ResultPage(FilePage):
    """Page of a study's result: it shows itself in a notebook, saves itself as one file, and opens
    in a browser. Made by `view`.

    Args:
        result: the result that is shown.
        options: options of its figure; ``theme`` and ``title`` apply to the page, too.
    """

    result: Result
    options: Mapping[str, Any]

    def __post_init__(self) -> None:
        theme = self.options.get("theme", "light")
        if theme not in THEMES:
            raise PageError(f"theme is {theme!r}; give {' or '.join(map(repr, THEMES))}")
        # Drawn now, so that a wrong option raises where the page is made and not where it is shown.
        self._picture  # noqa: B018

    @cached_property
    def html(self) -> str:
        """The page as one self-contained file: no script, offline, opens from disk."""
        paper = PAPER[self.options.get("theme", "light")]
        styles = f"body {{ margin: 0; background: {paper} }}{STYLES}"
        return whole_page(self.title, styles, self.body)

    @property
    def title(self) -> str:
        """The heading of the page."""
        kind = type(self.result).__name__
        model = str(getattr(self.result, "model", ""))
        return str(self.options.get("title") or (f"{kind}: {model}" if model else kind))

    @cached_property
    def body(self) -> str:
        """The title, the summary, the figure and the tables, as HTML; every string is escaped."""
        dark = " dark" if self.options.get("theme") == "dark" else ""
        words = self.result._repr_html_()
        # The first line is the summary, which comes before the figure; the tables come after it.
        first, _, tables = words.partition("\n")
        return (
            f'<main class="headscope-result{dark}">\n<h1>{html.escape(self.title)}</h1>\n'
            f"{first}\n{self._picture}\n{tables}\n</main>"
        )

    @cached_property
    def _picture(self) -> str:
        """The figure as an image that the page holds, or why there is none.

        Raises:
            PageError: an option that the figure does not have.
        """
        draw = drawing_of(self.result)
        if draw is None:
            return ""
        try:
            figure = draw(self.result, **self.options)
        except (FigureError, RecordError) as error:
            # With options, the error may be about them. Without any, the result cannot be drawn,
            # such as a study that counted nothing, and the page shows its tables alone.
            if self.options:
                raise PageError(str(error)) from None
            return f"<p><small>No figure: {html.escape(str(error))}</small></p>"
        data = base64.b64encode(figure.to_bytes("svg")).decode()
        words = html.escape(f"Figure of {self.title}")
        return f'<img alt="{words}" src="data:image/svg+xml;base64,{data}">'

    def _repr_html_(self) -> str:
        return f"<style>{STYLES}</style>{self.body}"

    def _mime_(self) -> tuple[str, str]:
        return "text/html", self._repr_html_()

    def __repr__(self) -> str:
        return f"<Page of {self.result!r}>"


@shows(EVERY_KIND)
def result_page(result: Result, **options: Any) -> ResultPage:
    """A page of any result: its summary, its figure, its tables.

    Args:
        result: the result of a study.
        **options: options of its figure.

    Raises:
        PageError: an option that its figure does not have.
    """
    return ResultPage(result, options)
