"""What commands share that ask every head about annotated texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Parameter


@Parameter(name="*")
@dataclass(frozen=True)
class AskingOptions:
    """How heads are asked, and how the best one is told."""

    rows: Literal["mean", "first", "max"] = "mean"
    """How the rows of a word's tokens become one."""
    random_weights: Annotated[bool, Parameter(negative="")] = False
    """Let the same architecture with random weights read the texts, too."""
    stack: str | None = None
    """Which stack of the model, such as decoder; by default the first."""
    confidence: float = 0.95
    """Of the intervals."""
    correction: Literal["holm", "benjamini-hochberg"] = "holm"
    """For trying many kinds or relations; holm keeps any false one away, benjamini-hochberg their
    share.
    """
    seed: int = 0
    """Of how documents are split into halves."""
    splits: int = 10
    """How many such splits held-out numbers are means of."""
