"""A run: texts in, finished parts out."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypedDict

from headscope._progress import Progress
from headscope.corpus._engines import Engine, given, pool, this_process
from headscope.corpus._folder import RunFolder, SplitCorpus, differing
from headscope.corpus._journal import forget_own, texts_under_way
from headscope.corpus._scheduler import Scheduler
from headscope.corpus._task import Job, PartTask, code_version
from headscope.corpus._text import CorpusText, Kept
from headscope.errors import HeadscopeError, RunError, check_count
from headscope.record import part_of
from headscope.storage import FileArray, local_path

SHOWN = 3
"""Parts that are named in a message."""


class RunOptions(TypedDict, total=False):
    """How a study runs over many texts."""

    out: str | os.PathLike[str] | None
    """Folder of the run: finished parts are kept there, and the same call resumes after them."""
    workers: int | None
    """How many processes of this machine measure at once, each with a model of its own."""
    executor: Executor | None
    """What runs the parts, such as ``client.get_executor()`` of Dask."""
    part_size: int | None
    """Texts in a part; by default 64 to 1,000, a sixteenth of the corpus."""


OPTIONS = tuple(RunOptions.__annotations__)


def asks_for_run(options: Mapping[str, Any]) -> bool:
    """Whether a study was asked to run over a corpus in parts."""
    return any(options.get(name) is not None for name in OPTIONS)


@dataclass(frozen=True)
class FinishedRun:
    """A run whose parts are all finished.

    Args:
        folder: of the run; goes with the block that made it where none was given.
        corpus: its texts, in parts.
        facts: what its numbers are made of.
        failed: inputs that were left out, and why.
    """

    folder: RunFolder
    corpus: SplitCorpus
    facts: dict[str, Any]
    failed: list[dict[str, Any]]

    def parts(self) -> Iterator[tuple[dict[str, Any], dict[str, FileArray]]]:
        """The fields of each part of the texts, in the order of their names, and its arrays,
        which stay in its file until they are asked for.

        Raises:
            RunError: where a part is of another run.
            FileError: where a part is damaged.
        """
        for name in sorted(self.corpus.parts):
            document, arrays = self.folder.read_part(name, self.facts)
            yield document["state"], arrays

    def part(self, name: str) -> Kept:
        """One part, such as ``"battery"``."""
        document, arrays = self.folder.read_part(name, self.facts)
        return document["state"], {own: part_of(array) for own, array in arrays.items()}


def engine_of(workers: int | None, executor: Executor | None) -> Engine:
    """The engine that was asked for.

    Raises:
        RunError: where both were, or one is not what it must be.
    """
    if workers is not None and executor is not None:
        raise RunError("workers and executor were given; an executor has its own workers")
    if executor is not None:
        return given(executor)
    return this_process() if workers is None else pool(workers)


@contextmanager
def run(
    job: Job,
    texts: Iterable[CorpusText | HeadscopeError],
    *,
    out: str | os.PathLike[str] | None = None,
    engine: Engine | None = None,
    part_size: int | None = None,
    progress: bool = True,
) -> Generator[FinishedRun]:
    """Measure texts in parts, each of which is written once when it is finished.

    Gives the finished parts for the length of a ``with`` block. Whoever calls it again with the
    same folder resumes after what is finished.

    Args:
        job: what is done to each text.
        texts: a stream, read once; errors are inputs that are none, and are named.
        out: folder; by default one that goes with the block.
        engine: what runs the parts; by default this process.
        part_size: texts in a part.
        progress: whether to show on stderr how far it is.

    Raises:
        RunError: where the folder holds another run, named by what differs; where parts had to be
            given up; where the engine is gone.
        FileError: where the folder cannot be written to, as on a full disk.
        TextError: where there is no text.
    """
    if part_size is not None:
        check_count("part_size", part_size, error=RunError)
    with ExitStack() as stack:
        if out is None:
            out = stack.enter_context(tempfile.TemporaryDirectory(prefix="headscope-"))
            again = ""
        else:
            place = local_path(out).absolute()
            again = f"The same call resumes the run: finished parts are kept in {place}"
        folder = RunFolder(out)
        folder.begin()
        stack.enter_context(folder.held())
        _check_options(folder, job)
        corpus = folder.corpus(texts, part_size)
        steps = _RunSteps(job, folder, corpus, engine or this_process(), progress)
        try:
            finished = steps.finished()
        except KeyboardInterrupt:
            # Where this process measures, it may have come while a journal was opened or removed.
            forget_own(folder.path)
            if again:
                sys.stderr.write(f"\n{again}\n")
            raise
        yield finished


def _check_options(folder: RunFolder, job: Job) -> None:
    """Refuse what is known to differ before any model is loaded."""
    begun = folder.facts()
    if begun is None:
        return
    known = {"study": job.study} | job.options()
    differing(f"{folder.path} was begun", {name: begun.get(name) for name in known}, known)
    if code_version() not in begun["headscope"]:
        now = begun | {"headscope": f"code {code_version()}"}
        differing(f"{folder.path} was begun", begun, now)


@dataclass(frozen=True)
class _RunSteps:
    """One call's way through a run."""

    job: Job
    folder: RunFolder
    corpus: SplitCorpus
    engine: Engine
    progress: bool

    def finished(self) -> FinishedRun:
        scheduler: Scheduler | None = None
        finished = failed = 0
        facts: dict[str, Any] = {}

        def task_of(part: str) -> PartTask:
            return PartTask(self.job, str(self.folder.path), part, facts)

        def on_finished(part: str, lost: int) -> None:
            nonlocal finished, failed
            finished += self.corpus.parts.get(part, 0)
            failed += lost

        def look() -> tuple[int, int]:
            done = finished + texts_under_way(self.folder.path)
            return min(self.corpus.texts, done), failed

        scheduler = Scheduler(self.engine, self.folder, task_of, on_finished)
        try:
            if self.progress and self.engine.link:
                sys.stderr.write(f"Dask's dashboard: {self.engine.link}\n")
            facts |= scheduler.try_out(
                self.job, [CorpusText(given) for given in self.corpus.sample]
            ) | {"texts": self.corpus.digest}
            self._begin(facts)
            left = self._left(facts, on_finished)
            what, shows = self.job.stage or "Measuring", self.progress and bool(left)
            total = self.corpus.texts
            progress = Progress(what, "text", total, done=finished, shows=shows)
            with progress, progress.watching(look):
                scheduler.run(left)
        finally:
            scheduler.end()
        return self._finished(scheduler, facts)

    def _begin(self, facts: dict[str, Any]) -> None:
        begun = self.folder.facts()
        if begun is None:
            self.folder.write_facts(facts)
        else:
            differing(f"{self.folder.path} was begun", begun, facts)

    def _left(self, facts: dict[str, Any], on_finished: Callable[[str, int], None]) -> list[str]:
        """Parts that are not finished."""
        left = []
        for part in (*self.job.beside, *sorted(self.corpus.parts)):
            if self.folder.is_finished(part):
                document = self.folder.document_of(part, facts)
                on_finished(part, len(document["failed"]))
            else:
                left.append(part)
        done = len(self.corpus.parts) + len(self.job.beside) - len(left)
        if done and left and self.progress:
            sys.stderr.write(f"Going on: {done} parts are finished, {len(left)} are left\n")
        return left

    def _finished(self, scheduler: Scheduler, facts: dict[str, Any]) -> FinishedRun:
        if scheduler.failed:
            some = [f"{part} ({why})" for part, why in sorted(scheduler.failed.items())[:SHOWN]]
            raise RunError(
                f"{len(scheduler.failed)} of {len(self.corpus.parts)} parts could not be measured: "
                f"{'; '.join(some)}. The others are kept in {self.folder.path}; the same call "
                "tries these again"
            )
        failed = self.folder.refused()
        for part in sorted(self.corpus.parts):
            failed += self.folder.document_of(part, facts)["failed"]
        self.folder.write_failed(failed)
        return FinishedRun(self.folder, self.corpus, facts, failed)
