"""One number of a probe or of a control, and how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from headscope.errors import RecordError
from headscope.evidence import parse_groups, redrawn_interval
from headscope.linguistics.probe_scores import LENGTHS

RESAMPLES = 2000
AT_ONCE = 256
SEED = 0
"""Of the draws; all scores of one study are redrawn alike, so that their differences are paired."""

PROBE, CONTROL, SELECTIVITY = "probe", "control task", "selectivity"


@dataclass(frozen=True, eq=False, kw_only=True)
class Score:
    """What was hit in each sentence that nothing was learnt from.

    Args:
        task: what was asked, such as ``"head of each word"``.
        measure: what is counted, such as ``"UAS"``.
        of: whose score: ``"probe"`` or a control.
        hits: what was hit in each sentence, and of how much.
        lengths: words of each sentence, where the score is the mean over the lengths 5 to 50 of the
            ratios; None for the ratio over all sentences.
        seeds: the value with each seed, where several were trained.
        less: hits of what is taken off.
        groups: the document that each sentence is of, which are drawn together; None where nobody
            says.
    """

    task: str
    measure: str
    of: str
    hits: Float[np.ndarray, "sentence 2"]
    lengths: Int[np.ndarray, " sentence"] | None = None
    seeds: tuple[float, ...] = ()
    less: Float[np.ndarray, "sentence 2"] | None = None
    groups: tuple[str | None, ...] | None = None

    @cached_property
    def value(self) -> float:
        """Over all sentences."""
        return float(self._values(np.ones((1, len(self.hits))))[0])

    @cached_property
    def redrawn(self) -> Float[np.ndarray, " resample"]:
        """Over documents, or sentences where these are not known, drawn anew with replacement."""
        # Drawing documents with replacement gives each a number of times, which are multinomial.
        rng, document = np.random.default_rng(SEED), self._documents
        count = int(document.max(initial=-1)) + 1
        sizes = [min(AT_ONCE, RESAMPLES - first) for first in range(0, RESAMPLES, AT_ONCE)]
        drawn = (
            rng.multinomial(count, np.full(count, 1 / count), size=size).astype(np.float64)
            for size in sizes
        )
        return np.concatenate([self._values(times[:, document]) for times in drawn])

    def interval(self, confidence: float) -> tuple[float, float]:
        """Lower and upper end of the interval over documents or sentences; NaN for fewer than two
        of them.

        Quantiles as of `headscope.evidence.interval`.
        """
        sizes = np.bincount(self._documents, weights=self.hits[:, 1])[:, None]
        low, high = redrawn_interval(self.redrawn[:, None], sizes, confidence=confidence)[0]
        return float(low), float(high)

    @property
    def _documents(self) -> Int[np.ndarray, " sentence"]:
        """The number of each sentence's document; without documents each is its own."""
        numbers = parse_groups(self.groups, len(self.hits), "sentence")
        return np.arange(len(self.hits)) if numbers is None else numbers

    def minus(self, other: Score, of: str) -> Score:
        """The difference of two scores over the same sentences.

        Raises:
            RecordError: where they are of others, or one is a difference itself.
        """
        same = (
            self.task == other.task
            and self.measure == other.measure
            and len(self.hits) == len(other.hits)
        )
        if not same or self.less is not None or other.less is not None:
            raise RecordError(
                f"{other.task}, {other.measure} cannot be taken off {self.task}, {self.measure}"
            )
        pairs = zip(self.seeds, other.seeds, strict=False)
        return replace(self, of=of, less=other.hits, seeds=tuple(one - less for one, less in pairs))

    def _values(
        self, times: Float[np.ndarray, "resample sentence"]
    ) -> Float[np.ndarray, " resample"]:
        values = _ratio(self.hits, times, self.lengths)
        return values if self.less is None else values - _ratio(self.less, times, self.lengths)


def over_seeds(scores: Sequence[Score]) -> Score:
    """The mean over seeds of one score."""
    hits = np.mean([score.hits for score in scores], axis=0)
    return replace(scores[0], hits=hits, seeds=tuple(score.value for score in scores))


def _ratio(
    hits: Float[np.ndarray, "sentence 2"],
    times: Float[np.ndarray, "resample sentence"],
    lengths: Int[np.ndarray, " sentence"] | None,
) -> Float[np.ndarray, " resample"]:
    """The ratio of the sums; or its mean over lengths."""
    # Without lengths all sentences form one group, the mean over which is its own ratio.
    groups = np.zeros(len(hits), int) if lengths is None else lengths
    first, last = (0, 0) if lengths is None else LENGTHS
    member = (groups[:, None] == np.arange(first, last + 1)).astype(np.float64)
    above, below = times @ (hits[:, :1] * member), times @ (hits[:, 1:] * member)
    ratios = np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)
    # A length that was not drawn has no ratio, and is left out of the mean.
    there = ~np.isnan(ratios)
    counts = there.sum(axis=1)
    return np.divide(
        np.where(there, ratios, 0).sum(axis=1),
        counts,
        out=np.full(len(ratios), np.nan),
        where=counts > 0,
    )
