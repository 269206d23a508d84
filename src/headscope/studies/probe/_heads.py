"""Probes that pick each word's head from attention: attention-only, and attention-and-words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from headscope.linguistics import control_heads, offset_heads
from headscope.linguistics.probes import attached, best_offset, head_distances
from headscope.studies.probe import _data
from headscope.studies.probe._data import HeldBatches, ProbeData, ProbeItem, Training, filled, fit
from headscope.studies.probe._result import CONTROL, PROBE, Score

TASK, UAS = "head of each word", "UAS"
HIDDEN = 256
"""Of the network that knows distances and words only."""
BATCH = 4
CELLS = 20_000
"""Most pairs of words in a batch."""
HEADS_OF = attrgetter("heads")
NO_WORD = -100
"""In place of a head where a shorter sentence was filled up; cross-entropy passes it over."""


class SentenceBatch(NamedTuple):
    """Sentences of like length as tensors, filled up with zeros; of the candidates for a head the
    first is the root.

    Args:
        maps: axes sentence, map, word, word.
        ends: see `ProbeItem`; a sentence axis before.
        distances: axes sentence, candidate, word, feature.
        wanted: the candidate that each word's head is.
        there: which candidates there are; axes sentence, candidate.
        vectors: axes sentence, word, feature; or None.
    """

    maps: Tensor
    ends: Tensor
    distances: Tensor
    wanted: Tensor
    there: Tensor
    vectors: Tensor | None = None


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
    count, words = len(np.asarray(data.items[0].maps)), data.items[0].vectors
    probe: Callable[[], nn.Module] = partial(AttentionOnly, count)
    nearest: Callable[[], nn.Module] = Distances
    if words is not None:
        probe = partial(AttentionWords, count, words.shape[1])
        nearest = partial(DistancesWords, words.shape[1])
    runs: dict[str, Any] = {name: (probe, name, HEADS_OF) for name in data.sides}
    runs[CONTROL] = (probe, PROBE, lambda item: control_heads(item.forms))
    runs["distances" if words is None else "distances and words"] = (nearest, PROBE, HEADS_OF)
    scales = {name: _scale(items, data.parts[0]) for name, items in data.sides.items()}
    scores, epochs = [], {}
    for name, (make, side, heads_of) in runs.items():
        items, room = data.sides[side], [_data.HELD]
        make_batch = partial(batch_of, items, heads_of, scales[side])
        train, aside, test = (
            HeldBatches(grouped(data.sizes, part), make_batch, room) for part in data.parts
        )
        module, epochs[name] = fit(make, (train, aside), _loss, how, name=name)
        hits = _hits(module, data, test, items, heads_of)
        scores.append(Score(task=TASK, measure=UAS, of=name, hits=hits))
    # -2 is no word and no root: punctuation is hit by no offset.
    best = best_offset([np.where(item.counted, item.heads, -2) for item in data.part(0)])
    for name, offset in ((f"best offset ({best:+d})", best), ("next word", 1)):
        hits = []
        for item in data.part(2):
            right = (offset_heads(len(item), offset) - 1 == item.heads) & item.counted
            hits.append((float(right.sum()), float(item.counted.sum())))
        scores.append(Score(task=TASK, measure=UAS, of=name, hits=np.array(hits)))
    return scores, epochs


def _hits(module: nn.Module, data: ProbeData, *test: Any) -> np.ndarray:
    """Of each sentence reported on, how many words have their highest score at their head."""
    batches, items, heads_of = test
    hits = {}
    for numbers, batch in zip(grouped(data.sizes, data.parts[2]), batches, strict=True):
        with torch.no_grad():
            batch_scores = module(batch).numpy()
        for number, each in zip(numbers, batch_scores, strict=True):
            size, item = data.sizes[number], items[number]
            hits[number] = attached(each[: size + 1, :size], heads_of(item), item.counted)
    # Batches go by length; hits are put back into the order of the sentences.
    return np.array([hits[number] for number in data.parts[2]])


def _scale(items: Sequence[ProbeItem], train: Sequence[int]) -> np.ndarray:
    """One divided by the deviation of each map over the pairs of words learnt from.

    The weights could do as much themselves, but slowly: maps of random weights are almost even.
    """
    # The maps are read twice: those of all sentences may not fit in memory.
    count, mean, variance = 0, np.zeros(()), np.zeros(())
    for number in train:
        maps = np.asarray(items[number].maps)
        count += maps[0].size
        mean = mean + maps.sum((1, 2), dtype=np.float64)
    mean = mean / count
    for number in train:
        apart = np.asarray(items[number].maps) - mean[:, None, None]
        variance = variance + (apart**2).sum((1, 2)) / count
    # A map that is the same everywhere keeps its scale.
    return 1 / np.where(variance > 0, np.sqrt(variance), 1)


def grouped(sizes: np.ndarray, part: Sequence[int]) -> list[list[int]]:
    """Numbers of the sentences of a part, those of like length together."""
    groups: list[list[int]] = []
    for number in sorted(part, key=lambda number: int(sizes[number])):
        # Lengths rise: with this sentence all would be filled up to its length.
        most = min(BATCH, CELLS // int(sizes[number]) ** 2)
        if groups and len(groups[-1]) < most:
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups


def batch_of(
    all_items: Sequence[ProbeItem],
    heads_of: Callable[[ProbeItem], np.ndarray],
    scale: np.ndarray,
    numbers: Sequence[int],
) -> SentenceBatch:
    """Some of the sentences, with the heads that are wanted and maps times their scale."""
    items, scales = [all_items[number] for number in numbers], scale[:, None, None]
    count, maps, longest = len(items), len(scale), max(map(len, items))
    words, vectors = longest + 1, None
    if items[0].vectors is not None:
        own = (np.asarray(item.vectors) for item in items)
        vectors = filled(own, (count, longest, items[0].vectors.shape[1]))
    ends = (item.ends * scales[..., None] for item in items)
    distances = (head_distances(len(item)) for item in items)
    there = (np.ones(len(item) + 1, bool) for item in items)
    return SentenceBatch(
        maps=filled((item.maps * scales for item in items), (count, maps, longest, longest)),
        ends=filled(ends, (count, maps, 2, 2, longest)),
        distances=filled(distances, (count, words, longest, 8)),
        wanted=filled((heads_of(item) + 1 for item in items), (count, longest), NO_WORD),
        there=filled(there, (count, words)),
        vectors=vectors,
    )


def _loss(module: nn.Module, batch: SentenceBatch) -> Tensor:
    """Mean over the words of the batch; punctuation is learnt from, too."""
    scores = module(batch).masked_fill(~batch.there[:, :, None], -torch.inf)
    return cross_entropy(scores, batch.wanted, ignore_index=NO_WORD)
