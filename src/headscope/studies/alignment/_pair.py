"""A sentence, its translation, and which of their words belong together."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from headscope.errors import RecordError
from headscope.measures.alignment import Link
from headscope.studies.alignment._word_alignment import check_links

LINK = re.compile(r"(\d+)([-p])(\d+)")


@dataclass(frozen=True)
class AlignedPair:
    """A sentence, its translation, and which words are translations of each other; words are what
    white space separates, from 0.

    Args:
        source: the sentence.
        target: its translation.
        sure: links that must be found, ``(source word, target word)``.
        possible: links that may be found.
        name: its identifier; by default its number among those that are studied
            together.
        group: the document that it is of; None where nobody says.

    Raises:
        RecordError: where a link names a word that does not exist.

    Example:
        >>> AlignedPair.of("das Haus da", "the house", "0-0 1-1 2p1").possible
        frozenset({(2, 1)})
    """

    source: str
    target: str
    sure: frozenset[Link]
    possible: frozenset[Link] = frozenset()
    name: str = ""
    group: Any = None

    def __post_init__(self) -> None:
        check_links(self.sure | self.possible, len(self.source.split()), len(self.target.split()))

    @classmethod
    def of(
        cls, source: str, target: str, links: str, *, name: str = "", first: int = 0
    ) -> AlignedPair:
        """From links as files have them: ``0-1`` is sure, ``0p1`` possible, the source first.

        Args:
            source: the sentence.
            target: its translation.
            links: with white space between them.
            name: see `AlignedPair`.
            first: the number of the first word, 0 or 1.

        Raises:
            RecordError: where a link is written otherwise, or names a word that does not exist.
        """
        by_kind: dict[str, set[Link]] = {"-": set(), "p": set()}
        for each in links.split():
            match = LINK.fullmatch(each)
            if match is None:
                raise RecordError(
                    f"{each!r} is not a link; they are written 0-1 (sure) or 0p1 (possible), from "
                    f"{first}"
                )
            by_kind[match[2]].add((int(match[1]) - first, int(match[3]) - first))
        return cls(source, target, frozenset(by_kind["-"]), frozenset(by_kind["p"]), name)
