"""Copies of what is frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any


class RebuiltWhenCopied:
    """A frozen dataclass that is pickled and copied by what it was made of, and checked again where
    it is made.

    Read-only mappings cannot be pickled, and arrays in a file would be read where that file may be
    another.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        # Not getattr: it would read arrays that are in a file, see `ArrayField`.
        held: Any = vars(self)
        values = {each.name: _plain(held[each.name]) for each in fields(self) if each.init}  # ty: ignore[invalid-argument-type]
        return made, (type(self), values)


def made(kind: type, values: Mapping[str, Any]) -> Any:
    """One of a kind, of what it is made of."""
    return kind(**values)


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value
