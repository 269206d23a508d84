"""Results as tables of other libraries."""

from __future__ import annotations

import importlib
from typing import Any

from headscope.errors import HeadscopeError


class Table:
    """A result with columns of equal length, for pandas, polars and Arrow."""

    def columns(self) -> dict[str, list[Any]]:
        """The table, one list for each column."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame.

        Raises:
            HeadscopeError: without pandas.
        """
        return _library("pandas").DataFrame(self.columns())

    def to_polars(self) -> Any:
        """The table as a polars DataFrame; missing numbers stay NaN.

        Raises:
            HeadscopeError: without polars.
        """
        return _library("polars").DataFrame(self.columns())

    def to_arrow(self) -> Any:
        """The table as an Arrow table; missing numbers stay NaN.

        Raises:
            HeadscopeError: without pyarrow.
        """
        return _library("pyarrow").table(self.columns())


def _library(name: str) -> Any:
    """A library of tables, which is asked for only where its table is."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # polars is the user's own choice; the extra brings the other two
        wanted = "polars" if error.name == "polars" else "'headscope[tables]'"
        raise HeadscopeError(f"This table needs {error.name}, which is not installed: pip install {wanted}") from None


def aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Rows of text as lines whose columns stand below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
