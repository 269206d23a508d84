"""Measure what computing the layers below a change once saves, of disabling all 72 heads.

    python benchmarks/ablation.py                               # three kinds of examples, a minute
    python benchmarks/ablation.py --pairs 1000 --threads 2      # pairs in batches of 32 rows alone

Texts are made-up sentences of 10 or 19 word pieces; time is of the processor, the ways taking turns
in the same process: the model alone, whole runs, and layers below computed once, which is what
`headscope.ablate` does.
"""

from __future__ import annotations

import argparse
import os
import random
import time

import numpy as np
import torch

import headscope as hs
from headscope import tasks
from headscope.capturing import load_model

SAID = "the {} {} is {} in the {}"
WORDS = (
    "man",
    "woman",
    "child",
    "dog",
    "street",
    "park",
    "water",
    "red",
    "blue",
    "running",
    "playing",
    "sitting",
)
WAYS = ("model alone", "whole runs", "layers below once")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--pairs", type=int, help="pairs in usual batches, instead of all kinds")
    asked.add_argument("--texts", type=int, default=32, help="texts in all other kinds")
    asked.add_argument("--threads", type=int, default=1)
    asked.add_argument("--rounds", type=int, default=3)
    options = asked.parse_args()
    torch.set_num_threads(options.threads)
    model, tokenizer = load_model(None)
    print(
        f"all-MiniLM-L6-v2, 72 heads, {options.threads} threads, torch {torch.__version__}, load "
        f"{os.getloadavg()[0]:.1f}; least and largest of {options.rounds} rounds in seconds"
    )
    for name, task in tasks_of(tokenizer, options.pairs, options.texts).items():
        seconds = {way: [] for way in WAYS}
        results = {}
        hs.ablate(model, task, heads=[(0, 0)], layers=False)
        for _ in range(options.rounds):
            for way in WAYS:
                began = time.process_time()
                results[way] = run(way, model, task)
                seconds[way].append(time.process_time() - began)
        same = all(np.array_equal(results[way], results[WAYS[1]]) for way in WAYS[1:])
        print(f"\n{name}; scores {'the same to the last bit' if same else 'DIFFERENT'}")
        for way in WAYS:
            print(f"  {way:18} {min(seconds[way]):6.2f} to {max(seconds[way]):.2f}")
        ratios = [min(seconds[way]) / min(seconds[WAYS[-1]]) for way in WAYS[:-1]]
        print("  ratios to the last: " + ", ".join(f"{ratio:.2f}" for ratio in ratios))
    print(f"\nload {os.getloadavg()[0]:.1f} at the end")


def tasks_of(tokenizer: object, pairs: int | None, count: int) -> dict[str, tasks.Task]:
    """Examples by name: few pairs, and texts one by one, or several at once."""
    if pairs is not None:
        return {f"{pairs} pairs": tasks.likeness(tokenizer, *made_up(pairs))}
    texts = [one for one, _ in made_up(count)[0]]
    return {
        "4 pairs in one batch": tasks.likeness(tokenizer, *made_up(4)),
        f"{count} texts one by one": states(tokenizer, texts, 1),
        f"{count} texts by 4": states(tokenizer, texts, 4),
        f"{count} texts in one batch": states(tokenizer, texts, count),
    }


def states(tokenizer: object, texts: list[str], count: int) -> tasks.Task:
    """The mean of the states, of so many texts at once."""
    batches = [
        dict(tokenizer(texts[at : at + count], padding=True, return_tensors="pt"))
        for at in range(0, len(texts), count)
    ]
    return tasks.Task(batches, lambda model, batch: model(**batch)[0].double().mean((1, 2)))


def run(way: str, model: torch.nn.Module, task: tasks.Task) -> np.ndarray | None:
    """The scores without each head; nothing of the model alone, which is run as often."""
    if way == "model alone":
        for _ in range(72):
            one_pass(model, task)
        return None
    return hs.ablate(model, task, share=way != "whole runs", layers=False).scores


def made_up(count: int) -> tuple[list[tuple[str, str]], list[int]]:
    """Pairs of sentences, alike or not by turns."""
    draw = random.Random(0)
    sides = [[_sentence(draw) for _ in range(count)] for _ in (0, 1)]
    return list(zip(*sides, strict=True)), [number % 2 for number in range(count)]


def _sentence(draw: random.Random) -> str:
    return " and ".join(_said(draw) for _ in range(draw.randint(1, 2)))


def _said(draw: random.Random) -> str:
    return SAID.format(*draw.choices(WORDS, k=4))


@torch.no_grad()
def one_pass(model: torch.nn.Module, task: tasks.Task) -> None:
    for number in range(len(task.batches)):
        task.values(model, number)


if __name__ == "__main__":
    main()
