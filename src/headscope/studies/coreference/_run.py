"""`coref` over a corpus: in parts, by one process or by many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from headscope.corpus import CorpusText, Kept
from headscope.linguistics import Mention, Passage, Question
from headscope.studies.coreference._file import coref_of
from headscope.studies.coreference._result import Coreference
from headscope.studies.shared._annotated_job import AnnotatedJob, settled_options
from headscope.studies.shared._corpus_run import run_study


@dataclass(frozen=True, kw_only=True)
class CoreferenceJob(AnnotatedJob):
    """What a run of `coref` does to each passage."""

    STUDY: ClassVar[str] = "coref"

    def empty(self, **judging: Any) -> Coreference:
        """The study, of no passage."""
        return Coreference(**dict(self.how), **judging)

    def item_of(self, given: Any) -> Passage:
        """The passage that a mapping says."""
        questions = given["questions"]
        return Passage(
            name=given["name"],
            text=given["text"],
            spans=tuple((start, stop) for start, stop in given["spans"]),
            mentions=_mentions(given["mentions"]),
            questions=None if questions is None else tuple(map(_question, questions)),
            document=given["document"],
            group=given["group"],
        )

    def input_of(self, given: Any) -> str:
        """The text of the passage."""
        return given["text"]

    def restored(self, kept: Kept) -> Coreference:
        """The study that a part holds."""
        return coref_of(kept)


def coref_over(
    given: tuple[Any, Any],
    passages: Sequence[Passage],
    options: dict[str, Any],
    *,
    source: str,
    random_weights: bool,
) -> Coreference:
    """`headscope.studies.coref` as a run.

    Args:
        given: model and tokenizer.
        passages: whose names differ.
        options: of `coref` and of runs.
        source: what the passages are called together.
        random_weights: see `coref`.

    Raises:
        RunError: as of `headscope.corpus.run`.
    """
    how, judging = settled_options(Coreference, options)
    return run_study(
        CoreferenceJob,
        given,
        _texts(passages),
        options,
        how={"how": how, "source": source},
        judging=judging,
        random_weights=random_weights,
    )


def _texts(passages: Sequence[Passage]) -> Iterator[CorpusText]:
    for passage in passages:
        yield CorpusText(asdict(passage), passage.document)


def _mentions(given: Sequence[Mapping[str, Any]]) -> tuple[Mention, ...]:
    return tuple(Mention(**each) for each in given)


def _question(given: Mapping[str, Any]) -> Question:
    return Question(
        mention=Mention(**given["mention"]),
        candidates=_mentions(given["candidates"]),
        right=tuple(given["right"]),
        by_start=given["by_start"],
    )
