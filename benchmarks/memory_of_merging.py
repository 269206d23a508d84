"""Measure the memory that probes take while they learn.

    python benchmarks/memory_of_merging.py                       # of 1,000 and 8,000 sentences
    python benchmarks/memory_of_merging.py --texts 1000 4000 --kinds attention

A tiny model reads made-up sentences, in parts of 500. What is printed is the peak of what Python
and NumPy allocate while a probe learns for one epoch from the finished parts (tracemalloc), and
the processor time without that: where all that was read is held, and where 4 MiB of it are. The
model has 6 layers of 12 heads and 48 features.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModel

import headscope as hs
from headscope.linguistics import Sentence
from headscope.studies.probe import _data
from headscope.studies.shared._fold_run import FoldJob
from headscope.testing import tiny_model, tiny_tokenizer

PART = 500
WORDS = ("the", "cat", "dog", "sat", "ran", "on", "by", "it", "us", "me", "all")
MIB = 2**20
WAYS = {"held": 10**9, "files": 4 * MIB}
"""Bytes of what was read that are held."""
KINDS = ("attention", "relation", "structural", "edge")
OPTIONS: dict[str, Any] = {"epochs": 1, "layers": False, "layer": 1, "rank": 8}


def words_of(number: int) -> list[str]:
    # Words of the number make every text another one.
    digits = [WORDS[int(digit)] for digit in str(number)]
    return [*digits, *np.random.default_rng(number).choice(WORDS, 4).tolist()]


def sentence(number: int) -> Sentence:
    words = tuple(words_of(number))
    rng = np.random.default_rng(number)
    heads = (0, *(int(rng.integers(1, at + 1)) for at in range(1, len(words))))
    relations = ("root", *rng.choice(["nsubj", "obj", "det"], len(words) - 1).tolist())
    return Sentence(
        name=f"s{number}",
        words=words,
        heads=heads,
        relations=relations,
        upos=tuple(rng.choice(["NOUN", "VERB"], len(words)).tolist()),
    )


def wide_model() -> Any:
    """More heads, as the sentences of a probe take more memory than their words."""
    config = tiny_model("bert").config
    config.num_hidden_layers, config.num_attention_heads = 6, 12
    config.hidden_size = config.intermediate_size = 48
    torch.manual_seed(0)
    return AutoModel.from_config(config).eval()


@contextmanager
def measured(held: int, *, traced: bool) -> Iterator[dict[str, float]]:
    """What learning takes, from the moment in which all sentences are read."""
    spent: dict[str, float] = {}
    before, made = _data.HELD, FoldJob.made

    def watched(job: Any, *given: Any) -> Any:
        if traced:
            tracemalloc.start()
        spent["begun"] = time.process_time()
        return made(job, *given)

    _data.HELD, FoldJob.made = held, watched  # ty: ignore
    try:
        yield spent
    finally:
        spent["seconds"] = time.process_time() - spent.pop("begun")
        if traced:
            spent["peak"] = tracemalloc.get_traced_memory()[1] / MIB
            tracemalloc.stop()
        _data.HELD, FoldJob.made = before, made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--texts", type=int, nargs="+", default=[1000, 8000])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| probe | sentences | held, MiB | files, MiB | held, s | files, s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for kind in options.kinds:
        model = wide_model(), tiny_tokenizer()
        for count in options.texts:
            sentences = list(map(sentence, range(count)))
            with tempfile.TemporaryDirectory() as folder:
                run = {"out": Path(folder) / "run", "part_size": PART, "progress": False}
                hs.probe(*model, sentences, kind=kind, **OPTIONS, **run)
                cells = {}
                for way, held in WAYS.items():
                    for traced in (True, False):
                        with measured(held, traced=traced) as spent:
                            hs.probe(*model, sentences, kind=kind, **OPTIONS, **run)
                        cells |= {(way, what): value for what, value in spent.items()}
            numbers = [f"{cells[way, 'peak']:.1f}" for way in WAYS]
            numbers += [f"{cells[way, 'seconds']:.1f}" for way in WAYS]
            print(f"| {kind} | {count:,} | {' | '.join(numbers)} |", flush=True)


if __name__ == "__main__":
    main()
