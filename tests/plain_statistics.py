"""Statistics of rows in plain NumPy, of whole matrices: what captured ones are compared with."""

import numpy as np

from headscope.record import OFFSETS, Statistics


def statistics_of(weights, tokens, queries=None, *, rows=None, top=0):
    """Statistics of weights with the axes head, query, key; of all rows, or of some."""
    looking = tokens if queries is None else queries
    positions = np.arange(len(looking)) if rows is None else np.asarray(rows)
    chosen = weights[:, positions].astype(np.float64)
    special, segments = np.asarray(tokens.special, bool), np.asarray(tokens.segments, int)
    of_segments = [chosen[:, :, segments == n].sum(axis=-1) for n in range(segments.max() + 1)]
    return Statistics(
        # 0 log 0 is 0, its limit: where a weight is 0, log is taken of 1.
        entropy=-(chosen * np.log(np.where(chosen > 0, chosen, 1.0))).sum(axis=-1),
        offsets=_around(chosen, positions),
        first=chosen[:, :, 0],
        special=chosen[:, :, special].sum(axis=-1),
        segments=np.stack(of_segments, axis=-1),
        largest=chosen.max(axis=-1),
        received=chosen.mean(axis=1),
        same_token=_same(chosen, positions, tokens, queries),
        rows=rows,
        queries=len(looking),
        **(_top(chosen, top) if top else {}),
    )


def _around(chosen, positions):
    keys = positions[:, None] + np.asarray(OFFSETS)
    there = (keys >= 0) & (keys < chosen.shape[2])
    # A key that is not there is read at 0 instead, as -1 would be the last key, and then dropped.
    around = np.take_along_axis(chosen, np.where(there, keys, 0)[None], axis=2)
    return np.where(there, around, 0.0)


def _same(chosen, positions, tokens, queries):
    looking = tokens if queries is None else queries
    if tokens.ids is None or looking.ids is None:
        return None
    same = np.asarray(looking.ids)[positions, None] == np.asarray(tokens.ids)
    if queries is None:
        same &= positions[:, None] != np.arange(chosen.shape[2])
    return (chosen * same).sum(axis=-1)


def _top(chosen, top):
    top = min(top, chosen.shape[2])
    # Stable: of equal weights the earlier key comes first, on every machine.
    keys = np.argsort(-chosen, axis=-1, kind="stable")[:, :, :top]
    weights = np.take_along_axis(chosen, keys, axis=-1)
    return {"top_weights": weights, "top_keys": np.where(weights > 0, keys, -1).astype(np.int32)}
