"""Parsing of the records and groups that users give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from headscope.errors import RecordError
from headscope.record import BatchStack, Record, Stack, TextBatch

WANTED = (
    "give records, such as capture(model, tokenizer, text) or capture_many(model, tokenizer, texts)"
)


def parse_records(records: Any, name: str) -> Iterator[Record]:
    """One record, or each of several.

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
    for record in records:
        if not isinstance(record, Record):
            raise RecordError(
                f"{name} was given a {type(record).__name__} among the records; {WANTED}"
            )
        yield record


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


class OneModelStudy:
    """Base of studies that count records one by one, all of one model and stack.

    Records of another model are refused even where its layers and heads are the same.
    """

    model: str
    """Name of the model; empty where it is unknown."""
    _source: tuple[str, str, str] | None = None
    _weights: str = ""

    def _check_model(
        self, text: str, record: Record | TextBatch, stack: Stack | BatchStack
    ) -> None:
        """Raise where the texts before this one came from another model or stack.

        Raises:
            RecordError: naming both.
        """
        source = (record.model.name, record.model.class_name, stack.name)
        if self._source is None and self.model in ("", record.model.name):
            self._source = source
        before = self._source or (self.model, "", stack.name)
        if source != before:
            raise RecordError(
                f"Text {text!r} is of {_source_text(source)}, the texts before it of "
                f"{_source_text(before)}; records of one model and one stack are counted together"
            )
        # Records of bare arrays have no fingerprint of the weights.
        if record.model.weights and self._weights and record.model.weights != self._weights:
            raise RecordError(
                f"Text {text!r} is of {_source_text(source)}, but of other weights than the texts "
                "before it (another checkpoint, or the model was changed meanwhile); records of "
                "one model are counted together"
            )
        self._weights = self._weights or record.model.weights

    def _check_models(self, other: OneModelStudy) -> None:
        """Raise where the other study was counted on another model.

        Raises:
            RecordError: naming both.
        """
        if self.model and other.model and self.model != other.model:
            raise RecordError(
                f"One was counted of {self.model}, the other of {other.model}; they cannot be "
                "added up"
            )
        if self._weights and other._weights and self._weights != other._weights:
            raise RecordError(
                f"Both were counted of {self.model}, but of other weights; they cannot be added up"
            )


def _source_text(source: tuple[str, str, str]) -> str:
    name, class_name, stack = source
    kind = f" ({class_name})" if class_name not in ("", name) else ""
    return f"{name or 'a model without a name'}{kind}, stack {stack!r}"
