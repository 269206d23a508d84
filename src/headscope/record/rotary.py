"""Rotary positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.record._stored import RebuiltWhenCopied

Style = Literal["halves", "neighbours"]
STYLES: tuple[Style, ...] = get_args(Style)
SLOWEST_TELLING = 1e-4
"""Radians per position, below which rounding drowns what a frequency shows about the place of the
first token.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Rotary(RebuiltWhenCopied):
    """How a layer turned its queries and keys by their positions (Su et al. 2021, RoFormer, section
    3.2).

    Feature pair ``i`` of a token at position ``p`` is turned by the angle ``p * frequencies[i]``.
    Read off queries and keys before and after, not off the model's configuration.

    Args:
        frequencies: ``[pair]``, radians per position.
        style: which features make pair ``i``: ``"halves"`` (``i`` and ``i + pairs``, as LLaMA) or
            ``"neighbours"`` (``2i`` and ``2i + 1``, as GPT-J and RoFormer).
        first: position of the first token.
        start: the first feature that is turned; those before it and after the last pair stay.

    Raises:
        RecordError: where the frequencies are not ``[pair]``.
    """

    frequencies: np.ndarray
    style: Style
    first: int = 0
    start: int = 0

    def __post_init__(self) -> None:
        frequencies = np.asarray(self.frequencies, np.float64)
        if frequencies.ndim != 1 or not len(frequencies) or not np.isfinite(frequencies).all():
            raise RecordError(
                f"Rotary frequencies must be finite, with the axis [pair], not {frequencies.shape}"
            )
        frequencies = frequencies.copy()
        frequencies.flags.writeable = False
        object.__setattr__(self, "frequencies", frequencies)

    @property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """First and second feature of each pair."""
        first, second = (np.arange(part.stop)[part] for part in self._parts)
        return first, second

    @property
    def _parts(self) -> tuple[slice, slice]:
        """First and second feature of each pair, as slices, which cost less than numbers."""
        count, start = len(self.frequencies), self.start
        if self.style == "halves":
            return slice(start, start + count), slice(start + count, start + 2 * count)
        return slice(start, start + 2 * count, 2), slice(start + 1, start + 2 * count, 2)

    def turned(
        self, vectors: Float[np.ndarray, "head token feature"], *, back: bool = False
    ) -> Float[np.ndarray, "head token feature"]:
        """Vectors turned by their positions, or turned back to what they were before, in float64.

        Args:
            vectors: ``[head token feature]``, of the tokens in their order.
            back: whether to turn back.
        """
        copy = vectors.astype(np.float64)
        self.turn(copy, *self.turns(vectors.shape[1], back=back))
        return copy

    def turns(self, tokens: int, *, back: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Cosines and sines ``[token pair]`` of the angles by which so many tokens are turned, or
        turned back.
        """
        angles = (self.first + np.arange(tokens))[:, None] * self.frequencies
        return np.cos(angles), np.sin(-angles if back else angles)

    def turn(self, vectors: np.ndarray, cosines: np.ndarray, sines: np.ndarray) -> None:
        """Turn vectors ``[head token feature]`` where they stand, by what `turns` gave."""
        first, second = self._parts
        # Views, both read in full before either is written: the right side is computed first.
        x, y = vectors[..., first], vectors[..., second]
        vectors[..., first], vectors[..., second] = x * cosines - y * sines, x * sines + y * cosines


def fitted(trial: Rotary, before: np.ndarray, after: np.ndarray) -> Rotary:
    """The rotation of these pairs whose frequencies fit best."""
    first, second = trial.pairs
    # A pair of features as one complex number: the angle of after * conj(before) is that by which
    # it was turned, and its size weighs long vectors more, which tell their angle better.
    turned = (after[..., first] + 1j * after[..., second]) * np.conj(
        before[..., first] + 1j * before[..., second]
    )
    frequencies, apart = np.zeros(turned.shape[2]), 1
    # Tokens far apart tell a frequency more finely, once it is known to within half a turn between
    # them.
    while apart < turned.shape[1]:
        angles = np.angle(np.sum(turned[:, apart:] * np.conj(turned[:, :-apart]), axis=(0, 1)))
        turns = np.round((frequencies * apart - angles) / (2 * np.pi))
        frequencies, apart = (angles + 2 * np.pi * turns) / apart, 2 * apart
    return Rotary(
        frequencies=frequencies,
        style=trial.style,
        start=trial.start,
        first=_first(turned, frequencies),
    )


def _first(turned: np.ndarray, frequencies: np.ndarray) -> int:
    """The position of the first token: roughly by slow frequencies, each faster one telling it more
    finely.

    Found as long as the slowest has not made half a turn before it: 9,900 positions where there are
    eight pairs of base 10,000, and more where there are more.
    """
    angles = np.arange(turned.shape[1])[:, None] * frequencies
    # Turned back by its place in the text, each token shows the angle of the first one.
    begun = np.angle(np.sum(turned * np.exp(-1j * angles), axis=(0, 1)))
    order = np.argsort(np.abs(frequencies))
    position = 0.0
    for pair in order[np.abs(frequencies[order]) > SLOWEST_TELLING]:
        turns = np.round((position * frequencies[pair] - begun[pair]) / (2 * np.pi))
        position = (begun[pair] + 2 * np.pi * turns) / frequencies[pair]
    # Rounding of slow frequencies may leave a first token at 0 a little before it.
    return max(round(float(position)), 0)
