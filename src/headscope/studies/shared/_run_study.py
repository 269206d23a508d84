"""A model, and its random twin, asked about annotated texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from headscope.errors import HeadscopeError, RecordError
from headscope.record import Record
from headscope.studies.shared._head_study import Study
from headscope.studies.shared._source import Source


def asked(
    study: Callable[[], Study],
    source: Source,
    texts: Sequence[Any],
    *,
    random_weights: bool,
    unreadable: Mapping[str, str] | None = None,
) -> Study:
    """A study of what the heads of a model say of texts.

    Args:
        study: makes one that has read nothing yet.
        source: the model, and what it reads.
        texts: annotated, one for each that it reads; a text that cannot be captured goes to
            ``left_out``.
        random_weights: whether the same architecture with random weights reads them, too:
            ``control`` of the result.
        unreadable: names of other texts that the model cannot read, and why.

    Raises:
        RecordError: where no text is left.
    """
    counted = _counted(study(), source, texts, unreadable or {})
    if random_weights:
        counted.control = _counted(study(), source.random_twin(), texts, unreadable or {})
    return counted


def _counted(
    study: Study, source: Source, texts: Sequence[Any], unreadable: Mapping[str, str]
) -> Study:
    lost: dict[int, str] = {}
    for number, record in _numbered(source, lost):
        study.update(texts[number], record)
    study.left_out |= {
        **unreadable,
        **{texts[number].name: reason for number, reason in lost.items()},
    }
    if not study.names:
        raise RecordError(f"No {study.TEXT} is left: {next(iter(study.left_out.values()))}")
    return study


def _numbered(source: Source, lost: dict[int, str]) -> Iterator[tuple[int, Record]]:
    """The record of each text with its number; why a text has none goes to ``lost``.

    Args:
        source: a model and texts.
        lost: is filled with the number of each text that could not be captured, and the reason.
    """

    def lose(number: int, error: HeadscopeError) -> None:
        lost[number] = str(error)

    records = source.records(keep=("weights",), on_error=lose)
    index = 0
    for record in records:
        # those that are left out are reported before any later record comes
        while index in lost:
            index += 1
        yield index, record
        index += 1
