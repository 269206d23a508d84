"""What is asked of the calls of one pass, and what is known about their tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from headscope.errors import CaptureError


@dataclass(frozen=True, kw_only=True, eq=False)
class StatisticsPlan:
    """Which statistics of a batch are wanted, and the marks of its tokens, padding included.

    Args:
        special: ``[batch key]``, True for special tokens; None where there are none.
        segments: ``[batch key]``, 0 for the first text and 1 for the second of a pair; None where
            there is one text.
        ids: ``[batch key]``, vocabulary numbers; None where the tokens have none.
        query_ids: ``[batch query]``, where the tokens that look are others (cross-attention).
        cross: whether the tokens that look are others, also where they have no numbers.
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

    def marks(self, example: int, queries: torch.Tensor, keys: torch.Tensor) -> Marks:
        """The marks of the real tokens of one example, whose positions are given."""
        itself = self.query_ids is None and not self.cross
        looking = self.ids if itself else self.query_ids
        special = None if self.special is None else _column(self.special[example, keys])
        texts = (
            []
            if self.segments is None
            else [self.segments[example, keys] == number for number in (0, 1)]
        )
        return Marks(
            special=special if special is not None and bool(special.any()) else None,
            segments=tuple(map(_column, texts)) if texts and bool(texts[1].any()) else (),
            same=None
            if self.ids is None or looking is None
            else (looking[example, queries], self.ids[example, keys]),
            excludes_itself=itself,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Marks:
    """Marks of the real tokens of one example.

    Args:
        special: ``[key]``, 1.0 for special tokens; None where there are none.
        segments: for each text of a pair ``[key]``, 1.0 for its tokens; empty where there is one
            text.
        same: vocabulary numbers ``[query]`` and ``[key]``; None where there are none.
        excludes_itself: whether queries and keys are the same tokens, so that each has itself among
            its equals.
    """

    special: torch.Tensor | None
    segments: tuple[torch.Tensor, ...]
    same: tuple[torch.Tensor, torch.Tensor] | None
    excludes_itself: bool


def _column(marked: torch.Tensor) -> torch.Tensor:
    return marked.to(torch.float32)
