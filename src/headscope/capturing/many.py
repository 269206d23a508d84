"""Capturing many texts, pictures or sounds, in batches or to files in a folder."""

from __future__ import annotations

import importlib
import os
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Unpack, overload

import numpy as np
import torch

from headscope._progress import Progress, warn_left_out
from headscope.capturing.entry import capture, configured
from headscope.capturing.fitness import check_known
from headscope.capturing.inputs._processor import inputs_of
from headscope.capturing.inputs.inputs import (
    EncodedText,
    Inputs,
    check_reads,
    encode,
    inputs_of_texts,
)
from headscope.capturing.inputs.parse import check_reader, parse_many
from headscope.capturing.inputs.parsed_input import Outcome, ParsedInput, ParsedInputs, Report
from headscope.capturing.keep import NoSuchHeadsError, check_count
from headscope.capturing.loading import model_and_reader
from headscope.capturing.media.input_positions import origins_of
from headscope.capturing.options import LOADING, KeepOptions, LoadOptions, keeping_of
from headscope.capturing.run import at_rest, run
from headscope.capturing.walk import reads_target
from headscope.errors import CaptureError, HeadscopeError, check_option_names, check_reading
from headscope.parts import PartsChoice
from headscope.record import Record
from headscope.results import check_conserved
from headscope.storage import RecordFolder

AT_ONCE = 64
"""How many inputs are read ahead, so that those of similar length can share a batch."""
HELD = 2**30
"""Default for the bytes of records that may wait for the ones before them: 1 GiB."""
READING = ("parts", "truncate", "batch_size", "batch_tokens", "held", "max_unknown")
"""Options that say how inputs are read and put together."""
OF_ONE_INPUT = (HeadscopeError, RuntimeError, ValueError, LookupError)
"""Errors of a model or tokenizer for an input that it cannot take; only that input is left out."""
IN_PARTS = "headscope.studies.captures"
"""What captures to files in parts; a name and not an import, because it imports this package."""
FOR_PARTS = ("out", "workers", "executor", "part_size")
"""Options of `headscope.corpus.RunOptions`."""


class ManyOptions(KeepOptions, LoadOptions, total=False):
    """Options of `capture_many`, for those who read types; the function documents each."""

    batch_tokens: int
    batch_size: int | None
    held: int | None
    parts: PartsChoice | None
    truncate: bool
    max_unknown: float | None
    progress: bool
    on_error: Callable[[int, HeadscopeError], None] | None
    workers: int | None
    executor: Executor | None
    part_size: int | None


@overload
def capture_many(
    model: Any,
    tokenizer: Any = None,
    texts: Any = None,
    *,
    out: None = None,
    **options: Unpack[ManyOptions],
) -> Iterator[Record]: ...


@overload
def capture_many(
    model: Any,
    tokenizer: Any = None,
    texts: Any = None,
    *,
    out: str | os.PathLike[str],
    **options: Unpack[ManyOptions],
) -> RecordFolder: ...


def capture_many(
    model: Any,
    tokenizer: Any = None,
    texts: Any = None,
    *,
    out: str | os.PathLike[str] | None = None,
    batch_tokens: int = 4096,
    progress: bool = False,
    on_error: Callable[[int, HeadscopeError], None] | None = None,
    **options: Any,
) -> Iterator[Record] | RecordFolder:
    """Capture many texts, pictures or sounds, one record each, in the order given.

    Inputs are read 64 ahead. Texts of similar length share a batch, whose padding is cut off again,
    and so do pictures of equal size without a text. Anything else is run one at a time. A record is
    returned as soon as those before it have been returned. Records that wait for their turn take
    1 GiB at most, so that batches are smaller if records are large; the first input is run alone,
    and shows how large they are. An input that cannot be captured is reported with its number, and
    the others are still captured: the inputs of a batch that fails are run again one by one.

    With ``out`` records of texts go to files in a folder, one for each text. Texts are captured in
    parts, by one process or by several; the same call resumes after the parts that are finished.
    The files are the same to the last byte whatever the number of processes, the order of the texts
    and what was killed meanwhile, since only texts of equal length share a batch.

    Args:
        model: a loaded transformers model, a hub name, a folder, or None for the demo model.
            Encoder-decoders go one input at a time.
        tokenizer: its tokenizer, which need not know how to pad; its processor for pictures and
            sounds; may be left out if the model is given by name.
        texts: texts, pairs of them, conversations, or rows such as ``{"image": "cat.png", "text":
            "a photo of a cat"}``, with ``text``, ``text_pair``, ``image``, ``sound``,
            ``sampling_rate`` and ``target`` of `capture`, or texts as data sets call them
            (``sentence1``, ``premise``, ``question``, ``messages`` ...), other columns left aside;
            from any iterable: a list, ``datasets.Dataset``, a table of pandas, polars or Arrow.
        out: a folder for the records of texts and pairs of them; pictures and sounds are left out.
        batch_tokens: most tokens in a batch, padding included; a longer input is a batch.
        progress: show on stderr how many are done: a bar, or without a terminal some lines.
        on_error: is called with number and error of an input that was left out; by default a
            warning is issued.
        **options: ``max_unknown``, the largest share of unknown tokens in a text: one with more of
            them is left out (studies take 0.5; by default more than half gives a warning);
            ``batch_size``, the most inputs in a batch (by default as many as ``batch_tokens``
            allows); ``held``, the most bytes of records that wait for their turn (by default
            1 GiB; one record may be larger); ``truncate`` and ``parts`` of `CaptureOptions`;
            `KeepOptions`; and `LoadOptions` for a model given by name. With ``out`` also
            ``workers``, ``executor`` and ``part_size`` of `headscope.corpus.RunOptions`, and
            neither ``held`` nor ``interventions`` nor ``parts``.

    Returns:
        The records one after the other; with ``out`` a `headscope.storage.RecordFolder`, which
            ``headscope.load(out)`` gives as well.

    Raises:
        CaptureError: an unknown option, or no tokenizer.
        RunError: where the folder holds another run, named by what differs; and as of
            `headscope.corpus.run`.
        TextError: if a single text was given instead of many.
        ModelError: a named model that cannot be loaded.

    Example:
        >>> for record in capture_many(
        ...     model, tokenizer, ["The cat sat.", ("It slept.", "It woke.")]
        ... ):
        ...     print(record["self"].weights(layer=0).shape)
        >>> records = capture_many(
        ...     model, processor, [{"image": path} for path in folder.glob("*.png")]
        ... )
        >>> saved = capture_many("bert-base-uncased", texts=texts, out="run", workers=2)
    """
    # Not a generator itself, so that mistakes in the options are raised when it is called.
    check_reader(tokenizer, call="capture_many")
    check_reading({"on_error": on_error, "progress": progress})
    options["batch_tokens"] = batch_tokens
    in_parts = {name: options.pop(name) for name in FOR_PARTS if name in options}
    check_names(options)
    if out is not None or any(value is not None for value in in_parts.values()):
        captured_over = importlib.import_module(IN_PARTS).captured_over
        options |= in_parts | {"out": out, "progress": progress}
        return captured_over((model, tokenizer), texts, options, on_error=on_error)
    return capture_inputs(
        model, tokenizer, parse_many(texts), progress=progress, on_error=on_error, **options
    )


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

    Its arguments are those of `capture_many`, but for ``given``: each input, or the error of one
    that cannot be read.

    Raises:
        HeadscopeError: as in `capture_many`.
    """
    check_names(options)
    for name in ("batch_size", "held"):
        if options.get(name) is not None:
            check_count(name, options[name])
    limits: dict[str, Any] = {
        "tokens": options.pop("batch_tokens", 4096),
        "inputs": options.pop("batch_size", None),
        "held": options.pop("held", None) or HELD,
    }
    loading = {name: options.pop(name) for name in LOADING if name in options}
    outcomes = iter(given)
    shown = ParsedInput()
    if model is None or isinstance(model, str | Path):
        # The first input shows what kind they are: texts, pictures ...
        first = list(islice(outcomes, 1))
        shown = first[0] if first and isinstance(first[0], ParsedInput) else shown
        outcomes = chain(first, outcomes)
    model, tokenizer = model_and_reader(model, tokenizer, shown, loading, call="capture_many")
    progressed = Progress("Capturing", "input", given.count, shows=progress)
    report = counted(progressed, on_error)
    many = _Many(configured(model), tokenizer, options, report, progressed, **limits)
    return many.stream(outcomes)


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
    check_option_names("capture_many", options, known, CaptureError)


@dataclass
class ManyInputs:
    """Reads and captures inputs, of which some are left out.

    Args:
        model: that reads them.
        tokenizer: its tokenizer or processor.
        options: of `capture`.
        report: is called with number and error of an input that is left out.
        progress: how many are done.
        cuts: see `ParsedInput`.
    """

    model: Any
    tokenizer: Any
    options: Mapping[str, Any]
    report: Report
    progress: Progress
    cuts: list[int] = field(default_factory=list)

    @property
    def words(self) -> Any:
        """The tokenizer of words."""
        return getattr(self.tokenizer, "tokenizer", self.tokenizer)

    def encoded(
        self, index: int, item: ParsedInput, known: Any = None, readable: int = 0
    ) -> EncodedText:
        """A text, encoded; ``known`` is its encoding with others, and its place in it."""
        if known is None:
            cut = self.options.get("truncate", False)
            known = encode(self.model, self.words, item, truncate=cut), 0
        text = EncodedText(index, item, *known, readable=readable)
        check_known(self.words, text.ids, "the text", self.options.get("max_unknown"))
        return text

    def alone(self, index: int, item: ParsedInput, **kept: Any) -> Record | None:
        """The record of an input that is run alone; None where it is left out."""
        kept.pop("max_unknown", None)
        with leaving_out(index, self.report):
            return capture(self.model, self.tokenizer, item, **kept)
        return None


@dataclass(kw_only=True)
class _Many(ManyInputs):
    """Captures the inputs of one `capture_many`.

    Args:
        tokens: most tokens of a batch, padding included.
        inputs: most inputs of a batch; None for any number.
        held: most bytes of waiting records.
        lengths: number of tokens of a picture of each shape, known once one of that shape was run.
        waiting: records that are finished before their turn; None where an input was left out.
        known: tokens and bytes of the last record.
    """

    tokens: int
    inputs: int | None
    held: int
    lengths: dict[tuple, int] = field(default_factory=dict)
    waiting: dict[int, Record | None] = field(default_factory=dict)
    known: tuple[int, int] | None = None

    def stream(self, outcomes: Iterable[Outcome]) -> Iterator[Record]:
        numbered, given, captured = iter(enumerate(outcomes)), 0, 0
        own: dict[str, Any] = {"cuts": self.cuts, "parts": self.options.get("parts")}
        with self.progress:
            while ahead := list(islice(numbered, AT_ONCE)):
                items: dict[int, ParsedInput] = {}
                for index, outcome in ahead:
                    with leaving_out(index, self.report):
                        if isinstance(outcome, HeadscopeError):
                            raise outcome
                        items[index] = replace(outcome.read_with(self.tokenizer), **own)
                groups = self._groups(items)
                for index in items:
                    if index not in self.waiting:
                        self._run(index, items, groups.get(index))
                    record = self.waiting.pop(index)
                    if record is not None:
                        captured += 1
                        yield record
                given += len(ahead)
                check_conserved(given, captured, self.progress.left_out)

    def _groups(self, items: Mapping[int, ParsedInput]) -> dict[int, dict[int, Any]]:
        """For each input, by number, those it may share a batch with, of which those that were run
        are taken: texts of similar length, or pictures of equal size. An input that cannot be read
        has no record.
        """
        texts: dict[int, EncodedText] = {}
        pictures: dict[tuple, dict[int, Inputs]] = defaultdict(dict)
        for index, item in items.items():
            with leaving_out(index, self.report):
                if item.is_picture:
                    with at_rest(self.model):
                        read = inputs_of(self.model, self.tokenizer, item)
                    pictures[_shape_of(read)][index] = read
                elif item.is_text:
                    check_reads(self.model, item)
                    texts[index] = self.encoded(index, item)
                continue
            self.waiting[index] = None
        if reads_target(self.model):
            return {}
        lengths = {index: len(text) for index, text in texts.items()}
        batches = batches_of(lengths, self.tokens, self.inputs)
        of_texts = [{index: texts[index] for index in batch} for batch in batches]
        groups: dict[int, dict[int, Any]] = {}
        for group in (*of_texts, *pictures.values()):
            groups |= dict.fromkeys(group, group)
        return groups

    def _run(
        self, index: int, items: Mapping[int, ParsedInput], group: dict[int, Any] | None
    ) -> None:
        """Capture an input and as many others of its group as there is room for."""
        batch, records = {index: None}, []
        if group is not None:
            # Inputs whose turn comes next are run first: records made early wait, and take memory.
            numbers = sorted(group)[: self._room(group)]
            batch = {number: group.pop(number) for number in numbers}
            # A single input may be the cause, or padding, of which a text alone has none.
            with suppress(*OF_ONE_INPUT):
                records = self._together(list(batch.values()))
        if len(records) == len(batch):
            self.progress.step(len(records))
        else:
            records = [self.alone(number, items[number], **self.options) for number in batch]
            self.progress.step(len(records) - records.count(None))
        for (number, given), record in zip(batch.items(), records, strict=True):
            self.waiting[number] = record
            if record is None:
                continue
            longest = max(len(stack.query) for stack in record.stacks.values())
            self.known = longest, bytes_of(record)
            if isinstance(given, Inputs):
                self.lengths.setdefault(_shape_of(given), self.known[0])

    def _room(self, group: Mapping[int, Any]) -> int:
        """How many of a group are run now; at least 1, for the next in turn."""
        first = next(iter(group.values()))
        if isinstance(first, Inputs):
            # The first picture of a shape is run alone, which shows how many tokens each has.
            length = self.lengths.get(_shape_of(first), self.tokens)
            fitting = min(self.tokens // length, self.inputs or self.tokens)
        else:
            length, fitting = max(map(len, group.values())), len(group)
        if self.known is None:
            return 1
        # Compared with a known record, a longer one is larger by at most the square of the ratio of
        # lengths, and a shorter one is smaller by at least this ratio.
        ratio = length / self.known[0]
        most = max(1, self.known[1] * ratio * max(ratio, 1))
        taken = sum(map(bytes_of, self.waiting.values()))
        return max(1, min(fitting, int((self.held - taken) // most)))

    def _together(self, batch: Sequence[Any]) -> list[Record]:
        """The records of inputs that share a batch; of pictures none, or another number, if they
        cannot be told apart.
        """
        first, is_one = batch[0], len(batch) == 1
        if isinstance(first, EncodedText):
            inputs = inputs_of_texts(self.model, self.words, batch)
        # Tensors of packed pictures have an axis of patches instead of one of examples.
        elif is_one or any(len(tensor) != 1 for tensor in first.arguments.values()):
            return []
        else:
            arguments = {
                name: torch.cat([inputs.arguments[name] for inputs in batch])
                for name in first.arguments
            }
            pictures = tuple(chain.from_iterable(inputs.pictures for inputs in batch))
            known = pictures if len(pictures) == len(batch) else ()
            positions = origins_of(self.model, arguments)
            given = sum((inputs.given for inputs in batch), ())
            inputs = Inputs(arguments, (), (), positions, pictures=known, given=given)
        keeping, changes = keeping_of(self.options), self.options.get("interventions", ())
        # Positions without names may be numbered only for an input that is run alone: in a batch,
        # padding would be numbered too.
        with at_rest(self.model):
            return run(self.model, inputs, keeping, interventions=changes, numbers=is_one)


def batches_of(lengths: Mapping[int, int], tokens: int, most: int | None) -> list[list[int]]:
    """Numbers of texts of neighbouring length, each as many together as fit in so many tokens,
    padding included; a longer text is a batch of its own, and the last of a batch its longest.
    """
    batches: list[list[int]] = []
    for number in sorted(lengths, key=lambda each: lengths[each]):
        last = batches[-1] if batches else []
        is_full = most is not None and len(last) >= most
        if last and not is_full and (len(last) + 1) * lengths[number] <= tokens:
            last.append(number)
        else:
            batches.append([number])
    return batches


def bytes_of(part: Any) -> int:
    """Bytes of the arrays of a record, or of a part of one; of an array that it views, only the
    visible part counts.
    """
    if isinstance(part, Record):
        return sum(bytes_of(layer) for stack in part.stacks.values() for layer in stack)
    if isinstance(part, np.ndarray):
        return part.nbytes
    if isinstance(part, Mapping):
        return sum(map(bytes_of, part.values()))
    if is_dataclass(part):
        return sum(bytes_of(vars(part).get(each.name)) for each in fields(part))
    return 0


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

    def report(index: int, error: HeadscopeError) -> None:
        shown.step()
        shown.left_out += 1
        if on_error is None:
            warn_left_out(index, error, stacklevel=6)
        else:
            on_error(index, error)

    return report
