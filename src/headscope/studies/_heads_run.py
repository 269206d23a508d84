"""`heads` over a corpus: in parts, by one process or by many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from headscope.corpus import CorpusText, FinishedRun, Kept, RunFolder
from headscope.evidence import MapSum
from headscope.patterns import (
    PATTERNS,
    Heads,
    MissingFunction,
    Pattern,
    Tally,
    TallySums,
    levels_of,
    named_related,
)
from headscope.storage import arrays_below
from headscope.studies._battery import induction_battery
from headscope.studies._heads_measurer import HeadsMeasurer
from headscope.studies._model_patterns import related_in_worker
from headscope.studies._position_mean_run import MeanMap, mean_map_over
from headscope.studies.shared._corpus_job import ModelJob, check_measured
from headscope.studies.shared._corpus_model import corpus_texts, one_thread
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
MEMORY = 2**28
"""Bytes of the sums of documents that are open at once: 256 MiB."""
TOGETHER = 32
"""Texts whose values wait to be added up together, which is cheaper than one by one."""
HEADS = 1024
"""Of a model whose configuration does not say how many it has."""
DISTANCES = "distances."
"""Before the names of arrays of distances in the file of a part."""
MEASURED = ("related", "distances")
JUDGING = ("confidence", "alpha", "correction", "margin")
FACTS = ("name", "says", "source", "threshold", "by_place", "by_word")
"""Of a pattern, what a file can hold."""

Levels = tuple[tuple[str, float], ...]


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
        patterns = []
        for pattern in self.patterns:
            patterns.append({name: getattr(pattern, name) for name in FACTS})
        return super().options() | {
            "stack": self.stack,
            "battery": self.has_battery,
            "levels": [list(level) for level in self.levels],
            "patterns": patterns,
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

    def sums(self, cells: Sequence[tuple[int, int]]) -> TallySums:
        """Sums of no text, for these heads."""
        return TallySums(
            self.counted,
            cells,
            stack=self.stack,
            levels=dict(self.levels),
            distances=self.distances,
        )

    def measure_beside(self, name: str, measurer: HeadsMeasurer) -> Kept:
        """The runs of repeated tokens; nothing where the model cannot be run on them."""
        with one_thread():
            runs = induction_battery(measurer.model, measurer.tokenizer, self.patterns, self.stack)
        if runs is None:
            return {"cells": [], "patterns": []}, {"values": np.zeros((0, 0, 0))}
        names = [pattern.name for pattern in runs.patterns]
        return {"cells": runs.cells, "patterns": names}, {"values": runs.statistic.values}

    def made(self, finished: FinishedRun, judging: Mapping[str, Any]) -> Any:
        """The heads of all parts."""
        tally = None
        for part in finished.parts():
            tally = self.with_part(tally, part)
        return self.heads_of(tally, finished, judging)

    def with_part(self, tally: TallySums | None, part: Kept) -> TallySums | None:
        """The sums of the parts so far, None for none, and of one part more."""
        document, arrays = part
        if not document["cells"]:
            return tally
        sums = self.sums([(layer, head) for layer, head in document["cells"]]).fill(arrays)
        sums.model = document["model"]
        if self.distances:
            sums.distances = MapSum.of_arrays(arrays_below(arrays, DISTANCES), ())
        return sums if tally is None else tally + sums

    def heads_of(
        self, tally: TallySums | None, finished: FinishedRun, judging: Mapping[str, Any]
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
                tally.battery = Tally.of_values(tuple(named), tally.cells, arrays["values"])
        return Heads(tally, levels=dict(self.levels) or None, **judging)


class HeadsPart:
    """Sums over the texts of a part; heads are known from the first text on.

    Args:
        job: what is counted.
        measurer: of the values.
    """

    def __init__(self, job: HeadsJob, measurer: HeadsMeasurer) -> None:
        self._job, self._measurer = job, measurer
        self._sums: TallySums | None = None
        self._waiting: list[tuple[CorpusText, np.ndarray]] = []
        self._distances: MapSum | None = None
        config = getattr(measurer.model, "config", None)
        layers = getattr(config, "num_hidden_layers", None)
        heads = getattr(config, "num_attention_heads", None)
        known = isinstance(layers, int) and isinstance(heads, int)
        rows = len(measurer.rows)
        self.most_open: int = max(1, MEMORY // (16 * rows * (layers * heads if known else HEADS)))

    def update(self, text: CorpusText, values: np.ndarray) -> None:
        """Count a text."""
        rows = len(self._measurer.rows)
        if self._job.distances:
            self._distances = self._distances or MapSum(1, values.shape[1])
            # Below the values of each head stand its distances.
            self._distances.update(None, values[None, rows:], times=text.times)
        self._waiting.append((text, values[:rows]))
        if len(self._waiting) >= TOGETHER:
            self._add_waiting()

    def close(self) -> None:
        """The documents so far have no more texts."""
        self._add_waiting()
        if self._sums is not None:
            self._sums.close()

    def kept(self) -> Kept:
        """The sums; none where no text could be measured."""
        self._add_waiting()
        if self._sums is None:
            return {"cells": [], "model": ""}, {"none": np.zeros(0)}
        arrays = self._sums.arrays
        if self._distances is not None:
            arrays |= {f"{DISTANCES}{name}": of for name, of in self._distances.arrays.items()}
        return {"cells": self._sums.cells, "model": self._sums.model}, arrays

    def _add_waiting(self) -> None:
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        if self._sums is None:
            self._sums = self._job.sums(self._measurer.cells)
            self._sums.model = self._measurer.name
        values = np.stack([each for _, each in waiting])
        self._sums.update_many(values, [(text.group, text.times) for text, _ in waiting])


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
