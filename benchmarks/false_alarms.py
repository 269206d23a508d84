"""How often a head that was chosen among many is said to be above its rule where there is nothing
to be found, and how often its interval holds the truth where there is.

The attention is real: the demo model reads a treebank, and each head, by row and by column, names a
head for every word. What it is judged by is not:

- random: the gold head of a word is any other word of its sentence; 144 heads (by row, by column)
  against the offsets of `hs.relations`;
- rows, columns: the same gold; 72 heads by row against the same heads by column, as if these were
  rules;
- permuted: the real gold, and the 144 heads in another order in each document; the first half
  against the second;
- one document: random gold, and all sentences of one document.

A table is made of documents drawn from the treebank, and has a row for each relation with 20 words
or more, as `hs.relations` prints them. Planted: one more head, which names the gold head of some
words, on top of what chance gives.

    python benchmarks/false_alarms.py en_ewt-ud-dev.conllu                  # minutes of one core
    python benchmarks/false_alarms.py en_ewt-ud-dev.conllu --docs    # and benchmarks/tables.md
    python benchmarks/false_alarms.py en_ewt-ud-test.conllu --tables 40 --seed 7
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from intervals import percent, table

import headscope as hs
from headscope.capturing import load_model
from headscope.evidence import judged, redrawn_interval, redrawn_ratios
from headscope.evidence.choice import Choices, chosen, halves_of
from headscope.linguistics import OFFSETS, Treebank, predicted_heads, read_treebank
from headscope.studies.shared._fold import maps_of_words

PAGE = Path(__file__).parent / "tables.md"
MARKS = ("<!-- false alarms -->", "<!-- end of false alarms -->")
LEAST = 20
PLANTED = (0.05, 0.1, 0.2, 0.4)
"""Shares of words of which the planted head knows the head."""


Table = dict[str, Choices]


class Words:
    """What every head names for each word of a treebank.

    Args:
        bank: the treebank.
    """

    def __init__(self, bank: Treebank) -> None:
        model, tokenizer = load_model(None)
        named = []
        records = hs.capture_many(model, tokenizer, [each.text for each in bank], keep="weights")
        for sentence, record in zip(bank, records, strict=True):
            maps = maps_of_words(next(iter(record.stacks.values())), sentence.spans, rows="mean")
            named.append(predicted_heads(maps).reshape(-1, len(sentence)).astype(np.int16))
        sizes = np.array([len(sentence) for sentence in bank])
        _, documents = np.unique([sentence.document for sentence in bank], return_inverse=True)
        self.named = np.concatenate(named, axis=1)
        self.gold = np.concatenate([sentence.heads for sentence in bank]) - 1
        self.relations = np.array([name for sentence in bank for name in sentence.relations])
        self.size = np.repeat(sizes, sizes)
        self.place = np.concatenate([np.arange(size) for size in sizes])
        self.document = np.repeat(documents, sizes)

    def drawn(
        self, rng: np.random.Generator, count: int | None, *, again: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Words of so many documents of two words or more, and the number of the document of each;
        a document may be drawn again, and is then another one.
        """
        there = np.unique(self.document[self.size > 1])
        drawn = there if count is None else rng.choice(there, count, replace=again)
        words = [np.flatnonzero((self.document == each) & (self.size > 1)) for each in drawn]
        return np.concatenate(words), np.repeat(np.arange(len(drawn)), [len(own) for own in words])

    def random_gold(self, rng: np.random.Generator, words: np.ndarray) -> np.ndarray:
        """Any other word of the sentence."""
        steps = 1 + np.floor(rng.random(len(words)) * (self.size[words] - 1)).astype(int)
        return (self.place[words] + steps) % self.size[words]

    def by_offset(self, words: np.ndarray, gold: np.ndarray, *, wrong: bool = False) -> np.ndarray:
        """How likely each offset is to be right; where it leaves the sentence by chance, or, as it
        was once, never.
        """
        named = self.place[words] + np.array(OFFSETS)[:, None]
        outside = (named < 0) | (named >= self.size[words])
        chance = 0.0 if wrong else 1 / (self.size[words] - 1)
        return np.where(outside, chance, named == gold) * (gold >= 0)

    def table(
        self, words: np.ndarray, documents: np.ndarray, heads: np.ndarray, rules: np.ndarray
    ) -> Table:
        """A question for each relation."""
        names, kinds, counts = np.unique(
            self.relations[words], return_inverse=True, return_counts=True
        )
        count = int(documents.max()) + 1
        asked = {}
        for number in np.flatnonzero((counts >= LEAST) & (names != "root")):
            own = np.flatnonzero(kinds == number)
            own = own[np.argsort(documents[own], kind="stable")]
            there, starts = np.unique(documents[own], return_index=True)
            wholes = np.bincount(documents[own], minlength=count).astype(float)
            sums = []
            for right in (heads, rules):
                all_ = np.zeros((len(right), count))
                all_[:, there] = np.add.reduceat(right[:, own].astype(float), starts, axis=1)
                sums.append(all_)
            asked[str(names[number])] = Choices(wholes=wholes, scores=sums[0], baselines=sums[1])
        return asked


def random(bank: Words, rng: np.random.Generator, count: int | None, **how: bool) -> Table:
    words, documents = bank.drawn(rng, count)
    gold = bank.random_gold(rng, words)
    rules = bank.by_offset(words, gold, **how)
    return bank.table(words, documents, bank.named[:, words] == gold, rules)


def clamped(bank: Words, rng: np.random.Generator, count: int | None) -> Table:
    return random(bank, rng, count, wrong=True)


def rows_and_columns(bank: Words, rng: np.random.Generator, count: int | None) -> Table:
    words, documents = bank.drawn(rng, count)
    right = bank.named[:, words] == bank.random_gold(rng, words)
    return bank.table(words, documents, *np.split(right, 2))


def permuted(bank: Words, rng: np.random.Generator, count: int | None) -> Table:
    words, documents = bank.drawn(rng, count)
    right = bank.named[:, words] == bank.gold[words]
    for document in range(documents.max() + 1):
        own = documents == document
        right[:, own] = rng.permutation(right[:, own], axis=0)
    return bank.table(words, documents, *np.split(right, 2))


def one_document(bank: Words, rng: np.random.Generator, count: int | None) -> Table:
    words, documents = bank.drawn(rng, count)
    gold = bank.random_gold(rng, words)
    right = bank.named[:, words] == gold
    return bank.table(words, 0 * documents, right, bank.by_offset(words, gold))


NULLS: dict[str, Callable[[Words, np.random.Generator, int | None], Table]] = {
    "random": random,
    "random, offsets that leave the sentence are wrong": clamped,
    "rows, columns": rows_and_columns,
    "permuted": permuted,
    "one document": one_document,
}


def real(bank: Words, rng: np.random.Generator, count: int | None) -> Table:
    """The real gold, for which there are heads; documents may be drawn again."""
    words, documents = bank.drawn(rng, count, again=True)
    gold = bank.gold[words]
    right = (bank.named[:, words] == gold) & (gold >= 0)
    return bank.table(words, documents, right, bank.by_offset(words, gold))


def planted(bank: Words, rng: np.random.Generator, count: int, share: float) -> Table:
    """Random gold, and one more head that knows some of it."""
    words, documents = bank.drawn(rng, count)
    gold = bank.random_gold(rng, words)
    right = bank.named[:, words] == gold
    right = np.concatenate([right, right[:1] | (rng.random(len(words)) < share)])
    return bank.table(words, documents, right, bank.by_offset(words, gold))


def headscope(asked: Table, seed: int) -> dict[str, np.ndarray]:
    """What `chosen` finds."""
    numbers = chosen(list(asked.values()), seed=seed)
    names = ("p", "p_corrected", "held_out_above", "held_out_above_low", "held_out_above_high")
    return {name.removeprefix("held_out_"): _column(numbers, name) for name in names}


def _column(numbers: list[dict], name: str) -> np.ndarray:
    return np.array([each[name] for each in numbers], float)


def chosen_on(asked: Choices, half: np.ndarray) -> tuple[int, int]:
    """The best head, and the best rule, of some documents."""
    head, rule = (of[:, half].sum(axis=1).round(9) for of in (asked.scores, asked.baselines))
    return int(head.argmax()), int(rule.argmax())


def halves(asked: Choices, seed: int) -> list[np.ndarray]:
    """Those that heads are chosen on, each and the one that it is measured on."""
    there = asked.wholes > 0
    own = halves_of(len(there), seed, 10)
    return [
        part for half in own for part in (half, ~half) if 0 < (there & half).sum() < there.sum()
    ]


def fixed(asked: Table, seed: int) -> dict[str, np.ndarray]:
    """The same effects with the choices held fixed: flipped and redrawn documents, of the mean over
    splits.
    """
    wholes = np.stack([each.wholes for each in asked.values()], axis=1)
    above = np.zeros(wholes.shape)
    for number, each in enumerate(asked.values()):
        parts = halves(each, seed)
        for half in parts:
            head, rule = chosen_on(each, half)
            apart = each.scores[head] - each.baselines[rule]
            above[~half, number] += 2 * apart[~half] / len(parts)
        if not parts:
            above[:, number] = np.nan
    p, corrected = judged([(above, wholes)])[0]
    ends = redrawn_interval(redrawn_ratios(np.nan_to_num(above), wholes), wholes)
    return {
        "p": p,
        "p_corrected": corrected,
        "above": above.sum(axis=0) / wholes.sum(axis=0),
        "above_low": ends[:, 0],
        "above_high": ends[:, 1],
    }


def truth_of(asked: Choices, whole: Choices, seed: int) -> float:
    """How far what is chosen on halves is above its rule on all documents there are."""
    apart = []
    for half in halves(asked, seed):
        head, rule = chosen_on(asked, half)
        apart.append((whole.scores[head] - whole.baselines[rule]).sum() / whole.wholes.sum())
    return float(np.mean(apart)) if apart else float("nan")


SHOWN = ("p", "any", "over 0")
WAYS = {"fixed": fixed, "headscope": headscope}


def main() -> None:
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument("treebank", type=Path)
    asked.add_argument("--tables", type=int, default=200, help="of each null")
    asked.add_argument("--documents", type=int, nargs="*", default=[20, 50, 150])
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--docs", action="store_true", help="write them into benchmarks/tables.md")
    options = asked.parse_args()
    bank = Words(read_treebank(options.treebank))
    parts = [
        alarms(bank, options.tables, options.documents, options.seed),
        coverage(bank, options.tables, options.seed),
        power(bank, options.tables // 10, options.seed),
    ]
    told = "\n\n".join(parts)
    if options.docs:
        page = PAGE.read_text(encoding="utf-8")
        before, after = page.split(MARKS[0])[0], page.split(MARKS[1])[1]
        PAGE.write_text(f"{before}{MARKS[0]}\n\n{told}\n\n{MARKS[1]}{after}", encoding="utf-8")


def alarms(bank: Words, tables: int, documents: list[int], seed: int) -> str:
    """How often something is found where there is nothing."""
    rows = []
    for name, make in NULLS.items():
        for count in documents:
            cells = []
            for judge in WAYS.values():
                one, family, over = [], [], []
                for number in range(tables):
                    rng = np.random.default_rng([seed, number])
                    numbers = judge(make(bank, rng, count), number)
                    one.append(numbers["p"] < 0.05)
                    family.append((numbers["p_corrected"] < 0.05).any())
                    over.append(numbers["above_low"] > 0)
                cells += [percent(np.concatenate(each).mean()) for each in (one, over)]
                cells.insert(-1, percent(np.mean(family)))
                spread = np.std([each.mean() for each in one]) / np.sqrt(tables)
            rows.append((name, str(count), *cells, percent(spread)))
            print(rows[-1], flush=True)
    header = ("null", "documents", *(f"{what}, {way}" for way in WAYS for what in SHOWN), "error")
    title = (
        f"{tables} tables each, 18 to 35 relations in a table, where no head is above its rule. "
        "*p*: rows below 0.05; *any*: tables with a row below 0.05 when corrected; *over 0*: rows "
        "whose interval of `above` lies over 0 (nominal 5, 5 and 2.5 %). *fixed*: as if head and "
        "rule had been given and not chosen. *error*: standard error of the share of p."
    )
    return f"{title}\n\n{table(header, rows)}"


def coverage(bank: Words, tables: int, seed: int) -> str:
    """How often the interval of `above` holds what the chosen heads give on all documents."""
    rows, whole = [], real(bank, np.random.default_rng(0), None)
    for count in (10, 20, 50):
        held: dict[str, list[tuple[bool, bool]]] = {way: [] for way in WAYS}
        for number in range(tables):
            drawn = real(bank, np.random.default_rng([seed, 1, number]), count)
            asked = {name: each for name, each in drawn.items() if name in whole}
            truths = np.array([truth_of(asked[name], whole[name], number) for name in asked])
            for way, judge in WAYS.items():
                numbers = judge(asked, number)
                low, high = numbers["above_low"], numbers["above_high"]
                known = ~np.isnan(low) & ~np.isnan(truths)
                held[way] += zip(
                    low[known] > truths[known], high[known] < truths[known], strict=True
                )
        cells = []
        for missed in held.values():
            over, under = np.mean(missed, axis=0)
            cells += [percent(1 - over - under), percent(over), percent(under)]
        rows.append((str(count), *cells))
        print(rows[-1], flush=True)
    title = (
        f"The real gold, {tables} tables of documents that may be drawn again: so many 95 % "
        "intervals of `above` hold how far the chosen heads are above the chosen offsets on all "
        "documents of the treebank, lie over it, and lie under it:"
    )
    header = (
        "documents",
        *(f"{what}, {way}" for way in WAYS for what in ("hold", "over", "under")),
    )
    return f"{title}\n\n{table(header, rows)}"


def power(bank: Words, tables: int, seed: int) -> str:
    """How often a planted head is found."""
    rows = []
    for share in PLANTED:
        cells = []
        for count in (20, 50):
            for judge in WAYS.values():
                held = []
                for number in range(tables):
                    asked = planted(bank, np.random.default_rng([seed, 2, number]), count, share)
                    held.append(judge(asked, number)["p_corrected"] < 0.05)
                cells.append(percent(np.concatenate(held).mean()))
        rows.append((percent(share), *cells))
        print(rows[-1], flush=True)
    title = (
        f"A head is planted that knows the (random) gold of so many words, {tables} tables each; "
        "rows with a corrected p below 0.05:"
    )
    header = ("words", *(f"{count} documents, {way}" for count in (20, 50) for way in WAYS))
    return f"{title}\n\n{table(header, rows)}"


if __name__ == "__main__":
    main()
