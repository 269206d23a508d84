"""`ablate` over a corpus: its examples scored one by one, by one process or by many."""

from __future__ import annotations

import hashlib
import inspect
import json
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from headscope.capturing.many import OF_ONE_INPUT, reason_of
from headscope.capturing.run import unwrapped
from headscope.corpus import (
    CorpusText,
    Engine,
    FinishedRun,
    PartTally,
    RunFolder,
    Sums,
    key_of,
    this_process,
)
from headscope.errors import HeadscopeError, InterventionError, RecordError, RunError, TextError
from headscope.evidence.groups import group_of
from headscope.storage import read_groups, save_kept
from headscope.studies.ablate._ablate import (
    JUDGING,
    MEANS,
    By,
    ablation_of,
    check_screen,
    estimates_of,
    left_by,
)
from headscope.studies.ablate._measurer import (
    FOLD,
    MEANS_KIND,
    AblateMeasurer,
    PairsPart,
    parse_cells,
    result_of,
)
from headscope.studies.ablate._result import Ablation, Cell
from headscope.studies.shared._corpus_job import ModelJob, as_given, check_measured
from headscope.studies.shared._corpus_run import (
    RunSettings,
    Stream,
    check_correction,
    check_no_more,
    parse_job,
    taken,
)
from headscope.studies.shared._fold_run import FoldPart
from headscope.tasks import (
    Task,
    check_task,
    function_of,
    judged_pairs,
    parse_task,
    task_of_rows,
)

WHAT = ("heads", "layers", "stack", "share")
HEADS = {
    "next-word": "next words",
    "translation": "next words",
    "masked-word": "masked words",
    "minimal-pairs": "sentences",
    "classification": "classifier",
    "repeats": "next words",
}
"""What a task needs of a model."""
STAGES = {
    "means": "1 of 2, what heads do on average",
    "screen": "1 of 2, gradients of all heads",
    "after": "2 of 2, without each head",
    "": "",
}
"""The runs of a call, in words."""


@dataclass(frozen=True, kw_only=True)
class AblateJob(ModelJob):
    """What a run of `ablate` does to each example.

    Args:
        task: name of a task, or a function that makes one.
        by: see `ablate`.
        disabled: heads, layers, stack and whether layers are shared, by name.
        masked: see `AblationOptions`.
        run: which of `STAGES`.
        chosen: the heads that a screen left, of all that were to be disabled; None without one.
        averaged: the folder of the runs of what heads do on average; empty where none is wanted.
    """

    task: str | Callable[..., Any]
    by: str | By
    disabled: tuple[tuple[str, Any], ...] = ()
    masked: bool | None = None
    run: str = ""
    chosen: tuple[Cell, ...] | None = None
    averaged: str = ""

    @property
    def study(self) -> str:
        """What is made."""
        return f"{self.run} of ablate" if self.run in ("means", "screen") else "ablate"

    @property
    def stage(self) -> str:
        """Which of the runs of a call."""
        return STAGES[self.run]

    @property
    def folder(self) -> str:
        """Of a run that comes before, in that of the call."""
        return f"random {self.run}" if self.model.random else self.run

    @property
    def judges_pairs(self) -> bool:
        """Whether examples are scored when all are known."""
        return self.task == "likeness" and self.run in ("", "after")

    def options(self) -> dict[str, Any]:
        """What the numbers depend on, known before a model is loaded."""
        # As JSON gives them back.
        disabled = json.loads(json.dumps(dict(self.disabled)))
        disabled.pop("share", None)
        return super().options() | {
            "task": _called(self.task),
            "code of the task": _code_of(self.task),
            "by": _called(self.by),
            "masked": self.masked,
            "screened": json.loads(json.dumps(self.chosen)),
            **disabled,
        }

    def begin(self) -> AblateMeasurer:
        """The model, loaded once in a process, and what disables its heads."""
        model, tokenizer = self.model.load()
        return AblateMeasurer(self, unwrapped(model), tokenizer)

    def check(self, measurer: Any, texts: Sequence[CorpusText]) -> dict[str, Any]:
        """Raise where the model is not fit for the task, or no example of the sample can be read;
        what the task says of itself.
        """
        errors: list[Exception] = []
        for text in texts:
            try:
                known = measurer.check(text)
                if not self.allow_unfit:
                    self.task_of(measurer, text).check(measurer.model)
            except (*OF_ONE_INPUT, InterventionError) as error:
                errors.append(reason_of(error))
                continue
            return known
        if errors:
            raise errors[0]
        return {}

    def check_engine(self, engine: Engine) -> None:
        """Raise where a function could not go to the processes of an engine."""
        if engine.name == this_process().name:
            return
        for what, given in (("task", self.task), ("by", self.by)):
            try:
                pickle.dumps(given)
            except (pickle.PicklingError, AttributeError, TypeError) as error:
                raise RunError(
                    f"The function given as {what} cannot go to other processes ({error}); define "
                    "it in a module, with def and not as a lambda, or leave workers= and "
                    "executor= out"
                ) from None

    def task_of(self, measurer: Any, text: CorpusText) -> Task:
        """The task of one example.

        Raises:
            HeadscopeError: where it cannot be read.
        """
        example, name, model, tokenizer = text.given, self.task, measurer.model, measurer.tokenizer
        if callable(name) or ":" in name:
            make = name if callable(name) else function_of(name)
            task = parse_task(make(model, tokenizer, [as_given(example)]))
            if task.finish is not None or task.totals:
                raise InterventionError(
                    f"The task {task.name!r} has numbers of all examples together (finish, "
                    "totals), which are not put together from parts; leave them out"
                )
            return task
        # One list of cuts for all examples of a process: it warns once.
        options: dict[str, Any] = {"truncate": self.truncate, "cuts": measurer.cuts}
        options["allow_unfit"] = self.allow_unfit
        if name == "masked-word":
            # Drawn by what the text says, so that its place among the others decides nothing.
            options["seed"] = key_of("masked words", text.content, bits=56)
        if name == "minimal-pairs":
            options["masked"] = self.masked
        return task_of_rows(name, model, tokenizer, ([row_of(example)], "it"), **options)

    def tally(self, measurer: Any) -> PartTally:
        """No example."""
        return PairsPart() if self.judges_pairs else FoldPart(FOLD)

    def made(self, finished: FinishedRun, judging: Mapping[str, Any]) -> Any:
        """The `Ablation` of all parts; of a run before, the sums of these, or estimates."""
        known, pairs, sums = finished.checked, [], Sums("example")
        for state, arrays in finished.parts():
            if self.judges_pairs:
                pairs += zip(*state["pairs"], arrays["values"], strict=True)
            else:
                sums = sums + Sums.of_kept((state, arrays), "example")
        check_measured(finished, any_text=bool(pairs or len(sums)))
        if self.run == "means":
            return sums
        if self.run == "screen":
            heads = [cell for cell in parse_cells(known["cells"]) if cell[2] >= 0]
            slopes = sums.total("slopes") / len(sums)
            return estimates_of(heads, slopes, known["name"], known["metric"])
        lost = sum(each.get("times", 0) for each in finished.failed)
        if self.judges_pairs:
            return self._of_pairs(pairs, dict(judging) | known, lost)
        result = result_of(sums, {"name": self._name}, dict(judging) | known)
        result.conserved(finished.corpus.texts, result.examples, lost, "examples")
        return result

    @property
    def _name(self) -> str:
        return self.task if isinstance(self.task, str) else ""

    def _of_pairs(self, pairs: list[tuple], known: dict[str, Any], lost: int) -> Ablation:
        """The `Ablation` of pairs that are judged together, in the order of their names."""
        _, groups, lengths, values = zip(*sorted(pairs, key=lambda pair: pair[0]), strict=True)
        # [cell example column], the intact model first.
        values = np.stack(values, axis=1)
        # Those left out are numbered after the others, as their places in the data are not kept.
        left_out = dict.fromkeys(range(len(pairs), len(pairs) + lost), "")
        task = replace(judged_pairs(values[0]), left_out=left_out, groups=groups)
        facts = {name: known[name] for name in ("by", "model", "shared")}
        cells = parse_cells(known["cells"])
        return ablation_of(task, cells, values, known, facts=facts, lengths=lengths)

    def with_control(self, result: Ablation, control: Ablation) -> Ablation:
        """The result with that of random weights beside it."""
        return replace(result, control=replace(control, totals={}, estimates=None))

    def write(self, result: Any, path: Path) -> None:
        """Keep the result, or the means, in the folder of its run."""
        if isinstance(result, Ablation):
            result.save(path)
        elif isinstance(result, Sums):
            save_kept(path, MEANS_KIND, *result.kept())


def ablated_over(model: Any, task: Any, by: Any, options: dict[str, Any]) -> Ablation:
    """`headscope.ablate` as a run.

    Args:
        model: its name or folder, or loaded.
        task: name of a task, or a function that makes one.
        by: see `ablate`.
        options: see `AblationOptions`.

    Raises:
        RunError: an option that runs do not have, or a task that they cannot cut; and as of
            `headscope.corpus.run`.
        RecordError: where there are no examples.
        TextError: where there is no such task.
    """
    _check(task, by, options)
    judging = taken(options, JUDGING)
    check_correction(judging)
    disabled = {name: _settled(chosen) for name, chosen in taken(options, WHAT).items()}
    screen, top = options.pop("screen", None), options.pop("top", None)
    given = model, options.pop("tokenizer", None)
    texts = examples_of(options.pop("texts", None), options.pop("groups", None))
    running = RunSettings.taken(options)
    job = AblateJob(
        task=task,
        by=by,
        disabled=tuple(sorted(disabled.items())),
        masked=options.pop("masked", None),
        # A function of one's own takes the head that the model was saved with.
        **parse_job(given, options, running, needs=HEADS.get(str(task), "own")),
    )
    job.check_engine(running.engine)
    has_control = options.pop("random_weights", False)
    check_no_more(job.study, options)
    takes_means = isinstance(by, str) and by in MEANS
    with running.with_folder() as running:
        if screen is not None:
            estimates, texts = _before(replace(job, run="screen"), texts, running)
            judging["estimates"] = estimates
            job = replace(
                job, run="after", chosen=left_by(estimates, tuple(sorted(estimates)), top)
            )
        elif takes_means:
            job = replace(job, averaged=str(Path(running.out or "").absolute()))
            # Heads of random weights do on average what random weights do.
            for own in (job, job.twin()) if has_control else (job,):
                _, texts = _before(replace(own, run="means"), texts, running)
            job = replace(job, run="after")
        ran = running.with_control if has_control else running.result
        return ran(job, texts, judging)


def _before(job: AblateJob, texts: Stream, running: RunSettings) -> tuple[Any, Stream]:
    """The result of a run that comes before, and the examples once more."""
    folder = RunFolder(running.out or "")
    folder.begin()
    own = folder.path / job.folder
    # Examples that cannot be read are told of once, by the run itself.
    beside = replace(running, out=own, on_error=lambda *_: None)
    return beside.result(job, texts, {}), RunFolder(own).texts()


def _check(task: Any, by: Any, options: dict[str, Any]) -> None:
    """Raise where a run cannot do what was asked, before anything is read."""
    if options.pop("resume", None) is not None:
        raise RunError(
            "resume is not for runs in parts, which go on by themselves in the folder out=; leave "
            "it out, or leave out=, workers= and executor= out"
        )
    check_screen(options, by)
    if isinstance(task, str) and ":" not in task:
        check_task(task, Path())
    elif not isinstance(task, str) and (isinstance(task, Task) or not callable(task)):
        raise RunError(
            f"A run in parts makes a task of each example in its workers, and was given "
            f"{type(task).__name__}; give the name of a task such as 'next-word', or a function of "
            "model, tokenizer and a list of one example, and the examples as texts="
        )


def examples_of(rows: Any, groups: Iterable[Any] | None) -> Stream:
    """What is given as examples, one by one; errors are inputs that are none.

    Args:
        rows: texts, pairs of them, or rows of a table.
        groups: the document of each; by default the field ``group`` of rows.

    Raises:
        RecordError: where there are none, or a single one was given.
    """
    if rows is None or isinstance(rows, str | Mapping):
        raise RecordError(
            "A run of ablate needs its examples: texts=, a list of texts, pairs or rows with labels"
        )
    return _stream(rows, groups)


def _stream(rows: Iterable[Any], groups: Iterable[Any] | None) -> Stream:
    rest = None if groups is None else iter(groups)
    for number, given in enumerate(rows):
        row = row_of(given)
        if rest is not None:
            group = next(rest, rest)
        else:
            group = None if row is None else (read_groups([row]) or [None])[0]
        if group is rest and rest is not None:
            raise RecordError(
                f"{number} groups were given for more examples; give one for each example"
            )
        yield _example(given, row, group)


def _example(given: Any, row: dict[str, Any] | None, group: Any) -> CorpusText | HeadscopeError:
    if isinstance(given, HeadscopeError):
        return given
    if row is None:
        return TextError(f"An example is {type(given).__name__}; expected a text, pair or row")
    if isinstance(given, Mapping):
        # The document is no part of what an example says.
        row.pop("group", None)
        return CorpusText(row, group_of(group))
    # As a file of JSON gives it back.
    return CorpusText(list(given) if isinstance(given, tuple) else given, group_of(group))


def row_of(given: Any) -> dict[str, Any] | None:
    """An example as a row of a file has it; None where it is none."""
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, str):
        return {"text": given}
    if isinstance(given, tuple | list) and len(given) == 2:
        return {"text": given[0], "text_b": given[1]}
    return None


def _settled(chosen: Any) -> Any:
    """Heads or layers as a job holds them: in one order, and hashable."""
    if isinstance(chosen, str | bool | None):
        return chosen
    return tuple(
        sorted(tuple(map(int, one)) if isinstance(one, Iterable) else one for one in chosen)
    )


def _called(given: Any) -> str:
    """What tells one task, or one way of disabling heads, from another."""
    if isinstance(given, str):
        return given
    return f"{getattr(given, '__module__', '')}.{getattr(given, '__qualname__', repr(given))}"


def _code_of(task: Any) -> str:
    """A short name of the code of one's own task; empty for those of the library, or where it is
    not known.
    """
    if isinstance(task, str):
        code = Path(task.rpartition(":")[0]).read_bytes() if ":" in task else b""
    else:
        try:
            code = inspect.getsource(task).encode()
        except (OSError, TypeError):
            code = b""
    return hashlib.sha256(code).hexdigest()[:8] if code else ""
