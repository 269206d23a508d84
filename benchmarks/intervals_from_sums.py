"""Compare intervals of values that are not kept with those of the bootstrap that draws them again.

    python benchmarks/intervals_from_sums.py

Of each interval the larger of both differences of its ends from those of the percentile bootstrap
over documents (20,000 draws), as a share of the width of that: median and 95 % quantile over 100
scores.
"""

from __future__ import annotations

import argparse

import numpy as np

from headscope.evidence import GroupSums, redrawn_ratios

SCORES = 100
CORRELATION = 0.15
"""Of texts of one document."""
DRAWS = 20_000


def scores(
    documents: int, rng: np.random.Generator, kind: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values of texts, how much each counts, and the document of each."""
    of = np.repeat(np.arange(documents), rng.integers(2, 15, documents))
    shape = len(of), SCORES
    alike = rng.standard_normal((documents, SCORES))[of] * np.sqrt(CORRELATION)
    values = alike + rng.standard_normal(shape) * np.sqrt(1 - CORRELATION)
    weights = np.ones(shape)
    if kind == "right or wrong":
        values = (values > 0.5).astype(float)
    return values, weights, of


def ends_of_sums(values: np.ndarray, of: np.ndarray) -> np.ndarray:
    """By Student or Wilson, from sums."""
    sums = GroupSums((SCORES,))
    for own, document in zip(values, of, strict=True):
        sums.update(own, group=str(document))
    return sums.close().interval().T


def ends_of_documents(
    values: np.ndarray, weights: np.ndarray, of: np.ndarray, *, seed: int, draws: int
) -> np.ndarray:
    """By drawing documents again."""
    redrawn = redrawn_ratios(values, weights, groups=of, resamples=draws, seed=seed)
    return np.quantile(redrawn, [0.025, 0.975], axis=0)


def compared(documents: int, kind: str) -> list[str]:
    """Lines of the table."""
    values, weights, of = scores(documents, np.random.default_rng(documents), kind)
    exact = ends_of_documents(values, weights, of, seed=0, draws=DRAWS)
    methods = {
        "documents, 2,000 draws of another seed": ends_of_documents(
            values, weights, of, seed=1, draws=2000
        )
    }
    name = "Wilson from sums" if kind == "right or wrong" else "t from sums"
    methods[name] = ends_of_sums(values, of)
    lines = []
    for name, ends in methods.items():
        apart = np.abs(ends - exact).max(axis=0) / np.ptp(exact, axis=0)
        width = np.median(np.ptp(ends, axis=0) / np.ptp(exact, axis=0))
        middle, most = np.quantile(apart, [0.5, 0.95])
        lines.append(f"| {kind} | {documents} | {name} | {middle:.3f} | {most:.3f} | {width:.2f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, nargs="+", default=[20, 60, 300])
    options = parser.parse_args()
    print("| score | documents | interval | median difference | 95 % | width |")
    print("| --- | ---: | --- | ---: | ---: | ---: |")
    for kind in ("mean", "right or wrong"):
        for documents in options.documents:
            print("\n".join(compared(documents, kind)))


if __name__ == "__main__":
    main()
