"""`mechanism` over a corpus: in parts, by one process or by many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from headscope.corpus import Engine, Kept
from headscope.patterns import Mechanism, MechanismTally, Pattern
from headscope.studies.shared._corpus_model import corpus_texts
from headscope.studies.shared._corpus_run import check_patterns, run_study, taken
from headscope.studies.shared._counted_texts import CountingJob, added

READING = ("at", "pattern", "stack", "share")
"""Options that what is counted of a text depends on."""


@dataclass(frozen=True, kw_only=True)
class MechanismJob(CountingJob):
    """What a run of `mechanism` does to each text."""

    STUDY: ClassVar[str] = "mechanism"
    KEEP: ClassVar[Any] = "qk"
    HAS_SUMS: ClassVar[bool] = True

    def options(self) -> dict[str, Any]:
        """What the numbers depend on, known before a model is loaded."""
        tally = self.empty()
        return super().options() | {
            "at": tally.at and [list(cell) for cell in tally.at],
            "pattern": tally.pattern and tally.pattern.name,
            "stack": tally.stack,
            "share": tally.share,
        }

    def check_engine(self, engine: Engine) -> None:
        """Raise where a pattern of one's own could not be read by other processes."""
        if isinstance(self._pattern, Pattern):
            check_patterns((self._pattern,), self.model, engine)

    @property
    def _pattern(self) -> Any:
        return dict(self.how).get("pattern")

    def empty(self, **judging: Any) -> MechanismTally:
        """Counts of no text."""
        return MechanismTally(**dict(self.how))

    def kept(self, study: MechanismTally) -> Kept:
        """What the file of a part holds of the counts of its texts."""
        return study.kept

    def restored(self, kept: Kept) -> MechanismTally:
        """The counts that a part holds."""
        own = self._pattern if isinstance(self._pattern, Pattern) else None
        return MechanismTally.of_kept(*kept, own)

    def in_sums(self, study: MechanismTally) -> MechanismTally:
        """The counts without their texts."""
        return study.in_sums()

    def total(self, studies: Sequence[Any], judging: Mapping[str, Any]) -> Mechanism:
        """What the counts of all parts say."""
        return Mechanism(added(studies), **judging)

    def with_control(self, result: Mechanism, control: Mechanism) -> Mechanism:
        """The result with that of random weights for comparison."""
        return replace(result, control=control)


def mechanism_over(
    given: tuple[Any, Any], texts: Any, options: dict[str, Any], *, random_weights: bool
) -> Mechanism:
    """`headscope.studies.mechanism` as a run.

    Args:
        given: model and tokenizer.
        texts: a stream.
        options: of `mechanism`, of runs and of reading.
        random_weights: see `mechanism`.

    Raises:
        RunError: as of `headscope.corpus.run`.
        RecordError: where there are no texts, or no such pattern.
    """
    how = taken(options, READING)
    if how.get("at") is not None:
        how["at"] = tuple((int(layer), int(head)) for layer, head in how["at"])
    # Before the run: whatever is wrong with the options is said here.
    MechanismTally(**how)
    return run_study(
        MechanismJob,
        given,
        corpus_texts(texts, options.pop("groups", None)),
        options,
        how={"how": tuple(sorted(how.items()))},
        judging=taken(options, ("confidence",)),
        random_weights=random_weights,
    )
