"""The part of attention that reaches the output."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError


def effective_attention(
    weights: Float[np.ndarray, "head query key"], vectors: Float[np.ndarray, "head key feature"]
) -> Float[np.ndarray, "head query key"]:
    """Attention without the part that changes nothing in the head's output.

    ``A_perp = A - A N N^T``, N an orthonormal basis of ``{u : u^T T = 0}``; ``A_perp T = A T``. Its
    rows need not sum to 1 and may be negative.

    Source: Brunner et al. 2020, section 3.2. Where there are more tokens than T has independent
    rows, the weights are not identifiable, and A_perp is the shortest of those that give the same
    output. Rank as `null_dimension`.

    Args:
        weights: A, axes head, query, key.
        vectors: T, what each token adds where it is looked at: values times the head's part of the
            output projection.

    Raises:
        RecordError: where weights and vectors do not fit.

    Example:
        >>> effective_attention(np.array([[[0.75, 0.25]]]), np.array([[[1.0], [1.0]]])).round(
        ...     9
        ... ).tolist()
        [[[0.5, 0.5]]]
    """
    weights, vectors = np.asarray(weights, np.float64), np.asarray(vectors, np.float64)
    if len(weights) != len(vectors) or weights.shape[2] != vectors.shape[1]:
        raise RecordError(
            f"Weights [head query key] of shape {weights.shape} and vectors [head key feature] of "
            f"shape {vectors.shape} differ in heads or keys; repeat shared values for each head "
            "that uses them"
        )
    effective = np.empty_like(weights)
    for head, (rows, vector) in enumerate(zip(weights, vectors, strict=True)):
        # A - A N N^T is A projected on what is orthogonal to N, the range of T, which is the
        # smaller of the two where there are more tokens than features.
        basis = _range_of(vector)
        effective[head] = rows @ basis @ basis.T
    return effective


def null_dimension(vectors: Float[np.ndarray, "head key feature"]) -> list[int]:
    """How many independent changes of a head's row leave its output as it is: number of keys minus
    rank of T.

    The rank counts singular values above ``largest * max(key, feature) * eps`` of float64 (as
    NumPy's `matrix_rank`); float32 vectors are seldom of lower rank by that, whatever they hold.

    Source: Brunner et al. 2020, section 3.1.

    Args:
        vectors: T, axes head, key, feature.

    Example:
        >>> null_dimension(np.array([[[1.0], [1.0]], [[0.0], [0.0]]]))
        [1, 2]
    """
    return [
        vector.shape[0] - _range_of(np.asarray(vector, np.float64)).shape[1] for vector in vectors
    ]


def _range_of(vectors: np.ndarray) -> np.ndarray:
    """Orthonormal basis of the columns, which is what is orthogonal to the null space."""
    left, sizes, _ = np.linalg.svd(vectors, full_matrices=False)
    least = sizes.max(initial=0.0) * max(vectors.shape) * np.finfo(np.float64).eps
    return left[:, sizes > least]
