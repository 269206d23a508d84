"""`faithfulness` over a corpus: in parts, by one process or by many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

from headscope.capturing.fitness import CLASS, check_fit
from headscope.capturing.loading.load import display_name
from headscope.capturing.run import at_rest, unwrapped
from headscope.corpus import CorpusText, Kept, key_of
from headscope.studies.explaining._counterfactual import CounterfactualAttention
from headscope.studies.explaining._explained import ExplainedText
from headscope.studies.explaining._file import faithfulness_of, kept_of
from headscope.studies.explaining._result import Faithfulness
from headscope.studies.explaining._study import RANDOM, explained, read_text
from headscope.studies.explaining._sums import FaithfulnessSums
from headscope.studies.shared._corpus_job import as_given
from headscope.studies.shared._corpus_model import corpus_texts
from headscope.studies.shared._corpus_run import run_study
from headscope.studies.shared._counted_texts import (
    CountingMeasurer,
    OneByOneJob,
    added,
    row_name,
)


@dataclass(frozen=True, eq=False)
class ExplainedTexts:
    """Texts by name, each with its document; two of them add up.

    Args:
        model: name of the classifier.
        layer: whose attention was looked at.
        texts: what mattered in each.
    """

    model: str
    layer: int
    texts: Mapping[str, tuple[ExplainedText, str | None]]

    def __add__(self, other: ExplainedTexts) -> ExplainedTexts:
        """The texts of both."""
        return replace(self, texts={**self.texts, **other.texts})

    def in_sums(self) -> ExplainedSums:
        """The same without its texts, whose documents have no others."""
        result = self.result(0.95).in_sums()
        return ExplainedSums(min(self.texts), result)

    def result(self, confidence: float) -> Faithfulness:
        """The texts in the order of their names."""
        names = sorted(self.texts)
        groups = tuple(self.texts[name][1] for name in names)
        return Faithfulness(
            tuple(self.texts[name][0] for name in names),
            confidence,
            self.model,
            self.layer,
            None,
            groups if any(groups) else None,
        )


@dataclass(frozen=True, eq=False)
class ExplainedSums:
    """Sums over texts; two of them add up.

    Args:
        first: the least name of a text, whose reasons for missing signals are those of the result.
        part: a result of these texts, in sums.
    """

    first: str
    part: Faithfulness

    def __add__(self, other: ExplainedSums) -> ExplainedSums:
        """The texts of both, which share no document."""
        first = min(self, other, key=lambda each: each.first)
        own, theirs = self.part.sums, other.part.sums
        assert own is not None, "these are sums"
        assert theirs is not None, "these are sums"
        statistic = own.statistic + theirs.statistic
        sums = FaithfulnessSums(statistic, first.part.missing)
        return ExplainedSums(first.first, replace(self.part, sums=sums))

    def result(self, confidence: float) -> Faithfulness:
        """Of all texts."""
        return replace(self.part, confidence=confidence)


@dataclass(frozen=True, kw_only=True)
class FaithfulnessJob(OneByOneJob):
    """What a run of `faithfulness` does to each text.

    Args:
        layer: whose attention.
        query: whose row.
        counterfactual: how attention is changed.
    """

    STUDY: ClassVar[str] = "faithfulness"
    NEEDS: ClassVar[str] = "classifier"
    HAS_SUMS: ClassVar[bool] = True
    layer: int = -1
    query: int | str = 0
    counterfactual: CounterfactualAttention = field(default_factory=CounterfactualAttention)

    def options(self) -> dict[str, Any]:
        """What the numbers depend on, known before a model is loaded."""
        own = {"layer": self.layer, "query": self.query}
        return super().options() | own | {"counterfactual": asdict(self.counterfactual)}

    def check(self, measurer: Any, texts: Sequence[CorpusText]) -> dict[str, Any]:
        """Raise where the model is no classifier that was trained."""
        if not self.allow_unfit and not self.model.random:
            check_fit(measurer.model, CLASS)
        return super().check(measurer, texts)

    def study_of(self, measurer: CountingMeasurer, text: CorpusText) -> ExplainedTexts:
        """What mattered in one text."""
        from headscope.capturing import parse_input

        model, tokenizer = unwrapped(measurer.model), measurer.tokenizer
        # Draws belong to the text and the seed, whatever its place among the others.
        seed = key_of("explain", text.name, str(self.counterfactual.seed), bits=32)
        with at_rest(model):
            read = read_text(model, tokenizer, parse_input(as_given(text.given)), self.reading)
            one = explained(
                (model, tokenizer), read, (self.layer, self.query), self.counterfactual, seed=seed
            )
        return ExplainedTexts(display_name(model), self.layer, {text.name: (one, None)})

    def renamed(self, study: ExplainedTexts, text: CorpusText, number: int) -> ExplainedTexts:
        """The text, as of the document that it is of."""
        ((one, _),) = study.texts.values()
        return replace(study, texts={row_name(text, number): (one, text.group)})

    def kept(self, study: ExplainedTexts) -> Kept:
        """What the file of a part holds of its texts."""
        document, arrays = kept_of(study.result(0.95))
        return document | {"names": sorted(study.texts)}, arrays

    def restored(self, kept: Kept) -> ExplainedTexts:
        """The texts that a part holds."""
        names, part = kept[0]["names"], faithfulness_of(kept)
        groups = part.groups or (None,) * len(names)
        texts = zip(names, part.texts, groups, strict=True)
        return ExplainedTexts(
            part.model, part.layer, {name: (one, group) for name, one, group in texts}
        )

    def in_sums(self, study: ExplainedTexts) -> ExplainedSums:
        """The texts of a part as sums."""
        return study.in_sums()

    def total(self, studies: Sequence[Any], judging: Mapping[str, Any]) -> Faithfulness:
        """What mattered in the texts of all parts."""
        return added(studies).result(**judging)

    def with_control(self, result: Faithfulness, control: Faithfulness) -> Faithfulness:
        """The result with that of random weights for comparison."""
        return replace(result, control=replace(control, model=RANDOM))


def faithfulness_over(
    given: tuple[Any, Any],
    texts: Any,
    options: dict[str, Any],
    *,
    how: Mapping[str, Any],
    confidence: float,
    random_weights: bool,
) -> Faithfulness:
    """`headscope.studies.faithfulness` as a run.

    Args:
        given: model and tokenizer.
        texts: a stream.
        options: of runs and of reading.
        how: layer, query and counterfactual attention.
        confidence: of the intervals.
        random_weights: see `faithfulness`.

    Raises:
        RunError: as of `headscope.corpus.run`.
    """
    return run_study(
        FaithfulnessJob,
        given,
        corpus_texts(texts, options.pop("groups", None)),
        options,
        how=how,
        judging={"confidence": confidence},
        random_weights=random_weights,
    )
