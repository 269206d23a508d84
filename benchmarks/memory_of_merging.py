"""Measure the memory that the result of a run takes while its parts are put together.

    python benchmarks/memory_of_merging.py                       # 1,000 and 8,000 texts
    python benchmarks/memory_of_merging.py --texts 1000 4000 --studies norms relations

A tiny model reads made-up texts, in parts of 500. Each run is put together twice from the same
finished parts: with the values of all texts held, as up to 2,000 texts, and from sums, as above.
What is printed is the peak of what Python and NumPy allocate meanwhile (tracemalloc), and the
processor time without that.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification

import headscope as hs
from headscope.linguistics import Mention, Passage, Sentence, Treebank
from headscope.studies import AlignedPair, CounterfactualAttention
from headscope.studies.ablation._in_parts_job import AblationJob
from headscope.studies.shared import _counted_texts
from headscope.testing import cipher_pairs, cipher_translator, tiny_model, tiny_tokenizer

PART = 500
WORDS = ("the", "cat", "dog", "sat", "ran", "on", "by", "it", "us", "me", "all")
MIB = 2**20
WAYS = {"held": 10**9, "sums": 0}
"""Texts above which sums alone are kept."""


def words_of(number: int) -> list[str]:
    # Words of the number make every text another one.
    digits = [WORDS[int(digit)] for digit in str(number)]
    return [*digits, *np.random.default_rng(number).choice(WORDS, 4).tolist()]


def sentence(number: int) -> Sentence:
    words = tuple(words_of(number))
    rng = np.random.default_rng(number)
    heads = (0, *(int(rng.integers(1, at + 1)) for at in range(1, len(words))))
    relations = ("root", *rng.choice(["nsubj", "obj", "det"], len(words) - 1).tolist())
    return Sentence(name=f"s{number}", words=words, heads=heads, relations=relations)


def passage(number: int) -> Passage:
    words, spans, start = words_of(number), [], 0
    for word in words:
        spans.append((start, start + len(word)))
        start += len(word) + 1
    mentions = tuple(
        Mention(start=at, stop=at + 1, entity=f"e{at % 2}", kind=("pronoun", "proper")[at // 2])
        for at in range(4)
    )
    return Passage(name=f"p{number}", text=" ".join(words), spans=tuple(spans), mentions=mentions)


def texts_of(count: int) -> list[str]:
    return [" ".join(words_of(number)) for number in range(count)]


def pair(number: int) -> dict[str, Any]:
    one, other = (" ".join(words_of(seed)) for seed in (number, number + 10**6))
    return {"sentence1": one, "sentence2": other, "label": number % 11 / 10}


STUDIES: dict[str, Callable[..., Any]] = {
    "norms": lambda model, count, **run: hs.norm_study(*model, texts_of(count), **run),
    "mechanism": lambda model, count, **run: hs.mechanism(
        *model, texts_of(count), at=[(0, 1), (1, 2)], **run
    ),
    "relations": lambda model, count, **run: hs.relations(
        *model, Treebank("made up", tuple(map(sentence, range(count)))), **run
    ),
    "coref": lambda model, count, **run: hs.coref(*model, list(map(passage, range(count))), **run),
    "faithfulness": lambda model, count, **run: hs.faithfulness(
        *model,
        texts_of(count),
        counterfactual=CounterfactualAttention(permutations=2),
        allow_unfit=True,
        **run,
    ),
    "alignment": lambda model, count, **run: hs.alignment_study(
        *model, numbered(cipher_pairs(count)), **run
    ),
    "ablate": lambda model, count, **run: hs.ablate(
        model[0], "next-word", tokenizer=model[1], texts=texts_of(count), **run
    ),
    "likeness": lambda model, count, **run: hs.ablate(
        model[0], "likeness", tokenizer=model[1], texts=list(map(pair, range(count))), **run
    ),
}


def numbered(pairs: list[AlignedPair]) -> list[AlignedPair]:
    return [replace(pair, name=f"pair {number}") for number, pair in enumerate(pairs)]


def classifier() -> Any:
    config = tiny_model("bert").config
    config.num_labels = 3
    torch.manual_seed(0)
    return AutoModelForSequenceClassification.from_config(config).eval()


@contextmanager
def measured(many: int, *, traced: bool) -> Iterator[dict[str, float]]:
    """What putting the parts together takes, in a block that does it."""
    spent: dict[str, float] = {}
    before = _counted_texts.MANY
    kinds = {kind: kind.made for kind in (_counted_texts.CountingJob, AblationJob)}

    def watched(job: Any, *given: Any) -> Any:
        if traced:
            tracemalloc.start()
        begun = time.process_time()
        made = next(made for kind, made in kinds.items() if isinstance(job, kind))
        result = made(job, *given)
        # Intervals and tests are made when they are asked for.
        str(result)
        spent["seconds"] = time.process_time() - begun
        if traced:
            spent["peak"] = tracemalloc.get_traced_memory()[1] / MIB
            tracemalloc.stop()
        return result

    _counted_texts.MANY = many
    for kind in kinds:
        kind.made = watched
    try:
        yield spent
    finally:
        _counted_texts.MANY = before
        for kind, made in kinds.items():
            kind.made = made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--texts", type=int, nargs="+", default=[1000, 8000])
    parser.add_argument("--studies", nargs="+", choices=STUDIES, default=list(STUDIES))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    readers = {"ablate": tiny_model("gpt2", writes=True), "faithfulness": classifier()}
    print("| study | texts | held, MiB | sums, MiB | held, s | sums, s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name in options.studies:
        model = readers.get(name) or tiny_model("bert"), tiny_tokenizer()
        if name == "alignment":
            model = cipher_translator(steps=1)[:2]
        for count in options.texts:
            with tempfile.TemporaryDirectory() as folder:
                run = {"out": Path(folder) / "run", "part_size": PART, "progress": False}
                STUDIES[name](model, count, **run)
                cells = {}
                for way, many in WAYS.items():
                    for traced in (True, False):
                        with measured(many, traced=traced) as spent:
                            STUDIES[name](model, count, **run)
                        cells |= {(way, what): value for what, value in spent.items()}
            numbers = [f"{cells[way, 'peak']:.1f}" for way in WAYS]
            numbers += [f"{cells[way, 'seconds']:.1f}" for way in WAYS]
            print(f"| {name} | {count:,} | {' | '.join(numbers)} |", flush=True)


if __name__ == "__main__":
    main()
