"""Commands that read records and results from files, and the trial of models."""

from __future__ import annotations

import dataclasses
import json
import os
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from headscope._progress import counted
from headscope.cli import _files as files
from headscope.cli import _run as run
from headscope.cli._asked import MACHINE, RESULT, Request
from headscope.cli._files import hs, say, say_written, status
from headscope.cli._signature import made_from
from headscope.errors import FileError, HeadscopeError, RecordError

EXAMPLES = 2
"""Default for how many made-up texts each model is given at once."""


@made_from()
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
    said = f"{len(hs.storage.RecordFile(path).arrays)} arrays are as their checksums say"
    try:
        held = hs.results.load(path, check=True)
    except RecordError as error:  # made with a pattern of the user's own, which is not in the file
        return f"{said} ({error})"
    return f"{said}; {held.summary if isinstance(held, hs.record.Record) else repr(held)}"


@made_from("headscope.views.options:WrittenOptions", takes="out! stack layer head words")
def export(record: str, /, *, asked: Request, **options: Any) -> None:
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
        asked: Where they are written.
        **options: Those above.
    """
    import numpy as np

    out = asked.place
    files.check_file("--out", out, (".csv", ".parquet", ".nc", ".npz"))
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


@made_from("headscope.comparison:compare", takes=f"{RESULT} stack match=heads min_overlap=least")
def compare(
    a: Path, b: Path, /, *, asked: Request, spread: tuple[Path, ...] = (), **options: Any
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
        out: Write the table of the result to this file (.csv, .json or .parquet), or its page
            (.html), besides printing it; of two atlases the page is a folder.
        asked: Where the result is written.
        **options: Of `headscope.compare`.
    """
    asked.check(folder=a.is_dir())
    for path in (a, b, *spread):
        if path.suffix != files.RECORD and not path.is_dir():
            raise FileError(
                f"{path} is not a record or result; expected a {files.RECORD} file that headscope "
                "wrote"
            )
    if len(spread) % 2:
        raise FileError(f"Expected pairs of records for --spread, got {len(spread)} records")
    if spread:
        # Files in pairs: the first and second, the third and fourth ...
        others = list(map(hs.results.load, spread))
        options["spread"] = list(zip(others[::2], others[1::2], strict=True))
    with status("Comparing"):
        comparison = compared(a, b, **options)
    asked.tell(comparison)
    if asked.folder is not None:
        with status("Writing the page"):
            say(f"Wrote {comparison.view().save(asked.folder).resolve()}")


def compared(a: Path, b: Path, **options: Any) -> Any:
    """Two records, results or atlases side by side; atlases are called as their folders are.

    Raises:
        HeadscopeError: where one cannot be read, or they cannot be compared.
    """
    comparison = hs.comparison.compare(hs.results.load(a), hs.results.load(b), **options)
    if comparison.KIND == "atlas comparison":
        # Folders of one name, such as step1/atlas and step2/atlas, say nothing by it.
        names = (a.name, b.name) if a.name != b.name else (str(a), str(b))
        return dataclasses.replace(comparison, names=names)
    return comparison


@made_from(takes=f"out workers {MACHINE}")
def support(model: str | None = None, /, *, asked: Request) -> None:
    """Check whether a model is supported, or every model type that transformers knows.

    headscope support path/to/a/model

    headscope support --out support.md

    Args:
        model: Hub name or folder; by default tiny random models of every model type.
        out: Write the table to this file (.md or .json), besides printing it.
        asked: Where and how the model runs.
    """
    files.check_file("--out", asked.out, (".md", ".json"))
    size = asked.batch_size or EXAMPLES
    if model is None:
        names = hs.testing.every_type()
        workers = asked.workers or os.cpu_count() or 1
        tried = hs.testing.examine_types(names, batch_size=size, workers=workers)
        rows = list(counted(tried, "Trying", "model type", total=len(names), shows=True))
        rows.sort(key=lambda row: names.index(row.name))
    else:
        run.check_model(model, asked.revision)
        loaded = run.load("load_bare_model", model, **asked.loading)
        with files.status(f"Trying {model}"), files.quiet():
            rows = [hs.testing.examine(loaded, batch_size=size)]
    text = hs.testing.support_tables(rows)
    say(text)
    out = asked.out
    if out is not None:
        if out.suffix == ".json":
            text = json.dumps([dataclasses.asdict(row) for row in rows], indent=1)
        with hs.storage.written_whole(out) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")
        say(f"Wrote {out.resolve()}")
