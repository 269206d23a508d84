"""How often 95 % intervals hold the true mean, and tests raise false alarms, where texts belong to
documents.

Scores are made up: a normal part that all texts of a document share and one of each text's own,
their variances in the ratio of the intraclass correlation, turned into the distribution that is
asked for. The true mean is that of all texts.

    python benchmarks/intervals.py          # prints the tables; two minutes of one core
    python benchmarks/intervals.py --docs   # and writes them into benchmarks/tables.md
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import beta, expon

from headscope.evidence import interval, p_flipped, redrawn_ratios

PAGE = Path(__file__).parent / "tables.md"
MARKS = ("<!-- intervals -->", "<!-- end of intervals -->")
CORRELATION = 0.15
TEXTS = 20
AT_ONCE = 100
SCORES: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "normal": (ndtri, 0.0),
    "near 1: Beta(9, 1)": (lambda part: beta.ppf(part, 9, 1), 0.9),
    "skewed: exponential": (expon.ppf, 1.0),
    "sparse: Beta(.3, 2.7)": (lambda part: beta.ppf(part, 0.3, 2.7), 0.1),
    "right or wrong, 30 % right": (lambda part: (part < 0.3).astype(float), 0.3),
    "right or wrong, 10 % right": (lambda part: (part < 0.1).astype(float), 0.1),
    "right or wrong, 5 % right": (lambda part: (part < 0.05).astype(float), 0.05),
}


def main() -> None:
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument(
        "--docs", action="store_true", help="write the tables into benchmarks/tables.md"
    )
    asked.add_argument("--repetitions", type=int, default=1000)
    options = asked.parse_args()
    parts = [
        coverage(options.repetitions),
        by_number(options.repetitions),
        alarms(options.repetitions),
    ]
    told = "\n\n".join(parts)
    print(told)
    if options.docs:
        page = PAGE.read_text(encoding="utf-8")
        before, after = page.split(MARKS[0])[0], page.split(MARKS[1])[1]
        PAGE.write_text(f"{before}{MARKS[0]}\n\n{told}\n\n{MARKS[1]}{after}", encoding="utf-8")


def coverage(repetitions: int) -> str:
    """Every distribution, 20 documents of one size and of various sizes."""
    rows = []
    for name in SCORES:
        cells = []
        for various in (False, True):
            held = {"texts": 0.0, "percentile": 0.0, "auto": 0.0}
            for values, groups, truth in drawn(name, 20, various=various, repetitions=repetitions):
                ends = {
                    "texts": percentiles(values),
                    "percentile": percentiles(values, groups),
                    "auto": interval(values, groups=groups, resamples=1000),
                }
                for method, (low, high) in ((method, each.T) for method, each in ends.items()):
                    held[method] += float(((low <= truth) & (truth <= high)).sum())
            cells += [percent(held[method] / repetitions) for method in held]
        rows.append((name, *cells))
    title = (
        f"Of 95 % intervals so many hold the true mean: 20 documents of {TEXTS} texts each, and "
        "of various numbers of texts (log-normal, median 12), intraclass correlation "
        f"{CORRELATION}, {repetitions} repetitions each (standard error 0.7 points). *texts*: the "
        "percentile bootstrap over texts; *documents*: over documents; *headscope*: what "
        "`groups=` gives."
    )
    header = (
        "scores",
        "texts",
        "documents",
        "headscope",
        "texts",
        "documents",
        "headscope, various sizes",
    )
    return f"{title}\n\n{table(header, rows)}"


def by_number(repetitions: int) -> str:
    """The same by the number of documents, and of single texts."""
    rows = []
    for count in (5, 10, 20, 50):
        cells = []
        for name in ("normal", "near 1: Beta(9, 1)", "sparse: Beta(.3, 2.7)"):
            for how in ("one size", "various", "single"):
                held = 0.0
                for values, groups, truth in drawn(
                    name,
                    count,
                    various=how == "various",
                    repetitions=repetitions,
                    single=how == "single",
                ):
                    low, high = interval(
                        values, groups=None if how == "single" else groups, resamples=1000
                    ).T
                    held += float(((low <= truth) & (truth <= high)).sum())
                cells.append(percent(held / repetitions))
        rows.append((str(count), *cells))
    title = (
        "By the number of documents of one size, of various sizes, and of texts without "
        "documents (single):"
    )
    kinds = ("normal", "Beta(9, 1)", "Beta(.3, 2.7)")
    header = (
        "number",
        *(f"{kind}, {how}" for kind in kinds for how in ("one size", "various", "single")),
    )
    return f"{title}\n\n{table(header, rows)}"


def alarms(repetitions: int) -> str:
    """How often a test without any effect is below .05."""
    rows = []
    for count, correlation in ((10, 0.1), (10, 0.2), (20, 0.15)):
        below = np.zeros(2)
        for values, groups, _ in drawn(
            "normal", count, various=False, repetitions=repetitions, shared=correlation
        ):
            for place, each in enumerate((None, groups)):
                p = p_flipped(values, groups=each, two_sided=False)
                below[place] += float((p < 0.05).sum())
        rows.append(
            (f"{count} of {TEXTS} texts, {correlation}", *map(percent, below / repetitions))
        )
    title = "One-sided tests below 0.05 where there is no effect:"
    return f"{title}\n\n{table(('documents, correlation', 'texts', 'headscope, `groups=`'), rows)}"


def percentiles(values: np.ndarray, groups: np.ndarray | None = None) -> np.ndarray:
    """The plain bootstrap of means."""
    means = redrawn_ratios(values, np.ones_like(values), groups=groups, resamples=500)
    return np.quantile(means, (0.025, 0.975), axis=0).T


def drawn(
    name: str,
    count: int,
    *,
    various: bool,
    repetitions: int,
    single: bool = False,
    shared: float = CORRELATION,
) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    """Scores ``[text repetition]``, the document of each text, and the true mean; sizes are drawn
    every 100.
    """
    rng = np.random.default_rng(0)
    make, truth = SCORES[name]
    for _ in range(repetitions // AT_ONCE):
        sizes = np.full(count, 1 if single else TEXTS)
        if various:
            sizes = np.maximum(1, np.rint(np.exp(rng.normal(2.5, 0.9, count)))).astype(int)
        groups = np.repeat(np.arange(count), sizes)
        own = rng.normal(size=(len(groups), AT_ONCE)) * np.sqrt(1 - shared)
        score = own + (rng.normal(size=(count, AT_ONCE)) * np.sqrt(shared))[groups]
        yield make(ndtr(score)), groups, truth


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [header, ("---", *["---:"] * (len(header) - 1)), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
