"""Capturing many texts, pictures or sounds that are parsed, in batches."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch

from headscope._progress import Progress
from headscope.capturing._chosen_heads import NoSuchHeadsError
from headscope.capturing._finished_records import WaitingRecords
from headscope.capturing.device import device_of
from headscope.capturing.entry import capture
from headscope.capturing.fitness import check_known
from headscope.capturing.inputs._modalities import check_reads
from headscope.capturing.inputs._processor import inputs_of
from headscope.capturing.inputs.inputs import Inputs, encode
from headscope.capturing.inputs.parsed_input import Outcome, ParsedInput, ParsedInputs
from headscope.capturing.inputs.tokens import tokens_from_encoding
from headscope.capturing.loading.load import load_for
from headscope.capturing.loading.options import LOADING, check_not_loaded
from headscope.capturing.media.input_positions import origins_of
from headscope.capturing.options import KeepOptions, keeping_of
from headscope.capturing.run import at_rest, run, unwrapped
from headscope.errors import CaptureError, HeadscopeError
from headscope.record import Record, Tokens

AT_ONCE = 64
"""How many inputs are read ahead, so that those of similar length can share a batch."""
HELD = 2**30
"""Default for the bytes of records that may wait for the ones before them: 1 GiB."""
READING = ("truncate", "batch_size", "batch_tokens", "held", "max_unknown")
"""Options that say how inputs are read and put together."""
OF_ONE_INPUT = (HeadscopeError, RuntimeError, ValueError, LookupError)
"""Errors of a model or tokenizer for an input that it cannot take; only that input is left out."""


@dataclass(frozen=True)
class _Encoded:
    """A text that waits for its turn."""

    index: int
    arguments: dict[str, list[int]]
    tokens: Tokens

    def __len__(self) -> int:
        return len(self.tokens)


def capture_inputs(
    model: Any,
    tokenizer: Any,
    given: ParsedInputs,
    *,
    progress: bool = False,
    on_error: Callable[[int, HeadscopeError], None] | None = None,
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
    keeping_of(options)
    batch_tokens, unknown = options.pop("batch_tokens", 4096), options.pop("max_unknown", 1.0)
    batch_size = _count("batch_size", options.pop("batch_size", None))
    held = _count("held", options.pop("held", HELD))
    limits = _Limits(batch_tokens, batch_size, unknown, held or HELD)
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
    report = on_error or warn_of_input

    def counted(index: int, error: HeadscopeError) -> None:
        shown.step()
        report(index, error)

    return _Many(unwrapped(model), tokenizer, options, limits, counted, shown).stream(outcomes)


def check_names(options: Mapping[str, Any]) -> None:
    """Raise where `capture_many` has no such option.

    Raises:
        CaptureError: naming it.
    """
    known = (*READING, *KeepOptions.__annotations__, *LOADING)
    for name in options:
        if name not in known:
            raise CaptureError(
                f"capture_many has no option {name!r}; of capture's there are {', '.join(known)}"
            )


def _count(name: str, value: Any) -> int | None:
    """A limit of inputs or bytes; None if it is not given.

    Raises:
        CaptureError: if it is no whole number from 1 on.
    """
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    raise CaptureError(f"{name} must be a whole number from 1 on, not {value!r}")


def _loaded(
    name: str | Path | None, outcomes: Iterator[Outcome], loading: Mapping[str, Any]
) -> tuple[Any, Any, Iterator[Outcome]]:
    """A model given by name, its tokenizer or processor, and the inputs, of which the first shows
    what kind they are: texts, pictures ...
    """
    first = list(islice(outcomes, 1))
    known = [outcome for outcome in first if isinstance(outcome, ParsedInput)]
    given = known[0] if known else ParsedInput()
    return *load_for(name, given, **loading), chain(first, outcomes)


@dataclass(frozen=True)
class _Limits:
    """Limits: tokens (with padding) and inputs of a batch, share of unknown tokens of a text, bytes
    of waiting records.
    """

    tokens: int
    inputs: int | None
    unknown: float
    held: int

    def fit(self, inputs: int, length: int) -> bool:
        """Whether so many inputs of this length share a batch."""
        return inputs * length <= self.tokens and (self.inputs is None or inputs <= self.inputs)


@dataclass(frozen=True, eq=False)
class _Shape:
    """Pictures of equal size that wait for their turn, by number."""

    key: tuple
    inputs: dict[int, Inputs]


@dataclass(frozen=True)
class _Many:
    model: Any
    tokenizer: Any
    options: dict[str, Any]
    limits: _Limits
    report: Callable[[int, HeadscopeError], None]
    progress: Progress
    lengths: dict[tuple, int] = field(default_factory=dict)
    """Number of tokens of a picture of each shape, known once one of that shape was run."""

    def stream(self, outcomes: Iterable[Outcome]) -> Iterator[Record]:
        with self.progress:
            yield from self._stream(outcomes)

    def _stream(self, outcomes: Iterable[Outcome]) -> Iterator[Record]:
        numbered, waiting = (
            iter(enumerate(outcomes)),
            WaitingRecords(getattr(self.model, "config", None)),
        )
        while ahead := list(islice(numbered, AT_ONCE)):
            items: dict[int, ParsedInput] = {}
            for index, outcome in ahead:
                if isinstance(outcome, HeadscopeError):
                    self.report(index, outcome)
                else:
                    items[index] = outcome
            groups = self._groups(items)
            for index in items:
                if index not in waiting:
                    for number, record in self._with_its_like(index, items, groups, waiting):
                        waiting.put(number, record)
                record = waiting.take(index)
                if record is not None:
                    yield record

    def _groups(self, items: Mapping[int, ParsedInput]) -> dict[int, list[_Encoded] | _Shape]:
        """For each input, by number, those it may share a batch with: texts of similar length, or
        pictures of equal size.
        """
        groups: dict[int, list[_Encoded] | _Shape] = {}
        if getattr(self.model.config, "is_encoder_decoder", False):
            return groups
        groups |= self._texts_by_length(items)
        groups |= self._pictures_by_shape(items)
        return groups

    def _texts_by_length(self, items: Mapping[int, ParsedInput]) -> dict[int, list[_Encoded]]:
        """The batch of each text, by number; an empty one if the text was left out."""
        groups: dict[int, list[_Encoded]] = {}
        encoded: list[_Encoded] = []
        for index, item in items.items():
            if not item.is_text:
                continue
            entry = self._encoded(index, item)
            if entry is None:
                groups[index] = []
            else:
                encoded.append(entry)
        # Entries of one batch share one list, from which those that were run are taken.
        for batch in self._batches(sorted(encoded, key=len)):
            groups |= dict.fromkeys((entry.index for entry in batch), batch)
        return groups

    def _pictures_by_shape(
        self, items: Mapping[int, ParsedInput]
    ) -> dict[int, list[_Encoded] | _Shape]:
        """The pictures of equal size, by number; an empty list if a picture was left out."""
        groups: dict[int, list[_Encoded] | _Shape] = {}
        shapes: dict[tuple, _Shape] = {}
        for index, item in items.items():
            if not item.is_picture:
                continue
            inputs = self._looked_at(index, item)
            if inputs is None:
                groups[index] = []
                continue
            key = tuple(
                (name, tuple(tensor.shape)) for name, tensor in sorted(inputs.arguments.items())
            )
            shape = shapes.setdefault(key, _Shape(key, {}))
            shape.inputs[index] = inputs
            groups[index] = shape
        return groups

    def _with_its_like(
        self,
        index: int,
        items: Mapping[int, ParsedInput],
        groups: Mapping[int, list[_Encoded] | _Shape],
        waiting: WaitingRecords,
    ) -> Iterable[tuple[int, Record | None]]:
        """The records of an input and of as many others of its batch as there is room for."""
        if index not in groups:
            return [(index, self._alone(index, items[index]))]
        group = groups[index]
        if isinstance(group, _Shape):
            known = self.lengths.get(group.key)
            room = 1
            if known is not None:
                room = min(self._fitting(group.key), waiting.room(known, self.limits.held))
            numbers = list(islice(group.inputs, room))
            return self._pictures_together(
                group.key, [(number, group.inputs.pop(number)) for number in numbers]
            )
        # An empty batch means that the text was left out, which has been reported.
        if not group:
            return []
        # Texts whose turn comes next are run first: records made early wait, and take memory.
        by_number = sorted(group, key=lambda entry: entry.index)
        batch = by_number[: waiting.room(len(group[-1]), self.limits.held)]
        group[:] = sorted(by_number[len(batch) :], key=len)
        return self._texts(batch, items)

    def _texts(
        self, batch: list[_Encoded], items: Mapping[int, ParsedInput]
    ) -> Iterable[tuple[int, Record | None]]:
        """Records of texts that share a batch."""
        try:
            records = self._run(batch)
        except OF_ONE_INPUT:
            # A single text may be the cause, or padding, of which a text alone has none.
            records = [self._alone(entry.index, items[entry.index]) for entry in batch]
        return zip((entry.index for entry in batch), records, strict=True)

    def _looked_at(self, index: int, item: ParsedInput) -> Inputs | None:
        try:
            with at_rest(self.model):
                return inputs_of(self.model, self.tokenizer, item)
        except OF_ONE_INPUT as error:
            self.report(index, reason_of(error))
            return None

    def _fitting(self, shape: tuple) -> int:
        """How many pictures of a shape fit a batch; the first is run alone, which shows how many
        tokens each has.
        """
        if shape not in self.lengths:
            return 1
        fitting = max(1, self.limits.tokens // self.lengths[shape])
        return fitting if self.limits.inputs is None else min(fitting, self.limits.inputs)

    def _pictures_together(
        self, shape: tuple, batch: list[tuple[int, Inputs]]
    ) -> Iterator[tuple[int, Record | None]]:
        # Tensors of packed pictures have an axis of patches instead of one of examples.
        if len(batch) > 1 and all(sizes[0] == 1 for _, sizes in shape):
            records = self._joined([inputs for _, inputs in batch])
            if len(records) == len(batch):
                self.progress.step(len(batch))
                yield from zip((index for index, _ in batch), records, strict=True)
                return
        for index, inputs in batch:
            try:
                record = self._recorded(inputs)[0]
            except OF_ONE_INPUT as error:
                self.report(index, reason_of(error))
                continue
            self.progress.step()
            self.lengths.setdefault(
                shape, max(len(stack.query) for stack in record.stacks.values())
            )
            yield index, record

    def _joined(self, batch: list[Inputs]) -> list[Record]:
        """The records of pictures that are run together; none if they cannot be."""
        together = {
            name: torch.cat([inputs.arguments[name] for inputs in batch])
            for name in batch[0].arguments
        }
        try:
            pictures = tuple(picture for inputs in batch for picture in inputs.pictures)
            known = pictures if len(pictures) == len(batch) else ()
            inputs = Inputs(together, (), (), origins_of(self.model, together), pictures=known)
            return self._recorded(inputs, numbers=False)
        except OF_ONE_INPUT:
            # If the pictures of a batch cannot be told apart, the caller runs them one at a time.
            return []

    def _encoded(self, index: int, item: ParsedInput) -> _Encoded | None:
        tokenizer = getattr(self.tokenizer, "tokenizer", self.tokenizer)
        try:
            check_reads(self.model, item)
            truncate = self.options.get("truncate", False)
            encoding = encode(self.model, tokenizer, item.texts, truncate=truncate)
            check_known(tokenizer, encoding["input_ids"], "the text", self.limits.unknown)
        except OF_ONE_INPUT as error:
            self.report(index, reason_of(error))
            return None
        return _Encoded(
            index, dict(encoding), tokens_from_encoding(tokenizer, encoding, item.texts)
        )

    def _alone(self, index: int, item: ParsedInput) -> Record | None:
        try:
            record = capture(self.model, self.tokenizer, item, **self.options)
        except OF_ONE_INPUT as error:
            self.report(index, reason_of(error))
            return None
        self.progress.step()
        return record

    def _batches(self, entries: list[_Encoded]) -> Iterator[list[_Encoded]]:
        """Batches of texts of neighbouring length, each as large as fits; the last text of a batch
        is its longest, to which the others are padded.
        """
        batch: list[_Encoded] = []
        for entry in entries:
            if batch and not self.limits.fit(len(batch) + 1, len(entry)):
                yield batch
                batch = []
            batch.append(entry)
        if batch:
            yield batch

    def _run(self, batch: list[_Encoded]) -> list[Record]:
        longest = max(map(len, batch))
        device = device_of(self.model)
        # Padding goes to the right, where no model counts positions from it; its ids are never
        # looked at.
        arguments = {
            name: torch.tensor(
                [_filled(entry.arguments[name], longest) for entry in batch], device=device
            )
            for name in batch[0].arguments
        }
        masks = [_filled([1] * len(entry), longest) for entry in batch]
        arguments["attention_mask"] = torch.tensor(masks, device=device)
        inputs = Inputs(arguments, tuple(entry.tokens for entry in batch))
        records = self._recorded(inputs, numbers=len(batch) == 1)
        self.progress.step(len(records))
        return records

    def _recorded(self, inputs: Inputs, *, numbers: bool = True) -> list[Record]:
        """The records of one run. Positions without names may be numbered only for an input that is
        run alone: in a batch, padding would be numbered too.
        """
        interventions = self.options.get("interventions", ())
        with at_rest(self.model):
            return run(
                self.model,
                inputs,
                keeping_of(self.options),
                interventions=interventions,
                numbers=numbers,
            )


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


def _filled(values: list[int], length: int) -> list[int]:
    return values + [0] * (length - len(values))


def warn_of_input(index: int, error: HeadscopeError) -> None:
    """Warn that an input was left out."""
    warnings.warn(f"input {index} was left out: {error}", stacklevel=4)
