"""A study as a fold: counts of each text, their sums by document, and the result of the sums. In
memory, in parts, and by many processes it is the same fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope._progress import counted as shown
from headscope.corpus import (
    ALONE,
    Counted,
    Counts,
    Kept,
    Sums,
)
from headscope.errors import HeadscopeError, ModelError, RecordError
from headscope.linguistics import word_attention, words_at
from headscope.patterns import model_facts
from headscope.record import Stack
from headscope.results import Result, check_conserved

Reading = dict[str, Any]
"""Options of `headscope.capturing.capture_batches`; whatever reads a text in another way takes of
them ``on_error``, ``progress`` and ``max_unknown``."""
Readers = tuple[Any, Any]
"""A model and its tokenizer."""


@dataclass
class FoldSums:
    """The sums of a fold that others need, and why texts were left out, by name."""

    sums: Sums
    left_out: dict[str, str] = field(default_factory=dict)


def sums_alone(sums: Sums, *_: Any) -> FoldSums:
    """The sums, as the result of a fold that comes before another one."""
    return FoldSums(sums)


def input_as_given(item: Any, _: Mapping[str, Any]) -> Any:
    """What the model reads of an item that is a text, or a pair of them."""
    return item


def as_given(given: Any) -> Any:
    """A text as `headscope.capturing.capture_batches` takes it: JSON has made lists of pairs."""
    return tuple(given) if isinstance(given, list) else given


def captured(
    readers: Readers, given: Iterable[Any], how: Mapping[str, Any], reading: Reading
) -> Iterator[tuple[int, Any]]:
    """Number and record of each text, in whatever order suits the model."""
    for numbers, record in batches_of(readers, given, reading):
        yield numbers[0], record


def batches_of(
    readers: Readers, given: Iterable[Any], reading: Mapping[str, Any]
) -> Iterator[tuple[Sequence[int], Any]]:
    """Numbers and batch of texts that are run together, or number and record of one; pictures and
    sounds are run one by one.
    """
    from headscope.capturing import ParsedInputs, capture_batches, capture_inputs

    if isinstance(given, ParsedInputs) and any(getattr(each, "has_media", 0) for each in given):
        lost: set[int] = set()

        def lose(number: int, error: Any) -> None:
            lost.add(number)
            reading["on_error"](number, error)

        # What is left out is reported before any later record comes.
        left = (number for number in count() if number not in lost)
        options: dict[str, Any] = {**reading, "on_error": lose}
        for record in capture_inputs(*readers, given, **options):
            yield [next(left)], record
    else:
        for together in capture_batches(*readers, given, **reading):
            yield together.numbers, together.batch


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
            arrays by name, or a `RecordError` that says why it is left out; None where
            ``records_of`` gives what was counted, as `Counted`.
        result_of: the result of the sums: ``result_of(sums, how, judging)``; by default these.
        given_of: what JSON can hold of an item, for runs; by default the item itself.
        item_of: the item, of what ``given_of`` gave.
        input_of: what the model reads of an item and ``how``; an error says why it cannot.
        keep: what the records keep.
        records_of: what reads the texts: gives number and record of each that could be read.
        told_of: see the function of this name, the default.
        needs: what the model must have, see `headscope.studies.shared._corpus_model.NamedModel`.
        reads_texts: whether most of the tokens must be known to the tokenizer.
        check: raises where a model cannot be studied: ``check(readers, given, how, allow_unfit=)``,
            with some of what it reads; ``allow_unfit`` is the user's.
        beside: what is measured once, beside the texts: ``beside(readers, how)``, fields and arrays
            that ``judging`` has as ``"beside"``; none by default.
        stage: what progress is of, where a call makes several folds.
    """

    name: str
    what: str
    counts_of: Callable[..., Counts] | None = None
    result_of: Callable[[Sums, Mapping[str, Any], Mapping[str, Any]], Any] = sums_alone
    input_of: Callable[[Any, Mapping[str, Any]], Any] = input_as_given
    given_of: Callable[[Any], Any] = as_given
    item_of: Callable[[Any], Any] = as_given
    keep: str | tuple[str, ...] = ("weights",)
    records_of: Callable[..., Iterator[tuple[int, Any]]] = captured
    told_of: Callable[[Any, Mapping[str, Any]], tuple[int, dict[str, Any]]] = told_of
    needs: str = "attention"
    reads_texts: bool = True
    check: Callable[..., None] | None = None
    beside: Callable[[Readers, Mapping[str, Any]], Kept] | None = None
    stage: str = ""

    def counted(self, item: Any, record: Any, **how: Any) -> Counted:
        """What is counted of one text.

        Args:
            item: the text.
            record: of it.
            **how: options of ``counts_of``.

        Raises:
            RecordError: where it cannot be counted.
        """
        if self.counts_of is None:
            return record
        counts = self.counts_of(item, record, **how)
        return Counted(counts, *self.told_of(record, how))

    def needed(self, *, allow_unfit: bool) -> str:
        """What the model must have."""
        return f"any {self.needs}" if allow_unfit and self.needs != "attention" else self.needs

    def concluded(
        self,
        sums: Sums,
        how: Mapping[str, Any],
        judging: Mapping[str, Any],
        *,
        left_out: Mapping[str, str],
        given: int,
        lost: int,
    ) -> Any:
        """The result of the sums of all texts.

        Args:
            sums: of those that were counted.
            how: options of ``counts_of``.
            judging: options that the counts do not depend on.
            left_out: by name, why others were not.
            given: how many texts there are.
            lost: how many of them were left out.

        Raises:
            RecordError: where no text is left.
        """
        if not len(sums):
            raise RecordError(
                f"No {self.what} is left: {next(iter(left_out.values()), 'none was given')}"
            )
        result = self.result_of(sums, how, judging)
        result.left_out.update(left_out)
        check = result.conserved if isinstance(result, Result) else check_conserved
        check(given, len(sums), lost, f"{self.what}s")
        return result

    def counts(
        self, readers: Readers, given: Any, items: Sequence[Any], *, how: Any, reading: Reading
    ) -> Iterator[tuple[int, Counted]]:
        """Number and counts of each text; one that cannot be counted goes to ``on_error``.

        Args:
            readers: model and tokenizer.
            given: what the model reads of each text.
            items: the texts.
            how: options of ``counts_of``.
            reading: see `Reading`.
        """
        reading = reading | {"keep": self.keep}
        for number, record in self.records_of(readers, given, how, reading):
            try:
                counted = self.counted(items[number], record, **how)
            except ModelError:
                raise  # whatever the text, such as a head that does not exist
            except HeadscopeError as error:
                reading["on_error"](number, error)
            else:
                yield number, counted


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
        return f"{ALONE}{self.name}" if self.document is None else self.document


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
    heads = [[layer.layer, head] for layer in stack for head in range(layer.heads)]
    return model_facts(record) | {"heads": heads}
