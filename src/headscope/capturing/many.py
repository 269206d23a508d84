"""Capturing many texts, pictures or sounds that are parsed, in batches."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headscope._progress import Progress
from headscope.capturing.entry import capture, configured
from headscope.capturing.fitness import check_known
from headscope.capturing.inputs._modalities import check_reads
from headscope.capturing.inputs._processor import inputs_of
from headscope.capturing.inputs.inputs import (
    EncodedText,
    Inputs,
    batches_of,
    encode,
    inputs_of_texts,
)
from headscope.capturing.inputs.parsed_input import Outcome, ParsedInput, ParsedInputs, Report
from headscope.capturing.keep import NoSuchHeadsError, check_count
from headscope.capturing.loading.load import load_for
from headscope.capturing.media.input_positions import origins_of
from headscope.capturing.options import LOADING, KeepOptions, check_not_loaded, keeping_of
from headscope.capturing.run import at_rest, run
from headscope.capturing.walk import reads_target
from headscope.errors import CaptureError, HeadscopeError
from headscope.record import Record
from headscope.results import check_conserved


class WaitingRecords:
    """Records that are finished before their turn, with their size and estimates for others."""

    def __init__(self, config: Any) -> None:
        self._records: dict[int, Record | None] = {}
        self._taken = 0
        # A large guess for widths and counts that are not known; the first record corrects it.
        sizes = (
            getattr(config, name, None)
            for name in ("num_hidden_layers", "num_attention_heads", "hidden_size")
        )
        layers, heads, width = (size if isinstance(size, int) else 48 for size in sizes)
        self._linear, self._square = 16 * layers * width, 8 * layers * heads
        self._known: list[tuple[int, int]] = []

    def __contains__(self, index: int) -> bool:
        return index in self._records

    def put(self, index: int, record: Record | None) -> None:
        """Keep a record until its turn; None where its input was left out."""
        self._records[index] = record
        if record is not None:
            size = bytes_of(record)
            self._taken += size
            self._known.append((max(len(stack.query) for stack in record.stacks.values()), size))

    def take(self, index: int) -> Record | None:
        """The record whose turn it is."""
        record = self._records.pop(index, None)
        if record is not None:
            self._taken -= bytes_of(record)
        return record

    def room(self, length: int, held: int) -> int:
        """Number of inputs of this length for which there is room; at least 1, for the next in
        turn.
        """
        return max(1, (held - self._taken) // max(1, self._most(length)))

    def _most(self, length: int) -> int:
        """Upper bound of the size of a record with so many tokens: it grows at least with the
        length, and at most with its square.
        """
        if not self._known:
            return self._linear * length + self._square * length**2
        # Compared with a known record, a longer one is larger by at most the square of the ratio of
        # lengths, and a shorter one is smaller by at least this ratio.
        bounds = (
            size * max((length / known) ** 2, 1) * min(length / known, 1)
            for known, size in self._known
        )
        return int(min(bounds))


def bytes_of(record: Record) -> int:
    """Bytes of the arrays of a record; of an array that it views, only the visible part counts."""
    return sum(_bytes_in(layer) for stack in record.stacks.values() for layer in stack)


def _bytes_in(part: Any) -> int:
    if isinstance(part, np.ndarray):
        return part.nbytes
    if is_dataclass(part) and not isinstance(part, type):
        return sum(_bytes_in(vars(part).get(each.name)) for each in fields(part))
    if isinstance(part, Mapping):
        return sum(map(_bytes_in, part.values()))
    return 0


AT_ONCE = 64
"""How many inputs are read ahead, so that those of similar length can share a batch."""
HELD = 2**30
"""Default for the bytes of records that may wait for the ones before them: 1 GiB."""
READING = ("truncate", "batch_size", "batch_tokens", "held", "max_unknown")
"""Options that say how inputs are read and put together."""
OF_ONE_INPUT = (HeadscopeError, RuntimeError, ValueError, LookupError)
"""Errors of a model or tokenizer for an input that it cannot take; only that input is left out."""


def capture_inputs(
    model: Any,
    tokenizer: Any,
    given: ParsedInputs,
    *,
    progress: bool = False,
    on_error: Report | None = None,
    **options: Any,
) -> Iterator[Record]:
    """`capture_many` for inputs that are parsed already: a study may run them several times.

    Args:
        model: as in `capture_many`.
        tokenizer: as in `capture_many`.
        given: each input, or the error if it cannot be read.
        progress: as in `capture_many`.
        on_error: as in `capture_many`.
        **options: as in `capture_many`, ``batch_tokens`` and ``max_unknown`` included.

    Raises:
        HeadscopeError: as in `capture_many`.
    """
    check_names(options)
    for name in ("batch_size", "held"):
        if options.get(name) is not None:
            check_count(name, options[name])
    limits: dict[str, Any] = {
        "tokens": options.pop("batch_tokens", 4096),
        "unknown": options.pop("max_unknown", None),
        "inputs": options.pop("batch_size", None),
        "held": options.pop("held", None) or HELD,
    }
    loading = {name: options.pop(name) for name in LOADING if name in options}
    outcomes = iter(given)
    if model is None or isinstance(model, str | Path):
        model, own, outcomes = _loaded(model, outcomes, loading)
        tokenizer = own if tokenizer is None else tokenizer
    else:
        check_not_loaded(model, loading)
    if tokenizer is None:
        name = type(model).__name__
        raise CaptureError(
            f"capture_many needs the tokenizer of {name}: capture_many(model, tokenizer, texts)"
        )
    shown = Progress("Capturing", "input", given.count, shows=progress)
    report = counted(shown, on_error)
    return _Many(configured(model), tokenizer, options, report, shown, **limits).stream(outcomes)


def check_names(options: Mapping[str, Any]) -> None:
    """Raise where `capture_many` has no such option, or its value is not allowed.

    Raises:
        CaptureError: naming it.
    """
    keeping_of(options)
    check_count("batch_tokens", options.get("batch_tokens", 1))
    most = options.get("max_unknown")
    if most is not None and not (isinstance(most, int | float) and 0 <= most <= 1):
        raise CaptureError(f"max_unknown is a share of the tokens from 0 to 1, not {most!r}")
    known = (*READING, *KeepOptions.__annotations__, *LOADING)
    for name in options:
        if name not in known:
            raise CaptureError(
                f"capture_many has no option {name!r}; of capture's there are {', '.join(known)}"
            )


def _loaded(
    name: str | Path | None, outcomes: Iterator[Outcome], loading: Mapping[str, Any]
) -> tuple[Any, Any, Iterator[Outcome]]:
    """A model given by name, its tokenizer or processor, and the inputs, of which the first shows
    what kind they are: texts, pictures ...
    """
    first = list(islice(outcomes, 1))
    given = first[0] if first and isinstance(first[0], ParsedInput) else ParsedInput()
    return *load_for(name, given, **loading), chain(first, outcomes)


@dataclass(frozen=True)
class _Many:
    """Captures the inputs of one `capture_many`.

    Args:
        model: that reads them.
        tokenizer: its tokenizer or processor.
        options: of `capture`.
        report: is called with number and error of an input that is left out.
        progress: how many are done.
        tokens: most tokens of a batch, padding included.
        inputs: most inputs of a batch; None for any number.
        unknown: largest share of unknown tokens of a text; None to warn of more than half.
        held: most bytes of waiting records.
        lengths: number of tokens of a picture of each shape, known once one of that shape was run.
        cuts: see `ParsedInput`.
    """

    model: Any
    tokenizer: Any
    options: dict[str, Any]
    report: Report
    progress: Progress
    tokens: int
    inputs: int | None
    unknown: float | None
    held: int
    lengths: dict[tuple, int] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)

    def stream(self, outcomes: Iterable[Outcome]) -> Iterator[Record]:
        numbered, given, captured = iter(enumerate(outcomes)), 0, 0
        waiting = WaitingRecords(getattr(self.model, "config", None))
        with self.progress:
            while ahead := list(islice(numbered, AT_ONCE)):
                items: dict[int, ParsedInput] = {}
                for index, outcome in ahead:
                    with leaving_out(index, self.report):
                        if isinstance(outcome, HeadscopeError):
                            raise outcome
                        items[index] = replace(outcome.read_with(self.tokenizer), cuts=self.cuts)
                groups = self._groups(items, waiting)
                for index in items:
                    if index not in waiting:
                        records = self._with_its_like(index, items, groups, waiting)
                        for number, record in records.items():
                            waiting.put(number, record)
                    record = waiting.take(index)
                    if record is not None:
                        captured += 1
                        yield record
                given += len(ahead)
                check_conserved(given, captured, self.progress.left_out)

    def _groups(
        self, items: Mapping[int, ParsedInput], waiting: WaitingRecords
    ) -> dict[int, dict[int, Any]]:
        """For each input, by number, those it may share a batch with, of which those that were run
        are taken: texts of similar length, or pictures of equal size.
        """
        texts, pictures = self._texts_and_pictures(items, waiting)
        if reads_target(self.model):
            return {}
        groups: dict[int, dict[int, Any]] = {}
        lengths = {index: len(text) for index, text in texts.items()}
        batches = batches_of(lengths, self.tokens, self.inputs)
        of_texts = [{index: texts[index] for index in batch} for batch in batches]
        for group in (*of_texts, *pictures.values()):
            groups |= dict.fromkeys(group, group)
        return groups

    def _texts_and_pictures(
        self, items: Mapping[int, ParsedInput], waiting: WaitingRecords
    ) -> tuple[dict[int, EncodedText], dict[tuple, dict[int, Inputs]]]:
        """What the model reads of the inputs that may share a batch: texts, and pictures by their
        size; an input that cannot be read has no record.
        """
        texts: dict[int, EncodedText] = {}
        pictures: dict[tuple, dict[int, Inputs]] = defaultdict(dict)
        for index, item in items.items():
            if not (item.is_text or item.is_picture):
                continue
            read = self._read(index, item)
            if isinstance(read, EncodedText):
                texts[index] = read
            elif read is not None:
                pictures[_shape_of(read)][index] = read
            else:
                waiting.put(index, None)
        return texts, pictures

    def _read(self, index: int, item: ParsedInput) -> EncodedText | Inputs | None:
        """A text, encoded, or a picture as the model takes it; None if it was left out."""
        with leaving_out(index, self.report):
            if item.is_picture:
                with at_rest(self.model):
                    return inputs_of(self.model, self.tokenizer, item)
            check_reads(self.model, item)
            cut = self.options.get("truncate", False)
            encoding = encode(self.model, self._words, item, truncate=cut)
            check_known(self._words, encoding["input_ids"], "the text", self.unknown)
            return EncodedText(index, item, encoding)
        return None

    def _with_its_like(
        self,
        index: int,
        items: Mapping[int, ParsedInput],
        groups: Mapping[int, dict[int, Any]],
        waiting: WaitingRecords,
    ) -> dict[int, Record | None]:
        """The records of an input and of as many others of its batch as there is room for."""
        if index not in groups:
            return {index: self._alone(index, items[index])}
        group = groups[index]
        # Inputs whose turn comes next are run first: records made early wait, and take memory.
        numbers = sorted(group)[: self._room(group, waiting)]
        batch = {number: group.pop(number) for number in numbers}
        try:
            records = self._together(batch)
        except OF_ONE_INPUT:
            # A single input may be the cause, or padding, of which a text alone has none.
            records = []
        if len(records) == len(batch):
            self.progress.step(len(records))
            return dict(zip(batch, records, strict=True))
        if items[index].is_picture:
            return {number: self._picture(number, inputs) for number, inputs in batch.items()}
        return {number: self._alone(number, items[number]) for number in batch}

    def _room(self, group: Mapping[int, Any], waiting: WaitingRecords) -> int:
        """How many of a group are run now."""
        first = next(iter(group.values()))
        if isinstance(first, EncodedText):
            return waiting.room(max(map(len, group.values())), self.held)
        # The first picture of a shape is run alone, which shows how many tokens each has.
        length = self.lengths.get(_shape_of(first))
        if length is None:
            return 1
        fitting = max(1, self.tokens // length)
        return min(fitting, self.inputs or fitting, waiting.room(length, self.held))

    def _together(self, batch: Mapping[int, Any]) -> list[Record]:
        """The records of inputs that share a batch; of pictures none, or another number, if they
        cannot be told apart.
        """
        first, *others = batch.values()
        if isinstance(first, EncodedText):
            inputs = inputs_of_texts(self.model, self._words, [first, *others])
            return self._recorded(inputs, numbers=not others)
        # Tensors of packed pictures have an axis of patches instead of one of examples.
        if not others or any(len(tensor) != 1 for tensor in first.arguments.values()):
            return []
        arguments = {
            name: torch.cat([inputs.arguments[name] for inputs in batch.values()])
            for name in first.arguments
        }
        pictures = tuple(picture for inputs in batch.values() for picture in inputs.pictures)
        known = pictures if len(pictures) == len(batch) else ()
        positions = origins_of(self.model, arguments)
        inputs = Inputs(arguments, (), (), positions, pictures=known)
        return self._recorded(inputs, numbers=False)

    def _picture(self, index: int, inputs: Inputs) -> Record | None:
        """The record of one picture, which shows how many tokens all of its shape have."""
        with leaving_out(index, self.report):
            record = self._recorded(inputs)[0]
            self.progress.step()
            longest = max(len(stack.query) for stack in record.stacks.values())
            self.lengths.setdefault(_shape_of(inputs), longest)
            return record
        return None

    def _alone(self, index: int, item: ParsedInput) -> Record | None:
        with leaving_out(index, self.report):
            record = capture(self.model, self.tokenizer, item, **self.options)
            self.progress.step()
            return record
        return None

    @property
    def _words(self) -> Any:
        return getattr(self.tokenizer, "tokenizer", self.tokenizer)

    def _recorded(self, inputs: Inputs, *, numbers: bool = True) -> list[Record]:
        """The records of one run. Positions without names may be numbered only for an input that is
        run alone: in a batch, padding would be numbered too.
        """
        keeping, changes = keeping_of(self.options), self.options.get("interventions", ())
        with at_rest(self.model):
            return run(self.model, inputs, keeping, interventions=changes, numbers=numbers)


def _shape_of(inputs: Inputs) -> tuple:
    """What pictures must share to be run together."""
    return tuple((name, tuple(tensor.shape)) for name, tensor in sorted(inputs.arguments.items()))


@contextmanager
def leaving_out(index: int, report: Report) -> Generator[None]:
    """Report the error of an input that the model or its tokenizer cannot take, instead of raising
    it.
    """
    try:
        yield
    except OF_ONE_INPUT as error:
        report(index, reason_of(error))


def reason_of(error: BaseException) -> HeadscopeError:
    """The error to report for an input, as a `HeadscopeError`.

    Raises:
        NoSuchHeadsError: the model lacks these heads for every input, so the whole run ends.
    """
    if isinstance(error, NoSuchHeadsError):
        raise error
    if isinstance(error, HeadscopeError):
        return error
    message = " ".join(str(error).split())
    return CaptureError(
        f"the model or its tokenizer stopped at it with {type(error).__name__}: {message}"
    )


def counted(shown: Progress, on_error: Report | None) -> Report:
    """What reports inputs that are left out, which count as done; by default with a warning."""
    report = on_error or warn_of_input

    def report_and_count(index: int, error: HeadscopeError) -> None:
        shown.step()
        shown.left_out += 1
        report(index, error)

    return report_and_count


def warn_of_input(index: int, error: HeadscopeError) -> None:
    """Warn that an input was left out."""
    warnings.warn(f"input {index} was left out: {error}", stacklevel=6)
