"""Two results of one kind side by side: rows of the same head, and how far each number moved."""

from __future__ import annotations

from math import hypot, isnan, nan
from typing import Any, ClassVar

from headscope.errors import RecordError
from headscope.results import Kept, Result, TextTable

JUDGED = ("p", "corrected", "threshold", "alpha", "baseline")
"""Columns that judge a number and are not measured themselves."""
COLUMNS = ("measure", "a", "b", "difference", "low", "high")
SHOWN = 3
ACROSS = "numbers of heads mean nothing across these models"
SAYS = {
    "measure": f"a column of both tables, with the {SHOWN} rows that differ most",
    "difference": "B less A; [interval] where both have one, made of the two "
    "(MOVER, Zou and Donner 2008) as of different texts: too wide where both read the same ones",
}


class ResultComparison(Result):
    """Two results of one kind: what `compare` differences of them.

    Args:
        said: what was compared, in words.
        keys: columns by which rows were matched, such as layer and head.
        table: see `columns`.
    """

    KIND: ClassVar[str] = "result comparison"
    DOCUMENT: ClassVar = {"said": str, "keys": [str], "table": {str: [(str, float, None)]}}

    def __init__(self, said: str, keys: list[str], table: dict[str, list[Any]]) -> None:
        self._said, self._keys, self._table = said, keys, table

    @property
    def summary(self) -> str:
        """What was compared."""
        return self._said

    def columns(self) -> dict[str, list[Any]]:
        """A row for each measure of each head: ``a``, ``b``, the ``difference`` b - a, and ``low``
        and ``high`` of its interval, NaN where there is none.
        """
        return self._table

    def most(self, measure: str, count: int) -> list[dict[str, Any]]:
        """The rows of a measure that differ most; a number may stand in several rows of a head, and
        is given once.
        """
        own = [row for row in _rows(self) if row["measure"] == measure]
        own.sort(key=lambda row: abs(row["difference"]))
        return list({(row["a"], row["b"]): row for row in own}.values())[: -count - 1 : -1]

    def named(self, row: dict[str, Any]) -> str:
        """What a row is of, such as ``"2-8-next"``."""
        return "-".join(str(row[key]) for key in self._keys)

    def __repr__(self) -> str:
        return f"<ResultComparison: {self._said}>"

    def _blocks(self) -> list[TextTable | str]:
        listed = [("measure", "row", "A", "B", "difference")]
        for measure in dict.fromkeys(self._table["measure"]):
            for row in self.most(measure, SHOWN):
                ends = "" if isnan(row["low"]) else f" [{row['low']:+.3g}, {row['high']:+.3g}]"
                numbers = f"{row['a']:.3g}", f"{row['b']:.3g}", f"{row['difference']:+.3g}{ends}"
                listed.append((measure, self.named(row), *numbers))
        return [TextTable.of_rows(listed, says=SAYS)]

    def _kept(self) -> Kept:
        return {"said": self._said, "keys": self._keys, "table": self._table}, {}

    @classmethod
    def _of_kept(cls, document: dict[str, Any], arrays: dict[str, Any]) -> ResultComparison:
        return cls(*(document[name] for name in cls.DOCUMENT))


def compare_results(a: Result, b: Result) -> ResultComparison:
    """The rows of both tables that are of the same head, relation or the like, side by side.

    Raises:
        RecordError: where they are of two kinds, or have no rows or numbers in common.
    """
    names = type(a).__name__, type(b).__name__
    if a.KIND != b.KIND:
        raise RecordError(
            f"Expected two results of one kind, got {names[0]} and {names[1]}; compare what the "
            "same function made"
        )
    sides, keys, differences = (_rows(a), _rows(b)), [], []
    shared = [name for name in a.columns() if name in b.columns() and sides[0]]
    numbers = [name for name in shared if all(isinstance(row[name], float) for row in sides[0])]
    for name in shared:
        if name not in numbers and any(len(_by(keys, rows)) < len(rows) for rows in sides):
            keys.append(name)
    first, second = (_by(keys, rows) for rows in sides)
    both = [key for key in first if key in second]
    for name in numbers:
        # The interval of a score has no name of its own.
        low, high = ("low", "high") if name == "score" else (f"{name}_low", f"{name}_high")
        for key in both if name not in JUDGED and not name.endswith(("low", "high")) else ():
            x, y = first[key], second[key]
            moved = y[name] - x[name]
            down = hypot(y[name] - y.get(low, nan), x.get(high, nan) - x[name])
            up = hypot(y.get(high, nan) - y[name], x[name] - x.get(low, nan))
            if not isnan(moved):
                differences.append((*key, name, x[name], y[name], moved, moved - down, moved + up))
    if not differences:
        raise RecordError(
            f"These two results ({names[0]}) have no heads or numbers in common, so that there is "
            "nothing to compare; print each"
        )
    models = [getattr(each, "model", "") or "a model" for each in (a, b)]
    alone = len(first) + len(second) - 2 * len(both)
    more = f"; {alone} rows that only one has are left out" if alone else ""
    if "head" in keys and (alone or models[0] != models[1]):
        more += f". Heads are matched by number: {ACROSS}, unless one was trained from the other"
    said = f"{a.KIND}, A {models[0]}, B {models[1]}: {len(both)} rows by {', '.join(keys)}{more}"
    columns = [list(column) for column in zip(*differences, strict=True)]
    return ResultComparison(said, keys, dict(zip((*keys, *COLUMNS), columns, strict=True)))


def _rows(result: Result) -> list[dict[str, Any]]:
    table = result.columns()
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


def _by(keys: list[str], rows: list[dict[str, Any]]) -> dict[tuple, dict[str, Any]]:
    return {tuple(row[key] for key in keys): row for row in rows}
