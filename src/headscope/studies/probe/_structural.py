"""The structural probe: a linear map under which distances of states are distances in the tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from headscope.errors import RecordError
from headscope.linguistics import control_tree, tree_depths, tree_distances
from headscope.linguistics.probe_scores import depth_ranks, distance_ranks, edges_hit, root_hit
from headscope.studies.probe._data import LazySequence, ProbeData, ProbeItem, Room
from headscope.studies.probe._result import CONTROL, PROBE, Score
from headscope.studies.probe._training import FittedProbe, Training, fit

DISTANCE, DEPTH = "distance in the tree", "depth in the tree"
UUAS, DSPR, ROOT, NSPR = "UUAS", "DSpr", "root", "NSpr"
CHAIN = "chain of words"
BATCH = 20
START = 0.05


@dataclass(frozen=True, eq=False)
class SentenceTree:
    """A sentence as arrays.

    Args:
        item: the sentence as it was read.
        layer: whose states it has.
        is_control: whether its tree is that of the control task.
    """

    item: ProbeItem
    layer: int
    is_control: bool = False

    def __len__(self) -> int:
        return len(self.item)

    @cached_property
    def heads(self) -> np.ndarray:
        """Number of each word's head, from 0; -1 at the root."""
        return control_tree(self.item.forms) if self.is_control else self.item.heads

    @property
    def counted(self) -> np.ndarray:
        """The words that are no punctuation."""
        return self.item.counted

    @property
    def states(self) -> np.ndarray:
        """Of the words."""
        return self.item.word_states(self.layer)

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
    of_layers: dict[int, list[Score]] = {}
    aside: dict[int, float] = {}
    for number in _layers(data.items[0].states_shape[0], layer):
        trees = _trees(data.items, number)
        fitted = _trained(trees, data, how, (rank, f"layer {number}"))
        of_layers[number] = _scores(f"layer {number}", fitted, trees.of(data.parts.test))
        # Chosen on sentences that are neither learnt from nor reported on.
        aside[number] = _scores(PROBE, fitted, trees.of(data.parts.aside))[0].value
    best = max(aside, key=aside.__getitem__)
    shown = [_renamed(score, PROBE) for score in of_layers[best]]
    for name, trees in _controls(data, best, layer).items():
        fitted = _trained(trees, data, how, (rank, name))
        shown += _scores(name, fitted, trees.of(data.parts.test))
    shown += _chain(_trees(data.items, best).of(data.parts.test))
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


def _controls(
    data: ProbeData, best: int, layer: int | None
) -> dict[str, LazySequence[SentenceTree]]:
    """What the probe is set beside, in the layer that did best."""
    controls = {CONTROL: _trees(data.items, best, control=True)}
    if data.twin is not None:
        controls["random weights"] = _trees(data.twin, best)
    # The embeddings are a layer like the others where all of them are probed.
    if layer is not None and layer != 0:
        controls["layer 0"] = _trees(data.items, 0)
    return controls


def _trees(
    items: Sequence[ProbeItem], layer: int, *, control: bool = False
) -> LazySequence[SentenceTree]:
    return LazySequence(len(items), lambda at: SentenceTree(items[at], layer, is_control=control))


def _trained(
    trees: LazySequence[SentenceTree], data: ProbeData, how: Training, what: tuple[int, str]
) -> FittedProbe:
    rank, name = what
    features, room = data.items[0].states_shape[-1], Room()
    train, aside = (
        _batches(trees, sorted(part, key=lambda number: int(data.sizes[number])), room)
        for part in (data.parts.train, data.parts.aside)
    )
    return fit(
        lambda: StructuralProbe(features, min(rank, features)),
        (train, aside),
        _loss,
        how,
        name=name,
    )


def _batches(
    trees: LazySequence[SentenceTree], order: Sequence[int], room: Room
) -> LazySequence[tuple[Tensor, ...]]:
    """Batches of sentences in an order, in which those of like length stand together."""
    starts = range(0, len(order), BATCH)
    return LazySequence(
        len(starts),
        lambda at: _batch([trees[number] for number in order[starts[at] : starts[at] + BATCH]]),
        room,
    )


def _batch(trees: Sequence[SentenceTree]) -> tuple[Tensor, ...]:
    longest, features = max(map(len, trees)), trees[0].item.states_shape[-1]
    states = np.zeros((len(trees), longest, features), np.float32)
    distances = np.zeros((len(trees), longest, longest), np.float32)
    depths = np.zeros((len(trees), longest), np.float32)
    there = np.zeros((len(trees), longest), np.float32)
    for number, tree in enumerate(trees):
        size = len(tree)
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
    def predictions() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for tree in trees:
            with torch.no_grad():
                apart, deep = fitted.module(
                    torch.from_numpy(np.asarray(tree.states, np.float32))[None]
                )
            yield apart[0].numpy().astype(np.float64), deep[0].numpy().astype(np.float64)

    return _measured(of, trees, predictions())


def _chain(trees: Sequence[SentenceTree]) -> list[Score]:
    """Distances of the words' places, and the first word for the root: no model at all."""
    positions = (np.arange(len(tree), dtype=np.float64) for tree in trees)
    return _measured(CHAIN, trees, ((np.abs(at[:, None] - at), at) for at in positions))


def _measured(
    of: str, trees: Sequence[SentenceTree], predictions: Iterable[tuple[np.ndarray, np.ndarray]]
) -> list[Score]:
    lengths = np.array([len(tree) for tree in trees])
    rows: dict[tuple[str, str], list[tuple[float, float]]] = {
        (DISTANCE, UUAS): [], (DISTANCE, DSPR): [], (DEPTH, ROOT): [], (DEPTH, NSPR): []
    }  # fmt: skip
    for tree, (apart, deep) in zip(trees, predictions, strict=True):
        gold, single = tree.distances, len(tree) < 2
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
