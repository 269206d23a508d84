"""Measure the memory that the result of a run takes while its parts are put together, and that of
probes while they learn.

    python benchmarks/memory_of_merging.py                       # 1,000 and 8,000 texts
    python benchmarks/memory_of_merging.py --texts 1000 4000 --studies mechanism ablate

A tiny model reads made-up texts, in parts of 500. Each run is put together twice from the same
finished parts: with the values of all texts held, as up to 2,000 texts, and from sums, as above.
What is printed is the peak of what Python and NumPy allocate meanwhile (tracemalloc), and the
processor time without that. Of probes it is what is allocated while they learn, for one epoch,
where all that was read is held, and where 4 MiB of it are; their model has 6 layers of 12 heads and
48 features.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModel

import headscope as hs
from headscope.linguistics import Sentence
from headscope.studies.ablation._in_parts_job import AblationJob
from headscope.studies.probes import _on_demand
from headscope.studies.probes._run import ProbeJob
from headscope.studies.shared import _counted_texts
from headscope.testing import tiny_model, tiny_tokenizer

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
    return Sentence(
        name=f"s{number}",
        words=words,
        heads=heads,
        relations=relations,
        upos=tuple(rng.choice(["NOUN", "VERB"], len(words)).tolist()),
    )


def texts_of(count: int) -> list[str]:
    return [" ".join(words_of(number)) for number in range(count)]


def pair(number: int) -> dict[str, Any]:
    one, other = (" ".join(words_of(seed)) for seed in (number, number + 10**6))
    return {"sentence1": one, "sentence2": other, "label": number % 11 / 10}


def probed(kind: str) -> Callable[..., Any]:
    def run(model: Any, count: int, **options: Any) -> Any:
        return hs.probe(
            *model, list(map(sentence, range(count))), kind=kind, **PROBE_OPTIONS, **options
        )

    return run


PROBE_OPTIONS: dict[str, Any] = {"epochs": 1, "layers": False, "layer": 1, "rank": 8}
STUDIES: dict[str, Callable[..., Any]] = {
    "ablate": lambda model, count, **run: hs.ablate(
        model[0], "next-word", tokenizer=model[1], texts=texts_of(count), **run
    ),
    "likeness": lambda model, count, **run: hs.ablate(
        model[0], "likeness", tokenizer=model[1], texts=list(map(pair, range(count))), **run
    ),
    **{f"probe {kind}": probed(kind) for kind in ("attention", "relation", "structural", "edge")},
}


def wide_model() -> Any:
    """More heads, as the sentences of a probe take more memory than their words."""
    config = tiny_model("bert").config
    config.num_hidden_layers, config.num_attention_heads = 6, 12
    config.hidden_size = config.intermediate_size = 48
    torch.manual_seed(0)
    return AutoModel.from_config(config).eval()


@contextmanager
def probe_measured(many: int, *, traced: bool) -> Iterator[dict[str, float]]:
    """What learning takes, from the moment in which all sentences are read."""
    spent: dict[str, float] = {}
    before, made = _on_demand.HELD, ProbeJob.made

    def watched(job: Any, *given: Any) -> Any:
        if traced:
            tracemalloc.start()
        spent["begun"] = time.process_time()
        return made(job, *given)

    _on_demand.HELD, ProbeJob.made = many or 4 * MIB, watched  # ty: ignore
    try:
        yield spent
    finally:
        spent["seconds"] = time.process_time() - spent.pop("begun")
        if traced:
            spent["peak"] = tracemalloc.get_traced_memory()[1] / MIB
            tracemalloc.stop()
        _on_demand.HELD, ProbeJob.made = before, made


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
    readers = {"ablate": tiny_model("gpt2", writes=True)}
    print("| study | texts | held, MiB | sums or files, MiB | held, s | sums or files, s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name in options.studies:
        model = readers.get(name) or tiny_model("bert"), tiny_tokenizer()
        watching = measured
        if name.startswith("probe"):
            model, watching = (wide_model(), tiny_tokenizer()), probe_measured
        for count in options.texts:
            with tempfile.TemporaryDirectory() as folder:
                run = {"out": Path(folder) / "run", "part_size": PART, "progress": False}
                STUDIES[name](model, count, **run)
                cells = {}
                for way, many in WAYS.items():
                    for traced in (True, False):
                        with watching(many, traced=traced) as spent:
                            STUDIES[name](model, count, **run)
                        cells |= {(way, what): value for what, value in spent.items()}
            numbers = [f"{cells[way, 'peak']:.1f}" for way in WAYS]
            numbers += [f"{cells[way, 'seconds']:.1f}" for way in WAYS]
            print(f"| {name} | {count:,} | {' | '.join(numbers)} |", flush=True)


if __name__ == "__main__":
    main()
