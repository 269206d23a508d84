"""Probes that pick each word's head from attention: attention-only, and attention-and-words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from headscope.linguistics import control_heads, offset_heads
from headscope.linguistics.probe_features import best_offset, head_distances
from headscope.linguistics.probe_scores import attached
from headscope.studies.probe._data import LazySequence, ProbeData, ProbeItem, Room
from headscope.studies.probe._result import CONTROL, PROBE, Score
from headscope.studies.probe._training import Training, fit

TASK, UAS = "head of each word", "UAS"
HIDDEN = 256
"""Of the network that knows distances and words only."""
BATCH = 4
CELLS = 20_000
"""Most pairs of words in a batch."""
NO_WORD = -100
"""In place of a head where a shorter sentence was filled up; cross-entropy passes it over."""


@dataclass(frozen=True, eq=False)
class SentenceBatch:
    """Sentences of like length as tensors, filled up with zeros; of the candidates for a head the
    first is the root.

    Args:
        maps: axes sentence, map, word, word.
        ends: see `ProbeItem`; a sentence axis before.
        distances: axes sentence, candidate, word, feature.
        vectors: axes sentence, word, feature; or None.
        wanted: the candidate that each word's head is.
        there: which candidates there are; axes sentence, candidate.
    """

    maps: Tensor
    ends: Tensor
    distances: Tensor
    vectors: Tensor | None
    wanted: Tensor
    there: Tensor


class AttentionOnly(nn.Module):
    """``p(i|j) ~ exp(sum_k w_k A^k_ij + u_k A^k_ji)`` over the words i of the sentence and the
    root.

    The root's entry in each map is ``s_0`` times that of the first special token and ``s_1`` times
    that of the last.

    Source: Clark et al. 2019, section 5, and released notebook.
    """

    def __init__(self, maps: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(2, maps))
        self.ends = nn.Parameter(torch.ones(2))

    def forward(self, batch: SentenceBatch) -> Tensor:
        """Scores ``[sentence candidate word]``."""
        # One product of matrices over all pairs of words, for both directions.
        flat = batch.maps.flatten(2).transpose(1, 2) @ self.weights.T
        ahead, back = flat.unflatten(1, batch.maps.shape[2:]).unbind(-1)
        root = torch.einsum("dk,bkdew,e->bw", self.weights, batch.ends, self.ends)
        return torch.cat([root[:, None], ahead + back.transpose(1, 2)], dim=1)


class AttentionWords(nn.Module):
    """Attention whose weights depend on the words: ``W_k . (v_i + v_j)`` for ``w_k``, "+" joining
    two vectors.

    One dense layer gives the weights, with a bias; the root's vector is zero.

    Source: Clark et al. 2019, section 5, and released notebook.
    """

    def __init__(self, maps: int, features: int) -> None:
        super().__init__()
        self.maps = maps
        self.heads = nn.Linear(features, 2 * maps)
        self.words = nn.Linear(features, 2 * maps, bias=False)
        self.ends = nn.Parameter(torch.ones(2))

    def forward(self, batch: SentenceBatch) -> Tensor:
        """Scores ``[sentence candidate word]``."""
        of_head = self.heads(batch.vectors).unflatten(-1, (2, self.maps))
        of_word = self.words(batch.vectors).unflatten(-1, (2, self.maps))
        ahead, back = batch.maps, batch.maps.transpose(2, 3)
        # W (v_i + v_j) is the sum of two parts: with the weights of both words for each pair there
        # would be pairs x maps numbers to hold.
        among = torch.einsum("bik,bkij->bij", of_head[:, :, 0], ahead)
        among = among + torch.einsum("bjk,bkij->bij", of_word[:, :, 0], ahead)
        among = among + torch.einsum("bik,bkij->bij", of_head[:, :, 1], back)
        among = among + torch.einsum("bjk,bkij->bij", of_word[:, :, 1], back)
        of_root = of_word + self.heads.bias.view(2, self.maps)
        root = torch.einsum("bwdk,bkdew,e->bw", of_root, batch.ends, self.ends)
        return torch.cat([root[:, None], among], dim=1)


class Distances(nn.Module):
    """What distances alone say: a weight for each of Clark's eight features."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(8))

    def forward(self, batch: SentenceBatch) -> Tensor:
        """Scores ``[sentence candidate word]``."""
        return batch.distances @ self.weights


class DistancesWords(nn.Module):
    """What distances and both words say: one layer of 256, tanh.

    Source: Clark et al. 2019, section 5 (distances + GloVe).
    """

    def __init__(self, features: int) -> None:
        super().__init__()
        self.distances, self.out = nn.Linear(8, HIDDEN), nn.Linear(HIDDEN, 1)
        self.heads, self.words = (nn.Linear(features, HIDDEN, bias=False) for _ in range(2))

    def forward(self, batch: SentenceBatch) -> Tensor:
        """Scores ``[sentence candidate word]``."""
        heads = self.heads(batch.vectors)
        heads = torch.cat([heads.new_zeros(len(heads), 1, HIDDEN), heads], dim=1)
        hidden = (
            self.distances(batch.distances) + heads[:, :, None] + self.words(batch.vectors)[:, None]
        )
        return self.out(torch.tanh(hidden))[..., 0]


def head_scores(data: ProbeData, how: Training) -> tuple[list[Score], dict[str, Any]]:
    """The probe and its controls; with vectors of words where the items have them.

    Args:
        data: with maps.
        how: the probe is trained.

    Returns:
        Scores, and the epoch that each probe is from.
    """
    first = data.items[0]
    maps, words = first.maps, first.vectors
    count = 0 if maps is None else len(maps)
    features = 0 if words is None else words.shape[1]

    def probe() -> nn.Module:
        return AttentionOnly(count) if words is None else AttentionWords(count, features)

    def nearest() -> nn.Module:
        return Distances() if words is None else DistancesWords(features)

    runs = {name: (probe, name, False) for name in data.sides}
    runs[CONTROL] = (probe, PROBE, True)
    runs["distances" if words is None else "distances and words"] = (nearest, PROBE, False)
    scales = {name: _scale(items, data.parts.train) for name, items in data.sides.items()}
    scores, epochs = [], {}
    for name, (make, side, control) in runs.items():
        read = ScaledSentences(data.sides[side], data.sizes, scales[side], is_control=control)
        score, epochs[name] = _learnt(name, make, read, data=data, how=how)
        scores.append(score)
    train = data.train
    # -2 is no word and no root: punctuation is hit by no offset.
    offset = best_offset(
        LazySequence(len(train), lambda at: np.where(train[at].counted, train[at].heads, -2))
    )
    scores.append(_offset_score(f"best offset ({offset:+d})", data, offset))
    scores.append(_offset_score("next word", data, 1))
    return scores, epochs


@dataclass(frozen=True, eq=False)
class ScaledSentences:
    """Sentences as a model read them, in batches.

    Args:
        items: read.
        sizes: words of each.
        scale: that each map is multiplied by.
        is_control: whether words have the heads of the control task.
    """

    items: Sequence[ProbeItem]
    sizes: np.ndarray
    scale: np.ndarray
    is_control: bool

    def heads(self, item: ProbeItem) -> np.ndarray:
        """Those that are wanted."""
        return control_heads(item.forms) if self.is_control else item.heads

    def batch(self, numbers: Sequence[int]) -> SentenceBatch:
        """Some sentences."""
        items = [self.items[number] for number in numbers]
        return _batch(items, [self.heads(item) for item in items], self.scale)

    def batches(self, part: Sequence[int], room: Room) -> LazySequence[SentenceBatch]:
        """All of a part, made when they are asked for."""
        grouped = _grouped(self.sizes, part)
        return LazySequence(len(grouped), lambda at: self.batch(grouped[at]), room)


def _learnt(
    name: str,
    make: Callable[[], nn.Module],
    read: ScaledSentences,
    *,
    data: ProbeData,
    how: Training,
) -> tuple[Score, int]:
    """The score of one probe, and the epoch that it is from."""
    room = Room()
    train, aside = (read.batches(part, room) for part in (data.parts.train, data.parts.aside))
    fitted = fit(make, (train, aside), _loss, how, name=name)
    # Batches go by length; hits are put back into the order of the sentences.
    hits = dict(_hits(fitted.module, read, data.parts.test))
    return _score(name, [hits[number] for number in data.parts.test]), fitted.epoch


def _offset_score(name: str, data: ProbeData, offset: int) -> Score:
    return _score(name, [_offset_hits(item, offset) for item in data.test])


def _score(name: str, hits: Sequence[tuple[float, float]]) -> Score:
    return Score(task=TASK, measure=UAS, of=name, hits=np.array(hits))


def _offset_hits(item: ProbeItem, offset: int) -> tuple[float, float]:
    right = (offset_heads(len(item), offset) - 1 == item.heads) & item.counted
    return float(right.sum()), float(item.counted.sum())


def _hits(
    module: nn.Module, read: ScaledSentences, part: Sequence[int]
) -> Iterator[tuple[int, tuple[float, float]]]:
    """What is hit in each sentence of a part, with its number."""
    for numbers in _grouped(read.sizes, part):
        with torch.no_grad():
            scores = module(read.batch(numbers)).numpy()
        for number, each in zip(numbers, scores, strict=True):
            item, size = read.items[number], read.sizes[number]
            yield number, attached(each[: size + 1, :size], read.heads(item), item.counted)


def _scale(items: Sequence[ProbeItem], train: Sequence[int]) -> np.ndarray:
    """One divided by the deviation of each map over the pairs of words learnt from.

    The weights could do as much themselves, but slowly: maps of random weights are almost even.
    """

    def maps() -> Iterator[np.ndarray]:
        for number in train:
            of_sentence = items[number].maps
            if of_sentence is not None:
                yield of_sentence.reshape(len(of_sentence), -1)

    # The maps are read twice: those of all sentences may not fit in memory.
    count, total = 0, np.zeros(())
    for each in maps():
        count += each.shape[1]
        total = total + each.sum(1, dtype=np.float64)
    mean = np.asarray(total / count)
    variance = np.zeros(len(mean))
    for each in maps():
        variance += ((each - mean[:, None]) ** 2).sum(1)
    variance /= count
    # A map that is the same everywhere keeps its scale.
    return 1 / np.where(variance > 0, np.sqrt(variance), 1)


def _grouped(sizes: np.ndarray, part: Sequence[int]) -> list[list[int]]:
    """Numbers of the sentences of a part, those of like length together."""
    grouped: list[list[int]] = []
    numbers: list[int] = []
    for number in sorted(part, key=lambda number: int(sizes[number])):
        # Lengths rise: with this sentence all would be filled up to its length.
        cells = (len(numbers) + 1) * int(sizes[number]) ** 2
        if numbers and (len(numbers) == BATCH or cells > CELLS):
            grouped.append(numbers)
            numbers = []
        numbers.append(number)
    if numbers:
        grouped.append(numbers)
    return grouped


def _batch(
    items: Sequence[ProbeItem], heads: Sequence[np.ndarray], scale: np.ndarray
) -> SentenceBatch:
    longest, count, maps = max(map(len, items)), len(items), len(scale)
    filled: dict[str, np.ndarray] = {
        "maps": np.zeros((count, maps, longest, longest), np.float32),
        "ends": np.zeros((count, maps, 2, 2, longest), np.float32),
        "distances": np.zeros((count, longest + 1, longest, 8), np.float32),
        "wanted": np.full((count, longest), NO_WORD),
        "there": np.zeros((count, longest + 1), bool),
    }
    vectors = items[0].vectors
    has_vectors = vectors is not None
    if has_vectors:
        filled["vectors"] = np.zeros((count, longest, vectors.shape[1]), np.float32)
    for number, (item, wanted) in enumerate(zip(items, heads, strict=True)):
        size = len(item)
        filled["maps"][number, :, :size, :size] = item.maps * scale[:, None, None]
        filled["ends"][number, ..., :size] = item.ends * scale[:, None, None, None]
        filled["distances"][number, : size + 1, :size] = head_distances(size)
        filled["wanted"][number, :size] = wanted + 1
        filled["there"][number, : size + 1] = True
        if has_vectors:
            filled["vectors"][number, :size] = item.vectors
    tensors = {name: torch.from_numpy(array) for name, array in filled.items()}
    return SentenceBatch(vectors=tensors.pop("vectors", None), **tensors)


def _loss(module: nn.Module, batch: SentenceBatch) -> Tensor:
    """Mean over the words of the batch; punctuation is learnt from, too."""
    scores = module(batch).masked_fill(~batch.there[:, :, None], -torch.inf)
    return cross_entropy(scores, batch.wanted, ignore_index=NO_WORD)
