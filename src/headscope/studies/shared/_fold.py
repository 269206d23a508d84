"""A study as a fold: counts of each text, their sums by document, and the result of the sums."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from functools import cached_property
from itertools import count
from typing import Any, ClassVar, TypeVar

import numpy as np
from jaxtyping import Float

from headscope._progress import counted as shown
from headscope.corpus import ALONE, Counted, Counts, Kept, Sums
from headscope.errors import HeadscopeError, ModelError, RecordError
from headscope.evidence.groups import check_confidence, group_of, length_text
from headscope.linguistics import word_attention, words_at
from headscope.patterns import model_facts
from headscope.record import Record, Stack
from headscope.results import Result, check_conserved
from headscope.storage import Finite, arrays_below, check_document

Reading = dict[str, Any]
"""Options of `headscope.capturing.capture_batches`; whatever reads a text in another way takes of
them ``on_error``, ``progress`` and ``max_unknown``."""
Readers = tuple[Any, Any]
"""A model and its tokenizer."""


def as_given(given: Any, *_: Any) -> Any:
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
            arrays by name, or a `RecordError` that tells why it is left out; None where
            ``records_of`` gives what was counted, as `Counted`.
        result_of: the result of the sums: ``result_of(sums, how, judging)``; by default the sums.
        given_of: what JSON can hold of an item, for runs; by default the item itself.
        item_of: the item, of what ``given_of`` gave.
        input_of: what the model reads of an item and ``how``; an error names why it cannot.
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
    result_of: Callable[[Sums, Mapping[str, Any], Mapping[str, Any]], Any] = as_given
    input_of: Callable[[Any, Mapping[str, Any]], Any] = as_given
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
        beside: Kept | None,
        left_out: Mapping[str, str],
        given: int,
        lost: int,
    ) -> Any:
        """The result of the sums of all texts.

        Args:
            sums: of those that were counted.
            how: options of ``counts_of``.
            judging: options that the counts do not depend on.
            beside: what was measured beside the texts; None where nothing was.
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
        more = {} if beside is None else {"beside": beside}
        result = self.result_of(sums, how, {**judging, **more})
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


def taken(options: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """These options, which are taken out of the others."""
    return {name: options.pop(name) for name in names if name in options}


def said(value: Any) -> Any:
    """An option as JSON has it."""
    if isinstance(value, dict):
        return dict(zip(value, said([*value.values()]), strict=True))
    if isinstance(value, list | tuple):
        return [said(each) for each in value]
    if hasattr(value, "facts"):
        return said(value.facts)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return name_and_code(value) if callable(value) else type(value).__name__


def name_and_code(function: Any) -> str:
    """What tells one function of a user's from another."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    try:
        code = inspect.getsource(function)
    except (OSError, TypeError):
        code = ""
    digest = hashlib.sha256(code.encode()).hexdigest()[:8]
    return f"{getattr(function, '__module__', '')}.{name}, code {digest}"


CONTROL = "random."
"""Prefix of the arrays of the same architecture with random weights."""
DOCUMENT: dict[str, Any] = {
    "how": {},
    "judging": {},
    "sums": {},
    "source": str,
    "left_out": {str: str},
    "control": ({}, None),
}
Arrays = dict[str, np.ndarray]
Folded = TypeVar("Folded", bound="FoldResult")


class FoldResult(Result):
    """What a fold over texts counted; is added to those of other texts of the same model, saved and
    resumed.

    Args:
        how: options that what is counted of a text depends on.
        judging: options that it does not depend on, with ``confidence``.

    Raises:
        RecordError: where confidence is not within 0..1.
    """

    FOLD: ClassVar[Fold]
    HOW: ClassVar[dict[str, Any]] = {}
    """Of which kind the options are in a file; see `headscope.storage.check_document`."""
    JUDGING: ClassVar[dict[str, Any]] = {"confidence": Finite}
    """The same of the options that counts do not depend on."""

    def __init__(self, how: Mapping[str, Any], judging: Mapping[str, Any]) -> None:
        check_confidence(judging["confidence"])
        self.how: dict[str, Any] = dict(how)
        self.judging: dict[str, Any] = dict(judging)
        self.sums: Sums = Sums(self.FOLD.what)
        self.source: str = ""
        """What the texts are called together; empty where nobody says."""
        self.left_out: dict[str, str] = {}
        self.control: Any = None
        """The same of the architecture with random weights, where that was run."""

    @classmethod
    def of_sums(
        cls: type[Folded], sums: Sums, how: Mapping[str, Any], judging: Mapping[str, Any]
    ) -> Folded:
        """The result of what was counted."""
        own = {name: how[name] for name in cls.HOW}
        result = cls(**own, **{name: judging[name] for name in cls.JUDGING})
        result.sums = sums
        return result

    def update(self, text: Any, record: Record, /, *, group: Any = None) -> None:
        """Count one text.

        Args:
            text: its identifier.
            record: what the study needs of it.
            group: the document that it is of, for intervals; None for a text that belongs to no
                other.

        Raises:
            RecordError: where the record does not have what is counted, the text was counted
                before, or it is of another model.
        """
        self._add_text(Item(text, group_of(group), text), record)

    def check_new(self, name: str) -> None:
        """Raise where a text was counted or left out before.

        Raises:
            RecordError: naming it.
        """
        if name in self.left_out or name in self.sums:
            raise RecordError(
                f"{self.FOLD.what.capitalize()} {name!r} was counted before; each has a name of "
                "its own"
            )

    def _add_text(self, item: Item, record: Record, *, or_leave_out: bool = False) -> None:
        """Count one text, or name it among those left out."""
        self.check_new(item.name)
        try:
            counted = self.FOLD.counted(item.what, record, **self.how)
        except RecordError as error:
            if not or_leave_out:
                raise
            self.left_out[item.name] = str(error)
            return
        counted.add_to(self.sums, item.name, item.unit)
        # What was computed of fewer texts is forgotten.
        for name in list(self.__dict__):
            if isinstance(getattr(type(self), name, None), cached_property):
                del self.__dict__[name]

    def __add__(self: Folded, other: Folded) -> Folded:
        """The texts of both.

        Raises:
            RecordError: where they share a text, or are of other options or models.
        """
        if not isinstance(other, type(self)):
            return NotImplemented
        mine, theirs = said(self.how), said(other.how)
        for name in mine:
            if mine[name] != theirs[name]:
                one, two = (getattr(of[name], "name", of[name]) for of in (self.how, other.how))
                raise RecordError(
                    f"One was counted with {name} {one!r}, the other with {two!r}; they cannot be "
                    "added up"
                )
        both = type(self)(**self.how, **self.judging)
        both.sums = self.sums + other.sums
        both.left_out = self.left_out | other.left_out
        both.source = " + ".join(dict.fromkeys(filter(None, (self.source, other.source))))
        if self.control is not None and other.control is not None:
            both.control = self.control + other.control
        return both

    @property
    def texts(self) -> int:
        """Number of texts."""
        return len(self.sums)

    @property
    def model(self) -> str:
        """Name of the model; empty where it is unknown."""
        return self.sums.facts.get("model", "")

    @property
    def layers(self) -> tuple[int, ...]:
        """Numbers of the layers that were asked."""
        return tuple(dict.fromkeys(layer for layer, _ in self.sums.facts.get("heads", ())))

    @property
    def length_text(self) -> str:
        """How long the texts are, as tables print it."""
        return length_text(self.sums.lengths)

    @property
    def confidence(self) -> float:
        """Of the intervals."""
        return self.judging["confidence"]

    def _kept(self) -> Kept:
        sums, arrays = self.sums.kept()
        document = {"how": said(self.how), "judging": self.judging, "sums": sums, "control": None}
        document |= {"source": self.source, "left_out": self.left_out}
        if self.control is not None:
            document["control"], theirs = self.control._kept()
            arrays |= {f"{CONTROL}{name}": array for name, array in theirs.items()}
        return document, arrays

    @classmethod
    def _of_kept(cls: type[Folded], document: dict[str, Any], arrays: Arrays) -> Folded:
        """What `_kept` gave. To be called inside `headscope.storage.reading`.

        Raises:
            TypeError: where something is of a wrong kind.
            ValueError: where its parts do not fit each other.
        """
        check_document(document, DOCUMENT | {"how": cls.HOW, "judging": cls.JUDGING})
        own = {name: array for name, array in arrays.items() if not name.startswith(CONTROL)}
        result = cls(**cls._how_of(document["how"]), **document["judging"])
        result.sums = Sums.of_kept((document["sums"], own), cls.FOLD.what)
        result.source, result.left_out = document["source"], document["left_out"]
        if result.texts:
            result._check_arrays(own)
        if document["control"] is not None:
            result.control = cls._of_kept(document["control"], arrays_below(arrays, CONTROL))
        return result

    @classmethod
    def _how_of(cls, told: dict[str, Any]) -> dict[str, Any]:
        """The options, read from a file."""
        return told

    def _check_arrays(self, arrays: Arrays) -> None:
        """Raise where arrays of a file do not fit each other.

        Raises:
            ValueError: saying which.
        """
        raise NotImplementedError
