"""Two atlases side by side as a folder of files: the page of each, and the pairs of their heads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headscope.atlases import PARTS, AtlasComparison
from headscope.results import shows
from headscope.views.atlas_folder import Data, short_number, write_page
from headscope.views.atlas_page import atlas_data


@dataclass(frozen=True, repr=False)
class AtlasComparisonPage:
    """Page of two atlases, written as a folder. Made by `view`.

    Args:
        comparison: what is shown.
    """

    comparison: AtlasComparison

    def __repr__(self) -> str:
        return f"<AtlasComparisonPage of {self.comparison!r}: save(folder) writes it>"

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the folder: index.html, its script, and the data. Existing files are replaced.

        Returns:
            The path of index.html.

        Raises:
            FileError: where it cannot be written.
            PageError: where the script of the viewer was not built.
        """
        names = [name or "a model" for name in self.comparison.names]
        return write_page(folder, f"Atlases of {names[0]} and {names[1]}", self._data())

    def _data(self) -> Iterator[tuple[str, Data]]:
        """What each script holds: those of both atlases, and last what all pages need."""
        indices: dict[str, Data] = {}
        for side, atlas in (("a", self.comparison.a), ("b", self.comparison.b)):
            for name, content in atlas_data(atlas):
                if name == "index":
                    indices[side] = content
                else:
                    yield f"{side}-{name}", content
        yield "index", {"kind": "comparison", **indices, **_pairs_data(self.comparison)}


@shows(AtlasComparison.KIND)
def atlas_comparison_page(comparison: AtlasComparison) -> AtlasComparisonPage:
    """The page of two atlases, which `AtlasComparisonPage.save` writes as a folder."""
    return AtlasComparisonPage(comparison)


def _pairs_data(comparison: AtlasComparison) -> dict[str, Any]:
    """The pairs of heads, and the differences of their scores in the order of the result."""
    pairs = []
    for (at, to), pair in zip(comparison.matched, comparison.pairs, strict=True):
        pairs.append(
            {
                "a": at,
                "b": to,
                "similarity": short_number(pair.similarity),
                "chance": short_number(pair.chance),
                "nextBest": short_number(pair.next_best),
                "parts": [short_number(pair.parts[name]) for name in PARTS],
                "gained": pair.gained,
                "lost": pair.lost,
            }
        )
    number_of = {pair.a: number for number, pair in enumerate(comparison.pairs)}
    differences = []
    for each in comparison.differences:
        numbers = (each.before, each.after, each.low, each.high)
        shown = [short_number(number) for number in numbers]
        differences.append([number_of[each.layer, each.head], each.pattern, *shown])
    return {
        "names": comparison.names,
        "matching": comparison.matching,
        "summary": comparison.summary,
        "caution": comparison.caution,
        "parts": PARTS,
        "similarity": short_number(comparison.mean_similarity),
        "chance": short_number(comparison.chance),
        "different": short_number(comparison.different_heads),
        "confidence": comparison.a.heads.confidence,
        "sameTexts": comparison.same_texts,
        "pairs": pairs,
        "differences": differences,
    }
