"""Layers and statistics whose numbers were looked at already, in the processor's cache.

A record looks at every number that it is given: whether it is finite, whether rows of weights sum
to 1. Once a pass is over, nothing of them is in the cache any more. Capture looks at them where it
computes and copies them, and vouches for what passed. All else is looked at here, as everybody's
arrays are, and refused in the same words. Only capture may import this, and only where it checks
(`make check`).
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, TypeVar

from headscope.record._checks import ROW_SUM_TOLERANCE, has_finite_squares
from headscope.record._layer import Layer
from headscope.record._statistics import Statistics, limits_of

__all__ = [
    "ROW_SUM_TOLERANCE",
    "has_finite_squares",
    "limits_of",
    "vouched_layer",
    "vouched_statistics",
]

Kind = TypeVar("Kind", Layer, Statistics)


def vouched_layer(vouched: Set[str], **arguments: Any) -> Layer:
    """A `Layer` of which some arrays are not looked at number by number.

    Args:
        vouched: names of the arrays of which the caller has seen that every number is finite, and
            of ``"weights"`` that none is negative and every row sums to 1 within
            `ROW_SUM_TOLERANCE`.
        **arguments: of the `Layer`.

    Raises:
        RecordError: as `Layer` does, of all else.
    """
    layer = _unchecked(Layer, arguments)
    layer._complete(vouched)
    return layer


def vouched_statistics(**arguments: Any) -> Statistics:
    """`Statistics` that are not looked at number by number: the caller has seen that every number
    is within `limits_of`.

    Args:
        **arguments: of the `Statistics`.

    Raises:
        RecordError: as `Statistics` does, where the arrays do not fit together.
    """
    statistics = _unchecked(Statistics, arguments)
    statistics._complete(is_vouched=True)
    return statistics


def _unchecked(kind: type[Kind], arguments: dict[str, Any]) -> Kind:
    """One of a kind with its arguments in their fields, before anything was checked."""
    defaults, required = _fields_of(kind)
    given = {**defaults, **arguments}
    if len(given) > len(defaults) + len(required) or not required <= given.keys():
        raise TypeError(f"{kind.__name__} needs the arguments {sorted({*defaults, *required})}")
    made = object.__new__(kind)
    vars(made).update(given)
    return made


@cache
def _fields_of(kind: type[Kind]) -> tuple[dict[str, Any], frozenset[str]]:
    """The fields that have a default, with it, and the names of those that have none."""
    defaults, required = {}, set()
    for each in fields(kind):
        if each.default is MISSING:
            required.add(each.name)
        else:
            defaults[each.name] = each.default
    return defaults, frozenset(required)
