"""What each token added to a layer's output, over all heads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.record._checks import check_finite, check_floats, frozen, is_on_disk
from headscope.record._stored import Array, RebuiltWhenCopied, array_field, held

ContributionKind = Literal["attention", "residual", "output", "alti", "globenc"]
CONTRIBUTION_KINDS: tuple[ContributionKind, ...] = get_args(ContributionKind)
MIXING = ("mixing_attention", "mixing_residual", "mixing_output")
CONTRIBUTIONS = dict.fromkeys(CONTRIBUTION_KINDS, "query key") | dict.fromkeys(
    (*MIXING, "own"), "query"
)
"""The arrays that contributions may hold, and their axes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Contributions(RebuiltWhenCopied):
    """Norms of the vectors that the keys of a layer add to its queries, all heads together; see
    `headscope.norms`.

    Args:
        attention: ``[query key]``, Attn-N: norms of ``sum_h a f(x_j)``.
        residual: ``[query key]``, AttnRes-N: the same, with the residual added where a token looks
            at itself.
        output: ``[query key]``, AttnResLn-N: the same after the norm that follows.
        alti: ``[query key]``, shares by the distance to the whole (rows sum to 1).
        globenc: ``[query key]``, ``output`` after the second norm of a post-norm layer.
        own: ``[query]``, norm of what a query's own residual adds to ``output``, where queries are
            not the keys (cross attention); None where it is in the diagonal.
        mixing_attention: ``[query]``, share that the other tokens have in ``attention``, by
            vectors.
        mixing_residual: ``[query]``, in ``residual``.
        mixing_output: ``[query]``, in ``output``.
        expansion: rate at which f stretches vectors, from the weights of the model alone.
        decomposes: which vector of the model the pieces of ``output`` (or ``residual``) sum to, in
            a sentence.
        verified: largest difference between the sum of the pieces and the model's own vector.
        missing: why a kind does not exist, by kind.

    Raises:
        RecordError: where arrays do not fit together or hold what norms cannot be.
    """

    attention: Array | None = array_field()
    residual: Array | None = array_field()
    output: Array | None = array_field()
    alti: Array | None = array_field()
    globenc: Array | None = array_field()
    own: Array | None = array_field()
    mixing_attention: Array | None = array_field()
    mixing_residual: Array | None = array_field()
    mixing_output: Array | None = array_field()
    expansion: float | None = None
    decomposes: str = ""
    verified: float | None = None
    missing: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = {name: held(self, name) for name in CONTRIBUTIONS if held(self, name) is not None}
        # The first map says how many queries and keys there are, and all others must have as many.
        size = next(
            (array.shape for name, array in given.items() if name in CONTRIBUTION_KINDS), None
        )
        for name, array in given.items():
            shape = array.shape
            if size is not None:
                shape = size if name in CONTRIBUTION_KINDS else size[:1]
            check_floats(array, f"{name} of contributions", shape, CONTRIBUTIONS[name])
            if not is_on_disk(array):
                _check_norms(array, name)
            object.__setattr__(self, name, frozen(array))
        unknown = set(self.missing) - set(CONTRIBUTION_KINDS)
        if unknown:
            raise RecordError(
                f"Contributions are {', '.join(CONTRIBUTION_KINDS)}; nothing called "
                f"{sorted(unknown)} can be missing"
            )
        object.__setattr__(self, "missing", MappingProxyType(dict(self.missing)))

    @property
    def size(self) -> tuple[int, int] | None:
        """Number of queries and of keys; None where there is no map."""
        for kind in CONTRIBUTION_KINDS:
            if held(self, kind) is not None:
                queries, keys = held(self, kind).shape
                return queries, keys
        return None

    def of(self, kind: str) -> Float[np.ndarray, "query key"]:
        """One of the maps.

        Raises:
            RecordError: where there is no such kind, or it does not exist; the message says why.
        """
        if kind not in CONTRIBUTION_KINDS:
            raise RecordError(
                f"There are no contributions {kind!r}; there are {', '.join(CONTRIBUTION_KINDS)}"
            )
        norms = getattr(self, kind)
        if norms is None:
            raise RecordError(
                f"This layer has no contributions {kind!r}: {self.missing.get(kind, 'not kept')}"
            )
        return norms


def _check_norms(array: np.ndarray, name: str) -> None:
    check_finite(array, f"{name} of contributions")
    if array.min(initial=0.0) < 0:
        raise RecordError(f"{name} of contributions holds {array.min():.3g}; no norm is negative")
