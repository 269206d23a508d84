"""`heads` over a corpus: in parts, by one process or by many."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from headscope.corpus import CorpusText, FinishedRun, Kept, RunFolder, Sums
from headscope.errors import CaptureError
from headscope.measures import head_distances
from headscope.patterns import (
    PATTERNS,
    BatchValues,
    Heads,
    MissingFunction,
    Pattern,
    Tally,
    TokenRuns,
    facts_of,
    levels_of,
    named_related,
    related_patterns,
)
from headscope.record import BatchStack, Record, Stack, TextBatch
from headscope.studies._battery import induction_battery
from headscope.studies._position_mean_run import MeanMap, mean_map_over
from headscope.studies.shared._corpus_job import ModelJob, as_given, check_measured
from headscope.studies.shared._corpus_model import RunModel, corpus_texts, one_thread
from headscope.studies.shared._corpus_run import (
    RANDOM,
    RunSettings,
    check_correction,
    check_no_more,
    check_patterns,
    parse_job,
    taken,
)

BATTERY = "battery"
MEASURED = ("related", "distances")
JUDGING = ("confidence", "alpha", "correction", "margin")
Levels = tuple[tuple[str, float], ...]


class HeadsMeasurer:
    """A model with what is measured of each of its heads on a text.

    Args:
        model: loaded.
        tokenizer: its tokenizer.
        patterns: what to look for.
        stack: which stack of the records; None for the first.
        reading: options of `headscope.capturing.capture_batches`.
        distances: whether the distances of every two heads are measured, too.
        position_mean: the mean map by position, for one more baseline; see `Tally`.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        patterns: tuple[Pattern, ...],
        *,
        stack: str | None = None,
        reading: Mapping[str, Any] | None = None,
        distances: bool = False,
        position_mean: np.ndarray | None = None,
    ) -> None:
        self.model: Any = model
        self.tokenizer: Any = tokenizer
        self.patterns: tuple[Pattern, ...] = patterns
        self.stack: str | None = stack
        self._has_distances = distances
        self.rows: tuple[str, ...] = Tally(patterns).rows
        # Kept for all batches: what even rows score is worked out once for each layout of tokens.
        self._batch_values = BatchValues(patterns, position_mean)
        self.cells: list[tuple[int, int]] = []
        """Known from the first text on, as facts that all texts share."""
        self.facts: dict[str, Any] = {}
        self._options: dict[str, Any] = dict(reading or {})

    def values_of(
        self, texts: Sequence[CorpusText], failed: Callable[[int, Exception], None]
    ) -> Iterator[tuple[int, Any]]:
        """Values of texts, rows as of `Tally`, and below these the distances of each head, if any;
        see `headscope.corpus.Measurer`.
        """
        for together, values in self.measured(texts, failed):
            if not self._has_distances:
                yield from values.items()
                continue
            layers = self._stack_of(together).layers
            for index, (number, own) in enumerate(values.items()):
                weights = np.concatenate([layer.weights[index] for layer in layers])
                yield number, np.concatenate([own, head_distances(weights)])

    def measured(
        self, texts: Sequence[CorpusText], failed: Callable[[int, Exception], None]
    ) -> Iterator[tuple[TextBatch | Record, dict[int, np.ndarray]]]:
        """The attention of texts that were run together, and their values by place, in the order in
        which they are in the batch.

        Args:
            texts: see `values_of`.
            failed: see `values_of`.
        """
        from headscope.capturing import capture_batches

        given = [as_given(text.given) for text in texts]
        with one_thread():
            batches = capture_batches(
                self.model, self.tokenizer, given, on_error=failed, **self._options
            )
            for together in batches:
                batch = together.batch
                stack = self._stack_of(batch)
                values = self._batch_values.of(stack)
                self.cells = list(stack.cells)
                self.facts = facts_of(batch, stack)
                yield batch, dict(zip(together.numbers, values, strict=True))

    def _stack_of(self, batch: TextBatch | Record) -> BatchStack:
        stack = batch[self.stack or next(iter(batch.stacks))]
        return BatchStack.of([stack]) if isinstance(stack, Stack) else stack


@dataclass(frozen=True, kw_only=True)
class HeadsJob(ModelJob):
    """What a run of `heads` does to each text.

    Args:
        patterns: what to look for.
        stack: which stack of the records; None for the first.
        levels: mean score of each pattern with random weights, where these were run.
        has_battery: whether runs of repeated random tokens decide induction.
        related: whether to look for related words, too.
        distances: whether to add up the distances of every two heads.
        position_mean: the mean map by position, for one more baseline; None without it.
    """

    STUDY: ClassVar[str] = "heads"
    MEASURER: ClassVar[type[HeadsMeasurer]] = HeadsMeasurer

    patterns: tuple[Pattern, ...] = PATTERNS
    stack: str | None = None
    levels: Levels = ()
    has_battery: bool = True
    related: bool = False
    distances: bool = False
    position_mean: MeanMap | None = None

    @property
    def counted(self) -> tuple[Pattern, ...]:
        """All patterns; those that are made of a model without their functions."""
        if not self.related:
            return self.patterns
        return (*self.patterns, *named_related(MissingFunction("related")))

    @property
    def beside(self) -> Sequence[str]:
        """The runs of repeated tokens are a part of their own."""
        return (BATTERY,) if self.has_battery else ()

    def options(self) -> dict[str, Any]:
        """What the numbers depend on, known before a model is loaded."""
        return super().options() | {
            "stack": self.stack,
            "battery": self.has_battery,
            "levels": [list(level) for level in self.levels],
            "patterns": [pattern.facts for pattern in self.patterns],
            "related": self.related,
            "distances": self.distances,
            "position mean": self.position_mean and self.position_mean.digest,
        }

    def begin(self) -> HeadsMeasurer:
        """The model, loaded once in a process, and what measures with it."""
        patterns = self.patterns
        if self.related:
            # Random weights are a baseline of what the model itself holds to be related words.
            own = replace(self.model, random=False) if self.model.random else self.model
            patterns = (*patterns, *related_in_worker(own))
        return self.MEASURER(
            *self.model.load(),
            patterns,
            stack=self.stack,
            reading=self.reading,
            distances=self.distances,
            position_mean=None if self.position_mean is None else self.position_mean.load(),
        )

    def tally(self, measurer: HeadsMeasurer) -> HeadsPart:
        """Sums of no text."""
        return HeadsPart(self, measurer)

    def empty(self) -> Tally:
        """Counts of no text."""
        levels = dict(self.levels)
        return Tally(self.counted, stack=self.stack, distances=self.distances, levels=levels)

    def measure_beside(self, name: str, measurer: HeadsMeasurer) -> Kept:
        """The runs of repeated tokens; nothing where the model cannot be run on them."""
        with one_thread():
            runs = induction_battery(measurer.model, measurer.tokenizer, self.patterns, self.stack)
        if runs is None:
            return {"cells": [], "patterns": []}, {"values": np.zeros((0, 0, 0))}
        names = [pattern.name for pattern in runs.patterns]
        return {"cells": runs.cells, "patterns": names}, {"values": runs.values}

    def made(self, finished: FinishedRun, judging: Mapping[str, Any]) -> Any:
        """The heads of all parts."""
        tally = None
        for part in finished.parts():
            tally = self.with_part(tally, part)
        return self.heads_of(tally, finished, judging)

    def with_part(self, tally: Tally | None, part: Kept) -> Tally | None:
        """The counts of the parts so far, None for none, and of one part more."""
        document, arrays = part
        if document["heads"] is None:
            return tally
        own = self.empty()
        own.sums = Sums.of_kept((document["heads"], arrays))
        return own if tally is None else tally + own

    def heads_of(
        self, tally: Tally | None, finished: FinishedRun, judging: Mapping[str, Any]
    ) -> Heads:
        """What the sums of all parts, and what was measured with them, say of the heads.

        Raises:
            RunError: where no text could be measured.
        """
        check_measured(finished, any_text=tally is not None)
        assert tally is not None, "that was checked"
        tally.left_out = len(finished.failed)
        if self.has_battery:
            document, arrays = finished.part(BATTERY)
            # None where the model has other heads in these runs, or cannot be run on tokens alone.
            if [tuple(cell) for cell in document["cells"]] == tally.cells:
                named = [
                    pattern for pattern in self.patterns if pattern.name in document["patterns"]
                ]
                tally.runs = TokenRuns(tuple(named), tally.cells, arrays["values"])
        return Heads(tally, **judging)


class HeadsPart:
    """Counts of the texts of a part.

    Args:
        job: what is counted.
        measurer: of the values.
    """

    most_open: int = sys.maxsize
    """Sums take no more memory for a document that is open."""

    def __init__(self, job: HeadsJob, measurer: HeadsMeasurer) -> None:
        self._measurer, self._tally = measurer, job.empty()

    def update(self, text: CorpusText, values: np.ndarray) -> None:
        """Count a text, as often as it is there."""
        rows = len(self._measurer.rows)
        # Below the values of each head stand its distances.
        distances = values[rows:] if self._tally.adds_distances else None
        facts = self._measurer.facts
        for number in range(text.times):
            is_alone = text.group is None and not number
            name = text.name if is_alone else f"{text.name} of {text.unit}, {number}"
            own = values[:rows]
            self._tally.add(name, own, group=text.group, facts=facts, distances=distances)

    def close(self) -> None:
        """Nothing is open."""

    def kept(self) -> Kept:
        """The counts; none where no text could be measured."""
        if not self._tally.texts:
            return {"heads": None}, {"none": np.zeros(0)}
        document, arrays = self._tally.sums.kept()
        return {"heads": document}, arrays


def over_texts(
    kind: type[HeadsJob],
    given: tuple[Any, Any],
    texts: Any,
    options: dict[str, Any],
    *,
    random_weights: Heads | bool | None = None,
    more: Mapping[str, Any] | None = None,
) -> Any:
    """A study that scores the heads of a model, as a run.

    Args:
        kind: of the study.
        given: model (loaded, its name or folder, or None for the demo model), and the tokenizer of
            a loaded one.
        texts: a stream.
        options: of `heads` and of runs.
        random_weights: see `heads`.
        more: fields of the job that only this kind has.

    Raises:
        RunError: an option that runs do not have; and as of `headscope.corpus.run`.
    """
    running = RunSettings.taken(options)
    judging = taken(options, JUDGING)
    check_correction(judging)
    mean = options.pop("position_mean", None) if kind is HeadsJob else None
    stream: Iterable[Any] = corpus_texts(texts, options.pop("groups", None))
    measured = taken(options, MEASURED) if kind is HeadsJob else {}
    job = kind(
        patterns=tuple(options.pop("patterns", PATTERNS)),
        stack=options.pop("stack", None),
        has_battery=options.pop("battery", None) is not False,
        **parse_job(given, options, running),
        **measured,
        **(more or {}),
    )
    check_patterns(job.patterns, job.model, running.engine)
    check_no_more(job.study, options)
    if isinstance(random_weights, Heads):
        job = replace(job, levels=tuple(sorted(levels_of(random_weights).items())))
    with ExitStack() as folders:
        if random_weights is True or mean is not None:
            running = folders.enter_context(running.with_folder())
        if mean is not None:
            mean, stream = mean_map_over(job, mean, stream, running, stack=job.stack)
            job = replace(job, position_mean=mean)
        if random_weights is True:
            levels, stream = _levels(job, stream, running)
            job = replace(job, levels=levels)
        return running.result(job, stream, judging)


def _levels(
    job: HeadsJob, texts: Iterable[Any], running: RunSettings
) -> tuple[Levels, Iterable[Any]]:
    """Scores of the model with random weights, and the texts once more."""
    folder = RunFolder(running.out or "")
    folder.begin()
    random = folder.path / RANDOM
    # Scores alone are wanted, whatever else the study counts.
    twin = HeadsJob(
        model=replace(job.model, random=True),
        truncate=job.truncate,
        allow_unfit=job.allow_unfit,
        together=job.together,
        patterns=job.patterns,
        stack=job.stack,
        has_battery=False,
        related=job.related,
    )
    result = replace(running, out=random).result(twin, texts, {})
    return tuple(sorted(levels_of(result).items())), RunFolder(random).texts()


def input_embeddings(model: Any) -> Float[np.ndarray, "vocabulary feature"]:
    """The input embedding of each token of a model's vocabulary, float32.

    Raises:
        CaptureError: where the model reads no tokens.

    Example:
        >>> vectors = input_embeddings(model)
    """
    from headscope.capturing.device import in_memory
    from headscope.capturing.run import unwrapped

    table = unwrapped(model).get_input_embeddings()
    if getattr(getattr(table, "weight", None), "ndim", 0) != 2:
        raise CaptureError(
            f"{type(unwrapped(model)).__name__} has no table of input embeddings: it reads no "
            "tokens"
        )
    with in_memory(table):
        return table.weight.detach().float().cpu().numpy()


# One alone: it holds the vectors of a vocabulary.
@lru_cache(maxsize=1)
def related_in_worker(model: RunModel) -> tuple[Pattern, ...]:
    """The patterns of related words of a model that a worker loads, made once."""
    return related_patterns(input_embeddings(model.load()[0]))
