"""The choice of what a capture keeps."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from headscope.capturing._chosen_heads import ChosenHeads, parse_heads
from headscope.errors import CaptureError

Keepable = Literal["weights", "qk", "values", "before", "statistics", "norms", "alti"]
Keep = Literal["auto"] | Keepable | Collection[Keepable]
Precision = Literal["float32", "float16"]

WEIGHTS_KEPT_BELOW = 256 * 2**20


@dataclass(frozen=True)
class KeepChoice:
    """The choice of what is kept, parsed.

    Args:
        what: any of weights, qk (queries and keys), values, before (queries and keys before
            positions are applied), statistics, norms, alti (which brings norms).
        auto: whether weights are kept only while all of them stay below 256 MiB.
        precision: the precision of the kept arrays.
        rows: how many rows the statistics sample; None for all.
        top: how many of the largest weights of each row the statistics name.
        routers: whether router scores are kept.
        heads: the only heads to keep; None for all.
        put: takes the arrays of a layer when it is complete, and gives those that are kept in their
            place; None to keep them in memory.
    """

    what: frozenset[str] = frozenset({"weights", "qk", "values"})
    auto: bool = True
    precision: Precision = "float32"
    rows: int | None = None
    top: int = 0
    routers: bool = False
    heads: ChosenHeads | None = None
    put: Callable[[np.ndarray], Any] | None = None

    @property
    def dtype(self) -> np.dtype:
        """NumPy's name of the precision."""
        return np.dtype(self.precision)


def parse_keep(
    *,
    keep: Any = "auto",
    precision: Any = "float32",
    rows: Any = None,
    top: Any = 0,
    routers: Any = False,
    heads: Any = None,
) -> KeepChoice:
    """The options of `KeepOptions`, checked.

    Raises:
        CaptureError: if a value is not allowed, or options do not fit together.
    """
    chosen = parse_heads(heads)
    if precision not in get_args(Precision):
        raise CaptureError(f"precision must be 'float32' or 'float16', not {precision!r}")
    what = _parse_what(keep)
    if "alti" in what:
        # ALTI is one of the contributions; the others come at little cost.
        what |= {"norms"}
    _check_rows(what, rows, top)
    # Norms are useful only together with the weights, and views draw contributions over these.
    is_bare = "norms" in what and not what & {"weights", "qk", "statistics"}
    what |= {"weights", "qk"} if is_bare else set()
    is_auto = is_bare or keep == "auto"
    return KeepChoice(what, is_auto, precision, rows, top, bool(routers), chosen)


def _parse_what(keep: Any) -> frozenset[str]:
    if isinstance(keep, str) and keep == "auto":
        return frozenset({"weights", "qk", "values"})
    # A string is a collection too, of its letters; a single name must not be split into them.
    names = [keep] if isinstance(keep, str) or not isinstance(keep, Collection) else keep
    what = frozenset(names)
    if not what or what - set(get_args(Keepable)):
        raise CaptureError(
            f"keep must be 'auto', or one or several of {', '.join(get_args(Keepable))}; "
            f"not {keep!r}"
        )
    if what <= {"values", "before"}:
        alone = "values" if "values" in what else "queries and keys before positions"
        raise CaptureError(
            f"{alone} alone have no attention in them; keep 'qk', 'weights' or 'statistics' too"
        )
    return what


def _check_rows(what: frozenset[str], rows: Any, top: Any) -> None:
    """Raise if ``rows`` or ``top`` is no whole number, or is given without the statistics."""
    if "statistics" not in what and (rows is not None or top):
        raise CaptureError(
            "rows and top belong to the statistics; pass keep='statistics' with them"
        )
    for name, number, least in (("rows", rows, 2), ("top", top, 0)):
        if number is not None:
            check_count(name, number, least)


def check_count(name: str, number: Any, least: int = 1) -> int:
    """The number, which must be whole and not too small.

    Raises:
        CaptureError: where it is not.
    """
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise CaptureError(f"{name} must be a whole number from {least} on, not {number!r}")
    return number
