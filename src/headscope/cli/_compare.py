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
    heads: Literal["auto", "number", "best"] = "auto",
    spread: Files = (),
    least: float = 0.5,
) -> None:
    """Set two records beside each other: which tokens both have, and how far each head moved.

    One model on two texts is aligned by the fewest edits, two models on one text by characters; two
    models on two texts are refused. The table has the heads that moved most, by Jensen-Shannon
    distance in nats, mean over the rows that both have.

    Args:
        a: The first record (.safetensors), as headscope capture keeps it.
        b: The second.
        out: Write every head to this table (.csv, .json or .parquet), or the viewer to this page
            (.html).
        stack: Which stack, such as decoder; by default all that both have.
        heads: Heads are matched by number, or each with the nearest one (best); auto takes numbers
            for models of one type with as many heads.
        spread: Pairs of records, one after the other, whose differences say nothing, such as two
            seeds: heads that move no more than in these are marked.
        least: Part of the tokens that both records must have, from 0 to 1.
    """
    from headscope.comparison import compare as compared
    from headscope.storage import load

    check_result(out)
    for path in (a, b, *spread):
        if path.suffix != RECORD_SUFFIX:
            raise FileError(
                f"{path} is no record; compare takes {RECORD_SUFFIX} files, as headscope capture "
                "keeps them"
            )
    if len(spread) % 2:
        raise FileError(
            f"--spread was given {len(spread)} records; give pairs of them, one after the other"
        )
    nulls = [
        (load(first), load(second)) for first, second in zip(spread[::2], spread[1::2], strict=True)
    ]
    with status("Comparing"):
        comparison = compared(load(a), load(b), stack=stack, heads=heads, spread=nulls, least=least)
    say(str(comparison))
    write_result(comparison, out)
