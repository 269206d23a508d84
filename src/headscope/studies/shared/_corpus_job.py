"""What a study declares to run over many texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from headscope.corpus import CorpusText, Engine, FinishedRun, Kept, Measurer, PartTally
from headscope.errors import RecordError, RunError
from headscope.studies.shared._corpus_model import RunModel, facts_of_model
from headscope.studies.shared._source import check_known_texts

Same = TypeVar("Same", bound="ModelJob")


@dataclass(frozen=True, kw_only=True)
class ModelJob:
    """What every study of a model is as a `headscope.corpus.Job`.

    A study declares what its numbers depend on (`options`), what measures a text (`begin`) and adds
    up a part (`tally`), and the result of all parts (`made`).

    Args:
        model: what reads the texts.
        truncate: whether texts that are too long are cut.
        allow_unfit: whether texts of mostly unknown tokens are read.
        together: ``batch_size`` and ``batch_tokens`` of `headscope.capture_many`, where given.
    """

    STUDY: ClassVar[str]
    NEEDS: ClassVar[str] = "attention"
    """What the model must have, see `NamedModel`."""
    model: RunModel
    truncate: bool = False
    allow_unfit: bool = False
    together: tuple[tuple[str, int], ...] = ()

    @classmethod
    def needs(cls, how: Mapping[str, Any]) -> str:
        """What the model must have, for these options."""
        return cls.NEEDS

    @property
    def study(self) -> str:
        """What is made."""
        return self.STUDY

    @property
    def stage(self) -> str:
        """One run is all there is."""
        return ""

    @property
    def beside(self) -> Sequence[str]:
        """No parts but those of the texts."""
        return ()

    def options(self) -> dict[str, Any]:
        """What the numbers depend on, known before a model is loaded."""
        return {
            "truncate": self.truncate,
            "allow_unfit": self.allow_unfit,
            "random weights": self.model.random,
        }

    def begin(self) -> Measurer:
        """The model, loaded once in a process, and what measures with it."""
        raise NotImplementedError

    def facts(self, measurer: Any) -> dict[str, str]:
        """Weights, settings, how the model runs, its tokenizer, and versions of libraries."""
        return facts_of_model(measurer.model, measurer.tokenizer)

    def texts_of(self, text: CorpusText) -> Sequence[str]:
        """What the tokenizer reads of a text."""
        from headscope.capturing import parse_input

        return parse_input(as_given(text.given)).texts

    def check(self, measurer: Any, texts: Sequence[CorpusText]) -> dict[str, Any]:
        """Raise where the texts are mostly unknown to the tokenizer."""
        if not self.allow_unfit:
            words: list[str] = []
            for text in texts:
                words += self.texts_of(text)
            check_known_texts(measurer.tokenizer, words)
        return {}

    def tally(self, measurer: Any) -> PartTally:
        """Sums of no text."""
        raise NotImplementedError

    def measure_beside(self, name: str, measurer: Any) -> Kept:
        """A part that is not of the texts."""
        raise NotImplementedError(name)

    def check_engine(self, engine: Engine) -> None:
        """Raise where something of the job could not go to the processes of an engine."""

    def made(self, finished: FinishedRun, judging: Mapping[str, Any]) -> Any:
        """The result of all parts.

        Args:
            finished: the run.
            judging: options that no part depends on, such as the level of the intervals.
        """
        raise NotImplementedError

    def with_control(self, result: Any, control: Any) -> Any:
        """The result with that of random weights beside it."""
        result.control = control
        return result

    def write(self, result: Any, path: Path) -> None:
        """Keep the result in the folder of its run."""
        result.save(path)

    def twin(self: Same) -> Same:
        """The same for random weights."""
        return replace(self, model=replace(self.model, random=True))

    @property
    def reading(self) -> dict[str, Any]:
        """Options of `headscope.capturing.capture_batches`."""
        from headscope.capturing import MOST_UNKNOWN

        unknown = 1.0 if self.allow_unfit else MOST_UNKNOWN
        return {"truncate": self.truncate, "max_unknown": unknown, **dict(self.together)}


def check_measured(finished: FinishedRun, *, any_text: bool) -> None:
    """Raise where not one text of a run could be measured.

    Raises:
        RunError: with the reason of the first.
    """
    if not any_text:
        first = finished.failed[0]["error"] if finished.failed else "there was none"
        raise RunError(f"No text of the run could be measured: {first}")


def as_given(given: Any) -> Any:
    """A text as `headscope.capturing.capture_batches` takes it: JSON has made lists of pairs."""
    return tuple(given) if isinstance(given, list) else given


def check_unique(names: Iterable[str], what: str) -> None:
    """Raise where two annotated texts have one name, by which what is read of them is kept.

    Raises:
        RecordError: naming it.
    """
    known: set[str] = set()
    for name in names:
        if name in known:
            raise RecordError(f"Two {what}s are called {name!r}; give each a name of its own")
        known.add(name)
