"""Results of composition, and how they are printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from headscope.results import Kept, Result, TextTable
from headscope.storage import Finite, array_of

MOST_ROWS, MOST_COLUMNS = 24, 12
BY: Any = ("query", "key", "value")
SAYS = {
    "ratio": "size of the product of both matrices, relative to the product of their sizes",
    "by chance": "the same where the stream between them is rotated at random, and its deviation",
}
TOKEN = [str, int]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Attended(Result):
    """Why a head attended from one token to another: see `attended`.

    Args:
        model: its name.
        head: its name, with its stack where there are several.
        query: the token that attends, and its position.
        key: the one that is attended to.
        weight: of the pair.
        margin: score of the pair less the mean score of all keys that the query may see, before any
            cap on scores.
        parts: names of what wrote into the residual below (the embedding, heads, feed-forward
            parts, biases), and position, where it adds to scores (ALiBi, relative positions).
        by_key: ``[part]``, what each adds to the margin by the keys; sums to the margin.
        by_query: ``[part]``, what each adds by the query; sums to the margin, too.
    """

    KIND: ClassVar[str] = "attended"
    DOCUMENT: ClassVar = {
        **dict.fromkeys(("model", "head"), str),
        **dict.fromkeys(("query", "key"), TOKEN),
        **dict.fromkeys(("weight", "margin"), Finite),
        "parts": [str],
    }
    model: str
    head: str
    query: tuple[str, int]
    key: tuple[str, int]
    weight: float
    margin: float
    parts: tuple[str, ...]
    by_key: Float[np.ndarray, " part"]
    by_query: Float[np.ndarray, " part"]

    @property
    def summary(self) -> str:
        """The pair, its margin, and what of the key and of the query makes it."""
        query, key = (f"“{word}” ({at})" for word, at in (self.query, self.key))
        return (
            f"Head {self.head} attends from {query} to {key} with weight {self.weight:.2f}: the "
            f"score is {self.margin:+.2f} over the mean key. Most of it was written into the key "
            f"by {_largest(self.parts, self.by_key)}, and into the query by "
            f"{_largest(self.parts, self.by_query)}."
        )

    def _blocks(self) -> list[TextTable | str]:
        rows = [["part", "wrote into the key", "into the query"]]
        for name, *sides in zip(*self.columns().values(), strict=True):
            rows.append([name, *(f"{side:+.2f}" for side in sides)])
        note = (
            "Each column sums to the margin, before any cap on scores, with the other side and the "
            "denominators of norms as in this run. The mean over keys is left out, which no "
            "softmax sees."
        )
        return [TextTable.of_rows(rows[: 1 + MOST_ROWS], align="right"), note]

    def columns(self) -> dict[str, list[Any]]:
        """The parts, those that add most by the key or the query first."""
        order = np.argsort(-np.maximum(*np.abs([self.by_key, self.by_query])), kind="stable")
        sides = {name: getattr(self, name)[order].tolist() for name in ("by_key", "by_query")}
        return {"part": [self.parts[at] for at in order], **sides}

    def _kept(self) -> Kept:
        document = {name: getattr(self, name) for name in self.DOCUMENT}
        return document, {"by_key": self.by_key, "by_query": self.by_query}

    @classmethod
    def _of_kept(cls, document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Attended:
        size = (len(document["parts"]),)
        sides: Any = {name: array_of(arrays, name, "f", size) for name in ("by_key", "by_query")}
        tuples: Any = {name: tuple(document[name]) for name in ("query", "key", "parts")}
        return cls(**{name: document[name] for name in cls.DOCUMENT} | tuples | sides)


def _largest(names: tuple[str, ...], amounts: np.ndarray) -> str:
    at = int(amounts.argmax())
    return f"{names[at]} ({amounts[at]:+.2f})"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Composition(Result):
    """How much of what earlier heads write later heads can read: see `composition`.

    Args:
        model: its name.
        heads: their names, layer and number.
        chance: ratio where the stream is rotated at random (root of the mean square).
        ratio: ``[by earlier later]`` for query, key and value; NaN where the one is not earlier.
        deviation: standard deviation of the ratio where the stream is rotated at random.
    """

    KIND: ClassVar[str] = "composition"
    DOCUMENT: ClassVar = {"model": str, "heads": [str], "chance": Finite}
    model: str
    heads: tuple[str, ...]
    chance: float
    ratio: Float[np.ndarray, "by earlier later"]
    deviation: Float[np.ndarray, "by earlier later"]

    @property
    def summary(self) -> str:
        """The pair with the largest ratio."""
        head, reads, by, ratio, _ = next(zip(*self.columns().values(), strict=True))
        return (
            f"{self.model}: {head} reads most of what {reads} writes, by its {by} ({ratio:.2f}; by "
            f"chance {self.chance:.2f})."
        )

    def _blocks(self) -> list[TextTable | str]:
        rows = [["head", "reads", "by its", "ratio", "by chance"]]
        for *names, ratio, deviation in zip(*self.columns().values(), strict=True):
            rows.append([*names, f"{ratio:.3f}", f"{self.chance:.3f} ± {deviation:.3f}"])
        note = (
            "Of weights alone: without biases, denominators of norms, feed-forward parts between "
            "the heads, and rotary positions, which turn queries and keys by their distance."
        )
        return [TextTable.of_rows(rows[: 1 + MOST_ROWS], says=SAYS), *self._matrices(), note]

    def _matrices(self) -> list[TextTable | str]:
        """The ratios with earlier heads as rows and later ones as columns, where these are few."""
        is_later, tables = np.isfinite(self.ratio[0]), []
        earlier, later = (np.flatnonzero(is_later.any(axis)) for axis in (1, 0))
        for by, ratio in zip(BY, self.ratio if len(later) <= MOST_COLUMNS else (), strict=False):
            rows = [[f"by {by}", *(self.heads[at] for at in later)]]
            for row in earlier:
                numbers = (f"{ratio[row, at]:.2f}" if is_later[row, at] else "" for at in later)
                rows.append([self.heads[row], *numbers])
            tables.append(TextTable.of_rows(rows, align="right"))
        return tables

    def columns(self) -> dict[str, list[Any]]:
        """The pairs, the largest ratio first."""
        order = np.argsort(-self.ratio, axis=None, kind="stable")
        pairs = np.unravel_index(order[: np.isfinite(self.ratio).sum()], self.ratio.shape)
        names, (by, earlier, later) = np.array(self.heads), pairs
        return {
            "head": names[later].tolist(),
            "reads": names[earlier].tolist(),
            "by": np.array(BY)[by].tolist(),
            "ratio": self.ratio[pairs].tolist(),
            "deviation": self.deviation[pairs].tolist(),
        }

    def _kept(self) -> Kept:
        document = {name: getattr(self, name) for name in self.DOCUMENT}
        return document, {"ratio": self.ratio, "deviation": self.deviation}

    @classmethod
    def _of_kept(cls, document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Composition:
        heads = tuple(document["heads"])
        size = (len(BY), len(heads), len(heads))
        both: Any = {name: array_of(arrays, name, "f", size) for name in ("ratio", "deviation")}
        return cls(model=document["model"], heads=heads, chance=document["chance"], **both)
