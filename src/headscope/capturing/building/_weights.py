"""The weights of a call as a record keeps them."""

from __future__ import annotations

import mmap
from collections.abc import Sequence

import numpy as np
import torch

from headscope.capturing.building._lazy_zeros import untouched_zeros
from headscope.capturing.building._real_tokens import RealTokens, stored
from headscope.capturing.calls.tiles import are_one, fill_weights


def kept_weights(
    unpadded_texts: Sequence[RealTokens], dtype: np.dtype, *, known: torch.Tensor | None = None
) -> tuple[list[np.ndarray], bool]:
    """Weights ``[head query key]`` of the real tokens of each text, computed in tiles and untouched
    where zero; and whether `headscope.record.vouched` may be told that they are weights.

    Args:
        unpadded_texts: the texts of a call.
        dtype: in which weights are kept.
        known: ``[text head query key]``, the weights of texts without padding among the queries,
            where they were computed and checked before.
    """
    if known is not None:
        arrays = [stored(unpadded.of_both(known), dtype) for unpadded in unpadded_texts]
        return arrays, arrays[0].dtype == np.float32 and are_one(known.sum(-1))
    call = unpadded_texts[0].call
    arrays, are_zeros = _room(unpadded_texts, dtype)
    queries = [unpadded.queries for unpadded in unpadded_texts]
    keys = [unpadded.keys for unpadded in unpadded_texts]
    into = [torch.from_numpy(array) for array in arrays]
    return arrays, fill_weights(call, queries, keys, into=into, are_zeros=are_zeros)


def _room(unpadded_texts: Sequence[RealTokens], dtype: np.dtype) -> tuple[list[np.ndarray], bool]:
    """Memory for the weights of each text, and whether it holds zeros."""
    call = unpadded_texts[0].call
    # Where every key may be looked at every weight is written, and no page stays untouched that
    # holds a whole row or more: memory that was used before is then taken rather than new pages.
    is_full = not call.causal and call.mask is None
    is_written = is_full or call.size[3] * dtype.itemsize < mmap.PAGESIZE
    room = np.empty if is_written else untouched_zeros
    arrays = [
        room((call.size[1], len(unpadded.queries), len(unpadded.keys)), dtype)
        for unpadded in unpadded_texts
    ]
    return arrays, not is_written
