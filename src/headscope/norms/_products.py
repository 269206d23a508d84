"""Products of the heads' parts of W_O, from which the lengths of sums over heads follow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from headscope.norms._norm import Norm

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
        single: whether all is worked out in single precision that need not be done again in double,
            for lengths that are kept in single precision; it takes half the time and memory.
    """

    def __init__(
        self, projection: Float[np.ndarray, "head feature model"], *, single: bool = False
    ) -> None:
        self._projection = np.asarray(projection, np.float64)
        self.dtype: np.dtype = np.dtype(np.float32 if single else np.float64)
        self.projection: np.ndarray = np.ascontiguousarray(self._projection, self.dtype)
        self._forms: dict[tuple[Norm, ...], tuple[SquareForm, np.ndarray]] = {}
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
            self._known[norms] = (rows @ rows.T).astype(self.dtype, copy=False)
        return self._known[norms]

    def form_and_sizes(
        self, norms: tuple[Norm, ...]
    ) -> tuple[SquareForm, Float[np.ndarray, " head"]]:
        """The squares of lengths behind norms, and the Frobenius norm of each head's part of the
        projection behind their gains.
        """
        if norms not in self._forms:
            form = SquareForm.behind(norms, self._projection.shape[-1])
            if len(self._forms) >= MOST_KEPT:
                self._forms.pop(next(iter(self._forms)))
            sizes = np.sqrt((self._projection**2 @ form.gains).sum(axis=-1))
            single = SquareForm(*(part.astype(self.dtype) for part in form))
            self._forms[norms] = single, sizes.astype(self.dtype)
        return self._forms[norms]

    def gram(
        self,
        values: Float[np.ndarray, "*text head key feature"],
        kinds: tuple[tuple[Norm, ...], ...],
    ) -> tuple[
        Float[np.ndarray, "*text key kind head head"], Float[np.ndarray, "*text key kind head"]
    ]:
        """Scalar products of the vectors of each key's heads behind the norms of each kind, and a
        bound of their lengths.

        The bound is ``||v_h||`` times the Frobenius norm of ``W_h L``. A scalar product is known to
        the rounding of the bound's square, which may be more than the vector itself.
        """
        heads, keys, features = values.shape[-3:]
        texts = values.shape[:-3]
        products = [self.behind(norms) for norms in kinds]
        # Texts share the products, so that all their keys are rows of the same matrices.
        by_key = np.swapaxes(values, -3, -2).astype(self.dtype, order="C")
        by_key = by_key.reshape(-1, heads, features)
        gram = np.empty((len(by_key), len(kinds), heads, heads), self.dtype)
        scratch = np.empty(min(KEYS_AT_ONCE, len(by_key)) * heads * features, self.dtype)
        for first in range(0, len(by_key), KEYS_AT_ONCE):
            some = slice(first, first + KEYS_AT_ONCE)
            for number, of_kind in enumerate(products):
                _fill(gram[some, number], by_key[some], of_kind, scratch)
        traces = [of_kind.diagonal().reshape(heads, features).sum(axis=-1) for of_kind in products]
        squares = np.einsum("khf,khf->kh", by_key, by_key)
        longest = np.sqrt(squares[:, None] * np.stack(traces))
        return (
            gram.reshape(*texts, keys, len(kinds), heads, heads),
            longest.reshape(*texts, keys, len(kinds), heads),
        )


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


class SquareForm(NamedTuple):
    """``||A v||^2 = gains . v^2 + m . (K m - 2 b)`` with ``m = means v`` and ``b = offsets v``, so
    that no vector behind the norms is needed.

    Norms multiply features and take means off, which are numbers of v themselves: ``A v = g v -
    sum_c m_c u_c``, m_c the mean that norm c takes off, and u_c what later norms make of ones. So
    ``gains = g^2``, ``offsets_c = g u_c`` and ``K = U U^T``.

    Args:
        gains: of the squares of features.
        means: of each mean that is taken off.
        offsets: the same number.
        gram: K.
    """

    gains: Float[np.ndarray, " model"]
    means: Float[np.ndarray, "step model"]
    offsets: Float[np.ndarray, "step model"]
    gram: Float[np.ndarray, "step step"]

    @classmethod
    def behind(cls, norms: tuple[Norm, ...], width: int) -> SquareForm:
        """The form of norms, one after the other."""
        gains, means, ones = np.ones(width), np.empty((0, width)), np.empty((0, width))
        for norm in norms:
            if norm.centred:
                mean = (gains - ones.sum(axis=1) @ means) / width
                means, ones = np.vstack([means, mean]), np.vstack([ones, np.ones(width)])
            gains, ones = gains * norm.gain, ones * norm.gain
        return cls(gains**2, means, gains * ones, ones @ ones.T)
