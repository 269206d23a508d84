"""Options of commands that compare every head with annotated texts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from cyclopts import Parameter


@Parameter(name="*")
@dataclass(frozen=True)
class AnnotatedTextOptions:
    """How heads are scored, and how the best one is chosen."""

    word_rows: Literal["mean", "first", "max"] = "mean"
    """How the attention rows of a word's tokens are combined."""
    random_weights: Annotated[bool, Parameter(negative="")] = False
    """Repeat with the same architecture and random weights, as a baseline."""
    stack: str | None = None
    """Attention stack of the model, such as decoder or cross; by default the first."""
    confidence: float = 0.95
    """Confidence level of the intervals."""
    correction: Literal["holm", "benjamini-hochberg"] = "holm"
    """Correction for multiple tests: holm controls the family-wise error rate, benjamini-hochberg
    the false discovery rate.
    """
    seed: int = 0
    """Random seed."""
    splits: int = 10
    """How many random splits of the documents the held-out numbers are averaged over."""

    @property
    def options(self) -> dict[str, Any]:
        """Options of the studies."""
        named = asdict(self)
        return named | {"rows": named.pop("word_rows")}
