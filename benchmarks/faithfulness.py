"""Measure what running erased texts of one length together saves `headscope.faithfulness`.

    python benchmarks/faithfulness.py                 # twelve texts, a minute or two
    python benchmarks/faithfulness.py --rounds 5

A classifier of the shape of all-MiniLM-L6-v2 with random weights (what is computed does not depend
on them) explains made-up texts of 12 to 42 words, without an adversary. Erasure runs alone, before
each explanation, once a text and once in batches of texts of one length, in turns in one process;
the ratios are of the smallest processor times.
"""

from __future__ import annotations

import argparse
import random
import time
import warnings

import torch
from transformers import AutoModelForSequenceClassification

from headscope import faithfulness
from headscope.capturing import load_model
from headscope.studies import CounterfactualAttention, _explainer

WORDS = ("man", "woman", "child", "dog", "street", "park", "water", "red", "blue", "running")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--texts", type=int, default=12)
    asked.add_argument("--rounds", type=int, default=3)
    options = asked.parse_args()
    torch.set_num_threads(1)
    encoder, tokenizer = load_model(None)
    classifier = AutoModelForSequenceClassification.from_config(encoder.config).eval()
    texts = made_up(options.texts)
    seconds = {True: Seconds(), False: Seconds()}
    erased = _explainer.TextExplainer._erased
    for _ in range(options.rounds):
        for is_together, times in seconds.items():
            at_once = _explainer.AT_ONCE if is_together else 1
            _explainer.TextExplainer._erased = times.timed(erased, at_once)
            began = time.process_time()
            with warnings.catch_warnings(action="ignore"):
                faithfulness(
                    classifier,
                    tokenizer,
                    texts,
                    allow_unfit=True,
                    counterfactual=CounterfactualAttention(permutations=100),
                )
            times.whole.append(time.process_time() - began)
    alone, batched = min(seconds[False].whole), min(seconds[True].whole)
    print(f"{len(texts)} texts, {options.rounds} rounds, torch {torch.__version__}, 1 thread")
    print(f"all of faithfulness: one by one {alone:.2f} s, together {batched:.2f} s")
    singly, together = (min(seconds[way].erasing) for way in (False, True))
    print(f"erasure: one by one {singly:.2f} s, together {together:.2f} s")
    print(f"ratio of all: {alone / batched:.2f}; of erasure: {singly / together:.2f}")


class Seconds:
    """Processor seconds of each round: of all, and of running erased texts together."""

    def __init__(self) -> None:
        self.whole: list[float] = []
        self.erasing: list[float] = []

    def timed(self, run: object, at_once: int) -> object:
        """The function with so many tokens at once, its time added up for a round."""
        self.erasing.append(0.0)

        def timed(*given: object) -> object:
            usual, began = _explainer.AT_ONCE, time.process_time()
            _explainer.AT_ONCE = at_once
            curves = run(*given)
            _explainer.AT_ONCE = usual
            self.erasing[-1] += time.process_time() - began
            return curves

        return timed


def made_up(count: int) -> list[str]:
    """Texts of 12 to 42 words."""
    draw = random.Random(0)
    return [" ".join(draw.choices(WORDS, k=draw.randint(12, 42))) for _ in range(count)]


if __name__ == "__main__":
    main()
