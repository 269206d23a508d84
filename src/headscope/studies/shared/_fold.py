"""A study as a fold: counts of each text, their sums by document, and the result of the sums. In
memory, in parts, and by many processes it is the same fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope._progress import counted as shown
from headscope.corpus import (
    CorpusText,
    Counts,
    Sums,
    asks_for_run,
)
from headscope.errors import HeadscopeError, RecordError
from headscope.evidence.groups import COPIES, group_of
from headscope.linguistics import word_attention, words_at
from headscope.patterns.records import with_groups
from headscope.record import Stack
from headscope.results import check_conserved
from headscope.studies.shared._corpus_job import as_given
from headscope.studies.shared._corpus_model import corpus_texts
from headscope.studies.shared._fold_run import run_fold
from headscope.studies.shared._source import CAPTURING, LOADING, Source, parse_source

KEPT_EVERY = 20
"""Texts after which a study in memory is kept that may be resumed."""
Reading = Mapping[str, Any]
"""Options of `headscope.capturing.capture_batches`; whatever reads a text in another way takes of
them ``on_error``, ``progress`` and ``max_unknown``."""
Readers = tuple[Any, Any]
"""A model and its tokenizer."""


def captured(
    readers: Readers, given: Iterable[Any], how: Mapping[str, Any], reading: Reading
) -> Iterator[tuple[int, Any]]:
    """Number and record of each text, in whatever order suits the model."""
    from headscope.capturing import capture_batches

    for together in capture_batches(*readers, given, **reading):
        yield together.numbers[0], together.batch


def one_by_one(
    given: Iterable[Any], read: Callable[[int, Any], Any], reading: Reading, doing: str
) -> Iterator[tuple[int, Any]]:
    """Number and what is read of each text, one after the other.

    Args:
        given: texts, or why one of them cannot be read.
        read: is called with number and text.
        reading: see `Reading`.
        doing: the word of the progress bar.
    """
    from headscope.capturing import parse_input
    from headscope.capturing.many import OF_ONE_INPUT, reason_of

    shows = reading.get("progress", False)
    for number, text in enumerate(shown(given, doing, "text", shows=shows)):
        try:
            if isinstance(text, HeadscopeError):
                raise text
            record = read(number, parse_input(as_given(text)))
        except OF_ONE_INPUT as error:
            reading["on_error"](number, reason_of(error))
        else:
            yield number, record


def told_of(record: Any, how: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """Length of a text in tokens, and what all texts of a study share."""
    stack = stack_of(record, how.get("stack"))
    return len(stack.query), facts_of(record, stack)


@dataclass(frozen=True, kw_only=True)
class Fold:
    """A study of texts.

    Args:
        name: of its function.
        what: a text is called.
        counts_of: what is counted of a text and its record: ``counts_of(item, record, **how)``,
            arrays by name, or a `RecordError` that says why it is left out.
        result_of: the result of the sums: ``result_of(sums, how, judging)``.
        given_of: what JSON can hold of an item, for runs; by default the item itself.
        item_of: the item, of what ``given_of`` gave.
        input_of: what the model reads of an item and ``how``; an error says why it cannot.
        keep: what the records keep.
        records_of: what reads the texts: gives number and record of each that could be read.
        told_of: see the function of this name, the default.
        needs: what the model must have, see `headscope.studies.shared._corpus_model.NamedModel`.
        load: how a named model is loaded in memory, by default for its attention.
        check: raises where a model cannot be studied; its argument ``allow_unfit`` is the user's.
        resume: a file that the result is kept in on the way, and what reads the one that is there
            for a model; that of random weights is kept beside it, as ``.random``.
    """

    name: str
    what: str
    counts_of: Callable[..., Counts]
    result_of: Callable[[Sums, Mapping[str, Any], Mapping[str, Any]], Any]
    input_of: Callable[[Any, Mapping[str, Any]], Any]
    given_of: Callable[[Any], Any] = as_given
    item_of: Callable[[Any], Any] = as_given
    keep: str | tuple[str, ...] = ("weights",)
    records_of: Callable[..., Iterator[tuple[int, Any]]] = captured
    told_of: Callable[[Any, Mapping[str, Any]], tuple[int, dict[str, Any]]] = told_of
    needs: str = "attention"
    load: Callable[..., tuple[Any, Any]] | None = None
    check: Callable[..., None] | None = None
    resume: tuple[Path, Callable[[Path, Any], Any]] | None = None

    def counted(self, item: Any, record: Any, **how: Any) -> Counted:
        """What is counted of one text.

        Args:
            item: the text.
            record: of it.
            **how: options of ``counts_of``.

        Raises:
            RecordError: where it cannot be counted.
        """
        counts = self.counts_of(item, record, **how)
        return Counted(counts, *self.told_of(record, how))


@dataclass(frozen=True, eq=False)
class Counted:
    """What was counted of one text.

    Args:
        counts: arrays by name.
        length: of the text in tokens.
        facts: that all texts of a study share.
    """

    counts: Counts
    length: int
    facts: dict[str, Any]

    def add_to(self, sums: Sums, name: str, document: str) -> None:
        """Add it to sums, as the text of this name.

        Raises:
            RecordError: where it was counted before, or is of another model.
        """
        sums.add(name, document, self.counts, length=self.length, facts=self.facts)


@dataclass(frozen=True)
class Item:
    """A text of a study.

    Args:
        name: that no other has.
        document: that it is of; None where it is of none.
        what: the text, with its annotation.
    """

    name: str
    document: str | None
    what: Any

    @property
    def unit(self) -> str:
        """The document; a text of none is one by itself."""
        return f"text {self.name}" if self.document is None else self.document


def stack_of(record: Any, name: str | None) -> Stack:
    """The stack of this name, or the first one."""
    return record[name or next(iter(record.stacks))]


def maps_of_words(
    stack: Stack, spans: Sequence[tuple[int, int]], *, rows: str
) -> Float[np.ndarray, "head word word"]:
    """The maps of all heads from word to word, without tokens of no word.

    Raises:
        RecordError: where words and tokens cannot be aligned.
    """
    words = words_at(stack.query, spans)
    words.check()
    places = list(words.places)
    weights = np.concatenate([np.asarray(layer.weights_of(), np.float64) for layer in stack])
    return word_attention(weights, words, rows=rows)[:, places][:, :, places]


def facts_of(record: Any, stack: Stack) -> dict[str, Any]:
    """What all texts of a study share."""
    return {
        "heads": [[layer.layer, head] for layer in stack for head in range(layer.heads)],
        "model": record.model.name,
        "class": record.model.class_name,
        "weights": record.model.weights,
    }


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
        RecordError: where no text is left.
        RunError: of a run, see `headscope.corpus.run`.
    """
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
    for copies in said.values():
        for number in copies if len(copies) > 1 else ():
            own[number] = replace(own[number], document=f"{COPIES}{own[copies[0]].name}")
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
    if asks_for_run(options):
        stream = corpus_texts(texts, options.pop("groups", None))
        return run_fold(
            (fold, how), given, stream, options, judging=judging, random_weights=random_weights
        )
    anyway = options.get("allow_unfit", False)
    source = parse_source(*given, texts, options, load=fold.load)
    groups = options.pop("groups", None)
    _check_options(fold, options, (*how, *judging))

    def sums_of(numbered: Iterable[tuple[int, Any, Any]]) -> Sums:
        sums = Sums(fold.what)
        for number, record, group in numbered:
            # Records have no names of their own; numbers of six digits sort as they were counted.
            item = Item(f"{number:06}", group_of(group), None)
            fold.counted(item.what, record, **how).add_to(sums, item.name, item.unit)
        return sums

    if source is None:
        if random_weights:
            raise RecordError(
                f"random_weights=True needs a model to run: {fold.name}(model, tokenizer, texts)"
            )
        grouped = enumerate(with_groups(given[0], groups, fold.name))
        sums = sums_of((number, *each) for number, each in grouped)
        if not len(sums):
            raise RecordError(f"{fold.name} was given no record; capture at least one text")
        return fold.result_of(sums, how, judging)
    if fold.check is not None:
        fold.check(source.model, allow_unfit=anyway)
    sums = sums_of(_read_by(fold, source, how))
    if not len(sums):
        raise RecordError(f"No {fold.what} is left: {next(iter(source.left_out.values()))}")
    result = fold.result_of(sums, how, judging)
    source.conserved(result, len(sums))
    if random_weights:
        beside = sums_of(_read_by(fold, source.random_twin(), how))
        # Random weights may take none of the texts, which is no reason to lose the result.
        result.control = fold.result_of(beside, how, judging) if len(beside) else None
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


def _read_by(fold: Fold, source: Source, how: Mapping[str, Any]) -> Iterator[tuple[int, Any, Any]]:
    """Place, record and document of each text."""
    groups = source.groups or (None,) * len(source.inputs)
    if fold.records_of is captured:
        numbered = source.numbered(keep=fold.keep)
    else:
        given, reading = source.some(range(len(source.inputs))), source.reporting({})
        numbered = fold.records_of((source.model, source.tokenizer), given, how, reading)
    for number, record in numbered:
        yield number, record, groups[number]


def input_as_given(item: Any, _: Mapping[str, Any]) -> Any:
    """What the model reads of an item that is a text, or a pair of them."""
    return item


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
