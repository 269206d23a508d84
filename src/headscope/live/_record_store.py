"""The records that a live model has made lately, by id."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock

from headscope.live.contract import LiveOutput, ModelChange
from headscope.record import Record
from headscope.views.answers import PageAnswers

MOST_RECORDS = 12
MOST_BYTES = 256 * 2**20
"""What all of them may take together; the last one is kept however large it is."""


@dataclass(frozen=True, eq=False)
class KeptRecord:
    """A record that a page may ask for.

    Args:
        answers: to the page.
        output: the prediction of the model; None of a text that it wrote itself.
        changes: that were made.
        timings: what took how long, in milliseconds.
        size: bytes that it takes, about.
        id: its name.
    """

    answers: PageAnswers
    output: LiveOutput | None
    changes: list[ModelChange]
    timings: dict[str, float]
    size: int
    id: str = field(default_factory=lambda: secrets.token_urlsafe(9))

    @property
    def record(self) -> Record:
        """The record itself."""
        return self.answers.shown.record


class KeptRecords:
    """Records by id, and by what was asked; those least recently asked for go first.

    Args:
        most_bytes: of all together.
        most: how many.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, most: int = MOST_RECORDS) -> None:
        self.most_bytes: int = most_bytes
        self.most: int = most
        self._by_id: OrderedDict[str, KeptRecord] = OrderedDict()
        self._ids: dict[str, str] = {}
        self._lock = Lock()

    def put(self, question: str, kept: KeptRecord) -> None:
        """Keep a record, and let go of others where there are too many."""
        with self._lock:
            self._by_id[kept.id] = kept
            self._ids[question] = kept.id
            while len(self._by_id) > 1 and self._is_full():
                self._by_id.popitem(last=False)
            self._ids = {asked: name for asked, name in self._ids.items() if name in self._by_id}

    def get(self, name: str) -> KeptRecord | None:
        """The record of this id; None where it is not kept."""
        with self._lock:
            if name in self._by_id:
                self._by_id.move_to_end(name)
            return self._by_id.get(name)

    def answer_to(self, question: str) -> KeptRecord | None:
        """The record that answered the same question before; None where it is not kept."""
        name = self._ids.get(question)
        return None if name is None else self.get(name)

    def __len__(self) -> int:
        return len(self._by_id)

    def _is_full(self) -> bool:
        size = sum(kept.size for kept in self._by_id.values())
        return len(self._by_id) > self.most or size > self.most_bytes
