"""Commands that read records and results from files, and the trial of models."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope._progress import counted
from headscope.cli import _files as files
from headscope.cli import _run as run
from headscope.cli._files import hs, say, say_written, status
from headscope.cli._run import Count, MachineOptions
from headscope.cli._signature import made_from
from headscope.errors import FileError, HeadscopeError, RecordError

if TYPE_CHECKING:
    from headscope.atlases import AtlasComparison
    from headscope.testing import Support

UNTRIED = """\
## Not tried

No tiny model of these could be made, or nothing made up could be read by it. That says nothing of
the real model: `headscope support MODEL` tries it.

| family | model type | why |
| --- | --- | --- |"""
REFUSED = """\
## Refused

| family | model type | class | reason |
| --- | --- | --- | --- |"""
EXAMPLES = 2
"""Default for how many made-up texts each model is given at once."""
HEADER = """\
| family | model type | class | stacks: layers x heads, kind | route | layer output | weights |
| --- | --- | --- | --- | --- | ---: | ---: |"""
MOST_OF_A_REASON = 200
"""Characters of a reason: some libraries explain at length how a missing package is installed."""


def check(*files: Path) -> None:
    """Check that records and results are undamaged.

    headscope check run.safetensors

    headscope check records/*.safetensors

    Args:
        files: Records and saved results (.safetensors), of which every array is compared with its
            checksum; exit code 1 if one is damaged.
    """
    if not files:
        raise FileError("Expected records or saved results to check (.safetensors)")
    damaged = 0
    for path in files:
        try:
            say(f"{path} is whole: {_content(path)}")
        except FileError as error:
            damaged += 1
            if len(files) == 1:
                raise
            say(str(error))
    if damaged:
        raise FileError(f"{damaged} of {len(files)} files are damaged or cannot be read")


def _content(path: Path) -> str:
    """What an undamaged file holds.

    Raises:
        FileError: where it is damaged, or was not written by headscope.
    """
    if path.suffix != files.RECORD:
        raise FileError(f"{path} is no record or result ({files.RECORD})")
    storage, file = hs.storage, hs.storage.RecordFile(path)
    said = f"{len(file.arrays)} arrays are as their checksums say"
    if not path.is_file() or storage.kind_of(path) == storage.RECORD:
        record = storage.load(path)
        storage.check_record(file, record)
        return f"{said}; {record.summary}"
    # Reading a result compares every array with its checksum.
    try:
        return f"{said}; {hs.results.load(path)!r}"
    except RecordError as error:  # made with a pattern of the user's own, which is not in the file
        return f"{said} ({error})"


@made_from("headscope.views.options:WrittenOptions", takes="stack layer head words")
def export(record: str, /, *, out: Path, **options: Any) -> None:
    """Export the weights of a record as .csv, .parquet, .nc or .npz.

    headscope export run.safetensors --out weights.parquet

    headscope export run.safetensors --layer 2 --head 0 --words --out head.csv

    Args:
        record: The record file (.safetensors), or its address such as
            hf://datasets/me/records/run.safetensors.
        out: Write the weights to this file. .csv and .parquet have a row for each weight: layer,
            head, query, query_token, key, key_token, weight; .nc is NetCDF with the axes layer,
            head, query, key; .npz has the same arrays for NumPy.
        stack: Attention stack of the model, such as decoder or cross; by default the first.
        layer: Layer number, from 0; -1 is the last. By default all layers.
        head: Head number, from 0. By default all heads.
        words: Between whole words in place of tokens: the sum over the pieces of the word that is
            attended to, the mean over those of the word that looks.
        **options: Those above.
    """
    import numpy as np

    files.check_suffix("--out", out, (".csv", ".parquet", ".nc", ".npz"))
    loaded = hs.storage.load(record)
    chosen = loaded[options.get("stack") or next(iter(loaded.stacks))]
    layer = files.layer_number(options.get("layer"), [each.layer for each in chosen])
    head = options.get("head")
    if options.get("words"):
        chosen = chosen.words()
    if out.suffix == ".nc" and find_spec("scipy") is None:
        raise HeadscopeError(
            "NetCDF needs scipy, which is not installed: pip install 'headscope[statistics]'"
        )
    with status("Writing"):
        if out.suffix in (".csv", ".parquet"):
            columns = chosen.columns(layer, head) if out.suffix == ".csv" else {}
            lists = {name: column.tolist() for name, column in columns.items()}
            files.write_table(out, lists, partial(chosen.to_arrow, layer, head))
        elif out.suffix == ".nc":
            with hs.storage.written_whole(out) as temporary:
                # The engine that needs no further library than scipy.
                chosen.to_xarray(layer, head).to_netcdf(temporary, engine="scipy")
        else:
            query, key = np.array(chosen.query.labels), np.array(chosen.key.labels)
            weights = chosen.weights(layer, head)
            # An open file: NumPy adds .npz to names that do not end so, as the temporary one.
            with hs.storage.written_whole(out) as temporary, temporary.open("wb") as file:
                np.savez_compressed(file, weights=weights, query_token=query, key_token=key)
    say(loaded.summary)
    say_written(out)


@made_from("headscope.comparison:compare", takes="stack match=heads min_overlap=least")
def compare(
    a: Path,
    b: Path,
    /,
    *,
    spread: tuple[Path, ...] = (),
    results: files.Results = files.Results(),
    **options: Any,
) -> None:
    """Compare two records, or two results of one kind, head by head.

    headscope compare run.safetensors other.safetensors --out page.html

    headscope compare step1/atlas step2/atlas

    Args:
        a: The first record (.safetensors), from headscope capture; or a result that --save wrote,
            or the folder of an atlas.
        b: The second.
        spread: Pairs of records, one after the other, that differ only by chance, such as two
            seeds: heads that move no more than in these are marked.
        stack: Attention stack of the model, such as decoder or cross; by default all.
        match: How heads are matched: by number, or each with the nearest one (best); auto uses
            numbers for models of one type with the same number of heads. Of two atlases best is one
            to one, and what auto uses.
        min_overlap: Minimum share of the tokens that both records must have, from 0 to 1.
        results: Where the result is written; the page of two atlases is a folder.
        **options: Of `headscope.compare`.
    """
    results.check(folder=a.is_dir())
    if a.is_dir() or b.is_dir():
        given = {"--stack": "stack" in options, "--spread": spread}
        given["--min-overlap"] = "least" in options
        files.check_absent(given, "{} is for records; leave it out to compare two atlases")
        match = options.get("heads", "auto")
        comparison: Any = compared_atlases(a, b, "best" if match == "auto" else match)
        run.tell(comparison, results)
        if results.folder is not None:
            with status("Writing the page"):
                say(f"Wrote {comparison.view().save(results.folder).resolve()}")
        return
    for path in (a, b, *spread):
        if path.suffix != files.RECORD:
            raise FileError(
                f"{path} is not a record or result; expected a {files.RECORD} file that headscope "
                "wrote"
            )
    if len(spread) % 2:
        raise FileError(f"Expected pairs of records for --spread, got {len(spread)} records")
    first, second, *others = map(hs.results.load, (a, b, *spread))
    if not isinstance(first, hs.record.Record):
        given = {"--spread": spread, "One of --stack, --match and --min-overlap": options}
        files.check_absent(given, "{} is for records; leave it out to compare two results")
    if spread:
        # Files in pairs: the first and second, the third and fourth ...
        options["spread"] = list(zip(others[::2], others[1::2], strict=True))
    with status("Comparing"):
        comparison = hs.comparison.compare(first, second, **options)
    run.tell(comparison, results)


def compared_atlases(a: Path, b: Path, match: Any = "best") -> AtlasComparison:
    """The atlases of two folders side by side, called as their folders are.

    Raises:
        HeadscopeError: where one of them holds something else, or they cannot be compared.
    """
    first, second = atlases = hs.results.load(a), hs.results.load(b)
    for path, atlas in zip((a, b), atlases, strict=True):
        if not isinstance(atlas, hs.atlases.Atlas):
            raise HeadscopeError(
                f"Expected two atlases, and {path} holds {atlas!r}; make one with headscope atlas"
            )
    # Folders of one name, such as step1/atlas and step2/atlas, say nothing by it.
    names = (a.name, b.name) if a.name != b.name else (str(a), str(b))
    return first.compare(second, heads=match, names=names)


def support(
    model: str | None = None,
    /,
    *,
    out: Path | None = None,
    workers: Count = None,
    machine: MachineOptions = MachineOptions(),
) -> None:
    """Check whether a model is supported, or every model type that transformers knows.

    headscope support path/to/a/model

    headscope support --out support.md

    Args:
        model: Hub name or folder; by default tiny random models of every model type.
        out: Write the table to this file (.md or .json), besides printing it.
        workers: Number of processes that run at once.
        machine: Where and how the model runs.
    """
    files.check_suffix("--out", out, (".md", ".json"))
    size = machine.batch_size or EXAMPLES
    if model is None:
        rows = try_every_type(size, workers or os.cpu_count() or 1)
    else:
        run.check_model(model, machine.revision)
        loaded = run.load("load_bare_model", model, **machine.loading)
        with files.status(f"Trying {model}"), files.quiet():
            rows = [hs.testing.examine(loaded, batch_size=size)]
    text = tables_of(rows)
    say(text)
    if out is not None:
        if out.suffix == ".json":
            text = json.dumps([dataclasses.asdict(row) for row in rows], indent=1)
        with hs.storage.written_whole(out) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")
        say(f"Wrote {out.resolve()}")


def try_every_type(size: int, workers: int) -> list[Support]:
    names = hs.testing.every_type()
    tried = hs.testing.examine_types(names, batch_size=size, workers=workers)
    shown = counted(tried, "Trying", "model type", total=len(names), shows=True)
    return sorted(shown, key=lambda row: names.index(row.name))


def tables_of(rows: Sequence[Support]) -> str:
    """The tables of what is captured by what it reads, then what is refused, then what could not be
    tried; a single model has one row without a heading.
    """
    family_of = hs.testing.family_of
    if len(rows) == 1 and not rows[0].refused:
        return f"{HEADER}\n{_row(rows[0])}"
    by_head: dict[str, list[Support]] = {f"## {kind}\n\n{HEADER}": [] for kind in hs.testing.KINDS}
    by_head |= {REFUSED: [], UNTRIED: []}
    for row in sorted(rows, key=lambda row: (family_of(row.name).lower(), row.name.lower())):
        failed = REFUSED if row.refused else ""
        head = UNTRIED if row.unbuilt else failed
        by_head.setdefault(head or f"## {row.reads}\n\n{HEADER}", []).append(row)
    return "\n\n".join("\n".join([head, *map(_row, own)]) for head, own in by_head.items() if own)


def _row(row: Support) -> str:
    cells = [hs.testing.family_of(row.name), row.name]
    if row.unbuilt or row.refused:
        # A bar would end the cell of the table.
        why = " ".join((row.unbuilt or row.refused).replace("|", "/").split())
        short = why if len(why) <= MOST_OF_A_REASON else f"{why[:MOST_OF_A_REASON]} ..."
        cells += [short] if row.unbuilt else [row.class_name, short]
    else:
        cells += [row.class_name, "; ".join(row.stacks), ", ".join(row.routes)]
        for number in (row.output_difference, row.weights_difference):
            cells.append("-" if number is None else f"{number:.0e}")
        cells[-1] += f" ({row.remark})" if row.remark else ""
    return f"| {' | '.join(cells)} |"
