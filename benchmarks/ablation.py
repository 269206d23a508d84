"""Measure what computing the layers below a change once saves, and how long 72 heads on 1,000 pairs
take.

    python benchmarks/ablation.py                         # both, 1,000 pairs: minutes
    python benchmarks/ablation.py --pairs 96 --threads 1  # the ratio on fewer

Pairs are made-up sentences of 10 or 19 word pieces; time is of the processor and of the clock, both
ways in the same process, in turns.
"""

from __future__ import annotations

import argparse
import random
import time

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
SIZES = (16, 32, 64, 128)
"""Examples at once: more of them are what stacking several heads along the batch would be."""


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--pairs", type=int, default=1000)
    asked.add_argument("--threads", type=int, default=2)
    asked.add_argument("--rounds", type=int, default=1)
    options = asked.parse_args()
    torch.set_num_threads(options.threads)
    model, tokenizer = load_model(None)
    pairs, gold = made_up(options.pairs)
    print(
        f"all-MiniLM-L6-v2, {options.pairs} pairs, {options.threads} threads, torch "
        f"{torch.__version__}"
    )
    print("\none pass over all pairs, by pairs at once (32 rows are 16 pairs):")
    for size in SIZES:
        task = tasks.likeness(tokenizer, pairs, gold, batch=size)
        print(f"  {size:4} pairs: {timed(lambda task=task: one_pass(model, task))}")
    task = tasks.likeness(tokenizer, pairs, gold)
    hs.ablate(model, tasks.likeness(tokenizer, pairs[:16], gold[:16]), heads=[(0, 0)], layers=False)
    shown: dict[bool, list[float]] = {True: [], False: []}
    for number in range(options.rounds):
        for share in (True, False):
            began, clock = time.process_time(), time.perf_counter()
            result = hs.ablate(model, task, share=share, layers=False)
            shown[share].append(time.process_time() - began)
            clock = time.perf_counter() - clock
            print(
                f"\nround {number}, {result.shared}: {shown[share][-1]:.1f} s, {clock:.1f} s by "
                "the clock"
            )
    print(f"\nwhole / shared, processor time: {min(shown[False]) / min(shown[True]):.2f}")


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


def timed(act: object) -> str:
    began, clock = time.process_time(), time.perf_counter()
    act()
    return f"{time.process_time() - began:.1f} s, {time.perf_counter() - clock:.1f} s by the clock"


if __name__ == "__main__":
    main()
