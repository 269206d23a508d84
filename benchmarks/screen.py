"""Measure what a screen by gradients saves, and whether it names the heads that matter.

    python benchmarks/screen.py --model FOLDER --texts FILE [--top 10]

A causal model predicts the next word of the texts. Every head is disabled in turn, and then only
those that the screen leaves; both in one process, by turns, in processor time. The screen's ranking
is compared with that of the exact changes, and so are the exact changes on one half of the texts
with those on the other half: no screen can agree better than the texts agree with themselves. With
random weights nothing was learnt, and the same is told of them.
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


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--model", required=True)
    asked.add_argument("--texts", type=Path, required=True)
    asked.add_argument("--limit", type=int, default=200)
    asked.add_argument("--top", type=int, default=10)
    asked.add_argument("--rounds", type=int, default=3)
    options = asked.parse_args()
    torch.set_num_threads(1)
    model = load_bare_model(options.model, writes=True)
    tokenizer = load_tokenizer(options.model)
    texts = options.texts.read_text(encoding="utf-8").splitlines()[: options.limit]
    for name, of in (("trained", model), ("random weights", random_twin(model))):
        print(f"\n{name}, {len(texts)} texts, top {options.top}")
        compared(of, tasks.next_word(tokenizer, texts), options)
        halves(of, tokenizer, texts, options.top)


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
