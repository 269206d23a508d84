"""What all results of studies have in common."""

from __future__ import annotations

from typing import Any, ClassVar

from headscope._libraries import library
from headscope.errors import FigureError, PageError
from headscope.results._registry import drawing_of, view_of


class Result:
    """What a study found: one family, whatever was studied.

    A result has a table with one list for each column, which pandas, polars and Arrow take, and is drawn and shown by
    what is entered for its kind (`headscope.results.draws`, `headscope.results.shows`).
    """

    KIND: ClassVar[str] = ""
    """What it is, in a word or two; entries for figures, pages and files go by it."""

    def columns(self) -> dict[str, list[Any]]:
        """The table, one list for each column, all of one length."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame.

        Raises:
            HeadscopeError: without pandas.
        """
        return library("pandas").DataFrame(self.columns())

    def to_polars(self) -> Any:
        """The table as a polars DataFrame; missing numbers stay NaN.

        Raises:
            HeadscopeError: without polars.
        """
        return library("polars").DataFrame(self.columns())

    def to_arrow(self) -> Any:
        """The table as an Arrow table; missing numbers stay NaN.

        Raises:
            HeadscopeError: without pyarrow.
        """
        return library("pyarrow").table(self.columns())

    def figure(self, **options: Any) -> Any:
        """The result drawn for print, as `headscope.figure` draws it.

        Raises:
            FigureError: where this kind of result has no figure, an option that there is not, or without matplotlib.
        """
        draw = drawing_of(self)
        if draw is None:
            raise FigureError(no_figure(self))
        return draw(self, **options)

    def view(self, **options: Any) -> Any:
        """The result in the viewer, as `headscope.view` shows it.

        Raises:
            PageError: where this kind of result has no page, or an option that there is not.
        """
        show = view_of(self)
        if show is None:
            raise PageError(no_page(self))
        return show(self, **options)


def no_figure(found: Any) -> str:
    """One sentence: this result has no figure, and what there is instead."""
    name = type(found).__name__
    if view_of(found) is not None:
        return (
            f"A {name} has a page and no figure: give it to headscope.view(...), or draw one of its records, "
            "figure(comparison.b)"
        )
    return f"A {name} has no figure: print it, or take its table, to_pandas()"


def no_page(found: Any) -> str:
    """One sentence: this result has no page, and what there is instead."""
    name = type(found).__name__
    if drawing_of(found) is not None:
        return f"A {name} has a figure and no page: draw it with headscope.figure(...)"
    return f"A {name} has neither a page nor a figure: print it, or take its table, to_pandas()"
