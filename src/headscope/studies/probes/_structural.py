"""The structural probe: a linear map under which distances of states are distances in the tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from headscope.errors import RecordError
from headscope.linguistics import control_tree, tree_depths, tree_distances
from headscope.linguistics.probe_scores import depth_ranks, distance_ranks, edges_hit, root_hit
from headscope.studies.probes._items import ProbeData, ProbeItem
from headscope.studies.probes._score import CONTROL, PROBE, Score
from headscope.studies.probes._training import FittedProbe, Training, fit

DISTANCE, DEPTH = "distance in the tree", "depth in the tree"
UUAS, DSPR, ROOT, NSPR = "UUAS", "DSpr", "root", "NSpr"
CHAIN = "chain of words"
BATCH = 20
START = 0.05


@dataclass(frozen=True, eq=False)
class SentenceTree:
    """A sentence as arrays.

    Args:
        heads: number of each word's head, from 0; -1 at the root.
        counted: the words that are no punctuation.
        states: of the words.
    """

    heads: np.ndarray
    counted: np.ndarray
    states: np.ndarray

    @property
    def distances(self) -> np.ndarray:
        """Between every two words."""
        return tree_distances(self.heads).astype(np.float64)

    @property
    def depths(self) -> np.ndarray:
        """Of every word."""
        return tree_depths(self.heads).astype(np.float64)


class StructuralProbe(nn.Module):
    """``d(i, j)^2 = ||B (h_i - h_j)||^2`` for distances and, with another B, ``||B h_i||^2`` for
    depths.

    Source: Hewitt and Manning 2019, sections 2.2 and 2.3. Both are trained in one run here; they
    share nothing but the epoch that is kept.
    """

    def __init__(self, features: int, rank: int) -> None:
        super().__init__()
        self.maps = nn.Parameter(torch.empty(2, features, rank).uniform_(-START, START))

    def forward(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Squared distances ``[sentence word word]`` and squared depths ``[sentence word]``."""
        points, deep = states @ self.maps[0], states @ self.maps[1]
        # ||a - b||^2 = ||a||^2 + ||b||^2 - 2 a.b, which holds no vector for each pair of words;
        # rounding may leave a little less than 0 of two equal points.
        squares = points.square().sum(-1)
        apart = squares[:, :, None] + squares[:, None] - 2 * points @ points.transpose(1, 2)
        return apart.clamp(min=0), deep.square().sum(-1)


def structural_scores(
    data: ProbeData, how: Training, *, layer: int | None, rank: int
) -> tuple[list[Score], dict[str, Any]]:
    """The probe in every layer, and its controls in the layer that did best on sentences set aside.

    Args:
        data: with hidden states.
        how: probes are trained.
        layer: the only layer to look at, 0 the embeddings; None for all.
        rank: of the map.

    Returns:
        Scores, and the layer.
    """
    states = {name: [item.states_of_words for item in items] for name, items in data.sides.items()}
    of_layers: dict[int, list[Score]] = {}
    aside: dict[int, float] = {}
    for number in _layers(len(states[PROBE][0]), layer):
        trees = _trees(data.items, states[PROBE], number)
        fitted = _trained(trees, data, how, (rank, f"layer {number}"))
        of_layers[number] = _scores(f"layer {number}", fitted, _of(trees, data.parts.test))
        # Chosen on sentences that are neither learnt from nor reported on.
        aside[number] = _scores(PROBE, fitted, _of(trees, data.parts.aside))[0].value
    best = max(aside, key=aside.__getitem__)
    shown = [_renamed(score, PROBE) for score in of_layers[best]]
    for name, trees in _controls(data, states, best, layer).items():
        fitted = _trained(trees, data, how, (rank, name))
        shown += _scores(name, fitted, _of(trees, data.parts.test))
    shown += _chain(_of(_trees(data.items, states[PROBE], best), data.parts.test))
    if layer is None:
        for scores in of_layers.values():
            shown += scores
    return shown, {"layer": best}


def _layers(count: int, layer: int | None) -> Sequence[int]:
    if layer is None:
        return range(count)
    if not 0 <= layer < count:
        raise RecordError(
            f"layer is {layer}; the model's hidden states are 0 to {count - 1}, 0 the embeddings"
        )
    return [layer]


def _of(trees: Sequence[SentenceTree], part: Sequence[int]) -> list[SentenceTree]:
    return [trees[at] for at in part]


def _controls(
    data: ProbeData, states: dict[str, list[np.ndarray]], best: int, layer: int | None
) -> dict[str, list[SentenceTree]]:
    """What the probe is set beside, in the layer that did best."""
    controls = {CONTROL: _trees(data.items, states[PROBE], best, control=True)}
    if "random weights" in states:
        controls["random weights"] = _trees(data.items, states["random weights"], best)
    # The embeddings are a layer like the others where all of them are probed.
    if layer is not None and layer != 0:
        controls["layer 0"] = _trees(data.items, states[PROBE], 0)
    return controls


def _trees(
    items: Sequence[ProbeItem], states: Sequence[np.ndarray], layer: int, *, control: bool = False
) -> list[SentenceTree]:
    return [
        SentenceTree(control_tree(item.forms) if control else item.heads, item.counted, each[layer])
        for item, each in zip(items, states, strict=True)
    ]


def _trained(
    trees: Sequence[SentenceTree], data: ProbeData, how: Training, what: tuple[int, str]
) -> FittedProbe:
    rank, name = what
    features = trees[0].states.shape[1]
    train, aside = (
        _batches([trees[number] for number in part])
        for part in (data.parts.train, data.parts.aside)
    )
    return fit(
        lambda: StructuralProbe(features, min(rank, features)),
        (train, aside),
        _loss,
        how,
        name=name,
    )


def _batches(trees: Sequence[SentenceTree]) -> list[tuple[Tensor, ...]]:
    """Sentences of like length together."""
    order = sorted(trees, key=lambda tree: len(tree.heads))
    return [_batch(order[first : first + BATCH]) for first in range(0, len(order), BATCH)]


def _batch(trees: Sequence[SentenceTree]) -> tuple[Tensor, ...]:
    longest, features = max(len(tree.heads) for tree in trees), trees[0].states.shape[1]
    states = np.zeros((len(trees), longest, features), np.float32)
    distances = np.zeros((len(trees), longest, longest), np.float32)
    depths = np.zeros((len(trees), longest), np.float32)
    there = np.zeros((len(trees), longest), np.float32)
    for number, tree in enumerate(trees):
        size = len(tree.heads)
        states[number, :size], depths[number, :size] = tree.states, tree.depths
        distances[number, :size, :size], there[number, :size] = tree.distances, 1
    return tuple(map(torch.from_numpy, (states, distances, depths, there)))


def _loss(module: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Mean over sentences of the mean over pairs of ``|d_T - d_B^2|``, and the same of depths over
    words.
    """
    states, distances, depths, there = batch
    apart, deep = module(states)
    words = there.sum(dim=1)
    # Each sentence by its own length, so that long ones weigh no more than short ones.
    off = (apart - distances).abs() * there[:, None] * there[:, :, None]
    pairs = off.sum(dim=(1, 2)) / words.square()
    levels = ((deep - depths).abs() * there).sum(dim=1) / words
    return (pairs + levels).mean()


def _scores(of: str, fitted: FittedProbe, trees: Sequence[SentenceTree]) -> list[Score]:
    predictions = []
    with torch.no_grad():
        for tree in trees:
            apart, deep = fitted.module(torch.from_numpy(np.asarray(tree.states, np.float32))[None])
            predictions.append(
                (apart[0].numpy().astype(np.float64), deep[0].numpy().astype(np.float64))
            )
    return _measured(of, trees, predictions)


def _chain(trees: Sequence[SentenceTree]) -> list[Score]:
    """Distances of the words' places, and the first word for the root: no model at all."""
    positions = [np.arange(len(tree.heads), dtype=np.float64) for tree in trees]
    return _measured(CHAIN, trees, [(np.abs(at[:, None] - at), at) for at in positions])


def _measured(
    of: str, trees: Sequence[SentenceTree], predictions: Sequence[tuple[np.ndarray, np.ndarray]]
) -> list[Score]:
    lengths = np.array([len(tree.heads) for tree in trees])
    rows: dict[tuple[str, str], list[tuple[float, float]]] = {
        (DISTANCE, UUAS): [], (DISTANCE, DSPR): [], (DEPTH, ROOT): [], (DEPTH, NSPR): []
    }  # fmt: skip
    for tree, (apart, deep) in zip(trees, predictions, strict=True):
        gold, single = tree.distances, len(tree.heads) < 2
        rows[DISTANCE, UUAS].append(edges_hit(apart, gold, tree.counted))
        rows[DISTANCE, DSPR].append((0.0, 0.0) if single else distance_ranks(apart, gold))
        rows[DEPTH, ROOT].append(root_hit(deep, tree.heads, tree.counted))
        rows[DEPTH, NSPR].append((0.0, 0.0) if single else depth_ranks(deep, tree.depths))
    ranked = (DSPR, NSPR)
    return [
        Score(
            task=task,
            measure=measure,
            of=of,
            hits=np.array(hits),
            lengths=lengths if measure in ranked else None,
        )
        for (task, measure), hits in rows.items()
    ]


def _renamed(score: Score, of: str) -> Score:
    return Score(
        task=score.task, measure=score.measure, of=of, hits=score.hits, lengths=score.lengths
    )
