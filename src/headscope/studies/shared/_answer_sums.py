"""What heads answer in many documents, from sums over these: nothing of a single one is kept.

Two readings of the parts: the first adds up what every head gets right on both halves of every
split, which the best heads are chosen by; the second adds up what the chosen ones get right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.corpus import key_of
from headscope.evidence import GroupSums, PoissonSums, wilson_of_sums
from headscope.evidence.correction import CORRECTIONS
from headscope.studies.shared._held_out import DocumentHits, HeldOutHits, held_out_numbers

Key = tuple[str, str]
"""How something was asked, such as a score, and what, such as a relation."""
BITS = 512
"""Halves of so many splits come from one hash."""


@dataclass(frozen=True, kw_only=True)
class PartAnswers:
    """What the texts of a part say, whose documents have no others.

    Args:
        texts: how many.
        documents: a name of each document.
        lengths: tokens of each text.
        asked: what was right in each document, of everything that was asked.
        others: right by further rules, over all documents of the part, of what was asked.
        counts: other numbers that add up, by name.
    """

    texts: int
    documents: tuple[str, ...]
    lengths: tuple[int, ...]
    asked: Mapping[Key, DocumentHits]
    others: Mapping[str, Int[np.ndarray, " rule"]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(eq=False)
class AnswerTotals:
    """Of one thing that was asked: whole numbers over all documents, and over one half of each
    split.
    """

    whole: int
    hits: Int[np.ndarray, " choice"]
    rules: Int[np.ndarray, " rule"]
    half_whole: Int[np.ndarray, " split"]
    half_hits: Int[np.ndarray, "split choice"]
    half_rules: Int[np.ndarray, "split rule"]

    @staticmethod
    def of(asked: DocumentHits, halves: Bool[np.ndarray, "split document"]) -> AnswerTotals:
        """Of the documents of a part."""
        some = halves.astype(np.float64)
        # Sums of whole numbers in double precision are exact.
        sums = (
            asked.hits.sum(axis=1),
            asked.baselines.sum(axis=1),
            some @ asked.wholes,
            some @ asked.hits.T,
            some @ asked.baselines.T,
        )
        whole = int(asked.wholes.sum())
        return AnswerTotals(whole, *(each.astype(np.int64) for each in sums))

    def __add__(self, other: AnswerTotals) -> AnswerTotals:
        names = ("whole", "hits", "rules", "half_whole", "half_hits", "half_rules")
        return AnswerTotals(*(getattr(self, name) + getattr(other, name) for name in names))

    @cached_property
    def valid(self) -> Int[np.ndarray, " split"]:
        """The splits with something to choose by on both halves."""
        return np.flatnonzero((self.half_whole > 0) & (self.half_whole < self.whole))

    def chosen(self, what: str) -> Int[np.ndarray, "half split"]:
        """What is best on one half (first row) and on the other of every valid split, of ``hits``
        or ``rules``.
        """
        half, total = getattr(self, f"half_{what}")[self.valid], getattr(self, what)
        return np.stack([half.argmax(axis=1), (total - half).argmax(axis=1)])

    def elsewhere(self, what: str) -> Float[np.ndarray, " split"]:
        """What the chosen get right on the half that they were not chosen on, in every valid
        split.
        """
        half, total = getattr(self, f"half_{what}")[self.valid], getattr(self, what)
        here, there = self.chosen(what)
        splits = np.arange(len(self.valid))
        return ((total - half)[splits, here] + half[splits, there]).astype(np.float64)


class FirstReading:
    """Totals over documents.

    Args:
        seed: of the first split of documents into halves.
        splits: how many.
    """

    def __init__(self, seed: int, splits: int) -> None:
        self.seed, self.splits = seed, splits
        self.texts: int = 0
        self.documents: int = 0
        self.lengths: Counter[int] = Counter()
        self.totals: dict[Key, AnswerTotals] = {}
        self.others: dict[str, np.ndarray] = {}
        self.counts: Counter[str] = Counter()

    def update(self, part: PartAnswers) -> None:
        """Add a part."""
        halves = hashed_halves(part.documents, self.seed, self.splits)
        self.texts += part.texts
        self.documents += len(part.documents)
        self.lengths.update(part.lengths)
        self.counts.update(part.counts)
        for key, asked in part.asked.items():
            own = AnswerTotals.of(asked, halves)
            self.totals[key] = self.totals[key] + own if key in self.totals else own
        for name, sums in part.others.items():
            self.others[name] = self.others.get(name, 0) + sums


class SecondReading:
    """Sums over documents of what the chosen heads get right, of everything that was asked in one
    way.

    Args:
        first: of the same parts.
        keys: of what was asked.
    """

    def __init__(self, first: FirstReading, keys: Sequence[Key]) -> None:
        self._first, self._keys = first, tuple(keys)
        shape = (len(self._keys),)
        # Of documents that have a question: right by the best head, and by the chosen ones.
        self._sums: dict[str, np.ndarray] = {}
        self._above = PoissonSums((len(self._keys), 2))
        self._tested = GroupSums(shape)

    def update(self, part: PartAnswers) -> None:
        """Add a part."""
        count, shape = len(part.documents), (len(self._keys), len(part.documents))
        wholes, best, heads, rules = (np.zeros(shape) for _ in range(4))
        halves = hashed_halves(part.documents, self._first.seed, self._first.splits)
        for row, key in enumerate(self._keys):
            asked, totals = part.asked.get(key), self._first.totals[key]
            if asked is None:
                continue
            wholes[row] = asked.wholes
            best[row] = asked.hits[totals.hits.argmax()]
            own = halves[totals.valid]
            heads[row] = measured_elsewhere(asked.hits, totals.chosen("hits"), own)
            rules[row] = measured_elsewhere(asked.baselines, totals.chosen("rules"), own)
        sums = {"groups": wholes > 0, "sizes": wholes**2}
        for name, right in (("best", best), ("held", heads)):
            sums |= {name: right, f"{name} squares": right**2, f"{name} products": right * wholes}
        for name, each in sums.items():
            self._sums[name] = self._sums.get(name, 0) + each.sum(axis=1).astype(np.int64)
        above = heads - rules
        self._above.update_many(
            [(name, 1) for name in part.documents], np.stack([above, wholes], axis=2).swapaxes(0, 1)
        )
        # A document without a question of a kind must not count as one that was answered wrong.
        splits = self._splits[:, None]
        there = np.where((wholes > 0) & (splits > 0), above / np.maximum(splits, 1), np.nan)
        self._tested.update_many(there.T, [(None, 1)] * count)
        # Else the values of some ten thousand documents wait to be added up together.
        self._tested.close()

    def numbers(self, confidence: float, correction: str) -> list[dict[str, Any]]:
        """What `headscope.studies.shared._held_out.measured` gives of documents that are held."""
        p = self._tested.p_above()
        tests = CORRECTIONS[correction](p)
        totals = [self._first.totals[key] for key in self._keys]
        wholes = np.array([each.whole for each in totals], np.float64)
        ends = self._shares("best", 1, wholes, confidence)
        held_ends = self._shares("held", np.maximum(self._splits, 1), wholes, confidence)
        above = self._above_ends(confidence)
        numbers = []
        for row, each in enumerate(totals):
            on_all = _on_all(each) | {"low": float(ends[row, 0]), "high": float(ends[row, 1])}
            off = held_out_numbers(_held(each), float(each.whole), held_ends[row], above[row])
            tested = {"p": float(p[row]), "p_corrected": float(tests[row])}
            numbers.append(on_all | off | tested)
        return numbers

    @property
    def _splits(self) -> Int[np.ndarray, " key"]:
        return np.array([len(self._first.totals[key].valid) for key in self._keys])

    def _shares(
        self, name: str, times: Any, wholes: np.ndarray, confidence: float
    ) -> Float[np.ndarray, "key 2"]:
        """Wilson's interval over documents of a share, whose sums are ``times`` as large."""
        return wilson_of_sums(
            (self._sums[name] / times, wholes),
            self._sums[f"{name} squares"] / times**2,
            self._sums[f"{name} products"] / times,
            self._sums["sizes"].astype(np.float64),
            groups=self._sums["groups"],
            confidence=confidence,
        )

    def _above_ends(self, confidence: float) -> Float[np.ndarray, "key 2"]:
        """By Poisson's bootstrap: a ratio of sums over documents is no mean."""
        splits = np.maximum(self._splits, 1)
        ends = np.full((len(self._keys), 2), np.nan)
        for row, (groups, sizes) in enumerate(
            zip(self._sums["groups"], self._sums["sizes"], strict=True)
        ):
            if groups < 2:
                continue

            def ratio(total: np.ndarray, row: int = row) -> np.ndarray:
                parts, wholes = total[:, row, 0] / splits[row], total[:, row, 1]
                return np.divide(parts, wholes, out=np.full(parts.shape, np.nan), where=wholes > 0)

            effective = self._first.totals[self._keys[row]].whole ** 2 / sizes
            documents = float(groups), float(effective)
            ends[row] = self._above.interval(ratio, confidence, documents=documents)
        return ends


@dataclass(frozen=True, kw_only=True)
class SummedAnswers:
    """What a study of annotated texts says of more texts than are kept.

    Args:
        texts: how many.
        documents: that they are of.
        lengths: how many texts have each number of tokens.
        counts: other numbers of the study, by name.
        wholes: how often everything was asked, by how and what.
        hits: right by each head, or head and direction.
        others: right by further rules, by what was asked.
        numbers: of the best and the chosen head, as of
            `headscope.studies.shared._held_out.measured`.
    """

    texts: int
    documents: int
    lengths: Counter[int]
    counts: Mapping[str, int]
    wholes: Mapping[Key, int]
    hits: Mapping[Key, Int[np.ndarray, " choice"]]
    others: Mapping[str, Int[np.ndarray, " rule"]]
    numbers: Mapping[Key, dict[str, Any]]

    def asked(self, how: str) -> tuple[str, ...]:
        """All that was asked in one way, in its order."""
        return tuple(what for way, what in self.wholes if way == how)


def summed_answers(
    parts: Callable[[], Iterable[PartAnswers]],
    ordered: Callable[[Mapping[str, int]], Sequence[str]],
    *,
    judging: Mapping[str, Any],
) -> SummedAnswers:
    """What all parts say.

    Args:
        parts: gives them, twice.
        ordered: what was asked, in the order of a table, of how often each was.
        judging: ``seed``, ``splits``, ``confidence`` and ``correction``.
    """
    first = FirstReading(judging["seed"], judging["splits"])
    for part in parts():
        first.update(part)
    keys: dict[str, list[Key]] = {}
    for how in dict.fromkeys(how for how, _ in first.totals):
        counts = {what: each.whole for (way, what), each in first.totals.items() if way == how}
        keys[how] = [(how, what) for what in ordered(counts)]
    seconds = {how: SecondReading(first, of) for how, of in keys.items()}
    for part in parts():
        for second in seconds.values():
            second.update(part)
    numbers: dict[Key, dict[str, Any]] = {}
    for how, second in seconds.items():
        listed = second.numbers(judging["confidence"], judging["correction"])
        numbers |= dict(zip(keys[how], listed, strict=True))
    return SummedAnswers(
        texts=first.texts,
        documents=first.documents,
        lengths=first.lengths,
        counts=dict(first.counts),
        wholes={key: first.totals[key].whole for key in numbers},
        hits={key: first.totals[key].hits for key in numbers},
        others=first.others,
        numbers=numbers,
    )


def hashed_halves(
    documents: Sequence[str], seed: int, splits: int
) -> Bool[np.ndarray, "split document"]:
    """One half of the documents of every split, by their names alone: where a document belongs
    does not depend on the others.
    """
    halves = np.zeros((splits, len(documents)), bool)
    numbers = np.arange(seed, seed + splits)
    for block in np.unique(numbers // BITS).tolist():
        rows = np.flatnonzero(numbers // BITS == block)
        places = numbers[rows] % BITS
        for column, name in enumerate(documents):
            bits = key_of("half", str(block), name, bits=BITS).to_bytes(BITS // 8, "big")
            halves[rows, column] = np.unpackbits(np.frombuffer(bits, np.uint8))[places]
    return halves


def measured_elsewhere(
    hits: Float[np.ndarray, "choice document"],
    chosen: Int[np.ndarray, "half split"],
    halves: Bool[np.ndarray, "split document"],
) -> Float[np.ndarray, " document"]:
    """What is right in each document by what was chosen on the other half, over all splits."""
    here, there = hits[chosen[0]], hits[chosen[1]]
    return np.where(halves, there, here).sum(axis=0)


def _on_all(totals: AnswerTotals) -> dict[str, Any]:
    """Of the head and the rule that are best on all documents, measured on them too."""
    best, rule = int(totals.hits.argmax()), int(totals.rules.argmax())
    return {
        "best": best,
        "rule": rule,
        "rule_share": float(totals.rules[rule] / totals.whole),
        "count": totals.whole,
        "accuracy": float(totals.hits[best] / totals.whole),
    }


def _held(totals: AnswerTotals) -> HeldOutHits:
    """What was chosen, with all documents as one."""
    choices = tuple(Counter(totals.chosen(what).ravel().tolist()) for what in ("hits", "rules"))
    head, rule = (totals.elsewhere(what)[:, None] for what in ("hits", "rules"))
    return HeldOutHits(head=head, rule=rule, choices=(choices[0], choices[1]))
