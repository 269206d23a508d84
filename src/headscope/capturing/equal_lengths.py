"""Many texts to their attention in batches of one length, without a record of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Unpack

from headscope._progress import Progress
from headscope.capturing.entry import configured
from headscope.capturing.inputs.inputs import (
    EncodedText,
    Inputs,
    check_reads,
    inputs_of_texts,
    position_limit,
)
from headscope.capturing.inputs.parse import parse_many
from headscope.capturing.inputs.parsed_input import Outcome, ParsedInput, ParsedInputs
from headscope.capturing.inputs.tokens import SpecialTokens, once
from headscope.capturing.keep import check_count
from headscope.capturing.many import OF_ONE_INPUT, ManyInputs, counted, leaving_out
from headscope.capturing.options import RecordOptions, keeping_of, kept_of
from headscope.capturing.run import at_rest, run
from headscope.capturing.seam import sessions
from headscope.capturing.walk import reads_target
from headscope.errors import CaptureError, HeadscopeError, RecordError, check_option_names
from headscope.record import Record, TextBatch
from headscope.results import check_conserved

AHEAD = 2048
"""How many texts are read ahead. The more, the more there are of each length: of sentences of a
treebank, batches of at most 32 hold 5 texts of 256, and 16 of 2,048.
"""
LEAST_TOKENS = 32
"""Tokens in a batch, at least. With fewer than 16, matrix products of torch take another kernel on
the processors that were tried and round otherwise; twice that is on the safe side.
"""
MOST_TEXTS = 64
"""Texts in a batch: more gain nothing on a CPU."""
IN_FLIGHT = 2**28
"""Bytes of the weights of a batch, at most; a single text may have more."""


@dataclass(frozen=True)
class BatchOutcome:
    """Texts that were run together, and what came of it.

    Args:
        numbers: the place of each among the inputs.
        readable: its place among those of them that could be read.
        batch: their attention; of a text that was run alone, its record.
    """

    numbers: tuple[int, ...]
    readable: tuple[int, ...]
    batch: TextBatch | Record


MORE_THAN_WEIGHTS = 4
"""So many times as large as its weights a record may be that keeps more."""


class BatchOptions(RecordOptions, total=False):
    """How texts are read and put together. With ``keep``, every text comes as a record of its own;
    without, there are none, but weights side by side.
    """

    batch_tokens: int
    """Most tokens in a batch, by default 4,096; a longer text is a batch of its own."""
    batch_size: int | None
    """Most texts in a batch; by default 64."""
    max_unknown: float | None
    """As of `capture_many`."""
    truncate: bool
    """As of `capture_many`."""
    progress: bool
    """As of `capture_many`."""
    on_error: Callable[[int, HeadscopeError], None] | None
    """As of `capture_many`."""


def capture_batches(
    model: Any, tokenizer: Any, texts: Iterable[Any], **options: Unpack[BatchOptions]
) -> Iterator[BatchOutcome]:
    """Capture the weights of many texts in batches of equal length, in whatever order suits it.

    Texts of as many tokens share a batch, so that there is no padding, and what is found of a text
    does not depend on what it shares a batch with, but for rounding. Batches of few tokens are
    filled up with copies of a text, since small matrix products round otherwise; with several
    threads torch cuts products by their size. Every layer of every text is checked as `capture`
    checks it.

    2,048 texts are read ahead. The weights of a batch take 256 MiB at most, or those of one text.
    Texts that cannot be run together, since the model is an encoder-decoder or sees each of them
    otherwise, are captured one by one, as records.

    Args:
        model: a loaded transformers model.
        tokenizer: its tokenizer.
        texts: texts, pairs of them, or rows with them as of `capture_many`; no pictures or sounds.
        **options: see `BatchOptions`.

    Raises:
        CaptureError: an option there is not, or one of records without ``keep``.

    Example:
        >>> for together in capture_batches(model, tokenizer, ["The cat sat.", "It slept well."]):
        ...     print(together.numbers, together.batch["self"].layers[0].weights.shape)
    """
    check_option_names("capture_batches", options, BatchOptions.__annotations__, CaptureError)
    kept = kept_of(options)
    if kept and "keep" not in kept:
        raise CaptureError(
            f"{min(kept)} is an option of records, and without keep there are no records; pass "
            "keep='auto' with it"
        )
    keeping_of(options)
    for name in ("batch_size", "batch_tokens"):
        if options.get(name) is not None:
            check_count(name, options[name])
    given = texts if isinstance(texts, ParsedInputs) else parse_many(texts)
    shown = Progress("Capturing", "input", given.count, shows=options.get("progress", False))
    report = counted(shown, options.get("on_error"))
    return _Batches(configured(model), tokenizer, options, report, shown).stream(given)


@dataclass
class _Batches(ManyInputs):
    read: int = 0
    bytes_of_pair: int = 0
    """Bytes of the weights of one query and key in all heads, once a batch was seen."""

    def stream(self, given: Iterable[Outcome]) -> Iterator[BatchOutcome]:
        """All texts, some at a time."""
        numbered, count, captured = iter(enumerate(given)), 0, 0
        with self.progress:
            while ahead := list(islice(numbered, AHEAD)):
                by_length: dict[int, list[EncodedText]] = defaultdict(list)
                for text in self._read(ahead):
                    by_length[len(text)].append(text)
                for length in sorted(by_length):
                    for outcome in self._of_length(length, by_length[length]):
                        self.progress.step(len(outcome.numbers))
                        captured += len(outcome.numbers)
                        yield outcome
                count += len(ahead)
                check_conserved(count, captured, self.progress.left_out)

    def _of_length(self, length: int, texts: list[EncodedText]) -> Iterator[BatchOutcome]:
        while texts:
            count = self._fitting(length)
            batch, texts = texts[:count], texts[count:]
            yield from self._run(batch)

    def _fitting(self, length: int) -> int:
        most = self.options.get("batch_size") or MOST_TEXTS
        fitting = max(1, min(most, (self.options.get("batch_tokens") or 4096) // length))
        taken = self.bytes_of_pair * length**2
        if taken:
            return max(1, min(fitting, IN_FLIGHT // taken))
        # Nothing is known of a model before its first batch.
        return 1

    def _read(self, ahead: list[tuple[int, Outcome]]) -> list[EncodedText]:
        """The texts that can be read, encoded; others are reported."""
        items: list[tuple[int, ParsedInput]] = []
        for number, given in ahead:
            with leaving_out(number, self.report):
                items.append((number, self._readable(given)))
        encoded = {**self._together(items, pairs=False), **self._together(items, pairs=True)}
        texts = []
        for number, item in items:
            with leaving_out(number, self.report):
                texts.append(self.encoded(number, item, encoded.get(number), self.read))
                self.read += 1
        return texts

    def _readable(self, given: Outcome) -> ParsedInput:
        """The input, which must be a text."""
        if isinstance(given, HeadscopeError):
            raise given
        if not given.is_text:
            raise CaptureError("A picture, a sound or a target cannot be read among texts")
        check_reads(self.model, given)
        return replace(given.read_with(self.tokenizer), cuts=self.cuts)

    def _together(
        self, items: list[tuple[int, ParsedInput]], *, pairs: bool
    ) -> dict[int, tuple[Any, int]]:
        """Texts, or pairs, encoded in one call, which is many times faster than one by one; only
        those that fit the model.
        """
        chosen = [
            (number, item)
            for number, item in items
            if (len(item.texts) == 2) == pairs and not item.is_rendered
        ]
        if len(chosen) < 2 or not getattr(self.words, "is_fast", False):
            return {}
        limit = position_limit(self.model)
        sides = list(map(list, zip(*(item.texts for _, item in chosen), strict=True)))
        try:
            encoding = self.words(*sides, padding=False, truncation=False, verbose=False)
        except OF_ONE_INPUT:
            # One text stopped it; running each by itself shows which.
            return {}
        fits = {}
        for example, ((number, item), ids) in enumerate(
            zip(chosen, encoding["input_ids"], strict=True)
        ):
            # Where the text has a special token that was put before it too, it is read alone.
            is_whole = once(self.words, ids, *item.texts) == slice(0, len(ids))
            if ids and is_whole and (limit is None or len(ids) <= limit):
                fits[number] = encoding, example
        return fits

    def _run(self, texts: list[EncodedText]) -> Iterator[BatchOutcome]:
        """Texts of one length, together or one by one."""
        try:
            if sessions() or reads_target(self.model):
                raise CaptureError("such a model is run on one text at a time")
            with at_rest(self.model):
                keeping = keeping_of(self._kept)
                records = run(self.model, self._inputs(texts), keeping, numbers=len(texts) == 1)
        except OF_ONE_INPUT:  # one text may have spoilt it
            cut = {"truncate": self.options.get("truncate", False)}
            for text in texts:
                alone = self.alone(text.number, text.item, **self._kept, **cut)
                if alone is not None:
                    yield BatchOutcome((text.number,), (text.readable,), alone)
            return
        records = records[: len(texts)]  # those of copies come last
        of_pair = 4 * sum(layer.heads for stack in records[0].stacks.values() for layer in stack)
        self.bytes_of_pair = of_pair * (MORE_THAN_WEIGHTS if "keep" in self.options else 1)
        if "keep" not in self.options and not records[0].unseen:
            with suppress(RecordError):  # these texts see differently
                batch = TextBatch.of(records)
                records.clear()  # whose weights would be held twice
                numbers = tuple(text.number for text in texts)
                yield BatchOutcome(numbers, tuple(text.readable for text in texts), batch)
                return
        for text, record in zip(texts, records, strict=True):
            yield BatchOutcome((text.number,), (text.readable,), record)

    @property
    def _kept(self) -> dict[str, Any]:
        return {"keep": "weights"} | kept_of(self.options)

    def _inputs(self, texts: list[EncodedText]) -> Inputs:
        """Texts of one length, filled up with copies of the first where they are few tokens."""
        copies = max(0, -(-LEAST_TOKENS // len(texts[0])) - len(texts))
        return inputs_of_texts(
            self.model, self.words, texts, copies=copies, specials=SpecialTokens.of(self.words)
        )
