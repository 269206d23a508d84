"""What is counted of texts, added up by document: the one table that every study is made of."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Shaped

from headscope.corpus._text import ALONE, Kept, key_of
from headscope.errors import RecordError
from headscope.record import part_of
from headscope.storage import PAIR, check_document

REFUSED = "refused/"
"""Prefix of a count of texts of which something was not to be had: what it is, and the reason."""
GROUPS = 512
"""Documents that have a row of their own; of more, each goes to the row of the hash of its name."""
FACTS = {"heads": [PAIR], "model": str, "class": str, "weights": str}
DOCUMENT = {"rows": [str], "hashed": bool, "facts": FACTS, "lengths": [PAIR], "each": [[str, str]]}
TEXTS, DOCUMENTS = "texts", "documents"
WHOLE = "whole/"
"""Begins the name of a count that has no rows but one sum over all texts: for large arrays of which
no interval is asked. Arrays of several sizes are added up from their beginning.
"""
EXAMPLE = "example/"
"""Begins the name of an array that is not added up but kept of a uniform sample of the texts: those
with the smallest ``example/key``, a number of 64 bits. The sample is the same in any order and for
any parts.
"""
EXAMPLES = 128
FILE = "file/"
"""Begins the name of a file in the folder of a run, without which its part is not finished."""
EACH = "each/"
"""Begins the name of an array that is kept of every text by itself: of what a run reads from its
parts, only what is asked for is in memory.
"""

Counts = Mapping[str, Shaped[np.ndarray, "..."]]
"""What is counted of one text: arrays by name, which add up."""
Facts = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Counted:
    """What was counted of one text.

    Args:
        counts: arrays by name.
        length: of the text in tokens.
        facts: that all texts of a study share.
    """

    counts: Counts
    length: int
    facts: dict[str, Any]

    def add_to(self, sums: Sums, name: str, document: str) -> None:
        """Add it to sums, as the text of this name.

        Raises:
            RecordError: where it was counted before, or is of another model.
        """
        sums.add(name, document, self.counts, length=self.length, facts=self.facts)


class Sums:
    """Counts of texts by name, ``{name: array[group ...]}``, with a row for each document up to
    512, then one for each hash. Texts, parts, and runs of other machines are added alike.

    Args:
        what: a text is called in messages.

    Example:
        >>> sums = Sums()
        >>> sums.add("a", "novel", {"right": np.array([1, 0])}, length=5)
        >>> sums.add("b", "letter", {"right": np.array([1, 1])}, length=7)
        >>> sums.rows, sums["right"].tolist(), sums.total("right").tolist()
        (('letter', 'novel'), [[1, 1], [1, 0]], [2, 1])
    """

    def __init__(self, what: str = "text") -> None:
        self.what = what
        self.facts: dict[str, Any] = {}
        """What must be the same of all texts, such as the heads of the model; empty is unknown."""
        self.lengths: Counter[int] = Counter()
        """How many texts have each number of tokens."""
        self._texts: set[int] = set()
        self._documents: set[int] = set()
        self._hashed = False
        self._rows: dict[str, dict[str, np.ndarray]] = {}
        self._whole: dict[str, np.ndarray] = {}
        self._files: set[str] = set()
        self._examples: dict[int, Counts] = {}
        self.each: dict[tuple[str, str], dict[str, Any]] = {}
        """Arrays of single texts, by name and document; those of a run may be in its files."""
        self.left_out: dict[str, str] = {}
        """Why texts of a run were left out, by name."""

    def add(
        self, name: str, document: str, counts: Counts, *, length: int, facts: Facts | None = None
    ) -> None:
        """Add a text.

        Args:
            name: of the text, which no other text has.
            document: that it is of.
            counts: of the text; its document has no row where there are none, or all begin with
                `WHOLE`.
            length: of the text in tokens.
            facts: that all texts must share.

        Raises:
            RecordError: where it was counted before, or the facts are others.
        """
        given = facts or {}
        self.check(name, given)
        one = Sums(self.what)
        one.facts = {fact: given[fact] for fact in given if given[fact]}
        one.lengths[length], one._texts = 1, {key_of("text", name)}
        rows, examples = {}, {}
        for count, array in counts.items():
            if count.startswith(WHOLE):
                one._whole[count] = array
            elif count.startswith(EXAMPLE):
                examples[count] = array
            elif count.startswith(EACH):
                one.each.setdefault((name, document), {})[count.removeprefix(EACH)] = array
            elif count.startswith(FILE):
                one._files.add(count.removeprefix(FILE))
            else:
                rows[count] = array
        if rows:
            one._documents, one._rows = {key_of("document", document)}, {document: rows}
        one._add_examples(filter(None, [examples]))
        self._take(one)

    def check(self, name: str, facts: Facts) -> None:
        """Raise where a text cannot be added.

        Raises:
            RecordError: where it was counted before, or the facts are others.
        """
        if name in self:
            raise RecordError(
                f"{self.what.capitalize()} {name!r} was counted before; each has a name of its own"
            )
        other = self._differing(facts)
        if other:
            raise RecordError(
                f"{self.what.capitalize()} {len(self) + 1} ({name}) is of other {other} than those "
                f"before it, {facts[other]!r:.120} and not {self.facts[other]!r:.120}"
            )

    def __contains__(self, name: str) -> bool:
        return key_of("text", name) in self._texts

    def __len__(self) -> int:
        """Number of texts."""
        return len(self._texts)

    @property
    def texts(self) -> tuple[str, ...]:
        """A key of the name of each text."""
        return tuple(f"{key:016x}" for key in sorted(self._texts))

    @property
    def documents(self) -> int:
        """Number of documents that something was counted of."""
        return len(self._documents)

    @property
    def counted(self) -> str:
        """How many texts and documents there are, in words; texts that are there several times
        are counted as different ones, too, where none belongs to a document.
        """
        counted = f"{len(self)} {self.what}{'s' * (len(self) != 1)}"
        if len(self) == self.documents:
            return counted
        if all(row.startswith(ALONE) for row in self._rows):
            return f"{counted}, {self.documents} different"
        return f"{counted} of {self.documents} document{'s' * (self.documents != 1)}"

    @property
    def rows(self) -> tuple[str, ...]:
        """Names of the rows: of documents, or of hashes."""
        return tuple(sorted(self._rows))

    @property
    def names(self) -> frozenset[str]:
        """All that was counted."""
        return frozenset(self._whole).union(*self._rows.values())

    @property
    def refused(self) -> dict[str, str]:
        """What was not to be had of texts, such as the norms of a layer, and why."""
        names = sorted(name for name in self.names if name.startswith(REFUSED))
        return dict(name.removeprefix(REFUSED).split("/", 1) for name in names)

    def __getitem__(self, name: str) -> Shaped[np.ndarray, "group ..."]:
        """What was counted in each row; in one for all of a count that has none.

        Raises:
            KeyError: where nothing of this name was.
        """
        if name in self._whole:
            return self._whole[name][None]
        some = next((counts[name] for counts in self._rows.values() if name in counts), None)
        if some is None:
            raise KeyError(name)
        nothing = np.zeros_like(some)
        return np.stack([self._rows[row].get(name, nothing) for row in self.rows])

    @property
    def examples(self) -> dict[str, Shaped[np.ndarray, "example ..."]]:
        """The arrays of the sample, those of the smallest key first; shorter ones end in zeros."""
        kept = [self._examples[key] for key in sorted(self._examples)]
        stacked = {}
        for name in kept[0] if kept else ():
            size = np.max([each[name].shape for each in kept], axis=0)
            padded = [np.pad(a[name], [(0, n) for n in size - a[name].shape]) for a in kept]
            stacked[name.removeprefix(EXAMPLE)] = np.stack(padded)
        return stacked

    def total(self, name: str) -> Shaped[np.ndarray, "..."]:
        """Sum over all texts."""
        return np.asarray(self[name].sum(axis=0))

    def __add__(self, other: Sums) -> Sums:
        """The texts of both.

        Raises:
            RecordError: where they share a text, or their facts are others.
        """
        differing = self._differing(other.facts)
        if differing or self._texts & other._texts:
            why = f"are of other {differing}" if differing else f"share a {self.what}"
            raise RecordError(f"These {why}; they cannot be added up")
        both = Sums(self.what)
        both._take(self)
        both._take(other)
        return both

    def _take(self, other: Sums) -> None:
        """Add the texts of others."""
        self.facts = self.facts | other.facts
        self.lengths = self.lengths + other.lengths
        self._texts |= other._texts
        self._documents |= other._documents
        self._files |= other._files
        self.each |= other.each
        if other._hashed:
            self._hash()
        for row, counts in other._rows.items():
            add(self._rows.setdefault(row if other._hashed else self._row_of(row), {}), counts)
        # Where there are more documents than rows may be, each goes to the row of its hash.
        if len(self._rows) > GROUPS:
            self._hash()
        add(self._whole, other._whole)
        self._add_examples(other._examples.values())

    def without(self, prefix: str) -> Sums:
        """The same texts without counts of names that begin so, and without examples."""
        rest, kept = copy(self), self._whole.items()
        rest._whole = {name: array for name, array in kept if not name.startswith(prefix)}
        rest._examples = {}
        return rest

    def kept(self) -> Kept:
        """What a file of it holds, for `of_kept`."""
        document: dict[str, Any] = {"rows": self.rows, "hashed": self._hashed, "facts": self.facts}
        document |= {"lengths": sorted(self.lengths.items()), "files": sorted(self._files)}
        in_rows = sorted(self.names - self._whole.keys())
        arrays = self._whole | {f"counts.{name}": self[name] for name in in_rows}
        arrays |= {f"{EXAMPLE}{name}": array for name, array in self.examples.items()}
        document["each"] = sorted(self.each)
        for number, text in enumerate(document["each"]):
            for name, array in self.each[text].items():
                arrays[f"{EACH}{number}/{name}"] = array
        for name, numbers in ((TEXTS, self._texts), (DOCUMENTS, self._documents)):
            arrays[name] = np.array(sorted(numbers), np.uint64).view(np.int64)
        return document, arrays

    @staticmethod
    def of_kept(kept: tuple[dict[str, Any], Mapping[str, Any]], what: str = "text") -> Sums:
        """What `kept` gave.

        Raises:
            TypeError: where something is of a wrong kind.
            ValueError: where its parts do not fit each other.
        """
        document, stored = kept
        check_document(document, DOCUMENT)
        arrays = {
            name: array if name.startswith(EACH) else np.array(part_of(array))
            for name, array in stored.items()
        }
        sums = Sums(what)
        sums.facts, sums._hashed = document["facts"], document["hashed"]
        sums.lengths = Counter(dict(document["lengths"]))
        sums._texts = set(arrays[TEXTS].view(np.uint64).tolist())
        sums._documents = set(arrays[DOCUMENTS].view(np.uint64).tolist())
        rows = document["rows"]
        if len(set(rows)) < len(rows) or sums.lengths.total() != len(sums._texts):
            raise ValueError("its rows or texts are not of one table")
        sums._rows = {row: {} for row in rows}
        for name, array in arrays.items():
            sums._set(name, array, document)
        for at in range(len(arrays.get(f"{EXAMPLE}key", ()))):
            own = {each: arrays[each][at] for each in arrays if each.startswith(EXAMPLE)}
            sums._add_examples([own])
        return sums

    def _set(self, name: str, array: Any, document: dict[str, Any]) -> None:
        """Take an array of a file."""
        rows = document["rows"]
        if name.startswith(EACH):
            number, own = name.removeprefix(EACH).split("/", 1)
            text, group = document["each"][int(number)]
            self.each.setdefault((text, group), {})[own] = array
        elif name.startswith(WHOLE):
            self._whole[name] = array
        elif name.startswith("counts."):
            # Most rows have none of most counts; one row says that they are counted at all.
            for at, (row, own) in enumerate(zip(rows, array, strict=True)):
                if not at or own.any():
                    self._rows[row][name.removeprefix("counts.")] = own

    def _differing(self, facts: Facts) -> str:
        """The first fact that is another; empty where none is."""
        for name, value in facts.items():
            known = self.facts.get(name)
            if value and known and known != value and not _alike(known, value):
                return name
        return ""

    def _row_of(self, document: str) -> str:
        return f"{key_of('row', document) % GROUPS}" if self._hashed else document

    def _add_examples(self, examples: Iterable[Counts]) -> None:
        for each in examples:
            self._examples[int(each[f"{EXAMPLE}key"].view(np.uint64)[0])] = each
        for key in sorted(self._examples)[EXAMPLES:]:
            del self._examples[key]

    def _hash(self) -> None:
        if self._hashed:
            return
        named, self._rows, self._hashed = self._rows, {}, True
        for document, counts in named.items():
            add(self._rows.setdefault(self._row_of(document), {}), counts)


def add(there: dict[str, np.ndarray], counts: Counts) -> None:
    """Add counts to others, by name; arrays of several sizes from their beginning."""
    for name, array in counts.items():
        known = there.get(name)
        if known is None:
            there[name] = np.array(array)
        elif known.shape == array.shape and known.dtype == array.dtype:
            known += array
        else:
            size = np.maximum(known.shape, array.shape)
            both = [np.pad(a, [(0, n) for n in size - a.shape]) for a in (known, array)]
            there[name] = both[0] + both[1]


def _alike(one: Any, other: Any) -> bool:
    """Whether facts are equal but for the rounding of numbers that were fitted to each text."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-4)
    return one == other
