"""Results as tables of other libraries."""

from __future__ import annotations

from typing import Any


class Table:
    """A result with columns of equal length, for pandas, polars and Arrow."""

    def columns(self) -> dict[str, list]:
        """The table, one list for each column."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def to_polars(self) -> Any:
        """The table as a polars DataFrame; missing numbers stay NaN."""
        import polars as pl

        return pl.DataFrame(self.columns())

    def to_arrow(self) -> Any:
        """The table as an Arrow table; missing numbers stay NaN."""
        import pyarrow as pa

        return pa.table(self.columns())


def aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Rows of text as lines whose columns stand below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
