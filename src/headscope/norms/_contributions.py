"""Kobayashi's norms: what a token adds, and not only how much it is looked at."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from headscope.norms._block import Block
from headscope.norms._pieces import (
    Pieces,
    attention_pieces,
    globenc_pieces,
    output_pieces,
    residual_pieces,
)


def value_norms(block: Block) -> Float[np.ndarray, "head key"]:
    """``||f(x_j)||`` of each head, ``f(x) = (x W_V + b_V) W_O`` with the head's slices; b_O belongs
    to no token.

    Source: Kobayashi et al. 2020, section 2.2.

    Args:
        block: see `Block`.

    Example:
        >>> block = Block(
        ...     weights=np.ones((1, 1, 1)),
        ...     values=np.array([[[3.0]]]),
        ...     projection=np.array([[[1.0, 0.0]]]),
        ... )
        >>> value_norms(block).tolist()
        [[3.0]]
    """
    heads, _, keys, model = block.size
    norms = np.empty((heads, keys))
    # Vectors of all keys and heads at once may be larger than memory; 8 bytes for each number.
    for tile in block.tiles(8 * heads * model):
        norms[:, tile] = np.linalg.norm(block.transformed(tile), axis=-1)
    return norms


def head_norms(block: Block) -> Float[np.ndarray, "head query key"]:
    """``||a f(x_j)|| = a ||f(x_j)||`` of each head: quadratic in the length once `value_norms` are
    known.

    Source: Kobayashi et al. 2020, section 2.2. Not normalised.
    """
    return block.weights * value_norms(block)[:, None, :]


def attention_norms(block: Block) -> Float[np.ndarray, "query key"]:
    """Attn-N: ``|| sum_h a f_h(x_j) ||``, vectors summed over heads before the norm is taken.

    The pieces and b_O sum to the attention's output. Source: Kobayashi et al. 2020, section 2.2.
    """
    return attention_pieces(block).lengths()


def residual_norms(block: Block) -> Float[np.ndarray, "query key"]:
    """AttnRes-N: ``|| sum_h a f_h(x_j) + [i = j] x_i ||``.

    Where the attention's output goes through a norm or a scale of its own before the residual is
    added (Gemma 2, layer scale), that is applied to the pieces, with the deviation of the whole
    (ours). Where queries and keys are different tokens, the residual is no key's; see `own_norms`.

    Source: Kobayashi et al. 2021, section 3.1.

    Raises:
        RecordError: where the block has no residual.
    """
    return residual_pieces(block).lengths()


def output_norms(block: Block) -> Float[np.ndarray, "query key"]:
    """AttnResLn-N: ``||T_ij||``, ``T_ij = gain * (R_ij - mean(R_ij)) / deviation(p_i)``, p_i the
    whole before the norm.

    The pieces, the same of b_O (and of what is added besides), and the norm's shift sum to the
    norm's output exactly: population variance, eps under the root. RMSNorm takes no mean off.

    Source: Kobayashi et al. 2021, section 3.2.

    Raises:
        RecordError: where the block has no residual or no norm.
    """
    return output_pieces(block).lengths()


def globenc_norms(block: Block) -> Float[np.ndarray, "query key"]:
    """GlobEnc: AttnResLn-N's pieces through the second norm's linear part, the feed-forward part in
    the deviation only.

    ``U_ij = gain2 * (T_ij - mean(T_ij)) / deviation(p2_i)``.

    Source: Modarressi et al. 2022, section 3.2.

    Raises:
        RecordError: where the block has no second norm.
    """
    return globenc_pieces(block).lengths()


def own_norms(block: Block) -> Float[np.ndarray, " query"]:
    """Norm of what a query's residual adds to the norm's output, or to the stream where there is no
    norm.

    For blocks whose queries and keys are different tokens (cross attention), where it is no key's.

    Raises:
        RecordError: where the block has no residual.
    """
    pieces = residual_pieces(block) if block.after is None else output_pieces(block)
    # Where queries and keys are the same tokens, the residual is in the diagonal already.
    return np.linalg.norm(pieces.own if pieces.own is not None else np.zeros((1, 1)), axis=-1)


def mixing(pieces: Pieces) -> Float[np.ndarray, " query"]:
    """Mixing ratio: the share of the other tokens, ``||sum_{j != i} P_ij|| / (||sum_{j != i} P_ij||
    + ||P_ii||)``.

    Where queries and keys are different tokens, all keys are others, and the residual is the token
    itself. 0 where nothing is added at all.

    Source: Kobayashi et al. 2021, section 4.

    Args:
        pieces: of `attention_pieces` (Attn-N), `residual_pieces` (AttnRes-N) or `output_pieces`
            (AttnResLn-N).

    Raises:
        RecordError: where the block's tokens differ and the pieces hold no residual.
    """
    # The diagonal of different tokens would mean nothing, and raises where there is no residual.
    own = pieces.diagonal() if pieces.block.same or pieces.own is None else pieces.own
    others, self_ = (np.linalg.norm(vectors, axis=-1) for vectors in (pieces.total() - own, own))
    whole = others + self_
    return np.divide(others, whole, out=np.zeros_like(whole), where=whole > 0)
