"""A run: texts in, finished parts out, whatever dies meanwhile."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypedDict

from headscope._progress import Progress
from headscope.corpus._engines import Engine, given, is_death, is_loss, pool, stop, this_process
from headscope.corpus._folder import UNDER_WAY, RunFolder, SplitCorpus, differing
from headscope.corpus._journal import PartJournal, forget_own, texts_under_way
from headscope.corpus._task import PartTask, code_version, measure_part, reason_of, try_out
from headscope.corpus._text import CorpusText, Kept
from headscope.errors import HeadscopeError, RunError, check_count
from headscope.storage import FileArray

SHOWN = 3
"""Parts that are named in a message."""
LOOK = 1.0
"""Seconds between two looks whether the engine is still there."""
DEATHS_WITHOUT_A_NAME = 4
"""So many workers may die, one after the other, until the run is given up; a text that ends its
worker is named after three.
"""


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
        beside: what was measured once, beside the texts.
    """

    folder: RunFolder
    corpus: SplitCorpus
    facts: dict[str, Any]
    failed: list[dict[str, Any]]
    beside: Kept | None

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
    job: Any,
    texts: Iterable[CorpusText | HeadscopeError],
    out: str | os.PathLike[str],
    *,
    engine: Engine | None = None,
    part_size: int | None = None,
    progress: bool = True,
    stays: bool = True,
) -> Generator[FinishedRun]:
    """Measure texts in parts, each of which is written once when it is finished.

    Gives the finished parts for the length of a ``with`` block. Whoever calls it again with the
    same folder resumes after what is finished.

    Args:
        job: what is done to each text.
        texts: a stream, read once; errors are inputs that are none, and are named.
        out: folder.
        engine: what runs the parts; by default this process.
        part_size: texts in a part.
        progress: whether to show on stderr how far it is.
        stays: whether the folder is there after the call, for another one.

    Raises:
        RunError: where the folder holds another run, named by what differs; where parts had to be
            given up; where the engine is gone.
        FileError: where the folder cannot be written to, as on a full disk.
        TextError: where there is no text.
    """
    if part_size is not None:
        check_count("part_size", part_size, error=RunError)
    folder = RunFolder(out)
    folder.begin()
    with folder.held():
        _check_options(folder, job)
        corpus = folder.corpus(texts, part_size)
        steps = _RunSteps(job, folder, corpus, engine or this_process(), shows=progress)
        try:
            finished = steps.finished()
        except KeyboardInterrupt:
            # Where this process measures, it may have come while a journal was opened or removed.
            forget_own(folder.path)
            if stays:
                sys.stderr.write(
                    f"\nThe same call resumes the run: finished parts are kept in {folder.path}\n"
                )
            raise
        yield finished


def _check_options(folder: RunFolder, job: Any) -> None:
    """Refuse what is known to differ before any model is loaded."""
    begun = folder.facts()
    if begun is None:
        return
    known = {"study": job.study} | job.options()
    differing(f"{folder.path} was begun", {name: begun.get(name) for name in known}, known)
    if code_version() not in begun["headscope"]:
        now = begun | {"headscope": f"code {code_version()}"}
        differing(f"{folder.path} was begun", begun, now)


class _RunSteps:
    """Hands the parts of a run to an engine until all are finished.

    Args:
        job: what is done to each text.
        folder: of the run.
        corpus: its texts, in parts.
        engine: runs the parts.
        shows: whether to show how far it is.
    """

    def __init__(
        self, job: Any, folder: RunFolder, corpus: SplitCorpus, engine: Engine, *, shows: bool
    ) -> None:
        self._job, self._folder, self._corpus = job, folder, corpus
        self._engine, self._shows = engine, shows
        self._facts: dict[str, Any] = {}
        self._measured, self._refused = 0, len(folder.refused())
        self._lost = self._refused
        self._executor: Executor = engine.make()
        self._running: dict[Future[Any], str] = {}
        self._alone: list[str] = []
        self._fruitless = 0
        self._failed: dict[str, str] = {}

    def finished(self) -> FinishedRun:
        """Measure what is left; the same of all parts.

        Raises:
            RunError: where parts had to be given up, the engine is gone, or a worker has other
                weights or code.
            FileError: where parts cannot be written.
        """
        try:
            if self._shows and self._engine.link:
                sys.stderr.write(f"Dask's dashboard: {self._engine.link}\n")
            facts, beside = self._tried_out()
            self._facts = facts | {"texts": self._corpus.digest}
            begun = self._folder.facts()
            if begun is None:
                self._folder.write_facts(self._facts)
            else:
                differing(f"{self._folder.path} was begun", begun, self._facts)
            left = self._left()
            what, shows = self._job.stage or "Measuring", self._shows and bool(left)
            done, total = (of + self._refused for of in (self._measured, self._corpus.texts))
            progress = Progress(what, "text", total, done=done, shows=shows)
            with progress, progress.watching(self._how_far):
                self._measure(left[::-1])
        finally:
            self._end()
        if self._failed:
            some = [f"{part} ({why})" for part, why in sorted(self._failed.items())[:SHOWN]]
            raise RunError(
                f"{len(self._failed)} of {len(self._corpus.parts)} parts could not be measured: "
                f"{'; '.join(some)}. The others are kept in {self._folder.path}; the same call "
                "tries these again"
            )
        failed = self._folder.refused()
        for part in sorted(self._corpus.parts):
            failed += self._folder.document_of(part, self._facts)["failed"]
        self._folder.write_failed(failed)
        return FinishedRun(self._folder, self._corpus, self._facts, failed, beside)

    def _end(self) -> None:
        """Nothing more is wanted; what runs is left or ended, and its parts are measured again."""
        for future in self._running:
            future.cancel()
        if self._engine.is_own and self._running:
            stop(self._executor)
        elif self._engine.is_own:
            self._executor.shutdown()

    def _how_far(self) -> tuple[int, int]:
        done = self._measured + texts_under_way(self._folder.path)
        return min(self._corpus.texts, done) + self._refused, self._lost

    def _count(self, part: str, lost: int) -> None:
        """A part is finished."""
        self._measured += self._corpus.parts[part]
        self._lost += lost

    def _left(self) -> list[str]:
        """Parts that are not finished."""
        left = []
        for part in sorted(self._corpus.parts):
            if self._folder.is_finished(part):
                document = self._folder.document_of(part, self._facts)
                self._count(part, len(document["failed"]))
            else:
                left.append(part)
        done = len(self._corpus.parts) - len(left)
        if done and left and self._shows:
            sys.stderr.write(f"Going on: {done} parts are finished, {len(left)} are left\n")
        return left

    def _tried_out(self) -> tuple[dict[str, Any], Kept | None]:
        """Let one worker load the model and measure some texts.

        One of these may end its worker, or this process: then none is tried.

        Raises:
            RunError: where workers die without any text, or the engine is gone.
            HeadscopeError: where the model cannot be loaded, or does not read such texts.
        """
        sample = self._folder.sample(self._corpus)
        why: BaseException | None = None
        for number, some in enumerate((sample, ())):
            mark = self._folder.path / UNDER_WAY / f"sample.{number}"
            # Left by a call that ended here.
            if mark.exists() and some:
                continue
            mark.touch()
            future = self._executor.submit(try_out, self._job, some, uuid.uuid4().hex)
            self._running[future] = mark.name
            while not wait([future], timeout=LOOK).done:
                self._check_alive()
            self._running.clear()
            why = self._error_of(future)
            if why is None or isinstance(why, HeadscopeError) or is_loss(why):
                break
            if is_death(why):
                self._renew()
        for mark in (self._folder.path / UNDER_WAY).glob("sample.*"):
            mark.unlink(missing_ok=True)
        if why is None:
            return future.result()
        raise self._gone_while_loading(why)

    def _gone_while_loading(self, why: BaseException) -> BaseException:
        if is_death(why):
            return RunError(
                f"A worker died while it loaded the model ({reason_of(why)}): there may be too "
                "little memory for so many workers; in a script, the call must stand below "
                'if __name__ == "__main__":'
            )
        return self._gone(why) if is_loss(why) else why

    def _renew(self) -> None:
        """A pool dies with one of its workers."""
        if self._engine.is_own:
            stop(self._executor)
            self._executor = self._engine.make()

    def _measure(self, waiting: list[str]) -> None:
        """Measure parts, the last one first."""
        while waiting or self._alone or self._running:
            dead: list[str] = []
            if not self._submit(waiting):
                dead = self._all_back()
            ended = wait(self._running, timeout=LOOK, return_when=FIRST_COMPLETED).done
            if self._running and not ended:
                self._check_alive()
            for future in ended:
                part = self._running.pop(future)
                if self._ended(part, self._error_of(future), future):
                    dead.append(part)
            if dead:
                self._after_deaths(dead)

    def _submit(self, waiting: list[str]) -> bool:
        """Hand out what there is room for; false where the executor is broken."""
        try:
            # Where every part has a text that ends its worker, suspects would pile up, and so many
            # deaths in a row look as if there were too little memory.
            may_go_on = len(self._alone) < self._engine.width
            room = self._engine.ahead * self._engine.width
            while waiting and may_go_on and len(self._running) < room:
                self._hand_out(waiting[-1])
                waiting.pop()
            # Suspects one by one, with no other part at the same time, so that the guilty one is
            # known.
            if self._alone and not (waiting and may_go_on) and not self._running:
                self._hand_out(self._alone[-1])
                self._alone.pop()
        except RuntimeError as error:
            if not is_death(error):
                raise RunError(f"The engine takes no more parts: {error}") from error
            return False
        return True

    def _hand_out(self, part: str) -> None:
        task = PartTask(self._job, str(self._folder.path), part, self._facts)
        future = self._executor.submit(measure_part, task, uuid.uuid4().hex)
        self._running[future] = part

    def _ended(self, part: str, error: BaseException | None, future: Future[Any]) -> bool:
        """Take in what came of a part; true where its worker died."""
        if error is None:
            self._fruitless = 0
            self._count(part, future.result())
            return False
        if is_death(error):
            return True
        if is_loss(error):
            raise self._gone(error)
        if isinstance(error, HeadscopeError):
            raise error
        self._failed[part] = reason_of(error)
        return False

    def _after_deaths(self, dead: list[str]) -> None:
        """A worker died: its part is run again with no other, so that the guilty text is known."""
        if self._engine.is_own:
            # A pool dies with one of its workers, and all that it had comes back.
            dead += self._all_back()
            self._renew()
        self._alone += dead
        self._fruitless += 1
        named = sum(len(PartJournal(self._folder.path, part).killers) for part in self._alone)
        # Each worker may have died once at a part of its own before the first of them runs alone.
        if self._fruitless >= DEATHS_WITHOUT_A_NAME * (1 + named) + 2 * self._engine.width:
            raise RunError(
                f"Workers of {self._engine.name} died {self._fruitless} times, one after the "
                "other: there may be too little memory for so many; finished parts are kept, and "
                "the same call resumes the run"
            )

    def _all_back(self) -> list[str]:
        parts, self._running = list(self._running.values()), {}
        return parts

    def _error_of(self, future: Future[Any]) -> BaseException | None:
        try:
            return future.exception()
        except CancelledError as error:
            return error

    def _check_alive(self) -> None:
        if not self._engine.is_alive():
            raise self._gone(None)

    def _gone(self, error: BaseException | None) -> RunError:
        why = "" if error is None else f" ({reason_of(error)})"
        return RunError(
            f"{self._engine.name} is gone{why}; finished parts are kept in {self._folder.path}, "
            "and the same call with another engine resumes the run"
        )
