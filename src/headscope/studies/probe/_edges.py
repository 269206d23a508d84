"""Edge probing: what a small network reads off a mix of all layers about one word, or about a word
and its head.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from headscope.errors import TextError
from headscope.linguistics import centre_of_gravity, control_labels, expected_layer
from headscope.linguistics.probe_features import pair_distances
from headscope.studies.probe._data import AT_ONCE, ProbeData, ProbeItem, Room, hits_of, span_types
from headscope.studies.probe._result import CONTROL, PROBE, Score
from headscope.studies.probe._training import Training, fit

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
    """

    at: np.ndarray
    labels: np.ndarray
    names: tuple[str, ...]


class HiddenStates:
    """The hidden states of all pieces of all sentences, and which of them each word is made of.

    They are in one array where they fit in memory; else those of a sentence are read from its file
    when a batch has a word of it.

    Args:
        items: the sentences.
        room: for the array.
    """

    def __init__(self, items: Sequence[ProbeItem], room: Room) -> None:
        self._items = items
        counts, pieces, sizes, words = [], [], [], []
        for item in items:
            words.append(len(item.pieces))
            sizes.append(item.states_shape[1])
            counts += [np.fromiter(map(len, item.pieces), np.int32)]
            pieces += [np.fromiter((piece for word in item.pieces for piece in word), np.int32)]
        # Of each word how many pieces it has, and where the first of them stands among all.
        self._counts = np.concatenate(counts)
        self._flat = np.concatenate(pieces)
        self._starts = _starts(self._counts)
        # Of each sentence its first word and its first piece.
        self._first_word, self._first_piece = _starts(words), _starts(sizes)
        self.layers, _, self.features = items[0].states_shape
        self.states: Tensor | None = None
        # In half precision, of two bytes.
        if room.takes(2 * self.layers * sum(sizes) * self.features):
            states = np.empty((self.layers, sum(sizes), self.features), np.float16)
            for item, start, size in zip(items, self._first_piece, sizes, strict=True):
                states[:, start : start + size] = item.states
            self.states = torch.from_numpy(states)

    def widths(self, at: np.ndarray) -> np.ndarray:
        """Of each span, the pieces of the word that has most."""
        return self._counts[self._words(at)].max(axis=-1)

    def pieces(self, at: np.ndarray) -> np.ndarray:
        """The pieces of the words of spans, numbered in their sentence, -1 for none; axes span,
        word, piece.
        """
        words = self._words(at)
        counts = self._counts[words][..., None]
        numbers = np.arange(counts.max())
        # Behind the last piece of all there is none; what stands there is left out.
        places = np.minimum(self._starts[words][..., None] + numbers, len(self._flat) - 1)
        return np.where(numbers < counts, self._flat[places], -1)

    def read(self, at: np.ndarray, layers: int) -> tuple[Tensor, Tensor]:
        """States ``[layer span word piece feature]`` of the first layers, and which of the pieces
        are there; zeros or another piece stand where one is not.
        """
        pieces = self.pieces(at)
        there = pieces >= 0
        # States are in half precision.
        if self.states is not None:
            places = np.where(there, self._first_piece[at[:, 0], None, None] + pieces, 0)
            return self.states[:layers, torch.from_numpy(places)].float(), torch.from_numpy(there)
        states = np.zeros((layers, *pieces.shape, self.features), np.float32)
        for row, number in enumerate(at[:, 0].tolist()):
            own = self._items[number].states
            assert own is not None, "its shape is known"
            states[:, row, there[row]] = own[:layers, pieces[row][there[row]]]
        return torch.from_numpy(states), torch.from_numpy(there)

    def _words(self, at: np.ndarray) -> np.ndarray:
        return self._first_word[at[:, :1]] + at[:, 1:]


def _starts(sizes: Any) -> np.ndarray:
    """Where each of so many begins, one after the other."""
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)


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
    room = Room()
    stores = {name: HiddenStates(items, room) for name, items in data.sides.items()}
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
        count = real.layers
        train = np.isin(spans.at[:, 0], self.data.parts.train)
        shares = np.bincount(spans.labels[train], minlength=len(spans.names)) / train.sum()
        scores, weights = [], np.full(count, 1 / count)
        for name, store in stores.items():
            right, module = self.learnt(store, spans.labels, count, name)
            scores.append(self.score(name, right))
            weights = module.weights.detach().numpy() if name == PROBE else weights
        right, _ = self.learnt(real, control_labels(self.types(), shares), count, CONTROL)
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
        order = np.random.default_rng(self.how.seed).permutation(len(labels))

        def logits(module: nn.Module, rows: np.ndarray) -> Tensor:
            return module(*store.read(spans.at[rows], layers))

        def loss(module: nn.Module, rows: np.ndarray) -> Tensor:
            return cross_entropy(logits(module, rows), torch.from_numpy(labels[rows]))

        sentence = spans.at[:, 0]
        parts = (self.data.parts.train, self.data.parts.aside, self.data.parts.test)
        widths = store.widths(spans.at)
        # Words of like many pieces together, shuffled among each other, to fill up little.
        order = order[np.argsort(widths[order], kind="stable")]
        train, aside, test = (_cut(order[np.isin(sentence[order], part)]) for part in parts)
        fitted = fit(
            lambda: EdgeProbe(layers, store.features, spans.at.shape[1] - 1, count),
            (train, aside),
            loss,
            self.how,
            name=f"{self.task}: {name}",
        )
        right = np.zeros(len(labels), bool)
        with torch.no_grad():
            for rows in test:
                right[rows] = logits(fitted.module, rows).argmax(dim=1).numpy() == labels[rows]
        return right, fitted.module

    def baselines(self, train: np.ndarray, shares: np.ndarray) -> list[Score]:
        """What the labels' frequencies say, with the word, or with the distance."""
        spans, most = self.spans, int(shares.argmax())
        scores = [self.score(MAJORITY, spans.labels == most)]
        name = OF_WORD if spans.at.shape[1] == 2 else DISTANCES
        counts: dict[str, Counter] = {}
        for key, label, is_learnt in zip(self.keys(), spans.labels, train, strict=True):
            if is_learnt:
                counts.setdefault(key, Counter())[int(label)] += 1
        # A word that was never learnt from gets the label that is most frequent of all.
        likeliest = {key: own.most_common(1)[0][0] for key, own in counts.items()}
        predicted = np.fromiter((likeliest.get(key, most) for key in self.keys()), np.int64)
        return [*scores, self.score(name, predicted == spans.labels)]

    def types(self) -> Iterator[str]:
        """The words of each span in lower case."""
        return span_types(self.data.items, self.spans.at)

    def keys(self) -> Iterator[str]:
        """What is known of each span without a model: its word, or how far apart its two are."""
        at = self.spans.at
        if at.shape[1] == 2:
            yield from self.types()
            return
        for first in range(0, len(at), AT_ONCE):
            number, one, other = at[first : first + AT_ONCE].T
            features = pair_distances(one, other, self.data.sizes[number])
            # All but the last feature are one of the offsets each.
            yield from map(str, features[:, :-1].argmax(axis=1).tolist())

    def score(self, of: str, right: np.ndarray) -> Score:
        hits = hits_of(right, self.spans.at[:, 0], self.data)
        return Score(task=self.task, measure=ACCURACY, of=of, hits=hits)


Rows = Callable[[], Iterable[tuple[tuple[int, ...], str]]]
"""Gives number of the sentence and words of every span, and its label, as often as it is asked."""


def _tags(data: ProbeData, least: int) -> LabelledSpans:
    def rows() -> Iterator[tuple[tuple[int, ...], str]]:
        for number, item in enumerate(data.items):
            for word, tag in enumerate(item.sentence.upos):
                if tag and tag != "_":
                    yield (number, word), tag

    return _spans(rows, data, least, "parts of speech")


def _dependencies(data: ProbeData, least: int) -> LabelledSpans:
    def rows() -> Iterator[tuple[tuple[int, ...], str]]:
        for number, item in enumerate(data.items):
            # A property that is made anew each time it is asked for.
            relations = item.relations
            for word, head in enumerate(item.heads.tolist()):
                if head >= 0 and relations[word] not in ("punct", "root"):
                    yield (number, word, head), relations[word]

    return _spans(rows, data, least, "relations")


def _spans(rows: Rows, data: ProbeData, least: int, what: str) -> LabelledSpans:
    names = _frequent_labels(rows, data, least)
    if len(names) < 2:
        raise TextError(
            f"{len(names)} {what} are at least {least} times among {len(data.parts.train)} "
            "sentences; give more"
        )
    kept, labels = array("q"), array("q")
    for at, label in rows():
        if label in names:
            kept.extend(at)
            labels.append(names.index(label))
    return LabelledSpans(
        np.array(kept, np.int64).reshape(len(labels), -1), np.array(labels, np.int64), names
    )


def _frequent_labels(rows: Rows, data: ProbeData, least: int) -> tuple[str, ...]:
    """The labels that are often enough among the sentences learnt from, the most frequent first."""
    train = set(data.parts.train)
    counts = Counter(label for at, label in rows() if at[0] in train)
    return tuple(name for name, count in counts.most_common() if count >= least)


def _cut(rows: np.ndarray) -> list[np.ndarray]:
    return [rows[first : first + BATCH] for first in range(0, len(rows), BATCH)]
