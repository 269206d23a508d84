"""Probes that pick each word's head from attention: attention-only, and attention-and-words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from headscope.linguistics import attached, best_offset, control_heads, head_distances, offset_heads
from headscope.studies.probes._items import Data, Item
from headscope.studies.probes._score import CONTROL, PROBE, Score
from headscope.studies.probes._training import Training, fit

TASK, UAS = "head of each word", "UAS"
HIDDEN = 256
"""Of the network that knows distances and words only."""


@dataclass(frozen=True, eq=False)
class Example:
    """A sentence as tensors, and the candidate that each word's head is; the last candidate is the root."""

    maps: Tensor
    ends: Tensor
    distances: Tensor
    vectors: Tensor | None
    wanted: Tensor
    counted: np.ndarray
    heads: np.ndarray


class AttentionOnly(nn.Module):
    """``p(i|j) ~ exp(sum_k w_k A^k_ij + u_k A^k_ji)`` over the words i of the sentence and the root.

    The root's entry in each map is ``s_0`` times that of the first special token and ``s_1`` times that of the last.

    Source: Clark et al. 2019, section 5, and released notebook.
    """

    def __init__(self, maps: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(2, maps))
        self.ends = nn.Parameter(torch.ones(2))

    def forward(self, example: Example) -> Tensor:
        """Scores ``[candidate word]``."""
        ahead, back = self.weights
        among = torch.einsum("k,kij->ij", ahead, example.maps) + torch.einsum("k,kji->ij", back, example.maps)
        root = torch.einsum("dk,kdew,e->w", self.weights, example.ends, self.ends)
        return torch.cat([among, root[None]])


class AttentionWords(nn.Module):
    """Attention whose weights depend on the words: ``W_k . (v_i + v_j)`` for ``w_k``, "+" joining two vectors.

    One dense layer gives the weights, with a bias; the root's vector is zero.

    Source: Clark et al. 2019, section 5, and released notebook.
    """

    def __init__(self, maps: int, features: int) -> None:
        super().__init__()
        self.maps = maps
        self.heads = nn.Linear(features, 2 * maps)
        self.words = nn.Linear(features, 2 * maps, bias=False)
        self.ends = nn.Parameter(torch.ones(2))

    def forward(self, example: Example) -> Tensor:
        """Scores ``[candidate word]``."""
        of_head = self.heads(example.vectors).view(-1, 2, self.maps)
        of_word = self.words(example.vectors).view(-1, 2, self.maps)
        ahead, back = example.maps, example.maps.transpose(1, 2)
        among = sum(
            torch.einsum("ik,kij->ij", of_head[:, way], maps) + torch.einsum("jk,kij->ij", of_word[:, way], maps)
            for way, maps in enumerate((ahead, back))
        )
        of_root = of_word + self.heads.bias.view(2, self.maps)
        root = torch.einsum("wdk,kdew,e->w", of_root, example.ends, self.ends)
        return torch.cat([among, root[None]])


class Distances(nn.Module):
    """What distances alone say: a weight for each of Clark's eight features."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(8))

    def forward(self, example: Example) -> Tensor:
        """Scores ``[candidate word]``."""
        return example.distances @ self.weights


class DistancesWords(nn.Module):
    """What distances and both words say: one layer of 256, tanh.

    Source: Clark et al. 2019, section 5 (distances + GloVe).
    """

    def __init__(self, features: int) -> None:
        super().__init__()
        self.distances, self.out = nn.Linear(8, HIDDEN), nn.Linear(HIDDEN, 1)
        self.heads, self.words = (nn.Linear(features, HIDDEN, bias=False) for _ in range(2))

    def forward(self, example: Example) -> Tensor:
        """Scores ``[candidate word]``."""
        heads = self.heads(example.vectors)
        heads = torch.cat([heads, heads.new_zeros(1, HIDDEN)])
        hidden = self.distances(example.distances) + heads[:, None] + self.words(example.vectors)[None]
        return self.out(torch.tanh(hidden))[..., 0]


def head_scores(data: Data, how: Training, seed: int) -> tuple[list[Score], dict[str, Any]]:
    """The probe and its controls; with vectors of words where the items have them.

    Args:
        data: with maps.
        how: the probe is trained.
        seed: of training.

    Returns:
        Scores, and the epoch that each probe is from.
    """
    real = [_example(item) for item in data.items]
    maps, words = len(real[0].maps), real[0].vectors
    features = 0 if words is None else words.shape[1]
    probe: Callable[[], nn.Module] = lambda: AttentionOnly(maps) if words is None else AttentionWords(maps, features)
    nearest: Callable[[], nn.Module] = lambda: Distances() if words is None else DistancesWords(features)
    twin = {} if data.twin is None else {"random weights": (probe, [_example(item) for item in data.twin])}
    runs = {
        PROBE: (probe, real),
        **twin,
        CONTROL: (probe, [_controlled(one, item) for one, item in zip(real, data.items, strict=True)]),
        "distances" if words is None else "distances and words": (nearest, real),
    }
    found, epochs = [], {}
    for name, (make, examples) in runs.items():
        train, aside, test = ([examples[number] for number in part] for part in data.parts)
        fitted = fit(make, (train, aside), _loss, how, seed=seed, name=name)
        epochs[name] = fitted.epoch
        with torch.no_grad():
            hits = [attached(fitted.module(one).numpy(), one.heads, one.counted) for one in test]
        found.append(_score(name, hits))
    offset = best_offset([np.where(item.counted, item.heads, -2) for item in data.train])
    found.append(_score(f"best offset ({offset:+d})", [_offset_hits(item, offset) for item in data.test]))
    found.append(_score("next word", [_offset_hits(item, 1) for item in data.test]))
    return found, epochs


def _score(name: str, hits: Sequence[tuple[float, float]]) -> Score:
    return Score(task=TASK, measure=UAS, of=name, hits=np.array(hits))


def _offset_hits(item: Item, offset: int) -> tuple[float, float]:
    right = (offset_heads(len(item), offset) == item.heads) & item.counted
    return float(right.sum()), float(item.counted.sum())


def _example(item: Item) -> Example:
    vectors = None if item.vectors is None else torch.from_numpy(np.asarray(item.vectors, np.float32))
    return Example(
        maps=torch.from_numpy(np.asarray(item.maps, np.float32)),
        ends=torch.from_numpy(np.asarray(item.ends, np.float32)),
        distances=torch.from_numpy(head_distances(len(item)).astype(np.float32)),
        vectors=vectors,
        wanted=_wanted(item.heads),
        counted=item.counted,
        heads=item.heads,
    )


def _controlled(example: Example, item: Item) -> Example:
    heads = control_heads(item.forms)
    return replace(example, heads=heads, wanted=_wanted(heads))


def _wanted(heads: np.ndarray) -> Tensor:
    return torch.from_numpy(np.where(heads < 0, len(heads), heads))


def _loss(module: nn.Module, example: Example) -> Tensor:
    """Summed over the words, as in the release; punctuation is learnt from, too."""
    return cross_entropy(module(example).T, example.wanted, reduction="sum")
