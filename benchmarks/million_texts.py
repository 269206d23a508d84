"""Measure what `heads` over many short texts costs: time next to the bare pass, memory, labels.

    python benchmarks/million_texts.py en_ewt-ud-train.conllu                # 100,000 texts
    python benchmarks/million_texts.py en_ewt-ud-train.conllu --texts 8000
    python benchmarks/million_texts.py --texts 2000              # texts that are made up

Texts are sentences of a treebank; more than there are get a number before them, so that each is
there once. Every variant runs in a process of its own, taking turns: the bare forward pass in
batches of equal length (sdpa), and `heads` in parts with one worker and with two. Times are those
of processors, of all processes of a variant together, and by the clock. README.md in this folder
says how to read it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from heads_of_many import LEAST, MADE_UP, MOST, bare

import headscope as hs
from headscope.capturing import load_model

HERE = Path(__file__).resolve().parent
PART = 2048
"""Texts in a part: as many as are read ahead."""
TEXTS = 100_000
MACHINES = (1, 10, 100)
MILLION = 1_000_000
SIZES = {
    "all-MiniLM-L6-v2": (10.6, 72),
    "BERT-base": (85.1, 144),
    "BERT-large": (302.0, 384),
    "7 billion weights": (6500.0, 1024),
}
"""Millions of weights in the layers, which multiply every token, and heads."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("treebank", type=Path, nargs="?", help="a .conllu file with # text lines")
    parser.add_argument("--texts", type=int, default=TEXTS, help="how many, at most")
    parser.add_argument("--bare", type=int, help="texts of the bare pass; by default all")
    parser.add_argument(
        "--counts", type=int, nargs="*", help="fewer texts whose memory is measured"
    )
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder of results")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    return parser.parse_args()


def texts_of(path: Path | None, tokenizer: Any, count: int) -> list[str]:
    """Different short texts."""
    rng = np.random.default_rng(0)
    if path is None:
        return [
            f"{number} " + " ".join(rng.choice(MADE_UP, rng.integers(4, 40)))
            for number in range(count)
        ]
    lines = path.read_text(encoding="utf-8").splitlines()
    said = list(dict.fromkeys(each.partition("= ")[2] for each in lines if "# text = " in each))
    ids = tokenizer(said)["input_ids"]
    fitting = [text for text, each in zip(said, ids, strict=True) if LEAST <= len(each) <= MOST]
    more = [f"{number} {fitting[number % len(fitting)]}" for number in range(count)]
    return (fitting + more[len(fitting) :])[:count]


def measure(variant: str, options: argparse.Namespace) -> dict[str, Any]:
    """What one variant takes, in this process and its workers."""
    name, _, count = variant.rpartition(":")
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    model, tokenizer = load_model(None)
    texts = texts_of(options.treebank, tokenizer, int(count))
    facts: dict[str, Any] = {}
    bare(model, tokenizer, texts[:64], 64)
    before, wall = _processor(), time.perf_counter()
    if name == "bare":
        for first in range(0, len(texts), PART):
            bare(model, tokenizer, texts[first : first + PART], 64)
    else:
        facts = _run(name, model, tokenizer, texts)
    spent, wall = _processor() - before, time.perf_counter() - wall
    facts |= {"processor": spent - facts.get("labels", 0.0), "wall": wall}
    # Kilobytes on Linux.
    of = resource.RUSAGE_CHILDREN if name == "2 workers" else resource.RUSAGE_SELF
    return facts | {"peak": resource.getrusage(of).ru_maxrss / 1024, "texts": len(texts)}


def _run(name: str, model: Any, tokenizer: Any, texts: list[str]) -> dict[str, Any]:
    given: dict[str, Any] = {"part_size": PART, "battery": False, "progress": False}
    with tempfile.TemporaryDirectory() as folder:
        if name == "1 worker":
            found = hs.heads(model, tokenizer, iter(texts), out=folder, **given)
        else:
            found = hs.heads(None, texts=iter(texts), out=folder, workers=2, **given)
    start = time.process_time()
    labels = found.labels
    return {"labels": time.process_time() - start, "labelled": sum(map(bool, labels))}


def _processor() -> float:
    of = [resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in of)


def turns(options: argparse.Namespace) -> list[tuple[str, int]]:
    """Variants and their numbers of texts, in the order in which they run."""
    few = options.counts
    if few is None:
        few = [count for count in (PART, 2 * PART, 4 * PART) if count < options.texts]
    whole = [("bare", options.bare or options.texts)]
    whole += [("1 worker", options.texts), ("2 workers", options.texts)]
    return [*(("1 worker", count) for count in few), *whole]


def table(rows: list[dict[str, Any]]) -> str:
    """What each variant took; rates next to that of the bare pass, in processor time."""
    bare_row = next(row for row in rows if row["variant"] == "bare")
    each = bare_row["processor"] / bare_row["texts"]
    lines = [
        "| | texts | processor, ms a text | of the bare pass | wall, texts a second | peak memory "
        "of a process | labels |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        own = row["processor"] / row["texts"]
        labels = f"{row['labels']:.1f} s" if "labels" in row else ""
        lines.append(
            f"| {row['variant']} | {row['texts']:,} | {1e3 * own:.1f} | {each / own:.2f} | "
            f"{row['texts'] / row['wall']:.0f} | {row['peak']:.0f} MiB | {labels} |"
        )
    return "\n".join(lines)


def calculated(rows: list[dict[str, Any]]) -> str:
    """Hours for a million texts, by the time of a text and by the size of the model."""
    fitted = _cost(rows)
    lines = [
        "| a million short texts | weights in layers | heads | one core | "
        + " | ".join(_named(MACHINES))
        + " |",
        "| --- | ---: | ---: | ---: | " + " | ".join("---:" for _ in MACHINES) + " |",
    ]
    weights, heads = SIZES["all-MiniLM-L6-v2"]
    for name, (own_weights, own_heads) in SIZES.items():
        # The pass grows with the weights, all else with the heads.
        each = fitted["pass"] * own_weights / weights + fitted["rest"] * own_heads / heads
        hours = MILLION * each / 3600
        cells = [_hours(hours), *(_hours(hours / 2 / number) for number in MACHINES)]
        lines.append(
            f"| {name} | {own_weights:,.0f} M | {own_heads:,} | " + " | ".join(cells) + " |"
        )
    return "\n".join(lines)


def _cost(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Seconds of one core a text, of the pass and of all else."""
    by_name = {row["variant"]: row["processor"] / row["texts"] for row in rows}
    return {"pass": by_name["bare"], "rest": by_name["1 worker"] - by_name["bare"]}


def _named(numbers: tuple[int, ...]) -> list[str]:
    return [f"{number} machine{'s' if number > 1 else ''} of 2 cores" for number in numbers]


def _hours(hours: float) -> str:
    return f"{60 * hours:.1f} min" if hours < 1 else f"{hours:,.1f} h"


def main() -> None:
    options = arguments()
    if options.measure:
        print(json.dumps(measure(options.measure, options)))
        return
    load, rows = [os.getloadavg()[0]], []
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    for name, count in turns(options):
        command = [sys.executable, *sys.argv, "--measure", f"{name}:{count}"]
        out = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        rows.append({"variant": name} | json.loads(out.stdout.splitlines()[-1]))
        print(json.dumps(rows[-1]), flush=True)
    load.append(os.getloadavg()[0])
    options.results.mkdir(parents=True, exist_ok=True)
    facts = {"date": datetime.now(UTC).date().isoformat(), "load": load, "torch": torch.__version__}
    document = {"machine": facts, "part": PART, "rows": rows}
    (options.results / "million_texts.json").write_text(json.dumps(document, indent=2) + "\n")
    print(f"{table(rows)}\n\n{calculated(rows)}\nload {load[0]:.1f} to {load[1]:.1f}")


if __name__ == "__main__":
    main()
