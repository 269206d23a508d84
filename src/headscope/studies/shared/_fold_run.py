"""A fold as a run in parts."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.corpus import (
    ALONE,
    CorpusText,
    Engine,
    FinishedRun,
    Kept,
    RunFolder,
    Sums,
    this_process,
)
from headscope.errors import HeadscopeError, ModelError, RunError
from headscope.patterns import Pattern
from headscope.studies.shared._corpus_job import ModelJob, as_given
from headscope.studies.shared._corpus_model import one_thread
from headscope.studies.shared._corpus_run import (
    RESULT,
    RunSettings,
    check_no_more,
    check_patterns,
    parse_job,
    run_study,
)

if TYPE_CHECKING:
    from headscope.corpus import Counted
    from headscope.studies.shared._fold import Fold


BESIDE = "beside"
"""The part of a run that is not of its texts."""


def run_fold(
    study: tuple[Fold, Mapping[str, Any]],
    given: tuple[Any, Any],
    texts: Iterable[CorpusText | HeadscopeError],
    options: dict[str, Any],
    *,
    judging: Mapping[str, Any],
    random_weights: bool,
) -> Any:
    """The result of a fold over texts, in parts.

    Args:
        study: the fold, and options that the counts depend on.
        given: a model and its tokenizer.
        texts: what is read.
        options: of runs and of reading.
        judging: options that the counts do not depend on.
        random_weights: whether the same architecture with random weights reads the texts, too.

    Raises:
        RunError: of a run, see `headscope.corpus.run`.
    """
    fold, how = study
    return run_study(
        FoldJob,
        given,
        texts,
        options,
        how={"fold": fold, "how": tuple(sorted(how.items()))},
        judging=judging,
        random_weights=random_weights,
    )


def said(value: Any) -> Any:
    """An option as JSON has it."""
    if isinstance(value, Mapping):
        return {name: said(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [said(each) for each in value]
    if hasattr(value, "facts"):
        return said(value.facts)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    plain = value is None or isinstance(value, str | bool | int | float)
    return value if plain else type(value).__name__


def _read(fold: Fold, text: CorpusText, how: Mapping[str, Any]) -> Any:
    """What the model reads of a text, or why it cannot be read."""
    try:
        return fold.input_of(fold.item_of(text.given), how)
    except HeadscopeError as error:
        return error


def named(fold: Fold, text: CorpusText, number: int = 0) -> tuple[str, str]:
    """Name and document of a text of a run: its own, or what it says and its number among its
    copies.
    """
    own = getattr(fold.item_of(text.given), "name", "")
    if own:
        return own, text.group or f"{ALONE}{own}"
    return text.copy_name(number), text.document


@dataclass(frozen=True, kw_only=True)
class FoldJob(ModelJob):
    """A fold as a run in parts.

    Args:
        fold: the study.
        how: options of ``counts_of``.
    """

    fold: Fold
    how: tuple[tuple[str, Any], ...] = ()

    @property
    def study(self) -> str:
        """What is made."""
        return self.fold.name

    @classmethod
    def needs(cls, how: Mapping[str, Any]) -> str:
        """What the model must have."""
        return how["fold"].needs

    @property
    def stage(self) -> str:
        """What progress is of."""
        return self.fold.stage

    @property
    def beside(self) -> Sequence[str]:
        """The part that is not of the texts, where there is one."""
        return () if self.fold.beside is None else (BESIDE,)

    def measure_beside(self, name: str, measurer: Any) -> Kept:
        """What is measured once, beside the texts."""
        assert self.fold.beside is not None, "else there is no such part"
        with one_thread():
            return self.fold.beside((measurer.model, measurer.tokenizer), dict(self.how))

    def options(self) -> dict[str, Any]:
        """What the numbers depend on, known before a model is loaded."""
        # As JSON gives it back.
        return super().options() | json.loads(json.dumps(said(dict(self.how))))

    def check(self, measurer: Any, texts: Sequence[CorpusText]) -> dict[str, Any]:
        """Raise where the model cannot be studied, or the texts are mostly unknown to it."""
        if self.fold.check is not None and not self.model.random:
            self.fold.check(measurer.model, allow_unfit=self.allow_unfit)

        def failed(_: int, error: Exception) -> None:
            # What is wrong whatever the text, such as a head that does not exist, ends the run.
            if isinstance(error, ModelError):
                raise error

        next(measurer.values_of(texts, failed), None)
        return super().check(measurer, texts)

    def check_engine(self, engine: Engine) -> None:
        """Raise where an option could not go to the processes of an engine."""
        patterns = []
        for _, value in self.how:
            several = value if isinstance(value, tuple) else (value,)
            patterns += [each for each in several if isinstance(each, Pattern)]
        check_patterns(patterns, self.model, engine)
        for name, value in self.how:
            if said(value) == type(value).__name__ and engine.name != this_process().name:
                raise RunError(
                    f"A loaded {name} cannot go to other processes; give its name or folder"
                )

    def begin(self) -> FoldMeasurer:
        """The model, loaded once in a process, and what counts its records."""
        return FoldMeasurer(self, *self.model.load())

    def tally(self, measurer: Any) -> FoldPart:
        """The sums of no text."""
        return FoldPart(self.fold)

    def texts_of(self, text: CorpusText) -> Sequence[str]:
        """What the tokenizer reads of a text."""
        read = _read(self.fold, text, dict(self.how))
        if isinstance(read, HeadscopeError):
            return []
        from headscope.capturing import parse_input

        return parse_input(as_given(read)).texts

    def made(self, finished: FinishedRun, judging: Mapping[str, Any]) -> Any:
        """The result of the sums of all parts."""
        sums = Sums(self.fold.what)
        for part in finished.parts():
            sums = sums + Sums.of_kept(part, self.fold.what)
        failed = finished.failed
        if not len(sums):
            first = failed[0]["error"] if failed else "there was none"
            raise RunError(f"No text of the run could be measured: {first}")
        more = {"beside": finished.part(BESIDE)} if self.beside else {}
        result = self.fold.result_of(sums, dict(self.how), {**judging, **more})
        for each in failed:
            # Nothing is known of inputs that are no texts.
            if set(each) > {"error"}:
                text = CorpusText(each["text"], each["group"])
                result.left_out[named(self.fold, text)[0]] = each["error"]
        return result


class FoldMeasurer:
    """A model, and the fold that counts what it does on texts.

    Args:
        job: the fold and its options.
        model: loaded.
        tokenizer: its tokenizer.
    """

    def __init__(self, job: FoldJob, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer = model, tokenizer
        self._job = job

    def values_of(
        self, texts: Sequence[CorpusText], failed: Callable[[int, Exception], None]
    ) -> Iterator[tuple[int, Counted]]:
        """What is counted of each text; see `headscope.corpus.Measurer`."""
        fold, how = self._job.fold, dict(self._job.how)
        given = [_read(fold, text, how) for text in texts]
        reading = self._job.reading | {"keep": fold.keep, "on_error": failed}
        with one_thread():
            readers = self.model, self.tokenizer
            for number, record in fold.records_of(readers, given, how, reading):
                item = fold.item_of(texts[number].given)
                try:
                    counted = fold.counted(item, record, **how)
                except HeadscopeError as error:
                    failed(number, error)
                else:
                    yield number, counted


class FoldPart:
    """The sums of the texts of a part."""

    def __init__(self, fold: Fold) -> None:
        self._fold, self._sums = fold, Sums(fold.what)

    def update(self, text: CorpusText, values: Counted) -> None:
        """Add a text, as often as it is there."""
        for number in range(text.times):
            values.add_to(self._sums, *named(self._fold, text, number))

    def kept(self) -> Kept:
        """The sums."""
        return self._sums.kept()


@dataclass
class TextsInParts:
    """Texts that are folded in parts, as often as it takes; see
    `headscope.studies.shared._folded.TextsInMemory`.

    Args:
        running: how.
        job: options of a `ModelJob`.
        texts: a stream.
    """

    running: RunSettings
    job: dict[str, Any]
    texts: Iterable[CorpusText | HeadscopeError]

    @property
    def folder(self) -> Path:
        """Of the run."""
        return Path(self.running.out or "")

    def keep(self, result: Any) -> None:
        """Keep a result in the folder of the run, once more."""
        result.save(self.folder / RESULT)

    def folded(
        self,
        fold: Fold,
        how: Mapping[str, Any],
        judging: Mapping[str, Any],
        *,
        random: bool = False,
        place: str = "",
    ) -> Any:
        """The result of a study over the texts; one with a place has a folder of its own.

        Raises:
            RunError: as of `headscope.corpus.run`.
        """
        running, model = self.running, replace(self.job["model"], random=random)
        if place:
            RunFolder(self.folder).begin()
            # Inputs that are left out are told of by the study itself, which reads them again.
            running = replace(running, out=self.folder / place, on_error=lambda *_: None)
        settled = tuple(sorted(how.items()))
        job = FoldJob(fold=fold, how=settled, **self.job | {"model": model})
        job.check_engine(running.engine)
        result = running.result(job, self.texts, judging)
        if running.out is not None:
            self.texts = RunFolder(running.out).texts()
        return result


@contextmanager
def texts_in_parts(
    fold: Fold,
    given: tuple[Any, Any],
    texts: Iterable[CorpusText | HeadscopeError],
    options: dict[str, Any],
    *,
    again: bool,
) -> Generator[TextsInParts]:
    """Texts for folds in parts; see `headscope.studies.shared._folded.read_texts`."""
    running = RunSettings.taken(options)
    job = parse_job(given, options, running, needs=fold.needs)
    check_no_more(fold.name, options)
    with running.with_folder() if again else nullcontext(running) as running:
        yield TextsInParts(running, job, texts)
