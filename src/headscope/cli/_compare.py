"""headscope compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from headscope.cli._run import RECORD_SUFFIX, say, status
from headscope.cli._study import check_result, write_result
from headscope.errors import FileError

Files = Annotated[tuple[Path, ...], Parameter(consume_multiple=True, negative="")]


def compare(
    a: Path,
    b: Path,
    /,
    *,
    out: Path | None = None,
    stack: str | None = None,
    match: Literal["auto", "number", "best"] = "auto",
    spread: Files = (),
    min_overlap: float = 0.5,
) -> None:
    """Compare two records head by head: which tokens they share, and how far each head moved.

    One model on two texts is aligned by edit distance, two models on one text by characters; two
    models on two texts are refused. The table lists the heads that moved most, by Jensen-Shannon
    distance in nats, averaged over the rows that both have.

    Args:
        a: The first record (.safetensors), from headscope capture.
        b: The second record.
        out: Write the table of heads to this file (.csv, .json or .parquet), or the viewer page
            (.html), besides printing the result.
        stack: Attention stack of the model, such as decoder or cross; by default all that both
            have.
        match: How heads are matched: by number, or each with the nearest one (best); auto uses
            numbers for models of one type with the same number of heads.
        spread: Pairs of records, one after the other, that differ only by chance, such as two
            seeds: heads that move no more than in these are marked.
        min_overlap: Minimum share of the tokens that both records must have, from 0 to 1.
    """
    from headscope.comparison import compare as compared
    from headscope.storage import load

    check_result(out)
    for path in (a, b, *spread):
        if path.suffix != RECORD_SUFFIX:
            raise FileError(
                f"{path} is not a record; expected a {RECORD_SUFFIX} file from headscope capture"
            )
    if len(spread) % 2:
        raise FileError(f"Expected pairs of records for --spread, got {len(spread)} records")
    # Files in pairs: the first and second, the third and fourth ...
    nulls = [
        (load(first), load(second)) for first, second in zip(spread[::2], spread[1::2], strict=True)
    ]
    with status("Comparing"):
        comparison = compared(
            load(a), load(b), stack=stack, heads=match, spread=nulls, least=min_overlap
        )
    say(str(comparison))
    write_result(comparison, out)
