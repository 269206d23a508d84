"""Edge probing: what a small network reads off a mix of all layers about one word, or about a word
and its head.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from headscope.errors import TextError
from headscope.linguistics import centre_of_gravity, control_labels, expected_layer
from headscope.linguistics.probe_features import pair_distances
from headscope.studies.probes._items import ProbeData, ProbeItem
from headscope.studies.probes._score import CONTROL, PROBE, Score
from headscope.studies.probes._training import Training, fit

TAGS, DEPENDENCIES, ACCURACY = "part of speech", "dependency", "accuracy"
MAJORITY, OF_WORD, DISTANCES, EMBEDDINGS = (
    "majority",
    "majority of the word",
    "distances",
    "layer 0",
)
WIDTH = 128
DROPOUT = 0.2
BATCH = 64


@dataclass(frozen=True, eq=False)
class LabelledSpans:
    """Labelled words, or words with their heads, of many sentences.

    Args:
        at: number of the sentence, and of one word or two; axes span, 2 or 3.
        labels: of each.
        names: of the labels.
        types: the words in lower case.
    """

    at: np.ndarray
    labels: np.ndarray
    names: tuple[str, ...]
    types: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class HiddenStates:
    """The hidden states of all pieces of all sentences in one array, and which of them each word is
    made of.
    """

    states: Tensor
    words: np.ndarray
    first: np.ndarray

    @classmethod
    def of(cls, items: Sequence[ProbeItem]) -> HiddenStates:
        """Of the states of sentences."""
        widest = max(len(pieces) for item in items for pieces in item.pieces)
        words = np.full((sum(map(len, items)), widest), -1)
        states, first, piece, word = [], [], 0, 0
        for item in items:
            if item.states is None:
                raise ValueError("hidden states were not read")
            first.append(word)
            for pieces in item.pieces:
                words[word, : len(pieces)] = np.array(pieces) + piece
                word += 1
            piece += item.states.shape[1]
            states.append(item.states)
        return cls(torch.from_numpy(np.concatenate(states, axis=1)), words, np.array(first))

    def pieces(self, at: np.ndarray) -> np.ndarray:
        """The pieces of the words of spans, -1 for none; axes span, word, piece."""
        return self.words[self.first[at[:, :1]] + at[:, 1:]]


class EdgeProbe(nn.Module):
    """``gamma sum_l softmax(a)_l h^l``, projected, pooled over each span by attention of its own,
    and an MLP.

    Source: Tenney et al. 2019 (What do you learn from context?), section 4; the labels of a span
    exclude each other here, so that a softmax takes the place of their sigmoids. Width 128 where
    they have 256.
    """

    def __init__(self, layers: int, features: int, spans: int, labels: int) -> None:
        super().__init__()
        self.mix, self.gamma = nn.Parameter(torch.zeros(layers)), nn.Parameter(torch.ones(()))
        self.project = nn.ModuleList(nn.Linear(features, WIDTH) for _ in range(spans))
        self.pool = nn.ModuleList(nn.Linear(WIDTH, 1) for _ in range(spans))
        self.out = nn.Sequential(
            nn.Linear(spans * WIDTH, WIDTH),
            nn.Tanh(),
            nn.LayerNorm(WIDTH),
            nn.Dropout(DROPOUT),
            nn.Linear(WIDTH, labels),
        )

    @property
    def weights(self) -> Tensor:
        """Of the layers; they sum to 1."""
        return self.mix.softmax(0)

    def forward(self, states: Tensor, there: Tensor) -> Tensor:
        """Logits ``[span label]`` of states ``[layer span word piece feature]``, and which of the
        pieces are there.
        """
        # Projected after mixing: the layers are summed once, whatever the number of spans.
        mixed = self.gamma * torch.einsum("l,lswpf->swpf", self.weights, states)
        pooled = []
        for number, (project, pool) in enumerate(zip(self.project, self.pool, strict=True)):
            read = project(mixed[:, number])
            shares = pool(read)[..., 0].masked_fill(~there[:, number], -torch.inf).softmax(-1)
            pooled.append((shares[..., None] * read).sum(1))
        return self.out(torch.cat(pooled, dim=-1))


def edge_scores(
    data: ProbeData, how: Training, *, layers: bool = True, least: int
) -> tuple[list[Score], dict[str, Any]]:
    """Probes of both tasks with their controls, and of the layers 0 to l for each l.

    Args:
        data: with hidden states.
        how: probes are trained.
        layers: whether to train a probe for the layers up to each.
        least: how often a label must be among the sentences learnt from.

    Returns:
        Scores; and the weights of layers, centre of gravity and expected layer of each task.
    """
    stores = {name: HiddenStates.of(items) for name, items in data.sides.items()}
    all_scores: list[Score] = []
    facts: dict[str, Any] = {}
    for task, spans in ((TAGS, _tags(data, least)), (DEPENDENCIES, _dependencies(data, least))):
        edges = _Edges(task, spans, data, how)
        scores, new_facts = edges.run(stores, layers=layers)
        all_scores += scores
        facts |= {f"{name}, {task}": value for name, value in new_facts.items()}
    return all_scores, facts


@dataclass(frozen=True, eq=False)
class _Edges:
    task: str
    spans: LabelledSpans
    data: ProbeData
    how: Training

    def run(
        self, stores: dict[str, HiddenStates], *, layers: bool
    ) -> tuple[list[Score], dict[str, Any]]:
        spans, real = self.spans, stores[PROBE]
        count = len(real.states)
        train = np.isin(spans.at[:, 0], self.data.parts.train)
        shares = np.bincount(spans.labels[train], minlength=len(spans.names)) / train.sum()
        scores, weights = [], np.full(count, 1 / count)
        for name, store in stores.items():
            right, module = self.learnt(store, spans.labels, count, name)
            scores.append(self.score(name, right))
            weights = module.weights.detach().numpy() if name == PROBE else weights
        right, _ = self.learnt(real, control_labels(spans.types, shares), count, CONTROL)
        scores.append(self.score(CONTROL, right))
        upto = []
        for last in range(count - 1 if layers else 1):
            right, _ = self.learnt(real, spans.labels, last + 1, f"layers 0 to {last}")
            upto.append(self.score(EMBEDDINGS if last == 0 else f"layers 0 to {last}", right))
        facts: dict[str, Any] = {
            "labels": spans.names,
            "layer weights": tuple(float(weight) for weight in weights),
            "centre of gravity": centre_of_gravity(weights.astype(np.float64)),
        }
        if layers:
            upto.append(replace(scores[0], of=f"layers 0 to {count - 1}"))
            facts["expected layer"] = expected_layer(np.array([score.value for score in upto]))
        return [*scores, *self.baselines(train, shares), *upto], facts

    def learnt(
        self, store: HiddenStates, labels: np.ndarray, layers: int, name: str
    ) -> tuple[np.ndarray, EdgeProbe]:
        """Whether a probe of the first layers is right on each span, and the probe."""
        spans, count = self.spans, int(self.spans.labels.max()) + 1
        pieces, states = store.pieces(spans.at), store.states
        order = np.random.default_rng(self.how.seed).permutation(len(labels))

        def read(rows: np.ndarray) -> tuple[Tensor, Tensor]:
            chosen = pieces[rows]
            chosen = chosen[..., : int((chosen >= 0).sum(-1).max())]
            # States are in half precision; -1 for no piece is read as piece 0 and masked.
            read_at = torch.from_numpy(np.maximum(chosen, 0))
            return states[:layers, read_at].float(), torch.from_numpy(chosen >= 0)

        def loss(module: nn.Module, rows: np.ndarray) -> Tensor:
            return cross_entropy(module(*read(rows)), torch.from_numpy(labels[rows]))

        sentence = spans.at[:, 0]
        parts = (self.data.parts.train, self.data.parts.aside, self.data.parts.test)
        widths = (pieces >= 0).sum(-1).max(-1)
        # Words of like many pieces together, shuffled among each other, to fill up little.
        order = order[np.argsort(widths[order], kind="stable")]
        train, aside, test = (_cut(order[np.isin(sentence[order], part)]) for part in parts)
        size = states.shape[-1]
        fitted = fit(
            lambda: EdgeProbe(layers, size, spans.at.shape[1] - 1, count),
            (train, aside),
            loss,
            self.how,
            name=f"{self.task}: {name}",
        )
        right = np.zeros(len(labels), bool)
        with torch.no_grad():
            for rows in test:
                right[rows] = fitted.module(*read(rows)).argmax(dim=1).numpy() == labels[rows]
        return right, fitted.module

    def baselines(self, train: np.ndarray, shares: np.ndarray) -> list[Score]:
        """What the labels' frequencies say, with the word, or with the distance."""
        spans, most = self.spans, int(shares.argmax())
        scores = [self.score(MAJORITY, spans.labels == most)]
        if spans.at.shape[1] == 2:
            keys, name = list(spans.types), OF_WORD
        else:
            number, first, second = spans.at.T
            sizes = np.array([len(item) for item in self.data.items])
            features = pair_distances(first, second, sizes[number])
            # All but the last feature are one of the offsets each.
            keys, name = [str(row[:-1].argmax()) for row in features], DISTANCES
        counts: dict[str, Counter] = {}
        learnt = zip(np.array(keys)[train].tolist(), spans.labels[train].tolist(), strict=True)
        for key, label in learnt:
            counts.setdefault(key, Counter())[label] += 1
        # A word that was never learnt from gets the label that is most frequent of all.
        likeliest = {key: own.most_common(1)[0][0] for key, own in counts.items()}
        predicted = np.array([likeliest.get(key, most) for key in keys])
        return [*scores, self.score(name, predicted == spans.labels)]

    def score(self, of: str, right: np.ndarray) -> Score:
        number = self.spans.at[:, 0]
        hits = [
            (float(right[number == each].sum()), float((number == each).sum()))
            for each in self.data.parts.test
        ]
        return Score(task=self.task, measure=ACCURACY, of=of, hits=np.array(hits))


def _tags(data: ProbeData, least: int) -> LabelledSpans:
    rows = [
        ((number, word), tag, item.forms[word])
        for number, item in enumerate(data.items)
        for word, tag in enumerate(item.sentence.upos)
        if tag and tag != "_"
    ]
    return _spans(rows, data, least, "parts of speech")


def _dependencies(data: ProbeData, least: int) -> LabelledSpans:
    rows = [
        ((number, word, head), item.relations[word], f"{item.forms[word]} {item.forms[head]}")
        for number, item in enumerate(data.items)
        for word, head in enumerate(item.heads.tolist())
        if head >= 0 and item.relations[word] not in ("punct", "root")
    ]
    return _spans(rows, data, least, "relations")


def _spans(
    rows: Sequence[tuple[tuple[int, ...], str, str]], data: ProbeData, least: int, what: str
) -> LabelledSpans:
    names = _frequent_labels(rows, data, least)
    if len(names) < 2:
        raise TextError(
            f"{len(names)} {what} are at least {least} times among {len(data.parts.train)} "
            "sentences; give more"
        )
    kept = [row for row in rows if row[1] in names]
    labels = np.array([names.index(label) for _, label, _ in kept], np.int64)
    return LabelledSpans(
        np.array([at for at, *_ in kept]), labels, names, tuple(name for *_, name in kept)
    )


def _frequent_labels(
    rows: Sequence[tuple[tuple[int, ...], str, str]], data: ProbeData, least: int
) -> tuple[str, ...]:
    """The labels that are often enough among the sentences learnt from, the most frequent first."""
    train = set(data.parts.train)
    counts = Counter(label for at, label, _ in rows if at[0] in train)
    return tuple(name for name, count in counts.most_common() if count >= least)


def _cut(rows: np.ndarray) -> list[np.ndarray]:
    return [rows[first : first + BATCH] for first in range(0, len(rows), BATCH)]
