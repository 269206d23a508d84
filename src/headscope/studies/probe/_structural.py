"""The structural probe: a linear map under which distances of states are distances in the tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from headscope.errors import RecordError
from headscope.linguistics import control_tree, tree_depths, tree_distances
from headscope.linguistics.probes import depth_ranks, distance_ranks, edges_hit, root_hit
from headscope.studies.probe import _data
from headscope.studies.probe._data import HeldBatches, ProbeData, ProbeItem, Training, filled, fit
from headscope.studies.probe._result import CONTROL, PROBE, Score

DISTANCE, DEPTH = "distance in the tree", "depth in the tree"
UUAS, DSPR, ROOT, NSPR = "UUAS", "DSpr", "root", "NSpr"
CHAIN = "chain of words"
BATCH = 20
START = 0.05


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
    layers, _, features = data.items[0].states_shape
    if layer is not None and not 0 <= layer < layers:
        raise RecordError(
            f"layer is {layer}; the model's hidden states are 0 to {layers - 1}, 0 the embeddings"
        )

    learnt = partial(_learnt, data, how, min(rank, features))
    of_layers, aside = {}, {}
    for number in range(layers) if layer is None else [layer]:
        of_layers[number], aside[number] = learnt(data.items, number, f"layer {number}")
    # Chosen on sentences that are neither learnt from nor reported on.
    best = max(aside, key=aside.__getitem__)
    shown = [replace(each, of=PROBE) for each in of_layers[best]]
    controls = {CONTROL: (data.items, best)}
    if data.twin is not None:
        controls["random weights"] = data.twin, best
    # The embeddings are a layer like the others where all of them are probed.
    if layer:
        controls["layer 0"] = data.items, 0
    for name, what in controls.items():
        shown += learnt(*what, name)[0]
    # Distances of the words' places, and the first word for the root: no model at all.
    places = [np.arange(len(item), dtype=np.float64) for item in data.part(2)]
    chains = ((np.abs(place[:, None] - place), place) for place in places)
    shown += _measured(CHAIN, data.part(2), chains)
    more = of_layers.values() if layer is None else ()
    return [*shown, *chain.from_iterable(more)], {"layer": best}


def _learnt(data: ProbeData, how: Training, rank: int, *what: Any) -> tuple[list[Score], float]:
    """The scores of a probe, and how good it is on sentences set aside: of sentences, a layer, and
    what it is called; that of the control task has trees of its own.
    """
    items, layer, name = what
    room, make = [_data.HELD], partial(StructuralProbe, items[0].states_shape[-1], rank)
    batches = []
    for part in data.parts[:2]:
        order = sorted(part, key=data.sizes.__getitem__)
        cut = [[items[n] for n in order[at : at + BATCH]] for at in range(0, len(order), BATCH)]
        batches.append(
            HeldBatches(cut, partial(batch_of, layer=layer, control=name == CONTROL), room)
        )
    module, _ = fit(make, (batches[0], batches[1]), loss_of, how, name=name)
    measured = []
    for part in data.parts[1:]:
        own, predictions = [items[number] for number in part], []
        for item in own:
            states = np.asarray(item.word_states(layer), np.float32)
            with torch.no_grad():
                both = module(torch.from_numpy(states)[None])
            predictions.append(tuple(each[0].numpy().astype(np.float64) for each in both))
        measured.append(_measured(name, own, predictions))
    return measured[1], measured[0][0].value


def _tree(item: ProbeItem, *, control: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Heads of words, distances between every two of them, and the depth of each."""
    heads = control_tree(item.forms) if control else item.heads
    return heads, tree_distances(heads).astype(np.float64), tree_depths(heads).astype(np.float64)


def batch_of(
    items: Sequence[ProbeItem], layer: int, *, control: bool = False
) -> tuple[Tensor, ...]:
    """States, distances and depths of sentences, filled up, and which words there are."""
    trees = [_tree(item, control=control)[1:] for item in items]
    distances, depths = ([each[at] for each in trees] for at in (0, 1))
    states = [item.word_states(layer) for item in items]
    there = [np.ones(len(item)) for item in items]
    rows = states, distances, depths, there
    sizes = (np.max([array.shape for array in each], axis=0) for each in rows)
    both = zip(rows, sizes, strict=True)
    return tuple(filled(each, (len(items), *size)) for each, size in both)


def loss_of(module: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Mean over sentences of the mean over pairs of ``|d_T - d_B^2|``, and the same of depths over
    words.
    """
    states, distances, depths, there = batch
    apart, deep = module(states)
    words = there.sum(dim=1)
    # Each sentence by its own length, so that long ones weigh no more than short ones.
    off = (apart - distances).abs() * there[:, None] * there[:, :, None]
    levels = ((deep - depths).abs() * there).sum(dim=1) / words
    return (off.sum(dim=(1, 2)) / words.square() + levels).mean()


def _measured(
    of: str, items: Sequence[ProbeItem], predictions: Iterable[tuple[np.ndarray, ...]]
) -> list[Score]:
    rows: dict[tuple[str, str], list[tuple[float, float]]] = {
        (DISTANCE, UUAS): [], (DISTANCE, DSPR): [], (DEPTH, ROOT): [], (DEPTH, NSPR): []
    }  # fmt: skip
    for item, (apart, deep) in zip(items, predictions, strict=True):
        (heads, distances, depths), single = _tree(item, control=of == CONTROL), len(item) < 2
        rows[DISTANCE, UUAS].append(edges_hit(apart, distances, item.counted))
        rows[DISTANCE, DSPR].append((0.0, 0.0) if single else distance_ranks(apart, distances))
        rows[DEPTH, ROOT].append(root_hit(deep, heads, item.counted))
        rows[DEPTH, NSPR].append((0.0, 0.0) if single else depth_ranks(deep, depths))
    lengths, scores = np.array(list(map(len, items))), []
    for (task, measure), hits in rows.items():
        own = lengths if measure in (DSPR, NSPR) else None
        scores.append(Score(task=task, measure=measure, of=of, hits=np.array(hits), lengths=own))
    return scores
