"""A norm of the model, seen as a linear map once its denominators are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError


@dataclass(frozen=True, kw_only=True, eq=False)
class Norm:
    """``y = gain * (x - mean(x)) / deviation(x) + shift``, token by token, in float64.

    LayerNorm: centred, ``deviation = sqrt(var + eps)`` with the population variance. RMSNorm: not
    centred, ``deviation = sqrt(mean(x^2) + eps)``. A mere scale (layer scale, MobileBERT's norm):
    not centred, not divided.

    Source: Ba et al. 2016; Zhang and Sennrich 2019; the linear part as Kobayashi et al. 2021,
    section 3.

    Args:
        gain: ``[model]``.
        shift: ``[model]``.
        eps: under the root.
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
    eps: float = 0.0
    centred: bool = True
    divided: bool = True

    def __post_init__(self) -> None:
        for name in ("gain", "shift"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), np.float64))
        if self.gain.ndim != 1 or self.gain.shape != self.shift.shape:
            raise RecordError(
                f"gain and shift must be [model], not of shapes {self.gain.shape} and "
                f"{self.shift.shape}"
            )

    @property
    def kind(self) -> str:
        """``LayerNorm``, ``RMSNorm`` or ``scale``."""
        if not self.divided:
            return "scale"
        return "LayerNorm" if self.centred else "RMSNorm"

    def linear(self, vectors: Float[np.ndarray, "... model"]) -> Float[np.ndarray, "... model"]:
        """The linear part, before it is divided: ``gain * (v - mean(v))``, or ``gain * v``."""
        if self.centred:
            vectors = vectors - vectors.mean(axis=-1, keepdims=True)
        return vectors * self.gain

    def deviation(self, vectors: Float[np.ndarray, "token model"]) -> Float[np.ndarray, " token"]:
        """What each token is divided by."""
        if not self.divided:
            return np.ones(len(vectors))
        if self.centred:
            vectors = vectors - vectors.mean(axis=-1, keepdims=True)
        # The mean square and not np.var, which would take the mean off of an RMSNorm as well.
        return np.sqrt((vectors**2).mean(axis=-1) + self.eps)

    def __call__(
        self, vectors: Float[np.ndarray, "token model"]
    ) -> Float[np.ndarray, "token model"]:
        """The norm itself."""
        return self.linear(vectors) / self.deviation(vectors)[:, None] + self.shift
