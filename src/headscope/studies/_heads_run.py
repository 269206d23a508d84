"""`heads` over a corpus: in parts, by one process or by many."""

from __future__ import annotations

import os
import pickle
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from headscope.corpus import (
    OPTIONS,
    CorpusText,
    Engine,
    FinishedRun,
    Job,
    Kept,
    RunFolder,
    engine_of,
    run,
    this_process,
)
from headscope.errors import RunError
from headscope.evidence.correction import CORRECTIONS
from headscope.patterns import (
    PATTERNS,
    Heads,
    MissingFunction,
    Pattern,
    Tally,
    TallySums,
    levels_of,
)
from headscope.studies._battery import induction_battery
from headscope.studies._heads_measurer import HeadsMeasurer
from headscope.studies.shared._corpus_model import (
    NamedModel,
    RunModel,
    corpus_texts,
    facts_of_model,
    one_thread,
    parse_model,
)
from headscope.studies.shared._source import check_texts

BATTERY = "battery"
RESULT = "result.safetensors"
RANDOM = "random_weights"
"""Folder of the run of the model with random weights, in that of the run."""
MEMORY = 2**28
"""Bytes of the sums of documents that are open at once: 256 MiB."""
HEADS = 1024
"""Of a model whose configuration does not say how many it has."""
JUDGING = ("confidence", "alpha", "correction", "margin")
NOT_IN_RUNS = ("position_mean", "predictive", "related", "distances")
FACTS = ("name", "says", "source", "threshold", "by_place", "by_word")
"""Of a pattern, what a file can hold."""


@dataclass(frozen=True)
class HeadsJob:
    """What a run of `heads` does to each text.

    Args:
        model: what reads the texts.
        patterns: what to look for.
        stack: which stack of the records; None for the first.
        levels: mean score of each pattern with random weights, where these were run.
        has_battery: whether runs of repeated random tokens decide induction.
        truncate: whether texts that are too long are cut.
        allow_unfit: whether texts of mostly unknown tokens are read.
    """

    model: RunModel
    patterns: tuple[Pattern, ...] = PATTERNS
    stack: str | None = None
    levels: tuple[tuple[str, float], ...] = ()
    has_battery: bool = True
    truncate: bool = False
    allow_unfit: bool = False

    @property
    def study(self) -> str:
        """What is made."""
        return "heads"

    @property
    def beside(self) -> Sequence[str]:
        """The runs of repeated tokens are a part of their own."""
        return (BATTERY,) if self.has_battery else ()

    def options(self) -> dict[str, Any]:
        """What the numbers depend on, known before a model is loaded."""
        patterns = []
        for pattern in self.patterns:
            patterns.append({name: getattr(pattern, name) for name in FACTS})
        return {
            "stack": self.stack,
            "truncate": self.truncate,
            "allow_unfit": self.allow_unfit,
            "random weights": self.model.random,
            "battery": self.has_battery,
            "levels": [list(level) for level in self.levels],
            "patterns": patterns,
        }

    def begin(self) -> HeadsMeasurer:
        """The model, loaded once in a process, and what measures with it."""
        model, tokenizer = self.model.load()
        return HeadsMeasurer(
            model,
            tokenizer,
            self.patterns,
            stack=self.stack,
            truncate=self.truncate,
            allow_unfit=self.allow_unfit,
        )

    def facts(self, measurer: HeadsMeasurer) -> dict[str, str]:
        """Weights, how the model runs, and versions of libraries."""
        return facts_of_model(measurer.model)

    def check(self, measurer: HeadsMeasurer, texts: Sequence[CorpusText]) -> dict[str, Any]:
        """Raise where the texts are mostly unknown to the tokenizer."""
        if not self.allow_unfit:
            check_texts(measurer.tokenizer, [text.given for text in texts])
        return {}

    def tally(self, measurer: HeadsMeasurer) -> HeadsPart:
        """Sums of no text."""
        return HeadsPart(self, measurer)

    def sums(self, cells: Sequence[tuple[int, int]]) -> TallySums:
        """Sums of no text, for these heads."""
        return TallySums(self.patterns, cells, stack=self.stack, levels=dict(self.levels))

    def measure_beside(self, name: str, measurer: HeadsMeasurer) -> Kept:
        """The runs of repeated tokens; nothing where the model cannot be run on them."""
        with one_thread():
            runs = induction_battery(measurer.model, measurer.tokenizer, self.patterns, self.stack)
        if runs is None:
            return {"cells": [], "patterns": []}, {"values": np.zeros((0, 0, 0))}
        names = [pattern.name for pattern in runs.patterns]
        return {"cells": runs.cells, "patterns": names}, {"values": runs.statistic.values}


class HeadsPart:
    """Sums over the texts of a part; heads are known from the first text on.

    Args:
        job: what is counted.
        measurer: of the values.
    """

    def __init__(self, job: HeadsJob, measurer: HeadsMeasurer) -> None:
        self._job, self._measurer = job, measurer
        self._sums: TallySums | None = None
        config = getattr(measurer.model, "config", None)
        layers = getattr(config, "num_hidden_layers", None)
        heads = getattr(config, "num_attention_heads", None)
        known = isinstance(layers, int) and isinstance(heads, int)
        rows = len(measurer.rows)
        self.most_open: int = max(1, MEMORY // (16 * rows * (layers * heads if known else HEADS)))

    def update(self, text: CorpusText, values: np.ndarray) -> None:
        """Count a text."""
        if self._sums is None:
            self._sums = self._job.sums(self._measurer.cells)
            self._sums.model = self._measurer.name
        self._sums.update(values, group=text.group, times=text.times)

    def close(self) -> None:
        """The documents so far have no more texts."""
        if self._sums is not None:
            self._sums.close()

    def kept(self) -> Kept:
        """The sums; none where no text could be measured."""
        if self._sums is None:
            return {"cells": [], "model": ""}, {"none": np.zeros(0)}
        return {"cells": self._sums.cells, "model": self._sums.model}, self._sums.arrays


def heads_over(
    model: Any,
    tokenizer: Any,
    texts: Any,
    options: dict[str, Any],
    *,
    random_weights: Heads | bool | None = None,
) -> Heads:
    """`headscope.studies.heads` as a run; see `over_texts`."""
    return over_texts((model, tokenizer, texts), options, OF_HEADS, random_weights=random_weights)


def over_texts(
    given: tuple[Any, Any, Any],
    options: dict[str, Any],
    study: ScoringStudy,
    *,
    random_weights: Heads | bool | None = None,
) -> Any:
    """A study that scores the heads of a model, as a run.

    Args:
        given: model (loaded, its name or folder, or None for the demo model), tokenizer of a loaded
            one, and a stream of texts.
        options: of `heads` and of runs.
        study: what is made.
        random_weights: see `heads`.

    Raises:
        RunError: an option that runs do not have; and as of `headscope.corpus.run`.
    """
    model, tokenizer, texts = given
    how = {name: options.pop(name, None) for name in OPTIONS}
    engine = engine_of(how.get("workers"), how.get("executor"))
    judging = {name: options.pop(name) for name in JUDGING if name in options}
    _check_options(options, judging)
    groups = options.pop("groups", None)
    progress = options.pop("progress", True)
    job = HeadsJob(
        parse_model(model, tokenizer, options, engine),
        tuple(options.pop("patterns", PATTERNS)),
        options.pop("stack", None),
        has_battery=options.pop("battery", None) is not False,
        truncate=options.pop("truncate", False),
        allow_unfit=options.pop("allow_unfit", False),
    )
    _check_patterns(job, engine)
    if options:
        raise RunError(
            f"{study.name} over a corpus has no option {', '.join(map(repr, options))}; "
            f"{study.without}"
        )
    running = RunSettings(engine, how.get("out"), how.get("part_size"), progress)
    stream: Iterable[Any] = corpus_texts(texts, groups)
    if random_weights is True:
        with running.with_folder() as running:
            levels, stream = _levels(job, stream, running)
            return running.result(study, replace(job, levels=levels), stream, judging)
    if isinstance(random_weights, Heads):
        job = replace(job, levels=tuple(sorted(levels_of(random_weights).items())))
    return running.result(study, job, stream, judging)


@dataclass(frozen=True)
class RunSettings:
    """How a run goes on, whatever its job.

    Args:
        engine: what runs the parts.
        out: folder; None for one that goes when the run is done.
        part_size: texts in a part.
        progress: whether to show how far it is.
        keeps: whether the result stays in the folder.
    """

    engine: Engine
    out: str | os.PathLike[str] | None
    part_size: int | None
    progress: bool
    keeps: bool = True

    @contextmanager
    def with_folder(self) -> Generator[RunSettings]:
        """The same with a folder, for the length of a block where none was given."""
        if self.out is not None:
            yield self
            return
        with tempfile.TemporaryDirectory(prefix="headscope-") as folder:
            yield replace(self, out=folder, keeps=False)

    def result(
        self, study: ScoringStudy, job: HeadsJob, texts: Iterable[Any], judging: Mapping[str, Any]
    ) -> Any:
        """Run a job, and tell what its sums say."""
        with run(
            study.job_of(job),
            texts,
            out=self.out,
            engine=self.engine,
            part_size=self.part_size,
            progress=self.progress,
        ) as finished:
            result = study.made(job, finished, judging)
            if self.out is not None:
                result.save(Path(self.out) / RESULT)
            if not job.model.random:
                _warn_of_left_out(finished, self.out if self.keeps else None)
        return result


def _levels(
    job: HeadsJob, texts: Iterable[Any], running: RunSettings
) -> tuple[tuple[tuple[str, float], ...], Iterator[Any]]:
    """Scores of the model with random weights, and the texts once more."""
    folder = RunFolder(running.out or "")
    folder.begin()
    random = folder.path / RANDOM
    twin = replace(job, model=replace(job.model, random=True), has_battery=False)
    result = replace(running, out=random).result(OF_HEADS, twin, texts, {})
    return tuple(sorted(levels_of(result).items())), RunFolder(random).texts()


def _heads_of(job: HeadsJob, finished: FinishedRun, judging: Mapping[str, Any]) -> Heads:
    """The heads of all parts."""
    tally = None
    for part in finished.parts():
        tally = with_part(job, tally, part)
    return heads_of_sums(job, tally, finished, judging)


def with_part(job: HeadsJob, tally: TallySums | None, part: Kept) -> TallySums | None:
    """The sums of the parts so far, None for none, and of one part more."""
    document, arrays = part
    if not document["cells"]:
        return tally
    sums = job.sums([(layer, head) for layer, head in document["cells"]]).fill(arrays)
    sums.model = document["model"]
    return sums if tally is None else tally + sums


def heads_of_sums(
    job: HeadsJob, tally: TallySums | None, finished: FinishedRun, judging: Mapping[str, Any]
) -> Heads:
    """What the sums of all parts, and what was measured beside them, say of the heads.

    Raises:
        RunError: where no text could be measured.
    """
    if tally is None:
        first = finished.failed[0]["error"] if finished.failed else "there was none"
        raise RunError(f"No text of the run could be measured: {first}")
    tally.left_out = len(finished.failed)
    if job.has_battery:
        document, arrays = finished.part(BATTERY)
        # None where the model has other heads in these runs, or cannot be run on tokens alone.
        if [tuple(cell) for cell in document["cells"]] == tally.cells:
            named = [pattern for pattern in job.patterns if pattern.name in document["patterns"]]
            tally.battery = Tally.of_values(tuple(named), tally.cells, arrays["values"])
    return Heads(tally, levels=dict(job.levels) or None, **judging)


@dataclass(frozen=True)
class ScoringStudy:
    """A study whose run scores the heads of a model on every text.

    Args:
        name: of the study.
        without: what to do about an option that it does not have.
        job_of: what is done to each text, made of what scores it.
        made: the result of what scores it, of all parts, and of options of `Heads`.
    """

    name: str
    without: str
    job_of: Callable[[HeadsJob], Job]
    made: Callable[[HeadsJob, FinishedRun, Mapping[str, Any]], Any]


def _as_it_is(job: HeadsJob) -> Job:
    return job


OF_HEADS = ScoringStudy(
    "heads", "leave it out, or leave out=, workers= and executor= out", _as_it_is, _heads_of
)


def _check_options(options: dict[str, Any], judging: Mapping[str, Any]) -> None:
    for name in NOT_IN_RUNS:
        if options.pop(name, None) not in (None, False):
            raise RunError(
                f"{name} is not for runs over a corpus; leave it out, or leave out=, workers= and "
                "executor= out"
            )
    if judging.get("correction", "holm") not in CORRECTIONS:
        raise RunError(
            f"correction is {judging['correction']!r}; give one of {', '.join(CORRECTIONS)}"
        )


def _check_patterns(job: HeadsJob, engine: Engine) -> None:
    """Raise where patterns of one's own could not be read by other processes."""
    if isinstance(job.model, NamedModel) and engine.name != this_process().name:
        for pattern in pickle.loads(pickle.dumps(job.patterns)):
            if isinstance(pattern.score, MissingFunction) or isinstance(
                pattern.pairs, MissingFunction
            ):
                raise RunError(
                    f"The functions of pattern {pattern.name!r} cannot go to other processes; "
                    "define them in a module, with def, and not as a lambda"
                )


def _warn_of_left_out(finished: FinishedRun, out: str | os.PathLike[str] | None) -> None:
    if not finished.failed:
        return
    where = "" if out is None else f", named in {Path(out) / 'failed.jsonl'}"
    warnings.warn(
        f"{len(finished.failed)} inputs were left out{where}; the first: "
        f"{finished.failed[0]['error']}",
        stacklevel=5,
    )
