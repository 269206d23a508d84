"""A fold as a run in parts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import TYPE_CHECKING, Any

from headscope.corpus import CorpusText, Engine, FinishedRun, Kept, Sums, this_process
from headscope.errors import HeadscopeError, RunError
from headscope.patterns import Pattern
from headscope.studies.shared._corpus_job import ModelJob, as_given
from headscope.studies.shared._corpus_model import one_thread
from headscope.studies.shared._corpus_run import check_patterns, run_study

if TYPE_CHECKING:
    from headscope.studies.shared._fold import Counted, Fold


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
    if isinstance(value, Pattern):
        return value.facts
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


def named(fold: Fold, text: CorpusText, number: int = 0) -> tuple[Any, str]:
    """A text of a run and its name: its own, or what it says and its number among its copies."""
    item = fold.item_of(text.given)
    name = getattr(item, "name", "")
    if not name:
        is_alone = text.group is None and not number
        name = text.name if is_alone else f"{text.name} of {text.unit}, {number}"
    return item, name


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

    def options(self) -> dict[str, Any]:
        """What the numbers depend on, known before a model is loaded."""
        return super().options() | said(dict(self.how))

    def check(self, measurer: Any, texts: Sequence[CorpusText]) -> dict[str, Any]:
        """Raise where the model cannot be studied, or the texts are mostly unknown to it."""
        if self.fold.check is not None and not self.model.random:
            self.fold.check(measurer.model, allow_unfit=self.allow_unfit)
        return super().check(measurer, texts)

    def check_engine(self, engine: Engine) -> None:
        """Raise where an option could not go to the processes of an engine."""
        patterns = [value for _, value in self.how if isinstance(value, Pattern)]
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
        result = self.fold.result_of(sums, dict(self.how), judging)
        for each in failed:
            text = CorpusText(each["text"], each["group"])
            result.left_out[named(self.fold, text)[1]] = each["error"]
        return result


class FoldMeasurer:
    """A model, and the fold that counts what it does on texts.

    Args:
        job: the fold and its options.
        model: loaded.
        tokenizer: its tokenizer.
    """

    most_tried: int = 0
    """Counts are the same in any batch but for rounding, and nothing is tried before a run."""

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

    most_open: int = sys.maxsize
    """Sums take no more memory for a document that is open."""

    def __init__(self, fold: Fold) -> None:
        self._fold, self._sums = fold, Sums(fold.what)

    def update(self, text: CorpusText, values: Counted) -> None:
        """Add a text, as often as it is there."""
        for number in range(text.times):
            _, name = named(self._fold, text, number)
            values.add_to(self._sums, name, text.group or f"text {name}")

    def close(self) -> None:
        """Nothing is open."""

    def kept(self) -> Kept:
        """The sums."""
        return self._sums.kept()
