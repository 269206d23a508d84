"""Folds over texts: in memory, or as runs in parts."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headscope.corpus import (
    CorpusText,
    Sums,
    TextNames,
    asks_for_run,
)
from headscope.errors import HeadscopeError, RecordError
from headscope.patterns.records import named_records
from headscope.results import Result, check_conserved
from headscope.studies.shared._corpus_job import check_unique
from headscope.studies.shared._corpus_model import corpus_texts
from headscope.studies.shared._corpus_run import RANDOM
from headscope.studies.shared._fold import Fold, Item
from headscope.studies.shared._fold_run import TextsInParts, run_fold, texts_in_parts
from headscope.studies.shared._source import (
    CAPTURING,
    LOADING,
    Source,
    parse_source,
    passed,
)

KEPT_EVERY = 20
"""Texts after which a study in memory is kept that may be resumed."""


def folded(
    fold: Fold,
    given: tuple[Any, Any],
    items: Sequence[Item],
    options: dict[str, Any],
    *,
    how: Mapping[str, Any],
    judging: Mapping[str, Any],
    random_weights: bool = False,
) -> Any:
    """The result of a study over texts.

    Args:
        fold: the study.
        given: a model (loaded, its name or folder, or None for the demo model) and the tokenizer of
            a loaded one.
        items: the texts.
        options: of reading, and of `headscope.corpus.RunOptions` for a run in parts; all that there
            are.
        how: options that the counts depend on.
        judging: options that they do not depend on.
        random_weights: whether the same architecture with random weights reads the texts, too.

    Raises:
        RecordError: where no text is left, or two have one name.
        RunError: of a run, see `headscope.corpus.run`.
    """
    check_unique((item.name for item in items), fold.what)
    items = _with_copies(fold, items, how)
    if asks_for_run(options):
        texts = [CorpusText(fold.given_of(item.what), item.document) for item in items]
        return run_fold(
            (fold, how), given, texts, options, judging=judging, random_weights=random_weights
        )
    _check_options(fold, options, (*how, *judging))
    readable, inputs, left_out = [], [], {}
    for item in items:
        try:
            inputs.append(fold.input_of(item.what, how))
            readable.append(item)
        except HeadscopeError as error:
            left_out[item.name] = str(error)
    if not readable:
        raise RecordError(f"No {fold.what} is left: {next(iter(left_out.values()))}")
    anyway = options.get("allow_unfit", False)
    source = parse_source(*given, inputs, options, load=fold.load)
    assert source is not None, "texts were given"
    if fold.check is not None:
        fold.check(source.model, allow_unfit=anyway)

    def result_of(source: Source, kept_as: str) -> Any:
        counted = _InMemory(fold, source, readable, how=how, kept_as=kept_as)

        def result() -> Any:
            made = fold.result_of(counted.sums, how, judging)
            made.left_out = left_out | counted.lost
            return made

        made = counted.all(result)
        # Of those that are kept in a file, some may not be given this time.
        numbers = len(counted.sums), len(made.left_out)
        made.conserved(sum(numbers), *numbers, f"{fold.what}s")
        return made

    result = result_of(source, "")
    if random_weights:
        result.control = result_of(source.random_twin(), ".random")
    return result


def _with_copies(fold: Fold, items: Sequence[Item], how: Mapping[str, Any]) -> list[Item]:
    """The texts, where copies that are of no document are of one: what is said twice proves no more
    than once.
    """
    said: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        if item.document is None:
            try:
                said.setdefault(repr(fold.input_of(item.what, how)), []).append(number)
            except HeadscopeError:
                continue
    own = list(items)
    for first, *copies in said.values():
        for number in copies:
            own[number] = replace(own[number], document=own[first].unit)
    return own


def folded_texts(
    fold: Fold,
    given: tuple[Any, Any],
    texts: Any,
    options: dict[str, Any],
    *,
    how: Mapping[str, Any],
    judging: Mapping[str, Any],
    random_weights: bool = False,
) -> Any:
    """The result of a study over texts that are known by what they say, or over records.

    Args:
        fold: the study.
        given: records; or a model and its tokenizer, see `folded`.
        texts: for the model to read, as of `headscope.capture_many`; None for records.
        options: as of `folded`, with ``groups``, the document of each text.
        how: options that the counts depend on.
        judging: options that they do not depend on.
        random_weights: whether the same architecture with random weights reads the texts, too.

    Raises:
        RecordError: where no text is left, or random weights are asked of records.
        RunError: of a run, see `headscope.corpus.run`.
    """
    if texts is None and not asks_for_run(options):
        return _folded_records(fold, given, options, how=how, judging=judging, twin=random_weights)
    known = (*how, *judging)
    with read_texts(fold, given, texts, options, known=known, again=random_weights) as read:
        result = read.folded(fold, how, judging)
        if random_weights:
            # Random weights may take none of the texts, which is no reason to lose the result.
            with suppress(RecordError):
                result.control = read.folded(fold, how, judging, random=True, place=RANDOM)
            read.keep(result)
    return result


@contextmanager
def read_texts(
    fold: Fold,
    given: tuple[Any, Any],
    texts: Any,
    options: dict[str, Any],
    *,
    known: Sequence[str],
    again: bool,
) -> Generator[TextsInMemory | TextsInParts]:
    """Texts for folds, in memory or in parts, for the length of a block.

    Args:
        fold: the study.
        given: a model and its tokenizer.
        texts: for the model to read.
        options: of reading and of runs; all that there are.
        known: names of the options of the study.
        again: whether they are folded more than once.

    Raises:
        HeadscopeError: as of `folded_texts`.
    """
    if asks_for_run(options):
        stream = corpus_texts(texts, options.pop("groups", None))
        with texts_in_parts(fold, given, stream, options, again=again) as parts:
            yield parts
        return
    anyway = options.get("allow_unfit", False)
    source = parse_source(*given, texts, options, load=fold.load)
    assert source is not None, "texts were given"
    _check_options(fold, options, known)
    if fold.check is not None:
        fold.check(source.model, allow_unfit=anyway)
    yield TextsInMemory(source)


def _folded_records(
    fold: Fold,
    given: tuple[Any, Any],
    options: dict[str, Any],
    *,
    how: Mapping[str, Any],
    judging: Mapping[str, Any],
    twin: bool,
) -> Any:
    groups = options.pop("groups", None)
    parse_source(given[0], given[1], None, options)
    _check_options(fold, options, (*how, *judging))
    if twin:
        raise RecordError(
            f"random_weights=True needs a model to run: {fold.name}(model, tokenizer, texts)"
        )
    sums = Sums(fold.what)
    for name, record, document in named_records(given[0], groups, fold.name):
        fold.counted(None, record, **how).add_to(sums, name, document)
    if not len(sums):
        raise RecordError(f"{fold.name} was given no record; capture at least one text")
    return fold.result_of(sums, how, judging)


@dataclass(frozen=True)
class TextsInMemory:
    """Texts that are folded in this process, as often as it takes.

    Args:
        source: of them.
    """

    source: Source

    def keep(self, result: Any) -> None:
        """Nothing: there is no folder."""

    def folded(
        self,
        fold: Fold,
        how: Mapping[str, Any],
        judging: Mapping[str, Any],
        *,
        random: bool = False,
        place: str = "",
    ) -> Any:
        """The result of a study over the texts.

        Args:
            fold: the study.
            how: options that the counts depend on.
            judging: options that they do not depend on.
            random: whether random weights read them.
            place: of a fold that is made before that of the study, which tells of no text that is
                left out.

        Raises:
            RecordError: where no text is left.
        """
        source = self.source.random_twin() if random else self.source
        more = {"on_error": passed} if place else {}
        readers, reading = (source.model, source.tokenizer), source.reporting(more)
        given = source.some(range(len(source.inputs)))
        sums, names = Sums(fold.what), TextNames()
        for number, record in fold.records_of(readers, given, how, reading | {"keep": fold.keep}):
            text = source.text(number)
            try:
                counted = fold.counted(None, record, **how)
            except RecordError as error:
                reading["on_error"](number, error)
            else:
                counted.add_to(sums, names.of(text), text.document)
        if not len(sums):
            raise RecordError(f"No {fold.what} is left: {next(iter(source.left_out.values()))}")
        beside = {} if fold.beside is None else {"beside": fold.beside(readers, how)}
        result = fold.result_of(sums, how, {**judging, **beside})
        check_conserved(len(source.inputs), len(sums), len(source.left_out), f"{fold.what}s")
        if isinstance(result, Result):
            source.conserved(result, len(sums))
        return result


def _check_options(fold: Fold, options: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raise where there is an option that is not one of reading.

    Raises:
        RecordError: naming it.
    """
    unknown = [name for name in options if name not in (*CAPTURING, *LOADING)]
    if unknown:
        raise RecordError(
            f"{fold.name} has no option {unknown[0]!r}; it has {', '.join(known)}; to count fewer "
            "texts, give fewer"
        )


class _InMemory:
    """Texts that are counted in memory, or those of them that a file does not hold yet.

    Args:
        fold: the study.
        source: of the texts.
        items: the texts.
        how: options that the counts depend on.
        kept_as: what comes behind the name of the file.
    """

    def __init__(
        self,
        fold: Fold,
        source: Source,
        items: Sequence[Item],
        *,
        how: Mapping[str, Any],
        kept_as: str,
    ) -> None:
        self._fold, self._source, self._how = fold, source, how
        self.sums: Sums = Sums(fold.what)
        self.lost: dict[str, str] = {}
        """Why texts could not be counted."""
        self._path: Path | None = None
        if fold.resume is not None:
            path, load = fold.resume
            self._path = path.with_name(f"{path.stem}{kept_as}{path.suffix}")
            if self._path.exists():
                begun = load(self._path, source.model)
                self.sums, self.lost = begun.sums, dict(begun.left_out)
        self._left = [
            (number, item)
            for number, item in enumerate(items)
            if item.name not in self.sums and item.name not in self.lost
        ]

    def all(self, result: Callable[[], Any]) -> Any:
        """The result once all are counted; it is kept on the way.

        Raises:
            RecordError: where no text is left.
        """
        before = len(self.sums) + len(self.lost)
        for number, _ in enumerate(self._counted(), 1):
            if self._path is not None and number % KEPT_EVERY == 0:
                result().save(self._path)
        after, what = len(self.sums) + len(self.lost), self._fold.what
        check_conserved(len(self._left), after - before, 0, f"{what}s")
        if not len(self.sums):
            raise RecordError(f"No {what} is left: {next(iter(self.lost.values()))}")
        made = result()
        if self._path is not None:
            made.save(self._path)
        return made

    def _counted(self) -> Iterator[None]:
        """One step for each text that is counted."""

        def lose(number: int, error: Exception) -> None:
            self.lost[self._left[number][1].name] = str(error)

        fold, source = self._fold, self._source
        reading = source.options | {"keep": fold.keep, "on_error": lose}
        given = source.some([number for number, _ in self._left])
        readers = source.model, source.tokenizer
        for number, record in fold.records_of(readers, given, self._how, reading):
            _, item = self._left[number]
            try:
                counted = fold.counted(item.what, record, **self._how)
                counted.add_to(self.sums, item.name, item.unit)
            except RecordError as error:
                lose(number, error)
            yield
