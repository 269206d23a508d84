"""What users give for records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from headscope.errors import RecordError
from headscope.record import Record

WANTED = "give records, such as capture(model, tokenizer, text) or capture_many(model, tokenizer, texts)"


def parse_records(records: Any, name: str) -> Iterator[Record]:
    """One record, or each of several.

    Args:
        records: what was given.
        name: of the function it was given to.

    Raises:
        RecordError: where something is no record.
    """
    if isinstance(records, Record):
        records = [records]
    if isinstance(records, str) or not isinstance(records, Iterable):
        raise RecordError(f"{name} was given a {type(records).__name__}; {WANTED}")
    for record in records:
        if not isinstance(record, Record):
            raise RecordError(f"{name} was given a {type(record).__name__} among the records; {WANTED}")
        yield record
