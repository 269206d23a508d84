"""The base class of all results of studies."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from headscope._missing_packages import library
from headscope.errors import FigureError, FileError, HeadscopeError, PageError
from headscope.results._registry import drawing_of, view_of
from headscope.results._table import TextTable, wrapped
from headscope.storage import is_address, save_kept, saved_at

Kept = tuple[dict[str, Any], dict[str, np.ndarray]]
"""The fields of a result that JSON can hold, and its arrays by name."""


class Result:
    """The result of a study; base class of all of them.

    A result has a table with one list for each column, which pandas, polars and Arrow take. The
    functions that are registered for its kind draw and show it (`headscope.results.draws`,
    `headscope.results.shows`).
    """

    KIND: ClassVar[str] = ""
    """The kind of result, in a word or two: the key for its figure, page and file."""
    left_out_of = ""
    """How many of its texts were left out, in words."""

    def __init_subclass__(cls) -> None:
        """The repr of every result names how many texts were left out."""
        short = cls.__repr__

        def long(self: Result) -> str:
            begin, end = short(self), f"; {self.left_out_of}>"
            # A class without a repr of its own has that of its base, which names them already.
            if not self.left_out_of or begin.endswith(end):
                return begin
            return begin.removesuffix(">") + end

        type.__setattr__(cls, "__repr__", long)

    @property
    def summary(self) -> str:
        """The main finding, in one or two plain sentences."""
        return repr(self)

    def table(self) -> str:
        """The text below the summary: tables of at most 100 characters a line, each with its
        legend, and notes.
        """
        return "\n\n".join(
            _printed(block) for block in _with_each_legend_once(self._blocks()) if block
        )

    def _blocks(self) -> list[TextTable | str]:
        """Tables and notes, in the order in which they are printed."""
        return []

    def __str__(self) -> str:
        parts = (wrapped(self.summary), self.left_out_of, self.table())
        return "\n\n".join(part for part in parts if part)

    def _repr_html_(self) -> str:
        """As notebooks show it; every string is escaped."""
        said = (self.summary, self.left_out_of)
        parts = [f"<p>{html.escape(part)}</p>" for part in said if part]
        for block in _with_each_legend_once(self._blocks()):
            if isinstance(block, TextTable):
                parts.append(f'<div style="overflow-x: auto">{block.html()}</div>')
            elif block:
                parts.append(
                    f'<p style="white-space: pre-line"><small>{html.escape(block)}</small></p>'
                )
        return "\n".join(parts)

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

    def conserved(self, given: int, counted: int, left_out: int, what: str = "texts") -> None:
        """Check that everything was counted or left out; the printed result then names how many
        were left out.

        Raises:
            HeadscopeError: where something is lost.
        """
        check_conserved(given, counted, left_out, what)
        if left_out:
            self.__dict__["left_out_of"] = f"Left out: {left_out} of {given} {what}"

    def save(self, path: str | os.PathLike[str]) -> Path | str:
        """Save the result as one .safetensors file, for `headscope.load`; whole or not at all.

        Texts are not saved, except for the two in the records of a `Comparison` or `Effect`.

        Raises:
            FileError: where this kind of result cannot be saved, or the file cannot be written.
        """
        if is_address(path):
            return saved_at(str(path), self.save)
        document, arrays = self._kept()
        return save_kept(path, self.KIND, document, arrays, left_out=self.left_out_of)

    def _kept(self) -> Kept:
        """The fields and arrays of its file.

        Raises:
            FileError: where this kind of result cannot be saved.
        """
        raise FileError(
            f"A {type(self).__name__} is not kept as a file; keep its table, to_pandas()"
        )

    def figure(self, **options: Any) -> Any:
        """The result drawn for print, as `headscope.figure` draws it.

        Raises:
            FigureError: where this kind of result has no figure, an unknown option, or
                without matplotlib.
        """
        draw = drawing_of(self)
        if draw is None:
            raise FigureError(no_figure(self))
        return draw(self, **options)

    def plot(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Draw the figure to a file: .svg, .pdf or .png, with the options of `figure`.

        Raises:
            FigureError: the errors of `figure`, or another suffix.
            FileError: where the file cannot be written.
        """
        return self.figure(**options).save(path)

    def view(self, **options: Any) -> Any:
        """The result as a page, as `headscope.view` shows it.

        Raises:
            PageError: an unknown option.
        """
        show = view_of(self)
        if show is None:
            raise PageError(f"A {type(self).__name__} has no page: print it, or draw it")
        return show(self, **options)


def _with_each_legend_once(blocks: Sequence[TextTable | str]) -> list[TextTable | str]:
    """The blocks, with the legend of a column only below the first table that has this column."""
    explained: set[tuple[str, str]] = set()
    shown: list[TextTable | str] = []
    for block in blocks:
        if not isinstance(block, TextTable):
            shown.append(block)
            continue
        columns = []
        for column in block.columns:
            again = (column.name, column.says) in explained
            columns.append(replace(column, says="") if again else column)
        explained |= {(column.name, column.says) for column in block.columns}
        shown.append(replace(block, columns=tuple(columns)))
    return shown


def _printed(block: TextTable | str) -> str:
    return str(block) if isinstance(block, TextTable) else wrapped(block)


def no_figure(result: Any) -> str:
    """The error for a kind of result without a figure, with what to use instead."""
    name = type(result).__name__
    return f"A {name} has no figure: print it, or take its table, to_pandas()"


def check_conserved(given: int, counted: int, left_out: int, what: str = "texts") -> None:
    """Raise where something was neither counted nor left out with a reason.

    Raises:
        HeadscopeError: with the three numbers.
    """
    if given != counted + left_out:
        raise HeadscopeError(
            f"Of {given} {what}, {counted} were counted and {left_out} left out, so that "
            f"{given - counted - left_out} are lost; this is a bug in headscope, please report it"
        )
