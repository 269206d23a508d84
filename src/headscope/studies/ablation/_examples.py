"""Examples of a run of `ablate`: what a user gives, and the rows that tasks read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headscope.corpus import CorpusText
from headscope.errors import HeadscopeError, RecordError, TextError
from headscope.evidence.groups import group_of
from headscope.storage import read_groups
from headscope.studies.shared._corpus_run import Stream


def examples_of(rows: Any, groups: Iterable[Any] | None) -> Stream:
    """What is given as examples, one by one; errors are inputs that are none.

    Args:
        rows: texts, pairs of them, or rows of a table.
        groups: the document of each; by default the field ``group`` of rows.

    Raises:
        RecordError: where there are none, or a single one was given.
    """
    if rows is None or isinstance(rows, str | Mapping):
        raise RecordError(
            "A run of ablate needs its examples: texts=, a list of texts, pairs or rows with labels"
        )
    return _stream(rows, groups)


def _stream(rows: Iterable[Any], groups: Iterable[Any] | None) -> Stream:
    rest = None if groups is None else iter(groups)
    for number, given in enumerate(rows):
        row = row_of(given)
        group = _own_group(row) if rest is None else next(rest, rest)
        if rest is not None and group is rest:
            raise RecordError(
                f"{number} groups were given for more examples; give one for each example"
            )
        if isinstance(given, HeadscopeError):
            yield given
        elif row is None:
            yield TextError(f"An example is {type(given).__name__}; expected a text, pair or row")
        else:
            yield CorpusText(_plain(given), group_of(group))


def _own_group(row: dict[str, Any] | None) -> Any:
    groups = None if row is None else read_groups([row])
    return None if groups is None else groups[0]


def row_of(given: Any) -> dict[str, Any] | None:
    """An example as a row of a file has it; None where it is none."""
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, str):
        return {"text": given}
    if isinstance(given, tuple | list) and len(given) == 2:
        return {"text": given[0], "text_b": given[1]}
    return None


def _plain(given: Any) -> Any:
    """As a file of JSON gives it back; a document is no part of what an example says."""
    if isinstance(given, Mapping):
        return {name: part for name, part in given.items() if name != "group"}
    return list(given) if isinstance(given, tuple) else given
