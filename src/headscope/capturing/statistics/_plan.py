"""What is measured of the calls of one pass, and what is known about their tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from headscope.capturing.statistics._places import SinglePlaces, TilePlaces, TokensOfTile, places_of
from headscope.errors import CaptureError

PLACES_KEPT = 2**22
"""Numbers of the places of tiles that all layers of a pass share, of 4 bytes each; those of more
are made anew.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class StatisticsPlan:
    """Which statistics of a batch are wanted, and the marks of its tokens, padding included.

    Args:
        special: ``[batch key]``, True for special tokens; None where there are none.
        segments: ``[batch key]``, 0 for the first text and 1 for the second of a pair; None where
            there is one text.
        ids: ``[batch key]``, vocabulary numbers; None where the tokens have none.
        query_ids: ``[batch query]``, where the queries are of other tokens (cross-attention).
        cross: whether the queries are of other tokens, also where these have no numbers.
        rows: how many rows to sample, at random and without replacement; None for all of them.
        top: how many of the largest weights of each row to name.
        seed: of the sample. Texts of the same length have the same rows sampled, in every layer.

    Raises:
        CaptureError: where a number cannot be.
    """

    special: torch.Tensor | None = None
    segments: torch.Tensor | None = None
    ids: torch.Tensor | None = None
    query_ids: torch.Tensor | None = None
    cross: bool = False
    rows: int | None = None
    top: int = 0
    seed: int = 0
    _known: dict[tuple, tuple[Any, Any, TokenMarks]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.rows is not None and self.rows < 2:
            raise CaptureError(f"rows must be 2 or more, for a mean with an error, not {self.rows}")
        if self.top < 0:
            raise CaptureError(f"top must be 0 or more, not {self.top}")

    def sampled(self, count: int) -> np.ndarray | None:
        """Which of this many queries are covered, rising; None for all."""
        if self.rows is None or self.rows >= count:
            return None
        return np.sort(
            np.random.default_rng([self.seed, count]).choice(count, self.rows, replace=False)
        )

    def marks(
        self, texts: slice, queries: torch.Tensor | None = None, keys: torch.Tensor | None = None
    ) -> TokenMarks:
        """The marks of the tokens of some texts, the same for all layers.

        Args:
            texts: which of the batch.
            queries: positions of those that are meant; None for all, padding included.
            keys: the same of the keys.
        """
        known = (texts.start, texts.stop, id(queries), id(keys))
        if known not in self._known:
            # the positions are kept with what was read at them, so that no others take their ids
            rows = slice(None) if queries is None else queries
            columns = slice(None) if keys is None else keys
            self._known[known] = queries, keys, self._marks(texts, rows, columns)
        return self._known[known][2]

    def _marks(
        self, texts: slice, queries: torch.Tensor | slice, keys: torch.Tensor | slice
    ) -> TokenMarks:
        itself = self.query_ids is None and not self.cross
        looking = self.ids if itself else self.query_ids
        special = None if self.special is None else self.special[texts][:, keys]
        segments = ()
        if self.segments is not None:
            numbers = self.segments[texts][:, keys]
            pair = (_column(numbers == 0), _column(numbers == 1))
            segments = pair if bool(pair[1].any()) else ()
        same = None
        if self.ids is not None and looking is not None:
            same = looking[texts][:, queries], self.ids[texts][:, keys]
        return TokenMarks(
            special=None if special is None or not bool(special.any()) else _column(special),
            segments=segments,
            same=same,
            excludes_itself=itself,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenMarks:
    """Marks of the tokens of some texts.

    Args:
        special: ``[text key]``, 1.0 for special tokens; None where there are none.
        segments: for each text of a pair ``[text key]``, 1.0 for its tokens; empty where there is
            one text in all of them.
        same: vocabulary numbers ``[text query]`` and ``[text key]``; None where there are none.
        excludes_itself: whether queries and keys are the same tokens, so that each has itself among
            its equals.
        known_places: of tiles, by what they hold.
        known_singles: what is the same for tiles of other texts.
    """

    special: torch.Tensor | None
    segments: tuple[torch.Tensor, ...]
    same: tuple[torch.Tensor, torch.Tensor] | None
    excludes_itself: bool
    known_places: dict[tuple[Any, ...], TilePlaces] = field(default_factory=dict)
    known_singles: dict[tuple[int, ...], SinglePlaces] = field(default_factory=dict)

    def places(
        self, texts: slice, positions: torch.Tensor, keys: slice, *, real: torch.Tensor, heads: int
    ) -> TilePlaces:
        """The places of a tile of some of the texts and so many heads.

        Args:
            texts: which.
            positions: ``[row]`` of its queries, counted as keys are.
            keys: which it has.
            real: ``[text row]``, False for rows that are padding.
            heads: how many.
        """
        same = None
        if self.same is not None:
            same = self.same[0][texts][:, positions], self.same[1][texts, keys]
        special = None if self.special is None else self.special[texts, keys]
        tokens = TokensOfTile(keys=keys, real=real, special=special, same=same)
        # Tiles of several texts have the same rows one after the other.
        known = len(real), heads, keys.start, keys.stop, *positions.tolist()
        if known not in self.known_singles:
            self.known_singles.clear()
            self.known_singles[known] = SinglePlaces.of(positions, keys, len(real), heads)
        return places_of(tokens, self.known_singles[known])

    def remember(self, known: tuple[Any, ...], places: TilePlaces) -> None:
        """Keep the places of a tile for the next group of its heads and for other layers."""
        held = sum(each.numbers for each in self.known_places.values())
        if held + places.numbers > PLACES_KEPT:
            # The heads of a tile come one group after the other, so that the newest is asked for.
            self.known_places.clear()
        self.known_places[known] = places


def _column(marked: torch.Tensor) -> torch.Tensor:
    return marked.to(torch.float32)
