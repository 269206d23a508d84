"""Measure what a screen by gradients saves, and whether it names the heads that matter.

    python benchmarks/screen.py --model FOLDER --texts FILE [--top 10]

A causal model predicts the next word of the texts. Every head is disabled in turn, and then only
those that the screen leaves; both in one process, by turns, in processor time. The screen's ranking
is compared with that of the exact changes, and so are the exact changes on one half of the texts
with those on the other half: no screen can agree better than the texts agree with themselves. With
random weights nothing was learnt, and the same is told of them.

    python benchmarks/screen.py --model FOLDER --treebank en_ewt-ud-dev.conllu [--tables 400]

How often a screen finds something where there is nothing: the changes of all heads on the sentences
of a treebank, and their estimates, are those of whole documents with one sign drawn at random, so
that no head has an effect. A table is made of documents drawn from the treebank; the screen ranks
all heads on them, and the heads that it leaves are judged on the same ones, as `headscope.ablate`
does. Without signs, how often the interval of a head that was left holds its change on all
sentences.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from scipy.stats import spearmanr

import headscope as hs
from headscope import tasks
from headscope.capturing import load_bare_model, load_tokenizer, random_twin
from headscope.corpus import Sums
from headscope.interventions.importance import gate_slopes
from headscope.linguistics import read_treebank
from headscope.studies import Ablation
from headscope.studies.ablate._ablate import JUDGING, screened
from headscope.studies.ablate._result import counts_of


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--model", required=True)
    asked.add_argument("--texts", type=Path)
    asked.add_argument("--treebank", type=Path)
    asked.add_argument("--tables", type=int, default=400)
    asked.add_argument("--limit", type=int, default=200)
    asked.add_argument("--top", type=int, default=10)
    asked.add_argument("--rounds", type=int, default=3)
    options = asked.parse_args()
    torch.set_num_threads(1)
    model = load_bare_model(options.model, head="next word")
    tokenizer = load_tokenizer(options.model)
    if options.treebank is not None:
        false_alarms(model, tokenizer, options)
        return
    texts = options.texts.read_text(encoding="utf-8").splitlines()[: options.limit]
    for name, of in (("trained", model), ("random weights", random_twin(model))):
        print(f"\n{name}, {len(texts)} texts, top {options.top}")
        compared(of, tasks.next_word(tokenizer, texts), options)
        halves(of, tokenizer, texts, options.top)


def false_alarms(model: torch.nn.Module, tokenizer: object, options: argparse.Namespace) -> None:
    """Print how often something is found where there is nothing, and intervals hold the truth."""
    bank = [each for each in read_treebank(options.treebank) if 4 < len(each) < 25]
    # As many as have a row each in a result.
    bank = bank[:500]
    names = [f"{number:03}" for number in range(len(bank))]
    task = tasks.next_word(tokenizer, [each.text for each in bank])
    whole = hs.ablate(model, task, layers=False, allow_unfit=True, groups=names)
    batches = range(len(task.batches))
    cells, slopes = gate_slopes(
        model,
        lambda: task.values(model, 0),
        lambda: (task.slopes_from(model, number) for number in batches),
    )
    assert cells == whole.cells
    sides = whole.changes, -task.joined([slopes])
    documents = np.unique([each.document for each in bank], return_inverse=True)[1]
    for count in (10, 20, 40):
        tables = []
        rng = np.random.default_rng(count)
        for _ in range(options.tables):
            drawn = rng.integers(documents.max() + 1, size=count)
            places = [np.flatnonzero(documents == document) for document in drawn]
            signs = rng.choice((-1.0, 1.0), count)
            asked = cells, sides, options.top
            null, real = (judged(asked, places, own) for own in (signs, np.ones(count)))
            at = [cells.index(cell) for cell in real.cells]
            truth = whole.change[at]
            rows = (null.p < 0.05).mean(), (null.corrected < 0.05).any()
            held = [
                ((own[:, 0] <= of) & (of <= own[:, 1])).mean()
                for own, of in ((null.intervals, 0 * truth), (real.intervals, truth))
            ]
            tables.append((*rows, *held))
        shares = ", ".join(f"{share:.1%}" for share in np.mean(tables, axis=0))
        print(f"{count} documents: p < .05, any corrected, interval holds 0, and truth: {shares}")


def judged(asked: tuple, places: list[np.ndarray], signs: np.ndarray) -> Ablation:
    """What is said of the heads that a screen leaves, on these documents with these signs."""
    cells, sides, top = asked
    rows = np.concatenate(places)
    sign = np.repeat(signs, [len(own) for own in places])[:, None]
    changes, estimates = (side[rows] * sign for side in sides)
    listed, left = screened(cells, -estimates.mean(axis=0), "score", top)
    sums, at = Sums("example"), [cells.index(cell) for cell in left]
    facts = {"cells": [list(cell) for cell in left]}
    number = 0
    for document, own in enumerate(places):
        for _ in own:
            counts = counts_of(np.concatenate([[0.5], 0.5 + changes[number, at]]))
            sums.add(f"{number}", f"{document:02}", counts, length=1, facts=facts)
            number += 1
    return Ablation.of_sums(sums, {}, JUDGING | {"estimates": listed})


def compared(model: torch.nn.Module, task: tasks.Task, options: argparse.Namespace) -> None:
    """Cost of both ways, and how far their rankings agree."""
    shown: dict[str, list[float]] = {"all": [], "screened": []}
    for _ in range(options.rounds):
        began = time.process_time()
        whole = hs.ablate(model, task, layers=False, allow_unfit=True)
        shown["all"].append(time.process_time() - began)
        began = time.process_time()
        screened = hs.ablate(
            model, task, layers=False, screen="gradient", top=options.top, allow_unfit=True
        )
        shown["screened"].append(time.process_time() - began)
    all_heads, some = min(shown["all"]), min(shown["screened"])
    print(
        f"  {len(whole.cells)} heads: {all_heads:.1f} s; screen and {options.top} heads: "
        f"{some:.1f} s; ratio {all_heads / some:.1f}"
    )
    estimates = np.array([screened.estimates[cell] for cell in whole.cells])
    said = agreement(estimates, whole.change, options.top)
    print(f"  estimate and exact change: {said}")
    ranked = np.argsort(-np.abs(estimates))
    exact = set(np.argsort(-np.abs(whole.change))[: options.top].tolist())
    for count in (options.top, 2 * options.top):
        held = len(exact & set(ranked[:count].tolist()))
        print(f"  of the {options.top} largest exact changes a screen of {count} has {held}")


def halves(model: torch.nn.Module, tokenizer: object, texts: list[str], top: int) -> None:
    """How far the exact changes on every second text agree with those on the others."""
    changes = []
    for first in (0, 1):
        task = tasks.next_word(tokenizer, texts[first::2])
        changes.append(hs.ablate(model, task, layers=False, allow_unfit=True).change)
    print(f"  exact changes on two halves: {agreement(*changes, top)}")


def agreement(one: np.ndarray, other: np.ndarray, top: int) -> str:
    """Rank correlation of the sizes, and how many of the largest both have."""
    rank = spearmanr(np.abs(one), np.abs(other)).statistic
    largest = [set(np.argsort(-np.abs(each))[:top].tolist()) for each in (one, other)]
    chance = top**2 / len(one)
    both = len(largest[0] & largest[1])
    return f"Spearman {rank:.2f}, {both} of the top {top} in both ({chance:.1f} by chance)"


if __name__ == "__main__":
    main()
