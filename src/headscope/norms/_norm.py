"""A norm of the model, seen as a linear map once its denominators are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError


@dataclass(frozen=True, kw_only=True, eq=False)
class Norm:
    """``y = gain * (x - mean(x)) / deviation(x) + shift``, token by token, in float64
    or in the precision of what it is given.

    Several norms of one kind are one `Norm` whose gain, shift and eps have axes in front, which
    are broadcast to the vectors (`Norm.stacked`).

    LayerNorm: centred, ``deviation = sqrt(var + eps)`` with the population variance. RMSNorm: not
    centred, ``deviation = sqrt(mean(x^2) + eps)``. A mere scale (layer scale, MobileBERT's norm):
    not centred, not divided.

    Source: Ba et al. 2016; Zhang and Sennrich 2019; the linear part as Kobayashi et al. 2021,
    section 3.

    Args:
        gain: ``[model]``, or with axes in front.
        shift: as gain.
        eps: under the root; of several norms an array whose axes are those of a token.
        centred: whether the mean is taken off.
        divided: whether it is divided by the deviation.

    Raises:
        RecordError: where gain and shift differ in length.

    Example:
        >>> norm = Norm(gain=np.ones(2), shift=np.zeros(2), eps=0.0)
        >>> norm(np.array([[1.0, 3.0]])).tolist()
        [[-1.0, 1.0]]
    """

    gain: np.ndarray
    shift: np.ndarray
    eps: float | np.ndarray = 0.0
    centred: bool = True
    divided: bool = True

    def __post_init__(self) -> None:
        for name in ("gain", "shift"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), np.float64))
        if not self.gain.ndim or self.gain.shape != self.shift.shape:
            raise RecordError(
                f"gain and shift must be [model], not of shapes {self.gain.shape} and "
                f"{self.shift.shape}"
            )

    @classmethod
    def stacked(cls, norms: Sequence[Norm], *, axes: int) -> Norm:
        """Norms of one kind and width as one, for vectors ``[norm ... model]``.

        Args:
            norms: one for each of the vectors' first axis.
            axes: how many axes of the vectors lie between the first and the last.
        """
        first = norms[0]
        shape = (len(norms), *[1] * axes)
        gain = np.stack([norm.gain for norm in norms])
        shift = np.stack([norm.shift for norm in norms])
        eps = np.array([norm.eps for norm in norms])
        return cls(
            gain=gain.reshape(*shape, -1),
            shift=shift.reshape(*shape, -1),
            eps=eps.reshape(shape),
            centred=first.centred,
            divided=first.divided,
        )

    @property
    def kind(self) -> str:
        """``LayerNorm``, ``RMSNorm`` or ``scale``."""
        if not self.divided:
            return "scale"
        return "LayerNorm" if self.centred else "RMSNorm"

    def linear(self, vectors: Float[np.ndarray, "... model"]) -> Float[np.ndarray, "... model"]:
        """The linear part, before it is divided: ``gain * (v - mean(v))``, or ``gain * v``."""
        gain, _ = self._in_precision_of(vectors)
        if not self.centred:
            return vectors * gain
        straight = vectors - _means(vectors)
        straight *= gain  # no second array: fresh memory costs more than the product
        return straight

    def _in_precision_of(
        self, vectors: Float[np.ndarray, "... model"]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gain and shift: vectors stay in single precision where they are."""
        return self._in_single if vectors.dtype == np.float32 else (self.gain, self.shift)

    @cached_property
    def _in_single(self) -> tuple[np.ndarray, np.ndarray]:
        return self.gain.astype(np.float32), self.shift.astype(np.float32)

    def deviation(
        self, vectors: Float[np.ndarray, "*text token model"]
    ) -> Float[np.ndarray, "*text token"]:
        """What each token is divided by."""
        if self.centred and self.divided:
            vectors = vectors - _means(vectors)
        return self._deviation_of(vectors)

    def with_rows(
        self, vectors: Float[np.ndarray, "*text token model"]
    ) -> tuple[Float[np.ndarray, "*text token model"], Float[np.ndarray, "*text token"]]:
        """The norm itself, and what it multiplies each token by, one by its deviation."""
        straight = vectors - _means(vectors) if self.centred else vectors
        rows = 1 / self._deviation_of(straight)
        gain, shift = self._in_precision_of(vectors)
        normed = straight * gain
        normed *= rows[..., None]
        normed += shift
        return normed, rows

    def __call__(
        self, vectors: Float[np.ndarray, "*text token model"]
    ) -> Float[np.ndarray, "*text token model"]:
        """The norm itself."""
        return self.with_rows(vectors)[0]

    def _deviation_of(
        self, straight: Float[np.ndarray, "*text token model"]
    ) -> Float[np.ndarray, "*text token"]:
        """As `deviation`, of vectors whose mean was taken off, if the norm takes it off."""
        if not self.divided:
            return np.ones(straight.shape[:-1], straight.dtype)
        # The mean square and not np.var, which would take the mean off of an RMSNorm as well. A
        # product of rows reads them once, where a square is written first.
        squares = np.einsum("...m,...m->...", straight, straight) / straight.shape[-1]
        return np.sqrt(squares + np.asarray(self.eps, straight.dtype))


def _means(vectors: Float[np.ndarray, "... model"]) -> Float[np.ndarray, "... 1"]:
    """The mean of each vector; as a product, which takes a third of the time of ``np.mean``."""
    width = vectors.shape[-1]
    return (vectors @ np.ones(width, vectors.dtype))[..., None] / width
