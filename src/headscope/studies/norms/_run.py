"""`norm_study` over a corpus: in parts, by one process or by many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from headscope.corpus import Kept
from headscope.studies.norms._file import norm_study_of
from headscope.studies.norms._study import KEPT, NormStudy
from headscope.studies.shared._corpus_model import corpus_texts
from headscope.studies.shared._corpus_run import run_study
from headscope.studies.shared._counted_texts import CountingJob, added


@dataclass(frozen=True, kw_only=True)
class NormsJob(CountingJob):
    """What a run of `norm_study` does to each text."""

    STUDY: ClassVar[str] = "norms"
    KEEP: ClassVar[Any] = KEPT
    HAS_SUMS: ClassVar[bool] = True

    def empty(self, **judging: Any) -> NormStudy:
        """The study, of no text."""
        return NormStudy(**dict(self.how), **judging)

    def restored(self, kept: Kept) -> NormStudy:
        """The study that a part holds."""
        return norm_study_of(kept, "a part of the run")

    def in_sums(self, study: NormStudy) -> NormStudy:
        """The study without its texts."""
        return study.in_sums()

    def total(self, studies: Sequence[Any], judging: Mapping[str, Any]) -> NormStudy:
        """The sum of the studies of all parts, judged as the user wants."""
        study = added(studies)
        study.confidence = judging["confidence"]
        return study


def norms_over(
    given: tuple[Any, Any],
    texts: Any,
    options: dict[str, Any],
    *,
    stack: str | None,
    confidence: float,
    random_weights: bool,
) -> NormStudy:
    """`headscope.studies.norm_study` as a run.

    Args:
        given: model and tokenizer.
        texts: a stream.
        options: of runs and of reading.
        stack: see `norm_study`.
        confidence: see `norm_study`.
        random_weights: see `norm_study`.

    Raises:
        RunError: as of `headscope.corpus.run`.
        RecordError: where there are no texts, or the level is none.
    """
    # Before the run: whatever is wrong with the options is said here.
    NormStudy(stack=stack, confidence=confidence)
    return run_study(
        NormsJob,
        given,
        corpus_texts(texts, options.pop("groups", None)),
        options,
        how={"how": (("stack", stack),)},
        judging={"confidence": confidence},
        random_weights=random_weights,
    )
