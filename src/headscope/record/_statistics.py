"""What a layer holds beside its arrays: numbers of rows and heads, and norms of contributions."""

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

OFFSETS = (-3, -2, -1, 0, 1, 2, 3)
"""Distances from a query to the keys around it that are counted separately: -1 is the token before,
0 the token itself.
"""
STATISTICS = {
    "entropy": "head row",
    "offsets": "head row offset",
    "first": "head row",
    "special": "head row",
    "segments": "head row segment",
    "same_token": "head row",
    "largest": "head row",
    "top_weights": "head row top",
    "top_keys": "head row top",
    "received": "head key",
}
"""The arrays of `Statistics`, and their axes."""
_AXES = {name: axes.split() for name, axes in STATISTICS.items()}
OF_ROWS = tuple(name for name, axes in STATISTICS.items() if "row" in axes and name != "top_keys")
TOLERANCE = 5e-3
"""How far a mass may leave 0 to 1, and an entropy 0 to log(keys); see
`headscope.record._checks.ROW_SUM_TOLERANCE`.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Statistics(RebuiltWhenCopied):
    """What the heads of one layer do in each row ``p`` of their weights, ``p_j = A[query, j]``.

    Everything is a share of the row's mass, 0 to 1, but the entropy, which is in nats. A query that
    may look at nothing has a row of zeros, and so has every statistic of it. Where there are sinks,
    a row sums to less than 1 and the missing mass is in none of the arrays.

    Args:
        entropy: ``[head row]``, ``-sum_j p_j log p_j`` over the keys, in nats.
        offsets: ``[head row offset]``, ``p_(query + offset)`` for the offsets -3 to 3 (`OFFSETS`):
            mass on the tokens around the query, 0 being the query itself; 0.0 where there is no
            such key.
        first: ``[head row]``, ``p_0``: mass on the first token.
        special: ``[head row]``, mass on the special tokens, such as ``[CLS]`` and ``[SEP]``.
        segments: ``[head row segment]``, mass on each text of the pair; one segment where there is
            one text.
        largest: ``[head row]``, ``max_j p_j``.
        received: ``[head key]``, ``mean_i p_ij``: mean weight that a key receives, over the rows
            covered.
        same_token: ``[head row]``, mass on the keys with the vocabulary number of the query,
            without the query itself; None where the tokens have no numbers.
        top_keys: ``[head row top]``, positions of the keys with the largest weights, largest first;
            -1 where no further key has a weight above 0. None where they were not asked for.
        top_weights: ``[head row top]``, their weights.
        rows: ``[row]``, positions of the queries covered, rising; None where all are.
        queries: number of queries of the text; needs to be given only with ``rows``.

    Raises:
        RecordError: where the arrays do not fit together or hold what statistics of weights cannot
            be.
    """

    entropy: Array = array_field(required=True)
    offsets: Array = array_field(required=True)
    first: Array = array_field(required=True)
    special: Array = array_field(required=True)
    segments: Array = array_field(required=True)
    largest: Array = array_field(required=True)
    received: Array = array_field(required=True)
    same_token: Array | None = array_field()
    top_keys: Array | None = array_field()
    top_weights: Array | None = array_field()
    rows: Array | None = array_field()
    queries: int | None = None

    def __post_init__(self) -> None:
        arrays = vars(self)
        for name in (*STATISTICS, "rows"):
            if arrays[name] is not None:
                arrays[name] = frozen(arrays[name])
        if len(self._shape("entropy")) != 2:
            raise RecordError(
                f"entropy has shape {self._shape('entropy')}; expected the axes [head row]"
            )
        if self.rows is None and self.queries is None:
            object.__setattr__(self, "queries", self._shape("entropy")[1])
        self._check_rows()
        self._check_shapes()
        self._check_values()

    @property
    def heads(self) -> int:
        """Number of heads."""
        return self._shape("entropy")[0]

    @property
    def size(self) -> tuple[int, int]:
        """Number of queries of the text, whether covered or not, and of keys."""
        queries = self._shape("entropy")[1] if self.queries is None else self.queries
        return queries, self._shape("received")[1]

    @property
    def sampled(self) -> bool:
        """Whether only some of the rows are covered, so that means are estimates with an
        `error`.
        """
        return held(self, "rows") is not None

    def mean(self, name: str) -> Float[np.ndarray, "head ..."]:
        """Mean over the rows covered: ``[head]``, or ``[head offset]``, ``[head segment]`` and
        ``[head top]``.

        Raises:
            RecordError: where there is no such statistic of the rows.
        """
        return self._of_rows(name).mean(axis=1, dtype=np.float64)

    def error(self, name: str) -> Float[np.ndarray, "head ..."]:
        """Standard error of `mean` that comes from covering r of n rows: ``s / sqrt(r) * sqrt(1 - r
        / n)``.

        s is the standard deviation of the rows covered (with r - 1 in the denominator), and the
        last factor the finite-population correction (Cochran, Sampling Techniques, 1977, section
        2.6): 0 where every row is covered. It is how far the mean is from that over all rows of
        this text, not what other texts would give.

        Raises:
            RecordError: where there is no such statistic of the rows.
        """
        values = self._of_rows(name)
        if not self.sampled:
            return np.zeros(values.shape[:1] + values.shape[2:])
        covered, count = values.shape[1], self.size[0]
        spread = values.std(axis=1, ddof=1, dtype=np.float64)
        return spread / np.sqrt(covered) * np.sqrt(1 - covered / count)

    def _of_rows(self, name: str) -> np.ndarray:
        values = getattr(self, name) if name in OF_ROWS else None
        if values is None:
            kept = [known for known in OF_ROWS if held(self, known) is not None]
            raise RecordError(f"These statistics hold {', '.join(kept)} of every row, not {name!r}")
        return values

    def _shape(self, name: str) -> tuple[int, ...]:
        """Of an array, without reading it; () of one that does not exist."""
        array = held(self, name)
        return () if array is None else array.shape

    def _check_rows(self) -> None:
        covered, rows = self._shape("entropy")[1], self.rows
        if rows is None:
            if covered != self.queries:
                raise RecordError(
                    f"{covered} rows of {self.queries} queries are covered; say which with rows"
                )
            return
        if self.queries is None:
            raise RecordError(
                "Statistics of sampled rows need the number of all queries; give queries"
            )
        if rows.ndim != 1 or rows.dtype.kind not in "iu" or len(rows) != covered:
            raise RecordError(
                f"rows must be {covered} whole numbers, not {rows.dtype} of shape {rows.shape}"
            )
        # Signed, as the difference of unsigned numbers that fall would wrap round to a large one.
        # Two at least, as one row has no standard deviation, which `error` needs.
        positions = rows.astype(np.int64)
        outside = ((positions < 0) | (positions >= self.queries)).any()
        if covered < 2 or outside or (np.diff(positions) <= 0).any():
            raise RecordError(f"rows are two or more rising positions from 0 to {self.queries - 1}")

    def _check_shapes(self) -> None:
        if (held(self, "top_keys") is None) != (held(self, "top_weights") is None):
            raise RecordError("Give top_keys and top_weights together, or neither")
        sizes = {"head": self.heads, "row": self._shape("entropy")[1], "offset": len(OFFSETS)}
        for axis, name in (("key", "received"), ("segment", "segments"), ("top", "top_weights")):
            sizes[axis] = (0, *self._shape(name))[-1]
        for name, axes in STATISTICS.items():
            array, shape = held(self, name), tuple(sizes[axis] for axis in _AXES[name])
            if name != "top_keys" and array is not None:
                check_floats(array, name, shape, axes)
            elif array is not None and (array.dtype.kind != "i" or array.shape != shape):
                raise RecordError(
                    f"top_keys must be whole numbers of shape {shape}, not {array.dtype} "
                    f"{array.shape}"
                )

    def _check_values(self) -> None:
        for name in STATISTICS:
            array = held(self, name)
            if array is None or is_on_disk(array) or not array.size:
                continue
            low, high = limits_of(name, self.size[1])
            least, most = array.min(), array.max()
            # neither holds where a value is not a number
            if not (low - TOLERANCE <= least and most <= high + TOLERANCE):
                check_finite(array, name)
                raise RecordError(
                    f"{name} runs from {least:.4g} to {most:.4g}; it must lie in {low:.4g} to "
                    f"{high:.4g}"
                )


def limits_of(name: str, keys: int) -> tuple[float, float]:
    """The least and the largest number that an array of statistics may hold, but for `TOLERANCE`,
    with so many keys.
    """
    keys = max(1, keys)
    if name == "entropy":
        # A row whose sum is free, as with sinks, has its largest entropy at a sum of keys / e where
        # that is below 1.
        return 0.0, max(float(np.log(keys)), min(keys / np.e, 1.0))
    return (-1.0, keys - 1.0) if name == "top_keys" else (0.0, 1.0)


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
        size = self.size
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
            RecordError: where there is no such kind, or it does not exist, with the reason.
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
