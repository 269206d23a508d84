"""What a probe and its controls learnt, how sure that is, and its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Int

from headscope.errors import RecordError
from headscope.evidence import parse_groups, redrawn_interval, redrawn_ratios
from headscope.evidence.choice import FEWEST
from headscope.evidence.groups import check_confidence
from headscope.linguistics.probes import LENGTHS
from headscope.results import Kept, Result, TextTable
from headscope.storage import Finite, array_of

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
        return float(self._ratio(drawn=False)[0])

    @cached_property
    def redrawn(self) -> Float[np.ndarray, " resample"]:
        """Over documents, or sentences where these are not known, drawn anew with replacement."""
        return self._ratio(drawn=True)

    @property
    def documents(self) -> Int[np.ndarray, " sentence"]:
        """Number of the document of each sentence; without documents each is its own."""
        numbers = parse_groups(self.groups, len(self.hits), "sentence")
        return np.arange(len(self.hits)) if numbers is None else numbers

    @property
    def deviation(self) -> float:
        """Standard deviation over seeds; NaN for one."""
        return float(np.std(self.seeds)) if len(self.seeds) > 1 else float("nan")

    def interval(self, confidence: float) -> tuple[float, float]:
        """Lower and upper end of the interval over documents or sentences; NaN for fewer than two
        of them.

        Quantiles as of `headscope.evidence.interval`.
        """
        sizes = np.bincount(self.documents, weights=self.hits[:, 1])
        low, high = redrawn_interval(self.redrawn, sizes, confidence=confidence)
        return float(low), float(high)

    def _ratio(self, *, drawn: bool) -> Float[np.ndarray, " resample"]:
        """The ratio of the sums, or its mean over lengths, of each draw; or of all sentences."""
        # Without lengths all sentences form one group, the mean over which is its own ratio.
        lengths, first, last = np.zeros(len(self.hits), int), 0, 0
        if self.lengths is not None:
            lengths, (first, last) = self.lengths, LENGTHS
        member = (lengths[:, None] == np.arange(first, last + 1)).astype(np.float64)
        means = []
        for hits in (self.hits, self.less):
            if hits is not None:
                above, below = hits[:, :1] * member, hits[:, 1:] * member
                with np.errstate(invalid="ignore"):
                    if drawn:
                        ratios = redrawn_ratios(above, below, groups=self.groups)
                    else:
                        ratios = above.sum(axis=0, keepdims=True) / below.sum(axis=0, keepdims=True)
                    # A length that was not drawn has no ratio, and is left out of the mean.
                    there = ~np.isnan(ratios)
                    means.append(np.where(there, ratios, 0).sum(axis=1) / there.sum(axis=1))
        return means[0] - sum(means[1:])


PER_LAYER = "layer"
KEPT = ("model", "sentences", "seeds", "confidence", "words", "facts", "left_out")
COLUMNS = ("probe", "task", "measure", "of", "value", "low", "high", "deviation", "sentences")
COLUMNS += ("learnt_from", "set_aside", "words")


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
        left_out: sentences that are too long or could not be read, by name, and why.
        words: median length of the sentences reported on; None where it is not known.
    """

    KIND: ClassVar[str] = "probing"
    DOCUMENT: ClassVar[dict[str, Any]] = {
        "probe": str,
        "model": str,
        "sentences": [int, int, int],
        "seeds": [int],
        "confidence": Finite,
        "words": (Finite, None),
        "facts": {},
        "left_out": {str: str},
        "scores": [{"task": str, "measure": str, "of": str, "seeds": [float], "by_length": bool}],
        "groups": ([(str, None)], None),
    }

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
        scores = (*self.scores, *self.selectivity)
        for each in scores:
            if each.of == of and task in (None, each.task) and measure in (None, each.measure):
                return each
        there = ", ".join(sorted({repr(each.of) for each in scores}))
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
        known = {(each.task, each.measure): each for each in self.scores if each.of == CONTROL}
        listed = []
        for each in self.scores:
            control = known.get((each.task, each.measure))
            if each.of == PROBE and control is not None:
                pairs = zip(each.seeds, control.seeds, strict=False)
                seeds = tuple(one - less for one, less in pairs)
                listed.append(replace(each, of=SELECTIVITY, less=control.hits, seeds=seeds))
        return tuple(listed)

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
            if (each.task, each.measure) == (task, measure) and each.of.startswith(PER_LAYER)
        }

    def columns(self) -> dict[str, list[Any]]:
        """Every score with its interval as a table, one list for each column.

        ``deviation`` is over seeds; ``learnt_from`` and ``set_aside`` are sentences, ``words`` the
        median length of those that were scored, the same in every row.
        """
        rows, (learnt, aside, _) = [], self.sentences
        for each in (*self.scores, *self.selectivity):
            low, high = each.interval(self.confidence)
            numbers = each.value, low, high, each.deviation, len(each.hits)
            named = self.kind, each.task, each.measure, each.of
            rows.append((*named, *numbers, learnt, aside, self.words))
        return dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))

    def _kept(self) -> Kept:
        document: dict[str, Any] = {name: getattr(self, name) for name in KEPT}
        document |= {"probe": self.kind, "scores": []}
        for each in self.scores:
            said = {name: getattr(each, name) for name in ("task", "measure", "of", "seeds")}
            document["scores"].append(said | {"by_length": each.lengths is not None})
        # Every score is of the same sentences.
        document["groups"] = self.scores[0].groups
        lengths = next((own.lengths for own in self.scores if own.lengths is not None), [])
        hits = np.array([each.hits for each in self.scores], float)
        return document, {"hits": hits, "lengths": np.array(lengths, np.int64)}

    @classmethod
    def _of_kept(cls, document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Probing:
        check_confidence(document["confidence"])
        hits = array_of(arrays, "hits", "f", (len(document["scores"]), None, 2))
        groups = parse_groups(document["groups"], hits.shape[1], "sentence")
        scores = []
        for own, said in zip(hits, document["scores"], strict=True):
            lengths = None
            if said.pop("by_length"):
                lengths = array_of(arrays, "lengths", "i", (len(own),))
            said["groups"] = None if groups is None else tuple(document["groups"])
            said["seeds"] = tuple(said["seeds"])
            scores.append(Score(hits=own, lengths=lengths, **said))
        facts = {name: document[name] for name in KEPT}
        facts |= {name: tuple(facts[name]) for name in ("sentences", "seeds")}
        return Probing(kind=document["probe"], scores=tuple(scores), **facts)

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
            own = [each for each in self.scores if (each.task, each.measure) == (task, measure)]
            cells = [f"{each.of} {self._cell(each)}" for each in own if each.of in (PROBE, CONTROL)]
            parts += [f"{task}, {measure}: {', '.join(cells)}"] * bool(cells)
        first = f"{self.kind} probe of {self.model or 'a model'}"
        for each in self.scores[:1]:
            units = len(np.unique(each.documents))
            if units < FEWEST:
                first += f" (too few to tell: scores of {units}, {FEWEST} at least are needed)"
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
        lost, given = len(self.left_out), sum(self.sentences) + len(self.left_out)
        for name, why in list(self.left_out.items())[:1]:
            lines.append(f"left out: {lost} of {given} sentences, such as {name}: {why}")
        return [first, *(self._table(task) for task in self.tasks), "\n".join(lines)]

    def _table(self, task: str) -> TextTable:
        cells, says = {}, dict.fromkeys(self.measures(task), "% of all cases")
        for each in (*self.scores, *self.selectivity):
            if each.task == task:
                cells.setdefault(each.of, {})[each.measure] = self._cell(each)
                if each.lengths is not None:
                    says[each.measure] = "mean over lengths of sentences"
        rows = [[task, *says]]
        # False sorts before True: layers stand below the probe and its controls.
        for of in sorted(cells, key=lambda of: of.startswith(PER_LAYER)):
            rows.append([of, *(cells[of].get(measure, "-") for measure in says)])
        return TextTable.of_rows(rows, align="right", says=says)

    def _cell(self, score: Score) -> str:
        if np.isnan(score.value):
            return "-"
        # Means over lengths are of correlations (DSpr, NSpr), which are no shares.
        shown, by = ("{:.3f}".format, 1) if score.lengths is not None else ("{:.1f}".format, 100)
        low, high = score.interval(self.confidence)
        ends = "" if np.isnan(low) else f" [{shown(by * low)}, {shown(by * high)}]"
        spread = "" if np.isnan(score.deviation) else f" ±{shown(by * score.deviation)}"
        return f"{shown(by * score.value)}{spread}{ends}"


def _fact(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_fact(part)}" for name, part in value.items())
    if isinstance(value, tuple | list):
        return ", ".join(map(_fact, value))
    return f"{value:.2f}" if isinstance(value, float) else str(value)
