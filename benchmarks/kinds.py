"""Measure how often a head is given a kind by chance: random weights, and texts whose words are
shuffled.

    python benchmarks/kinds.py --docs            # all of it, some minutes; writes the tables of
    docs/overview.md python benchmarks/kinds.py --seeds 1         # a short look

With random weights nothing is to be found, so every pattern and every resting place is a false one.
A shuffled text has no sentences, so a kind that is about words and not about places should come up
less often than on the text itself.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from false_labels import LENGTHS, SPECIAL, records
from scipy.stats import binomtest

import headscope as hs
from headscope.patterns import KINDS, head_kinds

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs" / "overview.md"
NAMED = tuple(kind for kind in KINDS if kind not in ("broad", "none"))
"""Kinds that say that a head does something."""
TEXTS = (
    (
        "The rabbit quickly hopped across the road.",
        "The turtle slowly crawled behind it because it was tired.",
    ),
    ("I went to the store.", "At the store, I bought fresh strawberries."),
    ("The doctor asked the nurse about the patient.", "She said that the patient had slept well."),
    (
        "Most of the old houses in this street were built of stone.",
        "The new ones are built of wood and glass.",
    ),
    (
        "My sister plays the violin in a small orchestra.",
        "The orchestra gives a concert every winter.",
    ),
    (
        "He opened the window because the room was too warm.",
        "Then the wind blew all the papers off the desk.",
    ),
)


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--seeds", type=int, default=8, help="models of each shape")
    options.add_argument("--texts", type=int, default=4, help="texts of each model")
    options.add_argument(
        "--docs", action="store_true", help="write the tables into docs/overview.md"
    )
    chosen = options.parse_args()
    torch.set_num_threads(1)
    by_chance = {
        f"{shape}, {length}": dict(random_weights(shape, length, chosen.seeds, chosen.texts))
        for shape in SPECIAL
        for length in LENGTHS
    }
    result = {
        "seeds": chosen.seeds,
        "texts": chosen.texts,
        "random": by_chance,
        "shuffled": shuffled(),
    }
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / "kinds.json").write_text(
        json.dumps(result, indent=1) + "\n", encoding="utf-8"
    )
    tables = report(result)
    print(tables)
    if chosen.docs:
        page = DOCS.read_text(encoding="utf-8")
        page = re.sub(
            r"(<!-- kinds -->\n).*?(<!-- end -->)",
            lambda m: m[1] + tables + m[2],
            page,
            flags=re.DOTALL,
        )
        DOCS.write_text(page, encoding="utf-8")


def random_weights(shape, length, seeds, texts):
    """How many heads have each kind, over models with random weights and texts of one length."""
    counts = Counter()
    for seed in range(seeds):
        for record in records(shape, length, seed, texts):
            counts.update(head_kinds(record["self"]).counts)
    return counts


def shuffled():
    """Kinds of the demo model's heads on texts, and on the same texts with the words of each
    sentence shuffled.
    """
    rng = np.random.default_rng(0)
    result = {"as written": Counter(), "shuffled": Counter()}
    for pair in TEXTS:
        mixed = [" ".join(rng.permutation(text.rstrip(".").split())) + "." for text in pair]
        for name, texts in (("as written", pair), ("shuffled", mixed)):
            result[name].update(head_kinds(hs.capture(None, None, *texts)["self"]).counts)
    return {name: dict(counts) for name, counts in result.items()}


def report(result):
    heads = sum(next(iter(result["random"].values())).values())
    lines = [
        f"\nModels with random weights (`python benchmarks/kinds.py --docs`): {result['seeds']} "
        f"of each shape, {result['texts']} texts each, {heads} heads",
        "a cell. The kind that comes up most but for “broad” and “none”; in brackets the upper "
        "end of the 95 %",
        "interval.\n",
        f"| tokens of a text | {' | '.join(map(str, LENGTHS))} |",
        f"| --- | {'---: | ' * len(LENGTHS)}".rstrip(),
    ]
    for shape in SPECIAL:
        cells = [result["random"][f"{shape}, {length}"] for length in LENGTHS]
        lines.append(f"| {shape} | {' | '.join(rate(cell) for cell in cells)} |")
    lines += [
        f"\nall-MiniLM-L6-v2, 72 heads on {len(TEXTS)} pairs of sentences, and with the words of "
        "each sentence",
        "shuffled:\n",
        f"| | {' | '.join(KINDS)} |",
        f"| --- | {'---: | ' * len(KINDS)}".rstrip(),
    ]
    for name, counts in result["shuffled"].items():
        lines.append(f"| {name} | {' | '.join(str(counts.get(kind, 0)) for kind in KINDS)} |")
    return "\n".join(lines) + "\n\n"


def rate(counts):
    worst = max(NAMED, key=lambda kind: counts.get(kind, 0))
    count, heads = counts.get(worst, 0), sum(counts.values())
    upper = binomtest(count, heads).proportion_ci(method="exact").high
    return f"{f'{worst} ' if count else ''}{count} ({upper:.1%})"


if __name__ == "__main__":
    main()
