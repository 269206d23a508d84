"""A study as a fold: counts of each text, their sums by document, and the result of the sums. In
memory, in parts, and by many processes it is the same fold.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.corpus import (
    CorpusText,
    Counts,
    FinishedRun,
    Kept,
    Sums,
    asks_for_run,
)
from headscope.errors import HeadscopeError, RecordError, RunError
from headscope.evidence.groups import group_of
from headscope.linguistics import word_attention, words_at
from headscope.patterns.records import with_groups
from headscope.record import Stack
from headscope.results import check_conserved
from headscope.studies.shared._corpus_job import ModelJob, as_given
from headscope.studies.shared._corpus_model import corpus_texts, one_thread
from headscope.studies.shared._corpus_run import run_study
from headscope.studies.shared._source import CAPTURING, LOADING, Source, parse_source


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
    """

    name: str
    what: str
    counts_of: Callable[..., Counts]
    result_of: Callable[[Sums, Mapping[str, Any], Mapping[str, Any]], Any]
    input_of: Callable[[Any, Mapping[str, Any]], Any]
    given_of: Callable[[Any], Any] = as_given
    item_of: Callable[[Any], Any] = as_given
    keep: tuple[str, ...] = ("weights",)

    def counted(self, item: Any, record: Any, **how: Any) -> Counted:
        """What is counted of one text.

        Args:
            item: the text.
            record: of it.
            **how: options of ``counts_of``.

        Raises:
            RecordError: where it cannot be counted.
        """
        stack = stack_of(record, how.get("stack"))
        counts = self.counts_of(item, record, **how)
        return Counted(counts, len(stack.query), facts_of(record, stack))


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
    if asks_for_run(options):
        return run_study(
            FoldJob,
            given,
            [CorpusText(fold.given_of(item.what), item.document) for item in items],
            options,
            how={"fold": fold, "how": tuple(sorted(how.items()))},
            judging=judging,
            random_weights=random_weights,
        )
    unknown = [name for name in options if name not in (*CAPTURING, *LOADING)]
    if unknown:
        raise RecordError(
            f"{fold.name} has no option {unknown[0]!r}; it has {', '.join((*how, *judging))}; to "
            "count fewer texts, give fewer"
        )
    readable, inputs, left_out = [], [], {}
    for item in items:
        try:
            inputs.append(fold.input_of(item.what, how))
            readable.append(item)
        except HeadscopeError as error:
            left_out[item.name] = str(error)
    if not readable:
        raise RecordError(f"No {fold.what} is left: {next(iter(left_out.values()))}")
    source = parse_source(*given, inputs, options)
    assert source is not None, "texts were given"

    def result_of(source: Source) -> Any:
        sums, lost = _in_memory(fold, source, readable, how)
        result = fold.result_of(sums, how, judging)
        result.left_out = left_out | lost
        return result

    result = result_of(source)
    if random_weights:
        result.control = result_of(source.random_twin())
    return result


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
        return run_study(
            FoldJob,
            given,
            corpus_texts(texts, options.pop("groups", None)),
            options,
            how={"fold": fold, "how": tuple(sorted(how.items()))},
            judging=judging,
            random_weights=random_weights,
        )
    source = parse_source(*given, texts, options)
    groups = options.pop("groups", None)
    if options:
        raise RecordError(f"{fold.name} has no option {', '.join(options)}")

    def result_of(records: Any, groups: Any) -> Any:
        sums = Sums(fold.what)
        for number, (record, group) in enumerate(with_groups(records, groups, fold.name)):
            # Records have no names of their own; numbers of six digits sort as they were counted.
            item = Item(f"{number:06}", group_of(group), None)
            fold.counted(item.what, record, **how).add_to(sums, item.name, item.unit)
        if not len(sums):
            raise RecordError(f"{fold.name} was given no record; capture at least one text")
        return fold.result_of(sums, how, judging)

    if source is None:
        if random_weights:
            raise RecordError(
                f"random_weights=True needs a model to run: {fold.name}(model, tokenizer, texts)"
            )
        return result_of(given[0], groups)
    result = result_of(**source.grouped(keep=fold.keep))
    source.conserved(result, result.texts)
    if random_weights:
        result.control = result_of(**source.random_twin().grouped(keep=fold.keep))
    return result


def input_as_given(item: Any, _: Mapping[str, Any]) -> Any:
    """What the model reads of an item that is a text, or a pair of them."""
    return item


def _in_memory(
    fold: Fold, source: Source, items: Sequence[Item], how: Mapping[str, Any]
) -> tuple[Sums, dict[str, str]]:
    """The sums of texts, and why others could not be counted.

    Raises:
        RecordError: where no text is left.
    """
    sums, lost = Sums(fold.what), {}

    def lose(number: int, error: Exception) -> None:
        lost[items[number].name] = str(error)

    for together in source.batches(keep=fold.keep, on_error=lose):
        item = items[together.numbers[0]]
        try:
            fold.counted(item.what, together.batch, **how).add_to(sums, item.name, item.unit)
        except RecordError as error:
            lose(together.numbers[0], error)
    check_conserved(len(items), len(sums), len(lost), f"{fold.what}s")
    if not len(sums):
        raise RecordError(f"No {fold.what} is left: {next(iter(lost.values()))}")
    return sums, lost


def _read(fold: Fold, text: CorpusText, how: Mapping[str, Any]) -> Any:
    """What the model reads of a text, or why it cannot be read."""
    try:
        return fold.input_of(fold.item_of(text.given), how)
    except HeadscopeError as error:
        return error


def item_of(fold: Fold, text: CorpusText, number: int = 0) -> Item:
    """A text of a run: by its own name, or by what it says and its number among its copies."""
    item = fold.item_of(text.given)
    name = getattr(item, "name", None)
    if name is None:
        is_alone = text.group is None and not number
        name = text.name if is_alone else f"{text.name} of {text.unit}, {number}"
    return Item(name, text.group, item)


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

    def options(self) -> dict[str, Any]:
        """What the numbers depend on, known before a model is loaded."""
        return super().options() | dict(self.how)

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
            result.left_out[item_of(self.fold, text).name] = each["error"]
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
        from headscope.capturing import capture_batches

        fold, how = self._job.fold, dict(self._job.how)
        given = [_read(fold, text, how) for text in texts]
        options: dict[str, Any] = self._job.reading | {"keep": fold.keep, "on_error": failed}
        with one_thread():
            for together in capture_batches(self.model, self.tokenizer, given, **options):
                number = together.numbers[0]
                item = fold.item_of(texts[number].given)
                try:
                    counted = fold.counted(item, together.batch, **how)
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
            item = item_of(self._fold, text, number)
            values.add_to(self._sums, item.name, item.unit)

    def close(self) -> None:
        """Nothing is open."""

    def kept(self) -> Kept:
        """The sums."""
        return self._sums.kept()
