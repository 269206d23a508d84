"""`capture_many` over a corpus: a file of a record for each text, by one process or by many."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TextIO

import numpy as np

from headscope.corpus import OPTIONS, CorpusText, FinishedRun, Kept, key_of
from headscope.errors import HeadscopeError, RunError
from headscope.record import Record
from headscope.storage import RECORDS, IndexLine, RecordFolder, local_path, save, write_index
from headscope.studies.shared._corpus_job import ModelJob, as_given, check_measured
from headscope.studies.shared._corpus_model import corpus_texts, one_thread
from headscope.studies.shared._corpus_run import Stream, run_study

SHARDS = 3
"""Digits of the name of a file that name its folder: of a million files, 244 lie together."""


@dataclass(frozen=True, kw_only=True)
class CaptureJob(ModelJob):
    """What a run of `capture_many` does to each text.

    Args:
        folder: of the run, as every worker sees it.
        kept: options of `headscope.capturing.RecordOptions`.
        max_unknown: see `capture_many`.
    """

    STUDY: ClassVar[str] = "capture"
    folder: str
    kept: tuple[tuple[str, Any], ...] = ()
    max_unknown: float | None = None

    def options(self) -> dict[str, Any]:
        """What the numbers depend on, known before a model is loaded."""
        # As JSON gives it back: lists.
        named = json.loads(json.dumps(dict(self.kept)))
        chosen = super().options() | named | {"max_unknown": self.max_unknown}
        # Says the same as the share of unknown tokens.
        del chosen["allow_unfit"]
        return chosen

    @property
    def reading(self) -> dict[str, Any]:
        """Options of `headscope.capturing.capture_batches`."""
        return super().reading | {"max_unknown": self.max_unknown} | dict(self.kept)

    def begin(self) -> CaptureMeasurer:
        """The model, loaded once in a process, and what captures with it."""
        return CaptureMeasurer(self, *self.model.load())

    def tally(self, measurer: Any) -> SavedRecords:
        """Records of no text."""
        return SavedRecords(self)

    def file_of(self, text: CorpusText) -> str:
        """Where the record of a text lies in the folder: named by what the text and the options
        say, so that records of several runs can lie together.
        """
        options = json.dumps(self.options(), sort_keys=True)
        name = f"{key_of('record', text.content, options, bits=128):032x}"
        return f"{RECORDS}/{name[:SHARDS]}/{name}.safetensors"

    def made(self, finished: FinishedRun, judging: Mapping[str, Any]) -> RecordFolder:
        """The records of all parts, in the order of the texts."""
        lost = {}
        for row in finished.failed:
            # Inputs that are no texts stand in the index already.
            if set(row) > {"error"}:
                lost[CorpusText(row["text"]).name] = row["error"]
        check_measured(finished, any_text=any(state["files"] for state, _ in finished.parts()))
        write_index(Path(self.folder), self._lines(judging["order"], lost))
        return RecordFolder(self.folder)

    def _lines(self, order: TextOrder, lost: Mapping[str, str]) -> Iterator[IndexLine]:
        for line in order.lines():
            text = CorpusText(line.text)
            if line.left_out is not None:
                yield line
            elif text.name in lost:
                yield replace(line, left_out=lost[text.name])
            else:
                yield replace(line, record=self.file_of(text))

    def write(self, result: Any, path: Path) -> None:
        """Nothing: records and index are written."""


@dataclass(frozen=True)
class CaptureMeasurer:
    """A model, and what captures with it.

    Args:
        job: says what records keep.
        model: loaded.
        tokenizer: its tokenizer.
    """

    job: CaptureJob
    model: Any
    tokenizer: Any

    def values_of(
        self, texts: Sequence[CorpusText], failed: Callable[[int, Exception], None]
    ) -> Iterator[tuple[int, Record]]:
        """The record of each text; see `headscope.corpus.Measurer`."""
        from headscope.capturing import capture_batches

        given = [as_given(text.given) for text in texts]
        with one_thread():
            batches = capture_batches(
                self.model, self.tokenizer, given, on_error=failed, **self.job.reading
            )
            for together in batches:
                record = together.batch
                assert isinstance(record, Record), "capture_batches keeps records with keep="
                yield together.numbers[0], record


class SavedRecords:
    """The records of the texts of a part, each written when it is there.

    Args:
        job: knows where.
    """

    def __init__(self, job: CaptureJob) -> None:
        self._job = job
        self._files: list[str] = []

    def update(self, text: CorpusText, values: Record) -> None:
        """Write the record of a text."""
        self._files.append(self._job.file_of(text))
        path = Path(self._job.folder) / self._files[-1]
        path.parent.mkdir(parents=True, exist_ok=True)
        save(values, path)

    def kept(self) -> Kept:
        """Which records were written; their arrays are in their own files."""
        return {"files": sorted(self._files)}, {"none": np.zeros(0)}


class TextOrder:
    """The order in which texts came: a run reads a stream once, and its parts are in another
    order.

    Args:
        file: empty; in memory would be too much of a million texts.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def noting(self, texts: Stream) -> Stream:
        """The same texts, each noted as it passes."""
        for each in texts:
            if isinstance(each, HeadscopeError):
                line = IndexLine(left_out=str(each))
            else:
                line = IndexLine(each.given)
            self._file.write(f"{line.as_json()}\n")
            yield each

    def lines(self) -> Iterator[IndexLine]:
        """What was noted of each input: the text, or why it is none."""
        self._file.seek(0)
        for line in self._file:
            yield IndexLine(**json.loads(line))


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
    kept = _settled(kept_of(options))
    unknown = options.pop("max_unknown", None)
    rest = {name: value for name, value in options.items() if name not in kept}
    # By the number of each text, which a run does not know: reported below, from the index.
    rest["on_error"] = None if on_error is None else (lambda _, error: None)
    how = {
        "folder": str(local_path(options["out"]).absolute()),
        "kept": tuple(sorted(kept.items())),
        "max_unknown": unknown,
    }
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        order = TextOrder(file)
        records = run_study(
            CaptureJob,
            given,
            order.noting(corpus_texts(texts, None)),
            rest | {"allow_unfit": unknown is None or unknown >= 1},
            how=how,
            judging={"order": order},
            random_weights=False,
        )
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

    held = {name: _hashable(option) for name, option in given.items()}
    choice = parse_keep(**held)
    keep = held.get("keep", "auto")
    names = ("precision", "rows", "top", "routers")
    return {name: getattr(choice, name) for name in names} | {
        "keep": (keep,) if isinstance(keep, str) and keep != "auto" else keep,
        "heads": held.get("heads"),
    }


def _hashable(option: Any) -> Any:
    """An option as a job holds it: jobs are compared and hashed, and their options go to JSON."""
    if isinstance(option, str) or not isinstance(option, Iterable):
        return option
    # Neither names of what is kept nor chosen heads have an order that would change anything.
    return tuple(sorted(_name_or_head(part) for part in option))


def _name_or_head(part: Any) -> Any:
    if isinstance(part, str) or not isinstance(part, Iterable):
        return part
    # A head may be of NumPy's numbers, which JSON does not take.
    return tuple(value if isinstance(value, str) else int(value) for value in part)
