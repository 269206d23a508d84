"""What a token adds: norms of contributions, effective attention, how far values stretch."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.measures import effective_attention
from headscope.norms import _vectors
from headscope.norms._block import Block
from headscope.record import Layer


def value_norms(block: Block) -> Float[Any, "*text head key"]:
    """``||f(x_j)||`` of each head, ``f(x) = (x W_V + b_V) W_O`` with the head's slices; b_O belongs
    to no token.

    Source: Kobayashi et al. 2020, section 2.2.

    Args:
        block: see `Block`.

    Example:
        >>> from headscope.norms import Block
        >>> block = Block(
        ...     weights=np.ones((1, 1, 1)),
        ...     values=np.array([[[3.0]]]),
        ...     projection=np.array([[[1.0, 0.0]]]),
        ... )
        >>> value_norms(block).tolist()
        [[3.0]]
    """
    return block.value_lengths


def attention_norms(block: Block) -> Float[Any, "*text query key"]:
    """Attn-N: ``|| sum_h a f_h(x_j) ||``, vectors summed over heads before the norm is taken.

    The vectors and b_O sum to the attention's output. Source: Kobayashi et al. 2020, section 2.2.
    """
    return _vectors.attention_vectors(block).lengths()


def residual_norms(block: Block) -> Float[Any, "*text query key"]:
    """AttnRes-N: ``|| sum_h a f_h(x_j) + [i = j] x_i ||``.

    Where the attention's output goes through a norm or a scale of its own before the residual is
    added (Gemma 2, layer scale), that is applied to the vectors, with the deviation of the whole
    (ours). Where queries and keys are different tokens, the residual is no key's; see `own_norms`.

    Source: Kobayashi et al. 2021, section 3.1.

    Raises:
        RecordError: where the block has no residual.
    """
    return _vectors.residual_vectors(block).lengths()


def output_norms(block: Block) -> Float[Any, "*text query key"]:
    """AttnResLn-N: ``||T_ij||``, ``T_ij = gain * (R_ij - mean(R_ij)) / deviation(p_i)``, p_i the
    whole before the norm.

    The vectors, the same of b_O (and of what is added besides), and the norm's shift sum to the
    norm's output exactly: population variance, eps under the root. RMSNorm takes no mean off.

    Source: Kobayashi et al. 2021, section 3.2.

    Raises:
        RecordError: where the block has no residual or no norm.
    """
    return _vectors.output_vectors(block).lengths()


def globenc_norms(block: Block) -> Float[Any, "*text query key"]:
    """GlobEnc: AttnResLn-N's vectors through the second norm's linear part, the feed-forward part
    in the deviation only.

    ``U_ij = gain2 * (T_ij - mean(T_ij)) / deviation(p2_i)``.

    Source: Modarressi et al. 2022, section 3.2.

    Raises:
        RecordError: where the block has no second norm.
    """
    return _vectors.globenc_vectors(block).lengths()


def own_norms(block: Block) -> Float[Any, "*text query"]:
    """Norm of what a query's residual adds to the norm's output, or to the stream where there is no
    norm.

    For blocks whose queries and keys are different tokens (cross attention), where it is no key's.

    Raises:
        RecordError: where the block has no residual.
    """
    vectors = (
        _vectors.residual_vectors(block) if block.after is None else _vectors.output_vectors(block)
    )
    return (vectors.own * vectors.own).sum(-1) ** 0.5


def mixing(vectors: _vectors.ContributionVectors) -> Float[Any, "*text query"]:
    """Mixing ratio: the share of the other tokens, ``||sum_{j != i} P_ij|| / (||sum_{j != i} P_ij||
    + ||P_ii||)``.

    Where queries and keys are different tokens, all keys are others, and the residual is the token
    itself. 0 where nothing is added at all.

    Source: Kobayashi et al. 2021, section 4.

    Args:
        vectors: of `attention_vectors` (Attn-N), `residual_vectors` (AttnRes-N) or `output_vectors`
            (AttnResLn-N).

    Raises:
        RecordError: where the block's tokens differ and the vectors hold no residual.
    """
    others, own = vectors.lengths_of_others_and_own()
    whole = others + own
    return others / (whole + (whole == 0))


def expansion_rate(
    value: Float[np.ndarray, "model feature"],
    projection: Float[np.ndarray, "feature out"],
    value_bias: Float[np.ndarray, " feature"] | None = None,
    bias: Float[np.ndarray, " out"] | None = None,
    *,
    released: bool = False,
) -> float:
    """``||M||_F / sqrt(d + 1)``: the root mean square of the singular values of f, all heads
    together.

    ``M = [[W_V, 0], [b_V, 1]] [[W_O, 0], [b_O, 1]]`` for row vectors ``[x, 1]``, d the width of the
    input.

    Source: Kobayashi et al. 2021, section 5. Their released code puts b_O into the last column of
    the second factor; ``released=True`` does so, for their published numbers.

    Args:
        value: W_V, all heads side by side.
        projection: W_O.
        value_bias: b_V.
        bias: b_O.
        released: as the released code has it.

    Raises:
        RecordError: where the matrices do not fit.

    Example:
        >>> expansion_rate(2 * np.eye(3), np.eye(3)) == (13 / 4) ** 0.5
        True
    """
    inner, out = projection.shape
    if value.shape[1] != inner:
        raise RecordError(
            f"W_V of shape {value.shape} and W_O of shape {projection.shape} do not fit"
        )
    if released and bias is not None and len(bias) != inner:
        raise RecordError(
            "The released form puts b_O beside W_O's rows, which needs as many features as outputs"
        )
    # A row more and a column more than W_V and W_O: [x, 1] carries the biases along.
    first = np.zeros((len(value) + 1, inner + 1))
    first[:-1, :-1], first[-1, -1] = value, 1.0
    second = np.zeros((inner + 1, out + 1))
    second[:-1, :-1], second[-1, -1] = projection, 1.0
    if value_bias is not None:
        first[-1, :-1] = value_bias
    if bias is not None and released:
        second[:-1, -1] = bias
    elif bias is not None:
        second[-1, :-1] = bias
    return float(np.linalg.norm(first @ second) / np.sqrt(len(first)))


def effective_weights(layer: Layer) -> Float[np.ndarray, "head query key"]:
    """`headscope.measures.effective_attention` of a layer whose values were kept.

    The vectors are the values themselves: a head's part of W_O has as many independent rows as the
    head has features in every model that is at least as wide as its heads, and then values and f(x)
    have the same null space.

    Source: Brunner et al. 2020, section 3.2.

    Args:
        layer: captured with values (``keep="auto"`` or ``"values"``).

    Raises:
        RecordError: where values were not kept.
    """
    if not layer.has("values"):
        raise RecordError(
            f"Layer {layer.layer} holds no values; capture with keep='auto', or 'values' among "
            "others"
        )
    weights, values = layer.weights_of(), np.asarray(layer.values, np.float64)
    return effective_attention(np.asarray(weights, np.float64), values[layer.kv_head_of])
