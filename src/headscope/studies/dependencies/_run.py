"""`relations` over a corpus: in parts, by one process or by many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from headscope.corpus import CorpusText, Kept
from headscope.linguistics import Sentence, Treebank
from headscope.studies.dependencies._file import relations_of
from headscope.studies.dependencies._result import Relations
from headscope.studies.shared._annotated_job import AnnotatedJob, settled_options
from headscope.studies.shared._corpus_job import check_unique
from headscope.studies.shared._corpus_run import run_study
from headscope.studies.shared._sentence_json import given_of, sentence_of


@dataclass(frozen=True, kw_only=True)
class RelationsJob(AnnotatedJob):
    """What a run of `relations` does to each sentence.

    Args:
        text: whether the words are read, or the text as it was written.
    """

    STUDY: ClassVar[str] = "relations"
    text: str = "words"

    def options(self) -> dict[str, Any]:
        """What the numbers depend on, known before a model is loaded."""
        return super().options() | {"text": self.text}

    def empty(self, **judging: Any) -> Relations:
        """The study, of no sentence."""
        return Relations(**dict(self.how), **judging)

    def item_of(self, given: Any) -> Sentence:
        """The sentence that a mapping says."""
        return sentence_of(given)

    def input_of(self, given: Any) -> str:
        """The sentence as the model reads it.

        Raises:
            TextError: where its words are not in the text as it was written.
        """
        sentence = self.item_of(given)
        if self.text == "words":
            return sentence.text
        sentence.written_spans()
        return sentence.written or ""

    def restored(self, kept: Kept) -> Relations:
        """The study that a part holds."""
        return relations_of(kept)


def relations_over(
    given: tuple[Any, Any],
    bank: Treebank,
    options: dict[str, Any],
    *,
    text: str,
    random_weights: bool,
) -> Relations:
    """`headscope.studies.relations` as a run.

    Args:
        given: model and tokenizer.
        bank: the sentences.
        options: of `relations` and of runs.
        text: see `relations`.
        random_weights: see `relations`.

    Raises:
        RunError: as of `headscope.corpus.run`.
    """
    check_unique((sentence.name for sentence in bank), Relations.TEXT)
    how, judging = settled_options(Relations, options)
    return run_study(
        RelationsJob,
        given,
        _texts(bank),
        options,
        how={"how": how, "text": text, "source": bank.name},
        judging=judging,
        random_weights=random_weights,
    )


def _texts(bank: Treebank) -> Iterator[CorpusText]:
    for sentence in bank:
        yield CorpusText(given_of(sentence), sentence.document or None)
