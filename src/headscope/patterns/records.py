"""Parsing of the records and groups that users give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from headscope.corpus import CorpusText, TextNames
from headscope.errors import RecordError
from headscope.evidence import group_of
from headscope.record import Record, warn_changed

WANTED = (
    "give records, such as capture(model, tokenizer, text) or capture_many(model, tokenizer, texts)"
)


def parse_records(records: Any, name: str) -> Iterator[Record]:
    """One record, or each of several; warns at the end where some are of a changed model.

    Args:
        records: the argument of the user.
        name: name of the function that was called.

    Raises:
        RecordError: where something is not a record.
    """
    if isinstance(records, Record):
        records = [records]
    if isinstance(records, str) or not isinstance(records, Iterable):
        raise RecordError(f"{name} was given a {type(records).__name__}; {WANTED}")
    changes: list[str] = []
    for record in records:
        if not isinstance(record, Record):
            raise RecordError(f"{name} got a {type(record).__name__} among the records; {WANTED}")
        changes.append(record.changed)
        yield record
    warn_changed(name, changes)


def with_groups(
    records: Any, groups: Iterable[Any] | None, name: str
) -> Iterator[tuple[Record, Any]]:
    """Each record with the document of its text; None where documents are unknown.

    Args:
        records: one record, or several.
        groups: as many documents, by name or number; may be a generator that is advanced after each
            record.
        name: name of the function that was called.

    Raises:
        RecordError: where something is not a record, or the number of groups differs.
    """
    if groups is None:
        yield from ((record, None) for record in parse_records(records, name))
        return
    rest, count = iter(groups), 0
    for record in parse_records(records, name):
        count += 1
        # The iterator itself marks its end, because a group may be any value, None too.
        group = next(rest, rest)
        if group is rest:
            raise RecordError(
                f"{name} was given {count - 1} groups, and more records; give one for each record"
            )
        yield record, group
    if next(rest, rest) is not rest:
        raise RecordError(
            f"{name} was given more groups than its {count} records; give one for each record"
        )


def named_records(
    records: Any, groups: Iterable[Any] | None, what: str
) -> Iterator[tuple[str, Record, str]]:
    """Name, record and document of each text, as a run knows them: by what it says, or by its place
    where that is not known.

    Args:
        records: one record, or several.
        groups: see `with_groups`.
        what: name of the function that was called.

    Raises:
        RecordError: in the cases of `with_groups`.
    """
    names = TextNames()
    for number, (record, group) in enumerate(with_groups(records, groups, what)):
        texts = next(iter(record.stacks.values())).key.texts
        given = texts[0] if len(texts) == 1 else list(texts) or number
        text = CorpusText(given, group_of(group))
        yield names.of(text), record, text.document
