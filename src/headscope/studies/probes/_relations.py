"""Probes of the model-wide attention vector: is there a relation between two words, and which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from headscope.errors import TextError
from headscope.linguistics import control_labels
from headscope.linguistics.probe_features import pair_distances, unrelated_pairs
from headscope.studies.probes._items import ProbeData, ProbeItem
from headscope.studies.probes._score import CONTROL, PROBE, Score
from headscope.studies.probes._training import Training, fit

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
        types: of each pair, the words in lower case.
    """

    at: np.ndarray
    labels: np.ndarray
    names: tuple[str, ...]
    types: tuple[str, ...]


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
) -> np.ndarray:
    """The attention of all heads from the first word of each pair to the second; ``both`` adds that
    back.

    Source: Coenen et al. 2019, section 3.1 (model-wide attention vector); both directions are Clark
    et al. 2019.

    Returns:
        Axes pair, map.
    """
    vectors = []
    for number, first, second in pairs.at.tolist():
        maps = items[number].maps
        if maps is None:
            raise ValueError("attention was not read")
        vector = maps[:, first, second]
        if both:
            vector = np.concatenate([vector, maps[:, second, first]])
        vectors.append(vector)
    return np.array(vectors, np.float32)


def _related(data: ProbeData, least: int) -> WordPairs:
    """Dependents with their heads, of the relations that are often enough."""
    edges = _edges(data.items)
    # Counted where it is learnt alone: a relation must not be chosen by what is reported on.
    train = set(data.parts.train)
    counts = Counter(relation for number, _, _, relation in edges if number in train)
    names = tuple(name for name, count in counts.most_common() if count >= least)
    if len(names) < 2:
        raise TextError(
            f"{len(names)} relations are at least {least} times among {len(train)} sentences; "
            "give more sentences"
        )
    kept = [edge for edge in edges if edge[3] in names]
    labels = np.array([names.index(relation) for *_, relation in kept])
    return _pairs(data.items, [edge[:3] for edge in kept], labels, names)


def _edges(items: Sequence[ProbeItem]) -> list[tuple[int, int, int, str]]:
    """Sentence, dependent, head and relation of every edge that counts."""
    edges = []
    for number, item in enumerate(items):
        # A property that is made anew each time it is asked for.
        relations = item.relations
        for word, head in enumerate(item.heads.tolist()):
            if head >= 0 and relations[word] not in LEFT_OUT:
                edges.append((number, word, head, relations[word]))
    return edges


def _any(items: Sequence[ProbeItem], related: WordPairs, seed: int) -> WordPairs:
    """The same pairs, and in each sentence as many without an edge in either direction, punctuation
    left out.
    """
    rng = np.random.default_rng(seed)
    triples = [tuple(triple) for triple in related.at.tolist()]
    counts = Counter(number for number, *_ in triples)
    apart = []
    # As many of each sentence, so that neither its length nor its topic tells the classes apart.
    for number, count in sorted(counts.items()):
        words = np.flatnonzero(items[number].counted).tolist()
        apart += [
            (number, *pair)
            for pair in unrelated_pairs(items[number].heads, words, count, rng).tolist()
        ]
    labels = np.repeat([1, 0], [len(triples), len(apart)])
    return _pairs(items, triples + apart, labels, ("none", "some"))


def _pairs(
    items: Sequence[ProbeItem],
    triples: Sequence[tuple[int, ...]],
    labels: np.ndarray,
    names: tuple[str, ...],
) -> WordPairs:
    forms = [item.forms for item in items]
    types = tuple(
        f"{forms[number][first]} {forms[number][second]}" for number, first, second in triples
    )
    return WordPairs(np.array(triples), labels, names, types)


def _scores(
    task: str, pairs: WordPairs, data: ProbeData, how: Training
) -> tuple[list[Score], dict[str, Any]]:
    sizes = np.array([len(item) for item in data.items])
    number, first, second = pairs.at.T
    train = np.isin(number, data.parts.train)
    shares = np.bincount(pairs.labels[train], minlength=len(pairs.names)) / train.sum()
    inputs = {name: attention_vectors(items, pairs) for name, items in data.sides.items()}
    inputs[CONTROL] = inputs[PROBE]
    inputs[BOTH] = attention_vectors(data.items, pairs, both=True)
    inputs[DISTANCES] = pair_distances(first, second, sizes[number]).astype(np.float32)
    scores, epochs = [], {}
    for name, features in inputs.items():
        labels = control_labels(pairs.types, shares) if name == CONTROL else pairs.labels
        predicted, epochs[name] = _learnt(
            features, labels, number, data, how=how, name=f"{task}: {name}"
        )
        scores.append(_score(task, name, _hits(predicted == labels, number, data)))
    scores.append(_score(task, MAJORITY, _hits(pairs.labels == shares.argmax(), number, data)))
    return scores, epochs


def _learnt(
    features: np.ndarray,
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
    mean, deviation = features[train].mean(axis=0), features[train].std(axis=0)
    known = torch.from_numpy((features - mean) / np.where(deviation > 0, deviation, 1))
    wanted = torch.from_numpy(labels.astype(np.int64))
    order = np.random.default_rng(how.seed).permutation(len(labels))
    batches = [
        [(known[rows], wanted[rows]) for rows in _cut(order[np.isin(number[order], part)])]
        for part in (data.parts.train, data.parts.aside)
    ]
    classes = int(labels.max()) + 1
    fitted = fit(lambda: nn.Linear(known.shape[1], classes), tuple(batches), _loss, how, name=name)  # ty: ignore
    with torch.no_grad():
        return fitted.module(known).argmax(dim=1).numpy(), fitted.epoch


def _cut(rows: np.ndarray) -> list[Tensor]:
    return [torch.from_numpy(rows[first : first + BATCH]) for first in range(0, len(rows), BATCH)]


def _loss(module: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    return cross_entropy(module(batch[0]), batch[1])


def _hits(right: np.ndarray, number: np.ndarray, data: ProbeData) -> np.ndarray:
    return np.array(
        [
            (float(right[number == each].sum()), float((number == each).sum()))
            for each in data.parts.test
        ]
    )


def _score(task: str, of: str, hits: np.ndarray) -> Score:
    return Score(task=task, measure=ACCURACY, of=of, hits=hits)
