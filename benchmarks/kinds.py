"""Measure how often a head is given a kind by chance: random weights, and texts whose words are
shuffled.

    python benchmarks/kinds.py --docs          # all of it, some minutes; writes tables.md
    python benchmarks/kinds.py --seeds 1       # a short look

With random weights nothing is to be found, so every pattern and every resting place is a false one.
With ``--book FILE`` (a plain text, such as a novel of Project Gutenberg) it also measures what a
longer text changes: the kinds of one text by its length, and the majority kind of each head over 40
paragraphs beside that over their first 12 words.

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
DOCS = HERE / "tables.md"
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
        "--docs", action="store_true", help="write the tables into benchmarks/tables.md"
    )
    options.add_argument("--book", type=Path, help="a plain text, for the tables of lengths")
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
    if chosen.book:
        result["lengths"] = by_length(chosen.book.read_text(encoding="utf-8"))
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


def by_length(book):
    """Kinds of the demo model's heads on longer and longer beginnings of a text, and the number of
    heads whose majority kind is the same over paragraphs and over their first words.
    """
    paragraphs = [" ".join(each.split()) for each in book.split("\n\n")]
    paragraphs = [each for each in paragraphs if 30 <= len(each.split()) <= 110][20:60]
    words = " ".join(paragraphs).split()
    counts = {}
    for length in (8, 16, 32, 64, 128, 256, 375):
        stack = hs.capture(None, None, " ".join(words[:length]))["self"]
        counts[str(len(stack.query))] = head_kinds(stack).counts
    long, short = (
        majority([" ".join(each.split()[:most]) for each in paragraphs]) for most in (None, 12)
    )
    return {"counts": counts, "alike": int((long == short).sum()), "heads": long.size}


def majority(texts):
    """The most frequent kind of each head over texts."""
    kinds = [head_kinds(hs.capture(None, None, text)["self"]).number("kind") for text in texts]
    counts = [(np.array(kinds) == at).sum(axis=0) for at in range(len(KINDS))]
    return np.argmax(counts, axis=0)


def lengths_table(lengths):
    columns = lengths["counts"]
    lines = [
        f"\nall-MiniLM-L6-v2, {lengths['heads']} heads on beginnings of one text "
        "(`--book`, Alice's Adventures in Wonderland); over 40 paragraphs and",
        f"over their first 12 words {lengths['alike']} heads have the same majority kind.\n",
        f"| tokens of the text | {' | '.join(columns)} |",
        f"| --- | {'---: | ' * len(columns)}".rstrip(),
    ]
    for kind in KINDS:
        cells = " | ".join(str(counts[kind]) for counts in columns.values())
        lines.append(f"| {kind} | {cells} |")
    return lines


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
    if "lengths" in result:
        lines += lengths_table(result["lengths"])
    return "\n".join(lines) + "\n\n"


def rate(counts):
    worst = max(NAMED, key=lambda kind: counts.get(kind, 0))
    count, heads = counts.get(worst, 0), sum(counts.values())
    upper = binomtest(count, heads).proportion_ci(method="exact").high
    return f"{f'{worst} ' if count else ''}{count} ({upper:.1%})"


if __name__ == "__main__":
    main()
