"""What commands that read many texts share."""

from __future__ import annotations

import csv
import json
import math
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from headscope.cli._run import ModelOptions, check_place, quiet, status
from headscope.cli._texts import Text, read_texts
from headscope.errors import FileError, HeadscopeError, TextError

TABLES = (".csv", ".json", ".parquet")


@runtime_checkable
class Table(Protocol):
    """What can be written as a table."""

    def columns(self) -> dict[str, list]:
        """One list for each column."""
        ...

    def to_arrow(self) -> Any:
        """The table as an Arrow table."""
        ...


def check_tables(out: Path | None, texts: Path | None) -> None:
    """Raise where a table could not be written or texts not be read, before any long work.

    Raises:
        FileError: saying why.
    """
    if out is not None:
        check_place(out)
        if out.suffix not in TABLES:
            raise FileError(f"--out is {out}; the table can be written as {', '.join(TABLES)}")
    for path in (out, texts):
        if path is not None and path.suffix == ".parquet" and find_spec("pyarrow") is None:
            raise FileError(f"{path} needs pyarrow, which is not installed: pip install pyarrow, or take .csv")


def parse_texts(text: str | None, text_b: str | None, texts: Path | None) -> list[Text]:
    """One text or pair, or those of a file.

    Raises:
        TextError: where both or neither are given.
    """
    if (text is None) == (texts is None):
        raise TextError("Give one text (or a pair), or a file of texts with --texts")
    if texts is not None:
        return read_texts(texts)
    return [text or "" if text_b is None else (text or "", text_b)]


def records_of(texts: list[Text], options: ModelOptions, command: str, **more: Any) -> Any:
    """Records of the texts, one after the other; a text that fails is left out with a line on stderr.

    Raises:
        HeadscopeError: whatever is wrong with the model, or with the only text.
    """
    if options.target is not None or options.target_tokenizer is not None:
        raise TextError(f"--target and --target-tokenizer belong to one text; headscope {command} reads many")
    with status("Loading PyTorch and transformers"):
        from headscope.capturing import capture_many, check_text, load_model
    for each in texts:
        for part in [each] if isinstance(each, str) else each:
            check_text(part)
    with status(f"Loading {options.model or 'the demo model'}"), quiet():
        model, tokenizer = load_model(options.model, trust_remote_code=options.trust_remote_code)
    report = _stop if len(texts) == 1 else _left_out
    return capture_many(
        model, tokenizer, texts, truncate=options.truncate, progress=sys.stderr.isatty(), on_error=report, **more
    )


def write_table(found: Table, out: Path) -> None:
    """Write a table as .csv, .json or .parquet, whole or not at all."""
    from headscope.storage import written_whole

    columns = found.columns()
    with written_whole(out) as temporary:
        if out.suffix == ".parquet":
            from pyarrow import parquet  # ty: ignore[import-not-found]

            parquet.write_table(found.to_arrow(), temporary)
        elif out.suffix == ".csv":
            with Path(temporary).open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(columns)
                writer.writerows(zip(*columns.values(), strict=True))
        else:
            rows = [dict(zip(columns, map(_plain, row), strict=True)) for row in zip(*columns.values(), strict=True)]
            Path(temporary).write_text(json.dumps(rows, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _stop(_: int, error: HeadscopeError) -> None:
    raise error


def _left_out(number: int, error: HeadscopeError) -> None:
    print(f"headscope: text {number + 1} was left out: {error}", file=sys.stderr)  # noqa: T201


def _plain(value: Any) -> Any:
    """JSON has no infinity and no NaN: the one is written as text, the other as null."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) else str(value)
