"""A fold as a run in parts."""

from __future__ import annotations

import hashlib
import json
import pickle
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope._progress import warn_left_out
from headscope.corpus import (
    ALONE,
    OPTIONS,
    CorpusText,
    Engine,
    FinishedRun,
    Kept,
    RunFolder,
    Sums,
    engine_of,
    run,
    this_process,
)
from headscope.errors import HeadscopeError, ModelError, NoSuchStackError, RecordError, RunError
from headscope.patterns import MissingFunction, Pattern
from headscope.results import Result
from headscope.storage import load_kept, save_kept
from headscope.studies.shared._corpus_model import RunModel, facts_of_model, one_thread, parse_model
from headscope.studies.shared._fold import Readers, as_given, said
from headscope.studies.shared._source import check_known_texts

if TYPE_CHECKING:
    from headscope.corpus import Counted
    from headscope.studies.shared._fold import Fold

RESULT = "result.safetensors"
RANDOM = "random_weights"
"""Folder of the run of the model with random weights, in that of the run."""
TOGETHER = ("batch_size", "batch_tokens")
Stream = Iterable[CorpusText | HeadscopeError]


def hashable(option: Any) -> Any:
    """An option as a job holds it, compared and hashed; neither names nor chosen heads and layers
    have an order that would change anything.
    """
    if isinstance(option, str) or not isinstance(option, Iterable):
        return option
    parts = []
    for part in option:
        if isinstance(part, str) or not isinstance(part, Iterable):
            parts.append(part)
        else:
            # A head may be of NumPy's numbers, which JSON does not take.
            parts.append(tuple(value if isinstance(value, str) else int(value) for value in part))
    return tuple(sorted(parts))


@dataclass(frozen=True)
class KeptArrays:
    """Arrays in a file, since they are too large to travel with every part.

    Args:
        path: of the file, as every worker sees it.
        facts: of what it holds: a part of another file is refused.
    """

    path: str
    facts: str

    @classmethod
    def saved(cls, path: Path, arrays: dict[str, np.ndarray]) -> KeptArrays:
        """Write arrays into a file."""
        digest = hashlib.sha256()
        for name, array in sorted(arrays.items()):
            digest.update(repr((name, array.shape)).encode() + array.tobytes())
        kept = cls(str(path.absolute()), digest.hexdigest()[:16])
        path.parent.mkdir(parents=True, exist_ok=True)
        save_kept(path, "arrays of a run", {"digest": kept.facts}, arrays)
        return kept

    def load(self) -> dict[str, np.ndarray]:
        """The arrays, read once in a process.

        Raises:
            RunError: where the file holds others.
        """
        return _loaded(self)


# One alone: arrays of long texts are large.
@lru_cache(maxsize=1)
def _loaded(kept: KeptArrays) -> dict[str, np.ndarray]:
    document, arrays = load_kept(kept.path, "arrays of a run")
    if document["digest"] != kept.facts:
        raise RunError(
            f"{kept.path} holds other arrays than this run was begun with; give another folder"
        )
    return arrays


def named(fold: Fold, text: CorpusText, number: int = 0) -> tuple[str, str]:
    """Name and document of a text of a run: its own, or its content and its number among its
    copies.
    """
    own = getattr(fold.item_of(text.given), "name", "")
    if own:
        return own, text.group or f"{ALONE}{own}"
    return text.copy_name(number), text.document


@dataclass(frozen=True, kw_only=True)
class FoldJob:
    """A fold as a job of `headscope.corpus.run`.

    Args:
        fold: the study.
        model: what reads the texts.
        how: options of ``counts_of``.
        truncate: whether texts that are too long are cut.
        allow_unfit: whether texts of mostly unknown tokens are read.
        together: ``batch_size`` and ``batch_tokens`` of `headscope.capture_many`, where given.
        alone: whether no other worker shares the machine, so that torch may use all of it.
    """

    fold: Fold
    model: RunModel
    how: tuple[tuple[str, Any], ...] = ()
    truncate: bool = False
    allow_unfit: bool = False
    together: tuple[tuple[str, int], ...] = ()
    alone: bool = False

    @property
    def study(self) -> str:
        """What is made."""
        return self.fold.name

    @property
    def stage(self) -> str:
        """What progress is of."""
        return self.fold.stage

    def beside(self, readers: Readers) -> Kept | None:
        """What is measured once, beside the texts; None where nothing is."""
        if self.fold.beside is None:
            return None
        with self._threads():
            return self.fold.beside(readers, dict(self.how))

    def options(self) -> dict[str, Any]:
        """What the numbers depend on, known before a model is loaded."""
        own = {
            "truncate": self.truncate,
            "allow_unfit": self.allow_unfit,
            "random weights": self.model.random,
        }
        # As JSON gives it back.
        return own | json.loads(json.dumps(said(dict(self.how))))

    def begin(self) -> Readers:
        """Model and tokenizer, loaded once in a process."""
        return self.model.load()

    def facts(self, readers: Readers) -> dict[str, str]:
        """Weights, settings, how the model runs, its tokenizer, and versions of libraries."""
        return facts_of_model(*readers)

    def check(self, readers: Readers, texts: Sequence[CorpusText]) -> None:
        """Raise where the model cannot be studied, or the texts are mostly unknown to it."""
        given = list(map(self._read, texts))
        if self.fold.check is not None and not self.model.random:
            how = {"allow_unfit": self.allow_unfit, "truncate": self.truncate}
            self.fold.check(readers, given, dict(self.how), **how)
        if not self.fold.reads_texts:
            return

        def failed(_: int, error: Exception) -> None:
            # What is wrong whatever the text, such as a head that does not exist, ends the run.
            if isinstance(error, ModelError | NoSuchStackError):
                raise error

        next(self.values_of(readers, texts, failed), None)
        if self.allow_unfit:
            return
        from headscope.capturing import parse_input

        words: list[str] = []
        for each in given:
            if not isinstance(each, HeadscopeError):
                words += parse_input(as_given(each)).texts
        check_known_texts(readers[1], words)

    def check_engine(self, engine: Engine) -> None:
        """Raise where an option could not go to the processes of an engine."""
        if engine.name == this_process().name:
            return
        for name, value in self.how:
            if not callable(value) and said(value) == type(value).__name__:
                raise RunError(
                    f"A loaded {name} cannot go to other processes; give its name or folder"
                )
            try:
                sent = pickle.loads(pickle.dumps(value))
            except (pickle.PicklingError, AttributeError, TypeError) as error:
                raise RunError(
                    f"The function given as {name} cannot go to other processes ({error}); define "
                    "it in a module, with def and not as a lambda, or leave workers= and "
                    "executor= out"
                ) from None
            for each in sent if isinstance(sent, tuple) else ():
                if isinstance(each, Pattern) and MissingFunction in map(type, vars(each).values()):
                    raise RunError(
                        f"The functions of pattern {each.name!r} cannot go to other processes; "
                        "define them in a module, with def, and not as a lambda"
                    )

    def values_of(
        self, readers: Readers, texts: Sequence[CorpusText], failed: Callable[[int, Any], None]
    ) -> Iterator[tuple[int, Counted]]:
        """What is counted of each text."""
        items = [self.fold.item_of(text.given) for text in texts]
        yield from self.counts(readers, list(map(self._read, texts)), items, on_error=failed)

    def counts(
        self, readers: Readers, given: Any, items: Sequence[Any], **reading: Any
    ) -> Iterator[tuple[int, Counted]]:
        """What is counted of each item, of what the model reads of it; see `Fold.counts`."""
        from headscope.capturing import MOST_UNKNOWN

        reading |= {"truncate": self.truncate, **dict(self.together)}
        reading["max_unknown"] = 1.0 if self.allow_unfit else MOST_UNKNOWN
        with self._threads():
            yield from self.fold.counts(readers, given, items, how=dict(self.how), reading=reading)

    def _threads(self) -> AbstractContextManager[None]:
        return nullcontext() if self.alone else one_thread()

    def tally(self) -> Sums:
        """The sums of no text."""
        return Sums(self.fold.what)

    def count(self, sums: Sums, text: CorpusText, values: Counted) -> None:
        """Add a text to sums, as often as it is there."""
        for number in range(text.times):
            values.add_to(sums, *named(self.fold, text, number))

    def _read(self, text: CorpusText) -> Any:
        """What the model reads of a text, or why it cannot be read."""
        try:
            return self.fold.input_of(self.fold.item_of(text.given), dict(self.how))
        except HeadscopeError as error:
            return error

    def made(self, finished: FinishedRun, judging: Mapping[str, Any]) -> Any:
        """The result of the sums of all parts.

        Raises:
            RecordError: where not one text could be measured.
        """
        sums, left_out = Sums(self.fold.what), {}
        for part in finished.parts():
            sums = sums + Sums.of_kept(part, self.fold.what)
        for each in finished.failed:
            # Nothing is known of inputs that are no texts.
            if "group" in each:
                text = CorpusText(each["text"], each["group"])
                left_out[named(self.fold, text)[0]] = each["error"]
        # Inputs that are no texts are not of the corpus.
        lost = sum(each.get("times", 1) for each in finished.failed)
        given = finished.corpus.texts + sum("times" not in each for each in finished.failed)
        more: dict[str, Any] = {"beside": finished.beside, "left_out": left_out}
        more |= {"given": given, "lost": lost}
        return self.fold.concluded(sums, dict(self.how), judging, **more)


@dataclass(kw_only=True)
class Texts:
    """Texts that are folded as often as it takes: in this process, or as runs in parts.

    Args:
        job: options of a `FoldJob`.
        texts: in this process a list of `Item`; of a run a stream.
        inputs: what the model reads of each in this process, or why it cannot be read.
        progress: whether to show how far it is.
        on_error: is called with number and reason of a text that is left out, by default a warning;
            of a run with the place in ``failed.jsonl``, from 0, and by default one warning tells of
            all.
        folder: of a run; None in this process.
        engine: what runs the parts.
        keeps: whether the folder stays.
        part_size: texts in a part.
    """

    job: dict[str, Any]
    texts: Any
    progress: bool
    on_error: Callable[[int, HeadscopeError], None] | None
    inputs: Sequence[Any] = ()
    folder: Any = None
    engine: Engine = field(default_factory=this_process)
    keeps: bool = False
    part_size: int | None = None

    def keep(self, result: Any) -> None:
        """Keep a result in the folder of a run, once more."""
        if self.folder is not None:
            result.save(self.folder / RESULT)

    def folded(
        self,
        fold: Fold,
        how: Mapping[str, Any],
        judging: Mapping[str, Any],
        *,
        random: bool = False,
        place: str = "",
    ) -> Any:
        """The result of a study over the texts.

        Args:
            fold: the study.
            how: options that the counts depend on.
            judging: options that they do not depend on.
            random: whether random weights read them.
            place: of a fold that is made before or after that of the study, which has a folder of
                its own in a run, and tells of no text that is left out.

        Raises:
            RecordError: where no text is left.
            RunError: as of `headscope.corpus.run`.
        """
        model = replace(self.job["model"], random=random)
        job = FoldJob(fold=fold, how=tuple(sorted(how.items())), **self.job | {"model": model})
        # What is left out is told of once, by the study itself.
        is_told = not place and not random
        if self.folder is None:
            return self._in_memory(job, judging, is_told=is_told)
        out = self.folder / place
        if place:
            RunFolder(self.folder).begin()
        job.check_engine(self.engine)
        options: dict[str, Any] = {"progress": self.progress, "stays": self.keeps}
        options |= {"engine": self.engine, "part_size": self.part_size}
        with run(job, self.texts, out, **options) as finished:
            result = job.made(finished, judging)
            if isinstance(result, Result):
                result.save(out / RESULT)
            if is_told:
                self._tell_of_left_out(finished)
        self.texts = RunFolder(out).texts()
        return result

    def _in_memory(self, job: FoldJob, judging: Mapping[str, Any], *, is_told: bool) -> Any:
        from headscope.capturing import ParsedInputs

        readers, sums, lost = job.begin(), Sums(job.fold.what), {}
        report = (self.on_error or warn_left_out) if is_told else passed

        def lose(at: int, error: HeadscopeError) -> None:
            # What is wrong whatever the text ends a run, too.
            if isinstance(error, ModelError | NoSuchStackError):
                raise error
            lost[self.texts[at].name] = str(error)
            report(at, error)

        given = ParsedInputs(list(self.inputs), len(self.inputs))
        whats = [item.what for item in self.texts]
        reading: dict[str, Any] = {"on_error": lose, "progress": self.progress}
        for at, values in job.counts(readers, given, whats, **reading):
            values.add_to(sums, self.texts[at].name, self.texts[at].unit)
        more: dict[str, Any] = {"beside": job.beside(readers) if len(sums) else None}
        more |= {"left_out": lost, "lost": len(lost), "given": len(self.texts)}
        return job.fold.concluded(sums, dict(job.how), judging, **more)

    def _tell_of_left_out(self, finished: FinishedRun) -> None:
        if self.on_error is not None:
            for index, each in enumerate(finished.failed):
                self.on_error(index, RunError(each["error"]))
        elif finished.failed:
            where = f", named in {self.folder / 'failed.jsonl'}" if self.keeps else ""
            warnings.warn(
                f"{len(finished.failed)} inputs were left out{where}; the first: "
                f"{finished.failed[0]['error']}",
                stacklevel=6,
            )


def passed(*_: Any) -> None:
    """What cannot be captured is reported once, when the model itself reads it."""


def reading_of(options: dict[str, Any]) -> dict[str, Any]:
    """How a `FoldJob` reads texts; taken out of the options.

    Raises:
        RecordError: where an option is not what it may be.
    """
    for name in ("truncate", "allow_unfit"):
        if options.get(name) not in (None, True, False):
            raise RecordError(f"{name} is True or False, not {options[name]!r}")
    how = {name: options.pop(name, False) for name in ("truncate", "allow_unfit")}
    together = {name: options.pop(name, None) for name in TOGETHER}
    given = tuple((name, own) for name, own in together.items() if own is not None)
    return {**how, "together": given}


@contextmanager
def texts_in_parts(
    fold: Fold, given: Readers, texts: Stream, options: dict[str, Any]
) -> Generator[Texts]:
    """Texts for folds in parts; see `headscope.studies.shared._folded.read_texts`."""
    how = {name: options.pop(name, None) for name in OPTIONS}
    engine = engine_of(how["workers"], how["executor"])
    progress, on_error = options.pop("progress", True), options.pop("on_error", None)
    job = reading_of(options) | {"alone": engine.name == this_process().name}
    needs = fold.needed(allow_unfit=job["allow_unfit"])
    job["model"] = parse_model(*given, options, engine, needs=needs)
    if options:
        raise RunError(
            f"{fold.name} over a corpus has no option {', '.join(map(repr, options))}; leave it "
            "out, or leave out=, workers= and executor= out"
        )
    out = how["out"]
    own = tempfile.TemporaryDirectory(prefix="headscope-") if out is None else nullcontext(out)
    with own as place:
        more: dict[str, Any] = {"folder": RunFolder(place).path, "keeps": out is not None}
        more |= {"engine": engine, "part_size": how["part_size"]}
        yield Texts(job=job, texts=texts, progress=progress, on_error=on_error, **more)
