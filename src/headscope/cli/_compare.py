"""headscope compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from headscope.cli._corpus import is_folder, table_of
from headscope.cli._run import RECORD_SUFFIX, say, status
from headscope.cli._study import check_result, write_result
from headscope.errors import FileError, HeadscopeError

if TYPE_CHECKING:
    from headscope.atlases import AtlasComparison

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
    """Compare two records, or two atlases, head by head: what they share, and what changed.

    One model on two texts is aligned by edit distance, two models on one text by characters; two
    models on two texts are refused. The table lists the heads that moved most, by Jensen-Shannon
    distance in nats, averaged over the rows that both have.

    Two folders that headscope atlas wrote are compared as atlases, such as those of two checkpoints
    or of two models: heads are matched one to one, and the tables list what changed most. See
    headscope serve A B for the page.

    Args:
        a: The first record (.safetensors), from headscope capture; or the folder of an atlas.
        b: The second.
        out: Write the table of heads to this file (.csv, .json or .parquet), or the viewer page
            (.html; of two atlases a folder), besides printing the result.
        stack: Attention stack of the model, such as decoder or cross; by default all that both
            have.
        match: How heads are matched: by number, or each with the nearest one (best); auto uses
            numbers for models of one type with the same number of heads. Of two atlases best is one
            to one, and what auto uses.
        spread: Pairs of records, one after the other, that differ only by chance, such as two
            seeds: heads that move no more than in these are marked.
        min_overlap: Minimum share of the tokens that both records must have, from 0 to 1.
    """
    from headscope.comparison import compare as compared
    from headscope.storage import load

    if a.is_dir() or b.is_dir():
        _check_of_atlases(
            {"--stack": stack, "--spread": spread, "--min-overlap": min_overlap != 0.5}
        )
        _compare_atlases(a, b, out, "best" if match == "auto" else match)
        return
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


def compared_atlases(
    a: Path, b: Path, match: Literal["best", "number"] = "best"
) -> AtlasComparison:
    """The atlases of two folders side by side, called as their folders are.

    Raises:
        HeadscopeError: where a folder holds no atlas.
    """
    from headscope.atlases import Atlas
    from headscope.results import load

    atlases = []
    for path in (a, b):
        atlas = load(path)
        if not isinstance(atlas, Atlas):
            raise HeadscopeError(
                f"Expected two atlases, and {path} holds {atlas!r}; make one with headscope atlas"
            )
        atlases.append(atlas)
    # Folders of one name, such as step1/atlas and step2/atlas, say nothing by it.
    names = (a.name, b.name) if a.name != b.name else (str(a), str(b))
    return atlases[0].compare(atlases[1], heads=match, names=names)


def _check_of_atlases(records: dict[str, Any]) -> None:
    for name, is_given in records.items():
        if is_given:
            raise HeadscopeError(f"{name} is for records; leave it out to compare two atlases")


def _compare_atlases(a: Path, b: Path, out: Path | None, match: Literal["best", "number"]) -> None:
    check_result(table_of(out))
    comparison = compared_atlases(a, b, match)
    say(str(comparison))
    if is_folder(out):
        with status("Writing the page"):
            page = comparison.view().save(out)
        say(f"Wrote {page.resolve()}")
    else:
        write_result(comparison, out)
