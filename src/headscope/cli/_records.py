"""Commands that read records and results from files, or serve them; and the trial of models."""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope._progress import counted
from headscope.cli import _files as files
from headscope.cli._asked import MACHINE, MODEL, PAGE_FILES, RESULT, Request
from headscope.cli._files import RECORD, hs, quiet, say, say_written, status
from headscope.cli._page import PageChoices, beside_of, check_files, shown_page
from headscope.cli._signature import made_from
from headscope.errors import FileError, HeadscopeError, RecordError

if TYPE_CHECKING:
    from socket import socket


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
        raise HeadscopeError("NetCDF needs scipy: pip install 'headscope[statistics]'")
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
            told = loaded.unverified
            marks: dict[str, Any] = {"unverified": np.array(told)} if told else {}
            # An open file: NumPy adds .npz to names that do not end so, as the temporary one.
            with hs.storage.written_whole(out) as temporary, temporary.open("wb") as file:
                np.savez_compressed(
                    file, weights=weights, query_token=query, key_token=key, **marks
                )
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
            raise FileError(f"{path} is not a record or result ({files.RECORD}) of headscope")
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
        files.check_model(model, asked.revision)
        loaded = files.load("load_bare_model", model, **asked.loading)
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


@made_from(
    "headscope.live.serving:ServeOptions",
    takes=f"chat open_ {PAGE_FILES} {MODEL} max_tokens seconds atlas",
    group="Live model",
)
def serve(
    record: str | None = None,
    other: Path | None = None,
    /,
    *,
    asked: Request,
    port: int = 0,
    page: PageChoices | None = None,
    **options: Any,
) -> None:
    """Show a record in the browser, layer by layer; or a model, or an atlas of heads.

    headscope serve run.safetensors --open

    headscope serve --model path/to/a/model

    Args:
        record: The record file (.safetensors) to show, however large or remote, the folder of an
            atlas or of a tree of HeadVis; with --model, which reads what is typed in the page, the
            text that it begins with. The server listens on this machine only, and answers only
            requests with the token of the printed address.
        other: The folder of a second atlas, to show beside the first, heads matched one to one.
        port: Port to listen on; by default any free one.
        treebank: A file in CoNLL-U: the gold tree of one of its sentences is shown next to what
            heads attend to.
        page: What can be looked at, and what is shown first; of a record file.
        asked: What can be looked at besides; and the model that reads what is typed, or with a
            record file the texts of the evidence.
        **options: Of the page of a model.
    """
    from headscope.views.listening import listening_on

    # With --model a file's name is still a record; any other text is what the page begins with, and
    # without it several words are.
    named = record is not None and asked.model is None
    is_folder = named and os.path.isdir(record)  # noqa: PTH112
    one_word = named and (len(record.split()) < 2 or os.path.exists(record))  # noqa: PTH110
    if other is not None and not is_folder:
        raise HeadscopeError(
            f"Expected the folders of two atlases, got {record} and {other}; to see another record "
            f"beside the first, give --beside {other}"
        )
    begins = files.text_or_chat(record, asked.chat)
    is_file = one_word or str(record).endswith(RECORD)
    if is_file and "atlas" in options and not is_folder:
        raise HeadscopeError(
            "--atlas is of the model of --model; an atlas by itself is shown with headscope serve "
            f"{options['atlas']}"
        )
    # The port is opened first: if it is taken, that is reported before the model is loaded.
    with listening_on(port) as listening:
        if is_folder:
            _serve_atlas(Path(record or ""), other, listening, opens=asked.open_)
        elif is_file:
            check_files(asked)
            loaded = hs.storage.load(Path(record or ""))
            view = shown_page(loaded, page or {}, beside_of(asked, loaded))
            files.say_what(loaded)
            _listen(view, listening, opens=asked.open_)
        elif page or any(getattr(asked, name) for name in PAGE_FILES.split() if name != "beside"):
            raise HeadscopeError(
                "Options of a page are for a record file; in the page of a model choose them there"
            )
        else:
            _serve_model(begins or "", asked, listening, **options)


def _serve_model(
    text: Any, asked: Request, listening: socket, *, atlas: Path | None = None, **limits: Any
) -> None:
    if len(asked.beside) > 1:
        given = ", ".join(asked.beside)
        raise HeadscopeError(f"Expected one model for --beside, got {given}; give one")
    second = next(iter(asked.beside), None)
    files.check_model(second)
    if text:
        hs.capturing.parse_call(text)
    asked.check_model()
    from headscope.live.serving import UnloadedModel, serve_named
    from headscope.views.listening import address_of

    named = UnloadedModel(asked.model, text, limits, second, atlas)

    def announce(token: str) -> None:
        _say_listening(address_of(listening, token), opens=asked.open_)

    told = partial(print, flush=True)
    with quiet():
        serve_named(named, listening, announce=announce, say=told, **asked.loading)


def _serve_atlas(folder: Path, other: Path | None, listening: socket, *, opens: bool) -> None:
    """Serve the atlas of a run, compared with another or alone, or a tree of HeadVis; its page is
    written again, so that it fits this version.
    """
    atlas = hs.results.load(folder) if other is None else compared(folder, other)
    if getattr(atlas, "KIND", "") not in ("atlas", "atlas comparison", "headvis"):
        raise HeadscopeError(f"{folder} holds {atlas!r} and no atlas; print it, or view() it")
    say(atlas.summary)
    with tempfile.TemporaryDirectory(prefix="headscope-") as page:
        with status("Writing the page"):
            atlas.view().save(page)
        _listen(Path(page), listening, opens=opens)


def _listen(shown: Any, listening: socket, *, opens: bool) -> None:
    """Serve a view, or the folder of a page, until it is interrupted."""
    from headscope.views.listening import address_of, new_token, quiet_server
    from headscope.views.server import application, atlas_application

    token = new_token()
    make, address = application, address_of(listening, token)
    if isinstance(shown, Path):
        # Scripts of a folder can send no header: the token is a part of the path.
        make, address = atlas_application, f"{address.replace('?token=', '')}/"
    _say_listening(address, opens=opens)
    quiet_server(make(shown, token)).run(sockets=[listening])


def _say_listening(address: str, *, opens: bool) -> None:
    from headscope.views.file_page import open_page

    # A program that reads the address through a pipe would otherwise wait for it for ever.
    print(f"Listening on {address}\nCtrl-C ends it", flush=True)  # noqa: T201
    if opens:
        open_page(address)
