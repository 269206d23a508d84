"""The result of a fold: sums that print themselves, are added up, saved and resumed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np

from headscope.corpus import Sums
from headscope.errors import RecordError
from headscope.evidence.groups import check_confidence, group_of, length_text
from headscope.record import Record
from headscope.results import Kept, Result
from headscope.storage import Finite, arrays_below, check_document
from headscope.studies.shared._fold import Fold, Item
from headscope.studies.shared._fold_run import said

CONTROL = "random."
"""Prefix of the arrays of the same architecture with random weights."""
DOCUMENT: dict[str, Any] = {
    "how": {},
    "judging": {},
    "sums": {},
    "source": str,
    "left_out": {str: str},
    "control": ({}, None),
}
Arrays = dict[str, np.ndarray]
Folded = TypeVar("Folded", bound="FoldResult")


class FoldResult(Result):
    """What a fold over texts counted; is added to those of other texts of the same model, saved and
    resumed.

    Args:
        how: options that what is counted of a text depends on.
        judging: options that it does not depend on, with ``confidence``.

    Raises:
        RecordError: where confidence is not within 0..1.
    """

    FOLD: ClassVar[Fold]
    HOW: ClassVar[dict[str, Any]] = {}
    """Of which kind the options are in a file; see `headscope.storage.check_document`."""
    JUDGING: ClassVar[dict[str, Any]] = {"confidence": Finite}
    """The same of the options that counts do not depend on."""

    def __init__(self, how: Mapping[str, Any], judging: Mapping[str, Any]) -> None:
        check_confidence(judging["confidence"])
        self.how: dict[str, Any] = dict(how)
        self.judging: dict[str, Any] = dict(judging)
        self.sums: Sums = Sums(self.FOLD.what)
        self.source: str = ""
        """What the texts are called together; empty where nobody says."""
        self.left_out: dict[str, str] = {}
        self.control: Any = None
        """The same of the architecture with random weights, where that was run."""

    @classmethod
    def of_sums(
        cls: type[Folded], sums: Sums, how: Mapping[str, Any], judging: Mapping[str, Any]
    ) -> Folded:
        """The result of what was counted."""
        own = {name: how[name] for name in cls.HOW}
        result = cls(**own, **{name: judging[name] for name in cls.JUDGING})
        result.sums = sums
        return result

    def update(self, text: Any, record: Record, /, *, group: Any = None) -> None:
        """Count one text.

        Args:
            text: its identifier.
            record: what the study needs of it.
            group: the document that it is of, for intervals; None for a text that belongs to no
                other.

        Raises:
            RecordError: where the record does not have what is counted, the text was counted
                before, or it is of another model.
        """
        self._add_text(Item(text, group_of(group), text), record)

    def check_new(self, name: str) -> None:
        """Raise where a text was counted or left out before.

        Raises:
            RecordError: naming it.
        """
        if name in self.left_out or name in self.sums:
            raise RecordError(
                f"{self.FOLD.what.capitalize()} {name!r} was counted before; each has a name of "
                "its own"
            )

    def _add_text(self, item: Item, record: Record, *, or_leave_out: bool = False) -> None:
        """Count one text, or name it among those left out."""
        self.check_new(item.name)
        try:
            counted = self.FOLD.counted(item.what, record, **self.how)
        except RecordError as error:
            if not or_leave_out:
                raise
            self.left_out[item.name] = str(error)
            return
        counted.add_to(self.sums, item.name, item.unit)
        # What was computed of fewer texts is forgotten.
        for name in list(self.__dict__):
            if isinstance(getattr(type(self), name, None), cached_property):
                del self.__dict__[name]

    def __add__(self: Folded, other: Folded) -> Folded:
        """The texts of both.

        Raises:
            RecordError: where they share a text, or are of other options or models.
        """
        if not isinstance(other, type(self)):
            return NotImplemented
        mine, theirs = said(self.how), said(other.how)
        for name in mine:
            if mine[name] != theirs[name]:
                one, two = (getattr(of[name], "name", of[name]) for of in (self.how, other.how))
                raise RecordError(
                    f"One was counted with {name} {one!r}, the other with {two!r}; they cannot be "
                    "added up"
                )
        both = type(self)(**self.how, **self.judging)
        both.sums = self.sums + other.sums
        both.left_out = self.left_out | other.left_out
        both.source = " + ".join(dict.fromkeys(filter(None, (self.source, other.source))))
        if self.control is not None and other.control is not None:
            both.control = self.control + other.control
        return both

    @property
    def texts(self) -> int:
        """Number of texts."""
        return len(self.sums)

    @property
    def model(self) -> str:
        """Name of the model; empty where it is unknown."""
        return self.sums.facts.get("model", "")

    @property
    def layers(self) -> tuple[int, ...]:
        """Numbers of the layers that were asked."""
        return tuple(dict.fromkeys(layer for layer, _ in self.sums.facts.get("heads", ())))

    @property
    def length_text(self) -> str:
        """How long the texts are, as tables print it."""
        return length_text(self.sums.lengths)

    @property
    def confidence(self) -> float:
        """Of the intervals."""
        return self.judging["confidence"]

    def _kept(self) -> Kept:
        sums, arrays = self.sums.kept()
        document = {"how": said(self.how), "judging": self.judging, "sums": sums, "control": None}
        document |= {"source": self.source, "left_out": self.left_out}
        if self.control is not None:
            document["control"], theirs = self.control._kept()
            arrays |= {f"{CONTROL}{name}": array for name, array in theirs.items()}
        return document, arrays

    @classmethod
    def _of_kept(cls: type[Folded], document: dict[str, Any], arrays: Arrays) -> Folded:
        """What `_kept` gave. To be called inside `headscope.storage.reading`.

        Raises:
            TypeError: where something is of a wrong kind.
            ValueError: where its parts do not fit each other.
        """
        check_document(document, DOCUMENT | {"how": cls.HOW, "judging": cls.JUDGING})
        own = {name: array for name, array in arrays.items() if not name.startswith(CONTROL)}
        result = cls(**cls._how_of(document["how"]), **document["judging"])
        result.sums = Sums.of_kept((document["sums"], own), cls.FOLD.what)
        result.source, result.left_out = document["source"], document["left_out"]
        if result.texts:
            result._check_arrays(own)
        if document["control"] is not None:
            result.control = cls._of_kept(document["control"], arrays_below(arrays, CONTROL))
        return result

    @classmethod
    def _how_of(cls, told: dict[str, Any]) -> dict[str, Any]:
        """The options, of what a file says of them."""
        return told

    def _check_arrays(self, arrays: Arrays) -> None:
        """Raise where arrays of a file do not fit each other.

        Raises:
            ValueError: saying which.
        """
        raise NotImplementedError
