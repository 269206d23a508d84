"""Probes of the model-wide attention vector: is there a relation between two words, and which."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from headscope.errors import TextError
from headscope.linguistics import control_labels
from headscope.linguistics.probe_features import pair_distances, unrelated_pairs
from headscope.record import part_of
from headscope.storage import BoundedArrays
from headscope.studies.probe._data import (
    LazySequence,
    ProbeData,
    ProbeItem,
    Room,
    bounded_arrays,
    hits_of,
    span_types,
)
from headscope.studies.probe._result import CONTROL, PROBE, Score
from headscope.studies.probe._training import Training, fit

AT_ONCE = 4096
"""Pairs of one array."""
PREDICTED = 4
"""Arrays of which pairs are predicted at once. One product of matrices: its last bits may depend on
how many there are, so the number is fixed.
"""


class PairFeatures:
    """A row of numbers for each pair of words.

    Args:
        vectors: of each pair.
        arrays: hold them in memory, or in a file where they do not fit.
    """

    def __init__(self, vectors: Iterable[np.ndarray], arrays: BoundedArrays) -> None:
        self._blocks = []
        self.size = 0
        rows = iter(vectors)
        while some := list(islice(rows, AT_ONCE)):
            block = np.array(some, np.float32)
            self.size = block.shape[1]
            self._blocks.append(arrays.put(block))

    def rows(self, chosen: Int[np.ndarray, " row"]) -> Float[np.ndarray, "row feature"]:
        """Those of some pairs."""
        rows = np.empty((len(chosen), self.size), np.float32)
        for number, at in enumerate(chosen.tolist()):
            rows[number] = part_of(self._blocks[at // AT_ONCE], at % AT_ONCE)
        return rows

    def blocks(self, together: int = 1) -> Iterator[Float[np.ndarray, "pair feature"]]:
        """Those of all pairs, of so many arrays at once."""
        for first in range(0, len(self._blocks), together):
            some = self._blocks[first : first + together]
            # No list of them stays behind while the rows are used.
            yield np.concatenate([part_of(block) for block in some])

    def scaled(
        self, train: Bool[np.ndarray, " pair"]
    ) -> Callable[[Float[np.ndarray, "row feature"]], Float[np.ndarray, "row feature"]]:
        """What gives rows mean 0 and deviation 1 over some pairs.

        In single precision and row by row, as NumPy has ``mean(axis=0)`` and ``std(axis=0)`` of
        them all: to the last bit.
        """
        # Of the type that NumPy divides sums of rows by.
        count = np.intp(train.sum())

        def divided(total: np.ndarray) -> np.ndarray:
            return np.true_divide(total, count, out=total, casting="unsafe")

        def of_train() -> Iterator[np.ndarray]:
            for number, block in enumerate(self.blocks()):
                yield block[train[number * AT_ONCE : number * AT_ONCE + len(block)]]

        mean = divided(_sum(of_train()))
        variance = divided(_sum((rows - mean) ** 2 for rows in of_train()))
        deviation = np.sqrt(variance)
        scale = np.where(deviation > 0, deviation, np.float32(1))

        def scaled(rows: np.ndarray) -> np.ndarray:
            moved = rows - mean
            # In place: of many rows another array would be large.
            return np.divide(moved, scale, out=moved)

        return scaled


def _sum(blocks: Iterator[np.ndarray]) -> np.ndarray:
    """Of all rows, added one after the other."""
    total = None
    for block in blocks:
        rows = block if total is None else np.concatenate([total[None], block])
        if len(rows):
            total = np.add.reduce(rows, axis=0)
    assert total is not None, "some pairs are learnt from"
    return total


BINARY, WHICH, ACCURACY = "is there a relation", "which relation", "accuracy"
BOTH, DISTANCES, MAJORITY = "both directions", "distances", "majority"
BATCH = 64
LEFT_OUT = ("punct", "root")


@dataclass(frozen=True, eq=False)
class WordPairs:
    """Ordered pairs of words of many sentences.

    Args:
        at: number of the sentence, of the first word, and of the second; axes pair, 3.
        labels: of each pair.
        names: of the labels.
    """

    at: np.ndarray
    labels: np.ndarray
    names: tuple[str, ...]

    def types(self, items: Sequence[ProbeItem]) -> Iterator[str]:
        """The words of each pair in lower case."""
        return span_types(items, self.at)


def relation_scores(
    data: ProbeData, how: Training, *, least: int
) -> tuple[list[Score], dict[str, Any]]:
    """Both probes and their controls.

    Args:
        data: with maps.
        how: probes are trained; its seed is that of the pairs without a relation, too.
        least: how often a relation must be among the sentences learnt from.

    Returns:
        Scores, and the relations.
    """
    related = _related(data, least)
    all_scores: list[Score] = []
    facts: dict[str, Any] = {"relations": related.names}
    for task, pairs in ((BINARY, _any(data.items, related, how.seed)), (WHICH, related)):
        scores, epochs = _scores(task, pairs, data, how)
        all_scores += scores
        facts |= {f"pairs, {task}": len(pairs.at), f"epochs, {task}": epochs}
    return all_scores, facts


def attention_vectors(
    items: Sequence[ProbeItem], pairs: WordPairs, *, both: bool = False
) -> Iterator[np.ndarray]:
    """The attention of all heads from the first word of each pair to the second; ``both`` adds that
    back.

    Source: Coenen et al. 2019, section 3.1 (model-wide attention vector); both directions are Clark
    et al. 2019.

    Yields:
        The vector of each pair, in order.
    """
    last, maps = -1, None
    for number, first, second in _rows(pairs.at):
        # Pairs of one sentence stand together: its maps are read once.
        if number != last:
            last, maps = number, items[number].maps
        if maps is None:
            raise ValueError("attention was not read")
        vector = maps[:, first, second]
        yield np.concatenate([vector, maps[:, second, first]]) if both else vector


def _related(data: ProbeData, least: int) -> WordPairs:
    """Dependents with their heads, of the relations that are often enough."""
    # Counted where it is learnt alone: a relation must not be chosen by what is reported on.
    train = set(data.parts.train)
    counts = Counter(relation for number, _, _, relation in _edges(data.items) if number in train)
    names = tuple(name for name, count in counts.most_common() if count >= least)
    if len(names) < 2:
        raise TextError(
            f"{len(names)} relations are at least {least} times among {len(train)} sentences; "
            "give more sentences"
        )
    kept, labels = array("q"), array("q")
    for *triple, relation in _edges(data.items):
        if relation in names:
            kept.extend(triple)
            labels.append(names.index(relation))
    return WordPairs(_triples(kept), np.array(labels), names)


def _edges(items: Sequence[ProbeItem]) -> Iterator[tuple[int, int, int, str]]:
    """Sentence, dependent, head and relation of every edge that counts."""
    for number, item in enumerate(items):
        # A property that is made anew each time it is asked for.
        relations = item.relations
        for word, head in enumerate(item.heads.tolist()):
            if head >= 0 and relations[word] not in LEFT_OUT:
                yield number, word, head, relations[word]


def _any(items: Sequence[ProbeItem], related: WordPairs, seed: int) -> WordPairs:
    """The same pairs, and in each sentence as many without an edge in either direction, punctuation
    left out.
    """
    rng = np.random.default_rng(seed)
    numbers, counts = np.unique(related.at[:, 0], return_counts=True)
    kept = array("q")
    # As many of each sentence, so that neither its length nor its topic tells the classes apart.
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        item = items[number]
        words = np.flatnonzero(item.counted).tolist()
        for pair in unrelated_pairs(item.heads, words, count, rng).tolist():
            kept.extend((number, *pair))
    apart = _triples(kept)
    labels = np.repeat([1, 0], [len(related.at), len(apart)])
    return WordPairs(np.concatenate([related.at, apart]), labels, ("none", "some"))


def _triples(kept: array) -> np.ndarray:
    """Numbers that were collected, as sentence and two words of each pair."""
    return np.array(kept, np.int64).reshape(-1, 3)


def _scores(
    task: str, pairs: WordPairs, data: ProbeData, how: Training
) -> tuple[list[Score], dict[str, Any]]:
    number = pairs.at[:, 0]
    train = np.isin(number, data.parts.train)
    shares = np.bincount(pairs.labels[train], minlength=len(pairs.names)) / train.sum()
    scores, epochs = [], {}
    with bounded_arrays() as arrays:
        inputs = {
            name: PairFeatures(attention_vectors(items, pairs), arrays)
            for name, items in data.sides.items()
        }
        inputs[CONTROL] = inputs[PROBE]
        inputs[BOTH] = PairFeatures(attention_vectors(data.items, pairs, both=True), arrays)
        inputs[DISTANCES] = PairFeatures(_distances(pairs, data.sizes), arrays)
        for name, features in inputs.items():
            labels = pairs.labels
            if name == CONTROL:
                labels = control_labels(pairs.types(data.items), shares)
            predicted, epochs[name] = _learnt(
                features, labels, number, data, how=how, name=f"{task}: {name}"
            )
            scores.append(_score(task, name, hits_of(predicted == labels, number, data)))
    scores.append(_score(task, MAJORITY, hits_of(pairs.labels == shares.argmax(), number, data)))
    return scores, epochs


def _distances(pairs: WordPairs, sizes: np.ndarray) -> Iterator[np.ndarray]:
    """What the places of the words of each pair say."""
    for first in range(0, len(pairs.at), AT_ONCE):
        number, one, other = pairs.at[first : first + AT_ONCE].T
        yield from pair_distances(one, other, sizes[number])


def _rows(at: np.ndarray) -> Iterator[list[int]]:
    """Rows as lists, of which few are made at once."""
    for first in range(0, len(at), AT_ONCE):
        yield from at[first : first + AT_ONCE].tolist()


def _learnt(
    features: PairFeatures,
    labels: np.ndarray,
    number: np.ndarray,
    data: ProbeData,
    *,
    how: Training,
    name: str,
) -> tuple[np.ndarray, int]:
    """What a linear classifier says of every pair, and the epoch that it is from."""
    # By the numbers of what is learnt from alone: nothing of the rest may reach the probe.
    train = np.isin(number, data.parts.train)
    scaled = features.scaled(train)
    wanted = torch.from_numpy(labels.astype(np.int64))
    order = np.random.default_rng(how.seed).permutation(len(labels))
    room = Room()

    def batches(part: Sequence[int]) -> LazySequence[tuple[Tensor, Tensor]]:
        rows = order[np.isin(number[order], part)]
        starts = range(0, len(rows), BATCH)

        def batch(at: int) -> tuple[Tensor, Tensor]:
            chosen = rows[starts[at] : starts[at] + BATCH]
            return torch.from_numpy(scaled(features.rows(chosen))), wanted[chosen]

        return LazySequence(len(starts), batch, room)

    classes = int(labels.max()) + 1
    both = batches(data.parts.train), batches(data.parts.aside)
    fitted = fit(lambda: nn.Linear(features.size, classes), both, _loss, how, name=name)
    predicted = []
    with torch.no_grad():
        for known in features.blocks(PREDICTED):
            predicted.append(fitted.module(torch.from_numpy(scaled(known))).argmax(dim=1).numpy())
    return np.concatenate(predicted), fitted.epoch


def _loss(module: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    return cross_entropy(module(batch[0]), batch[1])


def _score(task: str, of: str, hits: np.ndarray) -> Score:
    return Score(task=task, measure=ACCURACY, of=of, hits=hits)
