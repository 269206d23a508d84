"""Probes that name the label of a word, or of a word and its head: linear ones of the model-wide
attention vector, and edge probes of a mix of all layers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from headscope.errors import TextError
from headscope.linguistics import centre_of_gravity, control_labels, expected_layer
from headscope.linguistics.probes import pair_distances, unrelated_pairs
from headscope.record import part_of
from headscope.storage import ArraysInFile
from headscope.studies.probe import _data
from headscope.studies.probe._data import HeldBatches, ProbeData, ProbeItem, Training, filled, fit
from headscope.studies.probe._result import CONTROL, PROBE, Score

TAGS, DEPENDENCIES, ACCURACY = "part of speech", "dependency", "accuracy"
BINARY, WHICH = "is there a relation", "which relation"
MAJORITY, OF_WORD, DISTANCES = "majority", "majority of the word", "distances"
EMBEDDINGS, BOTH = "layer 0", "both directions"
NO_LABEL = ("", "_", "punct", "root")
"""Of a word without a tag, and of one whose relation is none that is learnt."""
WIDTH = 128
"""Of an edge probe; theirs have 256."""
DROPOUT = 0.2
BATCH = 64
AT_ONCE = 4096
"""Spans whose numbers are in memory at once."""


@dataclass(frozen=True, eq=False)
class LabelledSpans:
    """Labelled words, or ordered pairs of words, of many sentences, and what is learnt of them.

    Args:
        task: what is asked.
        at: number of the sentence, and of one word or two; axes span, 2 or 3.
        labels: of each.
        names: of the labels.
        data: the sentences.
        how: probes are trained.
    """

    task: str
    at: np.ndarray
    labels: np.ndarray
    names: tuple[str, ...]
    data: ProbeData
    how: Training

    @cached_property
    def parts(self) -> list[np.ndarray]:
        """Which spans are learnt from, set aside and reported on.

        Raises:
            TextError: where there are none in one of the parts.
        """
        parts = [np.isin(self.at[:, 0], part) for part in self.data.parts]
        if not all(part.any() for part in parts):
            raise TextError(
                f"No word with one of the labels {', '.join(self.names)} is in one of the three "
                "parts; give more sentences"
            )
        return parts

    @cached_property
    def shares(self) -> np.ndarray:
        """How often each label is, where it is learnt from alone: nothing of the rest may reach a
        probe.
        """
        train = self.labels[self.parts[0]]
        return np.bincount(train, minlength=len(self.names)) / len(train)

    def types(self) -> Iterator[str]:
        """The words of each span in lower case, with a space between them."""
        for number, *words in self.at.tolist():
            forms = self.data.items[number].forms
            yield " ".join(forms[word] for word in words)

    def distances(self) -> np.ndarray:
        """What the places of the two words of each span say."""
        number, one, other = self.at.T
        return pair_distances(one, other, self.data.sizes[number])

    def control(self) -> np.ndarray:
        """Labels that say nothing but which words it is."""
        return control_labels(self.types(), self.shares)

    def score(self, of: str, right: np.ndarray) -> Score:
        """Of each sentence reported on, how many spans are right, and how many there are."""
        test, count = list(self.data.parts[2]), len(self.data.items)
        hits = np.bincount(self.at[:, 0], weights=right, minlength=count)[test]
        wholes = np.bincount(self.at[:, 0], minlength=count)[test].astype(np.float64)
        rows = np.stack([hits, wholes], axis=1)
        return Score(task=self.task, measure=ACCURACY, of=of, hits=rows)

    def majority(self) -> Score:
        """Of the most frequent label."""
        return self.score(MAJORITY, self.labels == self.shares.argmax())

    def learnt(
        self,
        of: str,
        make: Callable[[], nn.Module],
        inputs: Callable[[np.ndarray], tuple[Tensor, ...]],
        labels: np.ndarray,
        *,
        widths: np.ndarray | None = None,
    ) -> tuple[Score, Any, int]:
        """The score of a probe, the probe, and the epoch that it is from.

        Args:
            of: whose score.
            make: makes the probe.
            inputs: what it is given of some spans.
            labels: that it learns.
            widths: spans of like width share batches.
        """
        order = np.random.default_rng(self.how.seed).permutation(len(labels))
        if widths is not None:
            order = order[np.argsort(widths[order], kind="stable")]
        train, aside, test = (
            np.split(rows, range(BATCH, len(rows), BATCH))
            for rows in (order[part[order]] for part in self.parts)
        )
        wanted = torch.from_numpy(labels.astype(np.int64))
        module, epoch = fit(
            make,
            (train, aside),
            lambda module, rows: cross_entropy(module(*inputs(rows)), wanted[rows]),
            self.how,
            name=f"{self.task}: {of}",
        )
        right = np.zeros(len(labels), bool)
        with torch.no_grad():
            for rows in test:
                right[rows] = module(*inputs(rows)).argmax(dim=1).numpy() == labels[rows]
        return self.score(of, right), module, epoch


def spans_of(task: str, data: ProbeData, how: Training, least: int) -> LabelledSpans:
    """Dependents with their heads, or words with their tags, of the labels that are often enough
    among the sentences learnt from.

    Raises:
        TextError: where there are fewer than two such labels.
    """
    rows: list[tuple[tuple[int, ...], str]] = []
    for number, item in enumerate(data.items):
        if task == TAGS:
            rows += [((number, word), tag) for word, tag in enumerate(item.sentence.upos)]
            continue
        for word, head in enumerate(item.heads.tolist()):
            if head >= 0:
                rows.append(((number, word, head), item.relations[word]))
    train = set(data.parts[0])
    counts = Counter(label for at, label in rows if at[0] in train and label not in NO_LABEL)
    names = tuple(name for name, count in counts.most_common() if count >= least)
    if len(names) < 2:
        what = "parts of speech" if task == TAGS else "relations"
        raise TextError(
            f"{len(names)} {what} are at least {least} times among {len(train)} sentences; give "
            "more sentences"
        )
    kept = [(*at, names.index(label)) for at, label in rows if label in names]
    table = np.array(kept, np.int64)
    return LabelledSpans(task, table[:, :-1], table[:, -1], names, data, how)


class PairFeatures:
    """A row of numbers for each pair of words.

    Args:
        vectors: of each pair.
        arrays: hold them in memory, or in a file where they do not fit.
    """

    def __init__(self, vectors: Iterable[np.ndarray], arrays: ArraysInFile) -> None:
        self._blocks, rows = [], iter(vectors)
        self.size: int = 0
        while some := list(islice(rows, AT_ONCE)):
            self.size = len(some[0])
            self._blocks.append(arrays.put(np.array(some, np.float32)))

    def scaled(self, train: np.ndarray) -> Callable[[np.ndarray], tuple[Tensor]]:
        """What gives rows with mean 0 and deviation 1 over the pairs learnt from."""
        sums = np.zeros((2, self.size))
        for power in (1, 2):
            for number, block in enumerate(self._blocks):
                own = part_of(block)[train[number * AT_ONCE :][: len(block)]]
                apart = own - sums[0] / train.sum() if power == 2 else own
                sums[power - 1] += (apart**power).sum(axis=0, dtype=np.float64)
        mean, deviation = sums[0] / train.sum(), np.sqrt(sums[1] / train.sum())
        scale = np.where(deviation > 0, deviation, 1)

        def rows(chosen: np.ndarray) -> tuple[Tensor]:
            own = [part_of(self._blocks[at // AT_ONCE], at % AT_ONCE) for at in chosen.tolist()]
            return (torch.from_numpy(((np.array(own) - mean) / scale).astype(np.float32)),)

        return rows


def attention_vectors(
    items: Sequence[ProbeItem], at: np.ndarray, *, both: bool = False
) -> Iterator[np.ndarray]:
    """The attention of all heads from the first word of each pair to the second; ``both`` adds that
    back.

    Source: Coenen et al. 2019, section 3.1 (model-wide attention vector); both directions are Clark
    et al. 2019.
    """
    last, maps = -1, np.zeros((0, 0, 0))
    for number, first, second in at.tolist():
        # Pairs of one sentence stand together: its maps are read once.
        if number != last:
            last, maps = number, np.asarray(items[number].maps)
        vector = maps[:, first, second]
        yield np.concatenate([vector, maps[:, second, first]]) if both else vector


def relation_scores(
    data: ProbeData, how: Training, *, least: int
) -> tuple[list[Score], dict[str, Any]]:
    """Linear probes of the attention between two words, and their controls: is there a relation,
    and which.

    Args:
        data: with maps.
        how: probes are trained; its seed is that of the pairs without a relation, too.
        least: how often a relation must be among the sentences learnt from.

    Returns:
        Scores, and the relations.
    """
    related = spans_of(WHICH, data, how, least)
    scores: list[Score] = []
    facts: dict[str, Any] = {"relations": related.names}
    for pairs in (_with_unrelated(related), related):
        epochs: dict[str, int] = {}
        runs: dict[str, Callable[[], Iterable[np.ndarray]]] = {
            name: partial(attention_vectors, items, pairs.at) for name, items in data.sides.items()
        }
        runs[CONTROL] = runs[PROBE]
        runs[BOTH] = partial(attention_vectors, data.items, pairs.at, both=True)
        runs[DISTANCES] = pairs.distances
        for name, vectors in runs.items():
            labels = pairs.control() if name == CONTROL else pairs.labels
            with ArraysInFile(most=_data.HELD) as arrays:
                features = PairFeatures(vectors(), arrays)
                make = partial(nn.Linear, features.size, int(labels.max()) + 1)
                rows = features.scaled(pairs.parts[0])
                score, _, epochs[name] = pairs.learnt(name, make, rows, labels)
            scores.append(score)
        scores.append(pairs.majority())
        facts |= {f"pairs, {pairs.task}": len(pairs.at), f"epochs, {pairs.task}": epochs}
    return scores, facts


def _with_unrelated(related: LabelledSpans) -> LabelledSpans:
    """The same pairs, and in each sentence as many without an edge in either direction, punctuation
    left out.
    """
    rng = np.random.default_rng(related.how.seed)
    numbers, counts = np.unique(related.at[:, 0], return_counts=True)
    apart = []
    # As many of each sentence, so that neither its length nor its topic tells the classes apart.
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        item = related.data.items[number]
        words = np.flatnonzero(item.counted).tolist()
        drawn = unrelated_pairs(item.heads, words, count, rng)
        apart.append(np.insert(drawn, 0, number, axis=1))
    at = np.concatenate([related.at, *apart])
    labels = np.repeat([1, 0], [len(related.at), len(at) - len(related.at)])
    return replace(related, task=BINARY, at=at, labels=labels, names=("none", "some"))


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

    def forward(self, states: Tensor, there: Tensor) -> Tensor:
        """Logits ``[span label]`` of states ``[layer span word piece feature]``, and which of the
        pieces are there.
        """
        # Projected after mixing: the layers are summed once, whatever the number of spans.
        mixed = self.gamma * torch.einsum("l,lswpf->swpf", self.mix.softmax(0), states)
        pooled = []
        for number, (project, pool) in enumerate(zip(self.project, self.pool, strict=True)):
            read = project(mixed[:, number])
            shares = pool(read)[..., 0].masked_fill(~there[:, number], -torch.inf).softmax(-1)
            pooled.append((shares[..., None] * read).sum(1))
        return self.out(torch.cat(pooled, dim=-1))


def states_at(
    items: Sequence[ProbeItem], held: HeldBatches, layers: int, at: np.ndarray
) -> tuple[Tensor, Tensor]:
    """States ``[layer span word piece feature]`` of the first layers, and which of the pieces are
    there; zeros stand where one is not.

    Args:
        items: the sentences.
        held: their states.
        layers: how many.
        at: number of the sentence, and of one word or two; axes span, 2 or 3.
    """
    numbers, words = at[:, 0].tolist(), at[:, 1:]
    pieces = [
        np.asarray(items[number].pieces)[own] for number, own in zip(numbers, words, strict=True)
    ]
    widest = max(int((own >= 0).sum(axis=1).max()) for own in pieces)
    rows = (own[:, :widest] >= 0 for own in pieces)
    there = filled(rows, (len(at), at.shape[1] - 1, widest), False)
    states = torch.zeros(layers, *there.shape, items[0].states_shape[-1])
    for row, (number, own) in enumerate(zip(at[:, 0].tolist(), pieces, strict=True)):
        (whole,) = held[number]
        states[:, row][:, there[row]] = whole[:layers, own[own >= 0]].float()
    return states, there


def edge_scores(
    data: ProbeData, how: Training, *, layers: bool = True, least: int
) -> tuple[list[Score], dict[str, Any]]:
    """Edge probes of both tasks with their controls, and of the layers 0 to l for each l.

    Args:
        data: with hidden states.
        how: probes are trained.
        layers: whether to train a probe for the layers up to each.
        least: how often a label must be among the sentences learnt from.

    Returns:
        Scores; and the weights of layers, centre of gravity and expected layer of each task.
    """
    room, held = [_data.HELD], {}
    for name, items in data.sides.items():
        held[name] = HeldBatches(
            items, lambda item: (torch.from_numpy(np.array(item.states)),), room
        )
    scores: list[Score] = []
    facts: dict[str, Any] = {}
    for task in (TAGS, DEPENDENCIES):
        spans = spans_of(task, data, how, least)
        new_scores, new_facts = _edge_scores(spans, held, layers=layers)
        scores += new_scores
        facts |= {f"{name}, {spans.task}": value for name, value in new_facts.items()}
    return scores, facts


def _edge_scores(
    spans: LabelledSpans, held: dict[str, HeldBatches], *, layers: bool
) -> tuple[list[Score], dict[str, Any]]:
    data = spans.data
    count, _, features = data.items[0].states_shape
    counts = [(np.asarray(item.pieces) >= 0).sum(axis=1) for item in data.items]
    width = np.array([counts[number][words].max() for number, *words in spans.at.tolist()])

    def learnt(side: str, upto: int, name: str, labels: np.ndarray) -> tuple[Score, Any]:
        """The score of a probe of the first layers, and the probe."""
        make = partial(
            EdgeProbe, upto, features, spans.at.shape[1] - 1, int(spans.labels.max()) + 1
        )
        items = data.sides[side]
        # Words of like many pieces together, shuffled among each other, to fill up little.
        score, module, _ = spans.learnt(
            name,
            make,
            lambda rows: states_at(items, held[side], upto, spans.at[rows]),
            labels,
            widths=width,
        )
        return score, module

    scores, weights = [], np.zeros(count)
    for name in held:
        score, module = learnt(name, count, name, spans.labels)
        scores.append(score)
        if name == PROBE:
            weights = module.mix.detach().softmax(0).numpy().astype(np.float64)
    scores.append(learnt(PROBE, count, CONTROL, spans.control())[0])
    upto = []
    for last in range(count - 1 if layers else 1):
        name = EMBEDDINGS if last == 0 else f"layers 0 to {last}"
        upto.append(learnt(PROBE, last + 1, name, spans.labels)[0])
    facts: dict[str, Any] = {
        "labels": spans.names,
        "layer weights": tuple(weights.tolist()),
        "centre of gravity": centre_of_gravity(weights),
    }
    if layers:
        upto.append(replace(scores[0], of=f"layers 0 to {count - 1}"))
        facts["expected layer"] = expected_layer(np.array([score.value for score in upto]))
    return [*scores, spans.majority(), _by_key(spans), *upto], facts


def _by_key(spans: LabelledSpans) -> Score:
    """What the word of each span predicts without a model, or how far apart its two are."""
    of, keys = OF_WORD, list(spans.types())
    if spans.at.shape[1] == 3:
        # All but the last feature are one of the offsets each.
        of, keys = DISTANCES, spans.distances()[:, :-1].argmax(axis=1).tolist()
    counts: dict[Any, Counter] = {}
    for key, label, is_learnt in zip(keys, spans.labels, spans.parts[0], strict=True):
        if is_learnt:
            counts.setdefault(key, Counter())[int(label)] += 1
    # What was never learnt from gets the label that is most frequent of all.
    most = int(spans.shares.argmax())
    likeliest = {key: own.most_common(1)[0][0] for key, own in counts.items()}
    predicted = np.array([likeliest.get(key, most) for key in keys])
    return spans.score(of, predicted == spans.labels)
