"""Products of the heads' parts of W_O, from which the lengths of sums over heads follow."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from headscope.norms._norm import Norm

CANCELLED = 1e-3
"""A length below this share of what its parts would add up to if none cancelled another is taken
from the vectors; above it, a Gram matrix in double precision gives it to 1e-9."""
MOST_INPUTS = 1024
"""The widest projection, heads times features, of which products are kept: 8 MB for each norm. Of
wider ones they would take more memory than the model."""
MOST_KEPT = 4
"""A layer has three of them: as it is, behind its norm, and behind the second norm."""
KEYS_AT_ONCE = 96
"""Of how many keys products with the values of a head are held; a few stay in the cache."""


class ProjectionProducts:
    """``W_h L (W_g L)^T`` of all pairs of heads, L the linear part of norms, worked out once.

    The vectors of two heads ``v_h W_h L`` and ``v_g W_g L`` have the scalar product ``v_h M_hg
    v_g``. M depends on weights of the model alone, so that all texts share it, and no vector as
    wide as the model is needed.

    Args:
        projection: ``[head feature model]``, each head's part of W_O.
    """

    def __init__(self, projection: Float[np.ndarray, "head feature model"]) -> None:
        self._projection = np.asarray(projection, np.float64)
        self._known: dict[tuple[Norm, ...], Float[np.ndarray, "input input"]] = {}

    def __len__(self) -> int:
        """How many products are kept."""
        return len(self._known)

    @staticmethod
    def is_worth_it(inputs: int) -> bool:
        """Whether products of a projection with so many inputs are small enough to be kept."""
        return inputs <= MOST_INPUTS

    def behind(self, norms: tuple[Norm, ...]) -> Float[np.ndarray, "input input"]:
        """The products behind the linear parts of norms; inputs are features, head by head."""
        if norms not in self._known:
            rows = self._projection.reshape(-1, self._projection.shape[-1])
            for norm in norms:
                rows = norm.linear(rows)
            if len(self._known) >= MOST_KEPT:
                self._known.pop(next(iter(self._known)))
            self._known[norms] = rows @ rows.T
        return self._known[norms]

    def gram(
        self, values: Float[np.ndarray, "*text head key feature"], norms: tuple[Norm, ...]
    ) -> tuple[Float[np.ndarray, "*text key head head"], Float[np.ndarray, "*text key head"]]:
        """Scalar products of the vectors of each key's heads, and a bound of their lengths.

        The bound is ``||v_h||`` times the Frobenius norm of ``W_h L``. A scalar product is known to
        the rounding of the bound's square, which may be more than the vector itself.
        """
        heads, keys, features = values.shape[-3:]
        texts = values.shape[:-3]
        products = self.behind(norms)
        # Texts share the products, so that all their keys are rows of the same matrices.
        by_key = np.ascontiguousarray(np.swapaxes(values, -3, -2)).reshape(-1, heads, features)
        gram = np.empty((len(by_key), heads, heads))
        scratch = np.empty(min(KEYS_AT_ONCE, len(by_key)) * heads * features)
        for first in range(0, len(by_key), KEYS_AT_ONCE):
            some = slice(first, first + KEYS_AT_ONCE)
            _fill(gram[some], by_key[some], products, scratch)
        squares = products.diagonal().reshape(heads, features).sum(axis=-1)
        longest = np.sqrt(np.einsum("khf,khf->kh", by_key, by_key) * squares)
        return gram.reshape(*texts, keys, heads, heads), longest.reshape(*texts, keys, heads)


def _fill(
    gram: Float[np.ndarray, "key head head"],
    values: Float[np.ndarray, "key head feature"],
    products: Float[np.ndarray, "input input"],
    scratch: Float[np.ndarray, " number"],
) -> None:
    """Write the scalar products of these keys; scratch has room for their values."""
    keys, heads, features = values.shape
    for head in range(heads):
        # The matrix is symmetric: products with the heads before this one are enough.
        width = (head + 1) * features
        met = scratch[: keys * width].reshape(keys, width)
        np.matmul(values[:, head], products[head * features : width, :width], out=met)
        met = met.reshape(keys, head + 1, features)
        np.einsum("kgf,kgf->kg", met, values[:, : head + 1], out=gram[:, head, : head + 1])
        gram[:, : head + 1, head] = gram[:, head, : head + 1]
