"""The table of a result as a file: --out with .csv, .json or .parquet."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

TABLES = (".csv", ".json", ".parquet")


def write_table(result: Any, out: Path) -> None:
    """Write a table as .csv, .json or .parquet, whole or not at all."""
    from headscope.storage import written_whole

    columns = result.columns()
    with written_whole(out) as temporary:
        if out.suffix == ".parquet":
            from pyarrow import parquet

            parquet.write_table(result.to_arrow(), temporary)
        elif out.suffix == ".csv":
            with Path(temporary).open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(columns)
                writer.writerows(zip(*columns.values(), strict=True))
        else:
            rows = [
                dict(zip(columns, map(_plain, row), strict=True))
                for row in zip(*columns.values(), strict=True)
            ]
            Path(temporary).write_text(
                json.dumps(rows, indent=1, allow_nan=False) + "\n", encoding="utf-8"
            )


def _plain(value: Any) -> Any:
    """A value for JSON, which has no infinity and no NaN: text for the one, null for the other."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) else str(value)
