"""Measure how many short texts a second `heads` measures, beside the model's bare forward pass.

    python benchmarks/heads_of_many.py en_ewt-ud-dev.conllu
    python benchmarks/heads_of_many.py                        # of texts that are made up

All in one process and one run, taking turns: the bare forward pass in batches of equal length
(sdpa), `heads` in batches, and, of fewer texts, `heads` of records. README.md in this folder says
how to read it.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

import headscope as hs
from headscope.capturing import load_model

HERE = Path(__file__).resolve().parent
LEAST, MOST = 3, 60
"""Tokens of a text."""
OF_RECORDS = 4
"""Records are made of each fourth text alone: they take several times as long."""
MADE_UP = [
    "the",
    "a",
    "cat",
    "dog",
    "river",
    "saw",
    "ran",
    "by",
    "near",
    "old",
    "green",
    "house",
    "and",
    ",",
    "of",
    "in",
    "letters",
]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("treebank", type=Path, nargs="?", help="a .conllu file with # text lines")
    parser.add_argument("--texts", type=int, default=512, help="how many")
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 4], help="texts in a batch")
    parser.add_argument("--rounds", type=int, default=2, help="of all variants, taking turns")
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder of results")
    return parser.parse_args()


def texts_of(path: Path | None, tokenizer: Any, count: int) -> list[str]:
    """Sentences of a treebank in its order, or made-up ones of like lengths."""
    if path is None:
        rng = np.random.default_rng(0)
        return [" ".join(rng.choice(MADE_UP, rng.integers(4, 40))) for _ in range(count)]
    lines = path.read_text(encoding="utf-8").splitlines()
    said = [line.partition("= ")[2] for line in lines if line.startswith("# text = ")]
    fitting = [text for text in said if LEAST <= len(tokenizer(text)["input_ids"]) <= MOST]
    return fitting[:count]


def equal_batches(tokenizer: Any, texts: list[str], size: int) -> Iterator[list[str]]:
    by_length: dict[int, list[str]] = defaultdict(list)
    for text, ids in zip(texts, tokenizer(texts)["input_ids"], strict=True):
        by_length[len(ids)].append(text)
    for same in by_length.values():
        yield from (same[first : first + size] for first in range(0, len(same), size))


def bare(model: Any, tokenizer: Any, texts: list[str], size: int) -> None:
    with torch.no_grad():
        for batch in equal_batches(tokenizer, texts, size):
            model(**tokenizer(batch, return_tensors="pt"))


def in_batches(model: Any, tokenizer: Any, texts: list[str], size: int) -> None:
    hs.heads(model, tokenizer, texts, battery=False, batch_size=size)


def of_records(model: Any, tokenizer: Any, texts: list[str], size: int) -> None:
    hs.heads(hs.capture_many(model, tokenizer, texts, keep="weights", batch_size=size))


VARIANTS: dict[str, Callable[[Any, Any, list[str], int], None]] = {
    "bare forward pass": bare,
    "heads, in batches": in_batches,
    "heads of records": of_records,
}


def measured(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Least milliseconds a text of each variant and size of batch, processor and wall."""
    model, tokenizer = load_model(None)
    texts = texts_of(options.treebank, tokenizer, options.texts)
    in_batches(model, tokenizer, texts[:8], 4)  # the plan of the model is made once
    least: dict[tuple[str, int], tuple[float, float]] = {}
    for _ in range(options.rounds):
        for size in options.sizes:
            for name, run in VARIANTS.items():
                some = texts[::OF_RECORDS] if run is of_records else texts
                start, wall = time.process_time(), time.perf_counter()
                run(model, tokenizer, some, size)
                spent = time.process_time() - start, time.perf_counter() - wall
                each = 1e3 * spent[0] / len(some), 1e3 * spent[1] / len(some)
                before = least.get((name, size), each)
                least[name, size] = min(each[0], before[0]), min(each[1], before[1])
    return [
        {
            "batch": size,
            "variant": name,
            "texts": len(texts[::OF_RECORDS] if name == "heads of records" else texts),
            "processor_ms": processor,
            "wall_ms": wall,
            "of_bare": least["bare forward pass", size][0] / processor,
        }
        for (name, size), (processor, wall) in least.items()
    ]


def table(rows: list[dict[str, Any]]) -> str:
    """Milliseconds a text, and texts a second as a part of those of the bare pass."""
    lines = [
        "| texts in a batch, at most | | texts | processor, ms a text | wall | of the bare pass |",
        "| ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        numbers = f"{row['processor_ms']:.1f} | {row['wall_ms']:.1f} | {row['of_bare']:.2f}"
        lines.append(f"| {row['batch']} | {row['variant']} | {row['texts']} | {numbers} |")
    return "\n".join(lines)


def main() -> None:
    options = arguments()
    warnings.simplefilter("ignore")
    torch.set_num_threads(options.threads)
    load = [os.getloadavg()[0]]
    rows = measured(options)
    load.append(os.getloadavg()[0])
    options.results.mkdir(parents=True, exist_ok=True)
    facts = {"date": datetime.now(UTC).date().isoformat(), "load": load, "torch": torch.__version__}
    settings = {"threads": options.threads, "rounds": options.rounds}
    document = {"machine": facts, "settings": settings, "rows": rows}
    (options.results / "heads_of_many.json").write_text(json.dumps(document, indent=2) + "\n")
    print(table(rows))
    print(f"load {load[0]:.1f} at the start, {load[1]:.1f} at the end")


if __name__ == "__main__":
    main()
