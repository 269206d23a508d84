"""A norm of the model, seen as a linear map once its denominators are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError


@dataclass(frozen=True, kw_only=True, eq=False)
class Norm:
    """``y = gain * (x - mean(x)) / deviation(x) + shift``, token by token.

    LayerNorm: centred, ``deviation = sqrt(var + eps)`` with the population variance. RMSNorm: not
    centred, ``deviation = sqrt(mean(x^2) + eps)``. A mere scale (layer scale, MobileBERT's norm):
    not centred, not divided.

    Source: Ba et al. 2016; Zhang and Sennrich 2019; the linear part as Kobayashi et al. 2021,
    section 3.

    Args:
        gain: ``[model]``, of NumPy or torch, as the vectors that it is given.
        shift: the same.
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

    gain: Any
    shift: Any
    eps: float = 0.0
    centred: bool = True
    divided: bool = True

    def __post_init__(self) -> None:
        for name in ("gain", "shift"):
            object.__setattr__(self, name, in_numpy_double(getattr(self, name)))
        if not self.gain.ndim or self.gain.shape != self.shift.shape:
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

    def linear(self, vectors: Float[Any, "... model"]) -> Float[Any, "... model"]:
        """The linear part, before it is divided: ``gain * (v - mean(v))``, or ``gain * v``."""
        return self._straight(vectors) * self.gain

    def deviation(self, vectors: Float[Any, "*text token model"]) -> Float[Any, "*text token"]:
        """What each token is divided by."""
        straight = self._straight(vectors)
        # The mean square and not the variance, which would take the mean off of an RMSNorm as well.
        squares = (straight * straight).mean(-1)
        return (squares + self.eps) ** 0.5 if self.divided else squares * 0 + 1

    def __call__(self, vectors: Float[Any, "*text token model"]) -> Float[Any, "*text token model"]:
        """The norm itself."""
        return self.linear(vectors) / self.deviation(vectors)[..., None] + self.shift

    def _straight(self, vectors: Float[Any, "... model"]) -> Float[Any, "... model"]:
        return vectors - vectors.mean(-1)[..., None] if self.centred else vectors


def in_double(array: Any) -> Any:
    """An array in float64: a tensor stays one, all else becomes a NumPy array."""
    return array.double() if hasattr(array, "double") else np.asarray(array, np.float64)


def in_numpy_double(array: Any) -> Any:
    """As `in_double`, but that a tensor stays in its own precision."""
    return array if hasattr(array, "double") else np.asarray(array, np.float64)
