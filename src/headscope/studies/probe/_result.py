"""What a probe and its controls learnt, how sure that is, and its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Int

from headscope.errors import RecordError
from headscope.evidence import parse_groups, redrawn_interval
from headscope.linguistics.probe_scores import LENGTHS
from headscope.results import Kept, Result, TextTable
from headscope.storage import Finite, array_of

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


FIELDS = ("probe", "task", "measure", "of", "value", "low", "high", "deviation", "sentences")
PER_LAYER = "layer"


SCORE: dict[str, Any] = {
    "task": str,
    "measure": str,
    "of": str,
    "sentences": int,
    "seeds": [float],
    "lengths": bool,
    "less": bool,
    "groups": ([(str, None)], None),
}
DOCUMENT: dict[str, Any] = {
    "probe": str,
    "model": str,
    "sentences": [int, int, int],
    "seeds": [int],
    "confidence": Finite,
    "left_out": {str: str},
    "words": (Finite, None),
    "scores": [SCORE],
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Probing(Result):
    """Scores of a probe and its controls on sentences that it did not learn from; prints as tables
    with intervals.

    Args:
        kind: which probe.
        model: the name of what was probed.
        scores: each one's; the probe's is called ``"probe"``.
        sentences: how many were learnt from, set aside and reported on.
        seeds: the seeds that probes were trained with; scores are means over them.
        confidence: of the bootstrap intervals, over documents where sentences name theirs, else
            over sentences.
        facts: what else there is to say: epochs, layers, labels.
        left_out: sentences that could not be read, by name, and why.
        words: median length of the sentences reported on; None where it is not known.
    """

    KIND: ClassVar[str] = "probing"
    DOCUMENT: ClassVar[dict[str, Any]] = DOCUMENT

    kind: str
    model: str
    scores: tuple[Score, ...]
    sentences: tuple[int, int, int]
    seeds: tuple[int, ...] = (0,)
    confidence: float = 0.95
    facts: Mapping[str, Any] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    words: float | None = None

    def score(
        self, of: str = PROBE, *, task: str | None = None, measure: str | None = None
    ) -> Score:
        """One of the scores; without task or measure the first.

        Args:
            of: whose: ``"probe"``, a control, or ``"selectivity"``, the probe's less the control
                task's.
            task: name of the probing task.
            measure: what is counted.

        Raises:
            RecordError: where there is none.
        """
        for each in (*self.scores, *self.selectivity):
            if each.of == of and task in (None, each.task) and measure in (None, each.measure):
                return each
        there = ", ".join(sorted({f"{each.of!r}" for each in (*self.scores, *self.selectivity)}))
        raise RecordError(
            f"There is no score of {of!r} for task {task!r} and measure {measure!r}; there are "
            f"{there}"
        )

    @cached_property
    def selectivity(self) -> tuple[Score, ...]:
        """Of each task and measure the probe's score less that of the control task (Hewitt and
        Liang 2019).
        """
        # A probe that does as well on labels drawn at random has learnt words by heart.
        known = {(each.task, each.measure, each.of): each for each in self.scores}
        pairs = [
            (each, known.get((each.task, each.measure, CONTROL)))
            for each in self.scores
            if each.of == PROBE
        ]
        return tuple(each.minus(less, SELECTIVITY) for each, less in pairs if less is not None)

    @property
    def tasks(self) -> tuple[str, ...]:
        """What was asked."""
        return tuple(dict.fromkeys(each.task for each in self.scores))

    def measures(self, task: str) -> tuple[str, ...]:
        """What is counted in a task."""
        return tuple(dict.fromkeys(each.measure for each in self.scores if each.task == task))

    def per_layer(self, task: str, measure: str) -> dict[int, Score]:
        """The scores of layers, or of the layers 0 to l, by the number of the (last) layer; empty
        where none were.
        """
        return {
            int(each.of.split()[-1]): each
            for each in self.scores
            if each.task == task and each.measure == measure and each.of.startswith(PER_LAYER)
        }

    def columns(self) -> dict[str, list[Any]]:
        """Every score with its interval as a table, one list for each column.

        ``deviation`` is over seeds; ``learnt_from`` and ``set_aside`` are sentences, ``words`` the
        median length of those that were scored, the same in every row.
        """
        rows = []
        for each in (*self.scores, *self.selectivity):
            deviation = float(np.std(each.seeds)) if len(each.seeds) > 1 else float("nan")
            named = (self.kind, each.task, each.measure, each.of)
            rows.append(
                (*named, each.value, *each.interval(self.confidence), deviation, len(each.hits))
            )
        columns: dict[str, list[Any]] = {
            name: [row[index] for row in rows] for index, name in enumerate(FIELDS)
        }
        learnt, aside, _ = self.sentences
        columns |= {"learnt_from": [learnt] * len(rows), "set_aside": [aside] * len(rows)}
        columns["words"] = [self.words] * len(rows)
        return columns

    def _kept(self) -> Kept:
        return _kept_of(self)

    @classmethod
    def _of_kept(cls, document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Probing:
        if not 0 < document["confidence"] < 1:
            raise ValueError(f"its confidence is {document['confidence']}")
        scores = [_score(number, each, arrays) for number, each in enumerate(document["scores"])]
        return Probing(
            kind=document["probe"],
            model=document["model"],
            scores=tuple(scores),
            sentences=tuple(document["sentences"]),
            seeds=tuple(document["seeds"]),
            confidence=document["confidence"],
            facts=dict(document["facts"]),
            left_out=document["left_out"],
            words=document["words"],
        )

    def __repr__(self) -> str:
        return (
            f"<Probing ({self.kind}) of {self.model or 'a model'}: {sum(self.sentences)} sentences>"
        )

    @property
    def summary(self) -> str:
        """The probe's scores and those of its control task."""
        parts = []
        for task in self.tasks:
            measure = self.measures(task)[0]
            known = {
                each.of: each
                for each in self.scores
                if (each.task, each.measure) == (task, measure)
            }
            lines = [f"{of} {self._cell(known[of])}" for of in (PROBE, CONTROL) if of in known]
            if lines:
                parts.append(f"{task}, {measure}: {', '.join(lines)}")
        first = f"{self.kind} probe of {self.model or 'a model'}"
        return f"{first}. {'; '.join(parts)}" if parts else first

    def _blocks(self) -> list[TextTable | str]:
        learnt, aside, test = self.sentences
        trained = f"{'seed' if len(self.seeds) == 1 else 'seeds'} {', '.join(map(str, self.seeds))}"
        # Said because it changes the intervals: sentences of one document are alike.
        of = "documents" if any(each.groups for each in self.scores) else "sentences"
        length = "" if self.words is None else f" (median {self.words:.0f} words)"
        first = (
            f"learnt from {learnt} sentences, {aside} set aside, scores of {test} others{length}; "
            f"{trained}; [{self.confidence:.0%} interval over {of}]"
        )
        lines = [f"{name}: {_fact(value)}" for name, value in self.facts.items()]
        if self.left_out:
            name, why = next(iter(self.left_out.items()))
            lines.append(f"left out: {len(self.left_out)} of the sentences, such as {name}: {why}")
        return [first, *(self._table(task) for task in self.tasks), "\n".join(lines)]

    def _table(self, task: str) -> TextTable:
        measures = self.measures(task)
        scores = {
            (each.of, each.measure): each
            for each in (*self.scores, *self.selectivity)
            if each.task == task
        }
        # False sorts before True: layers stand below the probe and its controls.
        names = sorted(
            dict.fromkeys(of for of, _ in scores), key=lambda of: of.startswith(PER_LAYER)
        )
        rows = [[task, *measures]]
        for name in names:
            cells = [self._cell(scores.get((name, measure))) for measure in measures]
            rows.append([name, *cells])
        says = dict.fromkeys(measures, "% of all cases")
        for each in scores.values():
            if each.lengths is not None:
                says[each.measure] = "mean over lengths of sentences"
        return TextTable.of_rows(rows, align="right", says=says)

    def _cell(self, score: Score | None) -> str:
        if score is None or np.isnan(score.value):
            return "-"
        low, high = score.interval(self.confidence)
        # Means over lengths are of correlations (DSpr, NSpr), which are no shares.
        shown = _number if score.lengths is not None else _percent
        ends = "" if np.isnan(low) else f" [{shown(low)}, {shown(high)}]"
        spread = f" ±{shown(float(np.std(score.seeds)))}" if len(score.seeds) > 1 else ""
        return f"{shown(score.value)}{spread}{ends}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def _number(value: float) -> str:
    return f"{value:.3f}"


def _fact(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_fact(part)}" for name, part in value.items())
    if isinstance(value, tuple | list):
        return ", ".join(map(_fact, value))
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _kept_of(probing: Probing) -> Kept:
    document = {
        "probe": probing.kind,
        "model": probing.model,
        "sentences": probing.sentences,
        "seeds": probing.seeds,
        "confidence": probing.confidence,
        "facts": _plain(probing.facts),
        "left_out": dict(probing.left_out),
        "words": probing.words,
        "scores": [_document_of(score) for score in probing.scores],
    }
    arrays = {}
    for number, score in enumerate(probing.scores):
        arrays[f"{number}.hits"] = np.asarray(score.hits, np.float64)
        if score.lengths is not None:
            arrays[f"{number}.lengths"] = np.asarray(score.lengths, np.int64)
        if score.less is not None:
            arrays[f"{number}.less"] = np.asarray(score.less, np.float64)
    return document, arrays


def _document_of(score: Score) -> dict[str, Any]:
    return {
        "task": score.task,
        "measure": score.measure,
        "of": score.of,
        "sentences": len(score.hits),
        "seeds": [float(seed) for seed in score.seeds],
        "lengths": score.lengths is not None,
        "less": score.less is not None,
        "groups": score.groups,
    }


def _plain(value: Any) -> Any:
    """A fact as JSON takes it."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, tuple | list | np.ndarray):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        return value.item()
    # Facts are only read by people, and so may lose their kind.
    return value if isinstance(value, str | int | float | None) else str(value)


def _score(number: int, document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Score:
    # The document says which arrays there are and how long, so that none is read with other sizes.
    size = document["sentences"]
    lengths = less = None
    if document["lengths"]:
        lengths = array_of(arrays, f"{number}.lengths", "i", (size,))
    if document["less"]:
        less = array_of(arrays, f"{number}.less", "f", (size, 2))
    groups = None if document["groups"] is None else tuple(document["groups"])
    if groups is not None and len(groups) != size:
        raise ValueError(f"a score has {len(groups)} documents of {size} sentences")
    return Score(
        task=document["task"],
        measure=document["measure"],
        of=document["of"],
        hits=array_of(arrays, f"{number}.hits", "f", (size, 2)),
        lengths=lengths,
        seeds=tuple(document["seeds"]),
        less=less,
        groups=groups,
    )
