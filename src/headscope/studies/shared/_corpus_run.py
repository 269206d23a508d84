"""The run of a study over many texts: its options, its result, and that of random weights."""

from __future__ import annotations

import os
import pickle
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headscope.corpus import (
    OPTIONS,
    CorpusText,
    Engine,
    FinishedRun,
    RunFolder,
    engine_of,
    run,
    this_process,
)
from headscope.errors import HeadscopeError, RunError
from headscope.evidence.chance import CORRECTIONS
from headscope.patterns import MissingFunction, Pattern
from headscope.studies.shared._corpus_job import ModelJob
from headscope.studies.shared._corpus_model import NamedModel, RunModel, parse_model

RESULT = "result.safetensors"
RANDOM = "random_weights"
"""Folder of the run of the model with random weights, in that of the run."""
TOGETHER = ("batch_size", "batch_tokens")
COUNTED = {
    "texts": "texts",
    "text_count": "texts",
    "sentences": "sentences",
    "passages": "passages",
    "examples": "examples",
}
"""How many inputs a result counted, by the name of its attribute, and what they are called."""

Stream = Iterable[CorpusText | HeadscopeError]


@dataclass(frozen=True)
class RunSettings:
    """How a run is resumed, whatever its job.

    Args:
        engine: what runs the parts.
        out: folder; None for one that goes when the run is done.
        part_size: texts in a part.
        progress: whether to show how far it is.
        keeps: whether the result stays in the folder.
        on_error: is called with the place in ``failed.jsonl``, from 0, and the reason of an input
            that was left out; by default one warning tells of all.
    """

    engine: Engine
    out: str | os.PathLike[str] | None
    part_size: int | None
    progress: bool
    keeps: bool = True
    on_error: Callable[[int, HeadscopeError], None] | None = None

    @classmethod
    def taken(cls, options: dict[str, Any]) -> RunSettings:
        """Those of `headscope.corpus.RunOptions`, which are taken out of the options of a study.

        Raises:
            RunError: where workers and an executor were given, or one is not what it must be.
        """
        how = {name: options.pop(name, None) for name in OPTIONS}
        engine = engine_of(how["workers"], how["executor"])
        return cls(
            engine,
            how["out"],
            how["part_size"],
            options.pop("progress", True),
            on_error=options.pop("on_error", None),
        )

    @contextmanager
    def with_folder(self) -> Generator[RunSettings]:
        """The same with a folder, for the length of a block where none was given."""
        if self.out is not None:
            yield self
            return
        with tempfile.TemporaryDirectory(prefix="headscope-") as folder:
            yield replace(self, out=folder, keeps=False)

    def result(self, job: ModelJob, texts: Stream, judging: Mapping[str, Any]) -> Any:
        """Run a job, and tell what its parts say together."""
        with run(
            job,
            texts,
            out=self.out,
            engine=self.engine,
            part_size=self.part_size,
            progress=self.progress,
        ) as finished:
            result = job.made(finished, judging)
            lost = sum(each.get("times", 0) for each in finished.failed)
            for name, what in COUNTED.items():
                if isinstance(counted := getattr(result, name, None), int):
                    result.conserved(finished.corpus.texts, counted, lost, what)
            if self.out is not None:
                job.write(result, Path(self.out) / RESULT)
            if not job.model.random:
                self._tell_of_left_out(finished)
        return result

    def _tell_of_left_out(self, finished: FinishedRun) -> None:
        if self.on_error is not None:
            for index, each in enumerate(finished.failed):
                self.on_error(index, RunError(each["error"]))
        elif finished.failed:
            where = ""
            if self.out is not None and self.keeps:
                where = f", named in {Path(self.out) / 'failed.jsonl'}"
            warnings.warn(
                f"{len(finished.failed)} inputs were left out{where}; the first: "
                f"{finished.failed[0]['error']}",
                stacklevel=6,
            )

    def with_control(self, job: ModelJob, texts: Stream, judging: Mapping[str, Any]) -> Any:
        """The same, and beside it what random weights say of the same texts."""
        with self.with_folder() as running:
            result = running.result(job, texts, judging)
            folder = RunFolder(running.out or "")
            beside = replace(running, out=folder.path / RANDOM)
            control = beside.result(job.twin(), folder.texts(), judging)
            both = job.with_control(result, control)
            job.write(both, folder.path / RESULT)
        return both


def parse_job(
    given: tuple[Any, Any],
    options: dict[str, Any],
    running: RunSettings,
    *,
    needs: str = "attention",
) -> dict[str, Any]:
    """Options of a `ModelJob`, which are taken out of those of a study.

    Args:
        given: model (loaded, its name or folder, or None for the demo model), and the tokenizer of
            a loaded one.
        options: of the study.
        running: how the job will run.
        needs: what the model must have; see `headscope.studies.shared._corpus_model.NamedModel`.

    Raises:
        RunError: where a loaded model would have to go to other processes.
    """
    if needs != ModelJob.NEEDS and options.get("allow_unfit", False):
        needs = f"any {needs}"
    model: RunModel = parse_model(*given, options, running.engine, needs=needs)
    together = []
    for name in TOGETHER:
        if options.get(name) is not None:
            together.append((name, options[name]))
        options.pop(name, None)
    return {
        "model": model,
        "truncate": options.pop("truncate", False),
        "allow_unfit": options.pop("allow_unfit", False),
        "together": tuple(together),
    }


def check_no_more(study: str, options: Mapping[str, Any]) -> None:
    """Raise where a run was given options that it does not have.

    Raises:
        RunError: naming them.
    """
    if options:
        raise RunError(
            f"{study} over a corpus has no option {', '.join(map(repr, options))}; leave it out, "
            "or leave out=, workers= and executor= out"
        )


def taken(options: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """These options, which are taken out of the others."""
    return {name: options.pop(name) for name in names if name in options}


def check_correction(judging: Mapping[str, Any]) -> None:
    """Raise before the run where there is no such correction for trying many things.

    Raises:
        RunError: naming those that there are.
    """
    if judging.get("correction", "holm") not in CORRECTIONS:
        raise RunError(
            f"correction is {judging['correction']!r}; give one of {', '.join(CORRECTIONS)}"
        )


def check_patterns(patterns: Iterable[Pattern], model: RunModel, engine: Engine) -> None:
    """Raise where patterns of one's own could not be read by other processes.

    Raises:
        RunError: naming the pattern.
    """
    if not isinstance(model, NamedModel) or engine.name == this_process().name:
        return
    for pattern in pickle.loads(pickle.dumps(tuple(patterns))):
        if isinstance(pattern.score, MissingFunction) or isinstance(pattern.pairs, MissingFunction):
            raise RunError(
                f"The functions of pattern {pattern.name!r} cannot go to other processes; define "
                "them in a module, with def, and not as a lambda"
            )


def checked_job(
    study: type[ModelJob],
    given: tuple[Any, Any],
    options: dict[str, Any],
    running: RunSettings,
    *,
    how: Mapping[str, Any],
) -> ModelJob:
    """The job of a study, of options which it must all have.

    Args:
        study: makes its job, of the options of a `ModelJob` and of ``how``.
        given: model and tokenizer.
        options: of reading; all that there are.
        running: how it will run.
        how: options that every part depends on.

    Raises:
        RunError: an option that there is not, or what cannot go to other processes.
    """
    needed = parse_job(given, options, running, needs=study.needs(how))
    job = study(**needed, **how)
    check_no_more(job.study, options)
    job.check_engine(running.engine)
    return job


def run_study(
    study: type[ModelJob],
    given: tuple[Any, Any],
    texts: Stream,
    options: dict[str, Any],
    *,
    how: Mapping[str, Any],
    judging: Mapping[str, Any],
    random_weights: bool,
) -> Any:
    """A study as a run over a corpus.

    Args:
        study: makes its job, of the options of a `ModelJob` and of ``how``.
        given: model and tokenizer.
        texts: what is read.
        options: of runs and of reading; all that there are.
        how: options that every part depends on.
        judging: options that no part depends on.
        random_weights: whether the same architecture with random weights reads the texts, too.

    Raises:
        RunError: an option that there is not; and as of `headscope.corpus.run`.
    """
    running = RunSettings.taken(options)
    job = checked_job(study, given, options, running, how=how)
    run_ = running.with_control if random_weights else running.result
    return run_(job, texts, judging)
