"""Hands out parts until all are finished, whatever dies meanwhile."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from typing import Any

from headscope.corpus._engines import Engine, is_death, is_loss, stop
from headscope.corpus._folder import UNDER_WAY, RunFolder
from headscope.corpus._journal import PartJournal, was_left
from headscope.corpus._task import Job, PartTask, measure_part, reason_of, try_out
from headscope.corpus._text import CorpusText
from headscope.errors import HeadscopeError, RunError

LOOK = 1.0
"""Seconds between two looks whether the engine is still there."""
DEATHS_WITHOUT_A_NAME = 4
"""So many workers may die at a part, or before any part is begun, until it is given up; a text that
ends its worker is named after three.
"""
TRIES = 2
"""So often a part is tried that fails as a whole, such as where one machine lacks a file."""


class Scheduler:
    """Hands parts to an engine.

    Args:
        engine: runs them.
        folder: of the run.
        task_of: the task of a part, by its name.
        on_finished: is called with a part and how many of its texts were left out.
    """

    def __init__(
        self,
        engine: Engine,
        folder: RunFolder,
        task_of: Callable[[str], PartTask],
        on_finished: Callable[[str, int], None],
    ) -> None:
        self._engine, self._folder = engine, folder
        self._task_of, self._on_finished = task_of, on_finished
        self._executor: Executor = engine.make()
        self._running: dict[Future[Any], str] = {}
        self._alone: list[str] = []
        self._tries: Counter[str] = Counter()
        self._named: dict[str, int] = {}
        self._fruitless = 0
        self.failed: dict[str, str] = {}
        """Parts that were given up, and why."""

    def try_out(self, job: Job, sample: Sequence[CorpusText]) -> dict[str, Any]:
        """Let one worker load the model and measure some texts.

        One of these may end its worker, or this process: then others are tried, and at last none.

        Raises:
            RunError: where workers die without any text, or the engine is gone.
            HeadscopeError: where the model cannot be loaded, or does not read such texts.
        """
        half = len(sample) // 2
        why: BaseException | None = None
        for number, some in enumerate((sample, sample[:half], sample[half:], ())):
            mark = self._folder.path / UNDER_WAY / f"sample.{number}"
            # Left by a call that ended here.
            if mark.exists() and some:
                continue
            mark.touch()
            future = self._executor.submit(try_out, job, some, uuid.uuid4().hex)
            self._running[future] = mark.name
            while not wait([future], timeout=LOOK).done:
                self._check_alive()
            self._running.clear()
            why = self._error_of(future)
            if why is None or isinstance(why, HeadscopeError) or is_loss(why):
                break
            if is_death(why) and self._engine.is_own:
                stop(self._executor)
                self._executor = self._engine.make()
        for mark in (self._folder.path / UNDER_WAY).glob("sample.*"):
            mark.unlink(missing_ok=True)
        if why is None:
            return future.result()
        if is_loss(why):
            raise self._lost(why)
        if is_death(why):
            raise RunError(
                f"A worker died while it loaded the model ({reason_of(why)}): there may be too "
                "little memory for so many workers; in a script, the call must stand below "
                'if __name__ == "__main__":'
            ) from why
        raise why

    def run(self, parts: Iterable[str]) -> None:
        """Measure parts.

        Raises:
            RunError: where the engine is gone, or a worker has other weights or code.
            FileError: where parts cannot be written.
        """
        waiting = list(parts)[::-1]
        while waiting or self._alone or self._running:
            dead: list[str] = []
            if not self._submit(waiting):
                dead = self._all_back()
            ended = wait(self._running, timeout=LOOK, return_when=FIRST_COMPLETED).done
            if self._running and not ended:
                self._check_alive()
            for future in ended:
                part = self._running.pop(future)
                if self._ended(part, self._error_of(future), future, waiting):
                    dead.append(part)
            if dead:
                self._after_deaths(dead, waiting)

    def end(self) -> None:
        """Nothing more is wanted; what runs is left or ended, and its parts are measured again."""
        for future in self._running:
            future.cancel()
        if self._engine.is_own and self._running:
            stop(self._executor)
        elif self._engine.is_own:
            self._executor.shutdown()

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
        future = self._executor.submit(measure_part, self._task_of(part), uuid.uuid4().hex)
        self._running[future] = part

    def _ended(
        self, part: str, error: BaseException | None, future: Future[Any], waiting: list[str]
    ) -> bool:
        """Take in what came of a part; true where its worker died."""
        if error is None:
            self._fruitless = 0
            self._on_finished(part, future.result())
            return False
        if is_death(error):
            return True
        if is_loss(error):
            raise self._lost(error)
        if isinstance(error, HeadscopeError):
            raise error
        self._tries[part] += 1
        if self._tries[part] < TRIES:
            waiting.insert(0, part)
        else:
            self.failed[part] = reason_of(error)
        return False

    def _after_deaths(self, dead: list[str], waiting: list[str]) -> None:
        """A worker died: who left a journal is run again alone, the others as before."""
        if self._engine.is_own:
            # A pool dies with one of its workers, and all that it had comes back.
            dead += self._all_back()
            stop(self._executor)
            self._executor = self._engine.make()
        self._fruitless += 1
        # First, since a text that is named now shows that these deaths were not for nothing.
        for part in dead:
            if not was_left(self._folder.path, part):
                waiting.append(part)
            elif self._is_hopeless(part):
                self.failed[part] = "its worker died every time, and no text of it alone"
            else:
                self._alone.append(part)
        # Each worker may have died once at a part of its own before the first of them runs alone.
        most = DEATHS_WITHOUT_A_NAME * (1 + len(self._named)) + 2 * self._engine.width
        if self._fruitless >= most:
            raise RunError(
                f"Workers of {self._engine.name} died {self._fruitless} times, one after the "
                "other: there may be too little memory for so many; finished parts are kept, and "
                "the same call resumes the run"
            )

    def _is_hopeless(self, part: str) -> bool:
        journal = PartJournal(self._folder.path, part)
        named = len(journal.killers)
        if named > self._named.get(part, 0):
            self._named[part] = named
            self._fruitless = 0
        return journal.deaths >= DEATHS_WITHOUT_A_NAME + 2 * named

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
            raise self._lost(None)

    def _lost(self, error: BaseException | None) -> RunError:
        why = "" if error is None else f" ({reason_of(error)})"
        return RunError(
            f"{self._engine.name} is gone{why}; finished parts are kept in {self._folder.path}, "
            "and the same call with another engine resumes the run"
        )
