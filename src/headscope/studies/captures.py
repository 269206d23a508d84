"""`capture_many` over a corpus: a file of a record for each text, by one process or by many."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from headscope.corpus import FILE, OPTIONS, CorpusText, Counts, key_of
from headscope.errors import HeadscopeError, RunError
from headscope.record import Record
from headscope.storage import RECORDS, IndexLine, RecordFolder, local_path, save, write_index
from headscope.studies.shared._corpus_model import corpus_texts
from headscope.studies.shared._fold import Fold, Readers, Reading, captured
from headscope.studies.shared._fold_run import Stream, hashable, texts_in_parts

SHARDS = 3
"""Digits of the name of a file that name its folder: of a million files, 244 lie together."""


@dataclass(frozen=True)
class RecordFiles:
    """Where the records of a run lie.

    Args:
        folder: of the run, as every worker sees it.
        options: what the records depend on, so that those of several runs can lie together.
    """

    folder: str
    options: str
    facts = ""

    def of(self, text: Any) -> str:
        """The file of a text in the folder."""
        name = f"{key_of('record', CorpusText(text).content, self.options, bits=128):032x}"
        return f"{RECORDS}/{name[:SHARDS]}/{name}.safetensors"


def _saved(text: Any, record: Record, *, files: RecordFiles, **_: Any) -> Counts:
    """Write the record of a text."""
    file = files.of(text)
    path = Path(files.folder) / file
    path.parent.mkdir(parents=True, exist_ok=True)
    save(record, path, name=path.name)
    return {f"{FILE}{file}": np.ones(())}


def _records_of(
    readers: Readers, given: Iterable[Any], how: Mapping[str, Any], reading: Reading
) -> Iterator[tuple[int, Record]]:
    more = {name: option for name, option in how.items() if name != "files"}
    return captured(readers, given, how, {**reading, **more})


def _told_of(*_: Any) -> tuple[int, dict[str, Any]]:
    return 0, {}


FOLD = Fold(name="capture", what="text", counts_of=_saved, records_of=_records_of, told_of=_told_of)


def _noted(texts: Stream, file: TextIO) -> Stream:
    """The same texts; their order is noted, since a run reads a stream once, and its parts are in
    another order. In memory it would be too much of a million texts.
    """
    for each in texts:
        is_text = isinstance(each, CorpusText)
        line = IndexLine(each.given) if is_text else IndexLine(left_out=str(each))
        file.write(f"{line.as_json()}\n")
        yield each


def _lines(file: TextIO, files: RecordFiles, lost: Mapping[str, str]) -> Iterator[IndexLine]:
    """The index, in the order of the texts."""
    file.seek(0)
    for written in file:
        line = IndexLine(**json.loads(written))
        reason = line.left_out or lost.get(CorpusText(line.text).name)
        yield replace(line, left_out=reason, record=None if reason else files.of(line.text))


def captured_over(
    given: tuple[Any, Any],
    texts: Any,
    options: dict[str, Any],
    *,
    on_error: Callable[[int, HeadscopeError], None] | None = None,
) -> RecordFolder:
    """`headscope.capture_many` as a run: the records in a folder.

    Args:
        given: model and tokenizer.
        texts: a stream.
        options: of `capture_many`, and of runs.
        on_error: see `capture_many`.

    Raises:
        RunError: where no folder was given, or an option is not one of a run; and as of
            `headscope.corpus.run`.
        CaptureError: where an option is not what it must be.
    """
    from headscope.capturing import kept_of

    if options.get("out") is None:
        given_ = [name for name in OPTIONS if options.get(name) is not None]
        raise RunError(
            f"capture_many was given {', '.join(given_)} and no folder for the records; give "
            "out=FOLDER, or leave them out to get one record after the other"
        )
    if options.pop("parts", None) is not None:
        raise RunError(
            "capture_many keeps no parts in a folder (out=); leave parts= out, and give parts "
            "later: headscope.parts.with_parts(record, ...)"
        )
    kept = _settled(kept_of(options))
    unknown = options.pop("max_unknown", None)
    rest = {name: value for name, value in options.items() if name not in kept}
    # By the number of each text, which a run does not know: reported below, from the index.
    rest["on_error"] = None if on_error is None else (lambda _, error: None)
    rest["allow_unfit"] = unknown is None or unknown >= 1
    how = kept | {"max_unknown": unknown}
    named = json.dumps(how | {"truncate": rest.get("truncate", False)}, sort_keys=True)
    files = RecordFiles(str(local_path(options["out"]).absolute()), named)
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        texts = _noted(corpus_texts(texts, None), file)
        with texts_in_parts(FOLD, given, texts, rest) as parts:
            saved = parts.folded(FOLD, how | {"files": files}, {})
        write_index(Path(files.folder), _lines(file, files, saved.left_out))
    records = RecordFolder(files.folder)
    if on_error is not None:
        for number, reason in records.left_out.items():
            on_error(number, RunError(reason))
    return records


def _settled(given: dict[str, Any]) -> dict[str, Any]:
    """Options of records with their defaults: the same whichever were left out.

    Raises:
        CaptureError: where one is not what it must be.
    """
    from headscope.capturing import parse_keep

    held = {name: hashable(option) for name, option in given.items()}
    choice = parse_keep(**held)
    keep = held.get("keep", "auto")
    names = ("precision", "rows", "top", "routers")
    return {name: getattr(choice, name) for name in names} | {
        "keep": (keep,) if isinstance(keep, str) and keep != "auto" else keep,
        "heads": held.get("heads"),
    }
