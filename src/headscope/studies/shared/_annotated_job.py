"""Studies of annotated texts as runs over a corpus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from headscope.corpus import CorpusText
from headscope.errors import RecordError
from headscope.studies.shared._answer_sums import summed_answers
from headscope.studies.shared._corpus_run import taken
from headscope.studies.shared._counted_texts import CountingJob
from headscope.studies.shared._head_study import HeadStudy


def settled_options(
    study: type[HeadStudy], options: dict[str, Any]
) -> tuple[tuple[tuple[str, Any], ...], dict[str, Any]]:
    """Options that the parts of a run depend on, with their defaults, and those that judge all.

    Both are taken out of ``options``.

    Raises:
        RecordError: where one of them is not what it must be, before anything is read.
    """
    how = taken(options, study.READING)
    judging = taken(options, study.EVIDENCE_OPTIONS)
    # A study checks its own options, and knows those that were not given.
    asked = study(**how, **judging)
    return tuple(sorted((name, getattr(asked, name)) for name in study.READING)), judging


@dataclass(frozen=True, kw_only=True)
class AnnotatedJob(CountingJob):
    """What a run does to texts that are known by names of their own.

    Their annotation travels with them, as a mapping that JSON can hold, the name among it.

    Args:
        source: what they are called together.
    """

    HAS_SUMS: ClassVar[bool] = True

    source: str = ""

    def item_of(self, given: Any) -> Any:
        """The annotated text that a mapping says.

        Raises:
            HeadscopeError: where it is none.
        """
        raise NotImplementedError

    def texts_of(self, text: CorpusText) -> Sequence[str]:
        """What the tokenizer reads of a text."""
        return [self.input_of(text.given)]

    def count(self, study: Any, text: CorpusText, record: Any) -> None:
        """Count one text by the name that it has.

        Raises:
            RecordError: where its words and its tokens cannot be aligned.
        """
        item = self.item_of(text.given)
        study.update(item, record)
        if item.name in study.left_out:
            raise RecordError(study.left_out[item.name])

    def renamed(self, study: Any, text: CorpusText, number: int) -> Any:
        """The same: its text has a name of its own, and says what document it is of."""
        return study

    def total(self, studies: Sequence[Any], judging: Mapping[str, Any]) -> Any:
        """The sum of the studies of all parts, judged as the user wants."""
        result = super().total(studies, judging)
        setattr(result, result.SOURCE, self.source)
        return result

    def of_many(self, parts: Callable[[], Iterable[Any]], judging: Mapping[str, Any]) -> Any:
        """The study of more texts than are held: what the best heads answer, from sums over
        documents.
        """
        result = self.empty(**judging)
        first = next(iter(parts()))
        result.cells, result.model = first.cells, first.model
        how = {name: getattr(result, name) for name in result.EVIDENCE_OPTIONS}
        result.summed = summed_answers(
            lambda: (part.answers() for part in parts()), result.ordered, judging=how
        )
        setattr(result, result.SOURCE, self.source)
        return result

    def note_left_out(self, result: Any, failed: Sequence[Mapping[str, Any]]) -> None:
        """Names and reasons of the texts that were left out."""
        result.left_out |= {each["text"]["name"]: each["error"] for each in failed}
