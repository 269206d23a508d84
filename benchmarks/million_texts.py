"""Measure what `heads` over many short texts costs: time next to the bare pass, memory, labels.

    python benchmarks/million_texts.py en_ewt-ud-train.conllu                # 100,000 texts
    python benchmarks/million_texts.py en_ewt-ud-train.conllu --texts 8000
    python benchmarks/million_texts.py --texts 2000              # texts that are made up
    python benchmarks/million_texts.py --texts 20480 --part 1024 --only workers    # one and two

Texts are sentences of a treebank; more than there are get a number before them, so that each is
there once. Every variant runs in a process of its own, taking turns: the bare forward pass in
batches of equal length (sdpa), on 8,192 of them taken evenly from all, and `heads` in parts with
one worker and with two.
Times are those of processors, of all processes of a variant together, and by the clock; those of
two workers hold their start. The peak of memory is read within each part, where Linux tells it.
README.md in this folder says how to read it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from heads_of_many import LEAST, MADE_UP, MOST, bare

import headscope as hs
from headscope.capturing import load_model
from headscope.patterns import PATTERNS, Heads, Tally

HERE = Path(__file__).resolve().parent
PART = 2048
"""Texts in a part: as many as are read ahead."""
TEXTS = 100_000
MACHINES = (1, 10, 100)
MILLION = 1_000_000
GROUPS = {"heads": ("bare", "1 worker", "bare"), "workers": ("1 worker", "2 workers")}
"""Variants that `--only` runs; the bare pass before and after, as the machine may change."""
BARE = 8192
"""Texts of the bare pass: a rate that needs no more."""
HELD = (1000, 4000, 20_000)
"""Texts for the time of labels."""
QUARTERS = ("first quarter", "second", "third", "last")
"""Of the parts of a run, to see whether memory grows with them."""
LOOK = 0.5
"""Seconds between two looks at how many parts are finished."""
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
    parser.add_argument("--bare", type=int, default=BARE, help="texts of the bare pass, at most")
    parser.add_argument(
        "--tokens", type=int, nargs=2, default=(LEAST, MOST), help="of a text, least and most"
    )
    parser.add_argument(
        "--only",
        choices=[*sorted(GROUPS), "labels"],
        help="these variants alone; `workers` by the clock, `labels` of values that are made up",
    )
    parser.add_argument("--part", type=int, default=PART, help="texts in a part")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder of results")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    return parser.parse_args()


def texts_of(
    path: Path | None, tokenizer: Any, count: int, tokens: Sequence[int] = (LEAST, MOST)
) -> list[str]:
    """Different short texts; those with a number before them may have some tokens more."""
    rng = np.random.default_rng(0)
    if path is None:
        return [
            f"{number} " + " ".join(rng.choice(MADE_UP, rng.integers(4, 40)))
            for number in range(count)
        ]
    lines = path.read_text(encoding="utf-8").splitlines()
    said = list(dict.fromkeys(each.partition("= ")[2] for each in lines if "# text = " in each))
    ids = tokenizer(said)["input_ids"]
    least, most = tokens
    fitting = [text for text, each in zip(said, ids, strict=True) if least <= len(each) <= most]
    more = [f"{number} {fitting[number % len(fitting)]}" for number in range(count)]
    return (fitting + more[len(fitting) :])[:count]


def measure(variant: str, options: argparse.Namespace) -> dict[str, Any]:
    """What one variant takes, in this process and its workers."""
    name, _, count = variant.rpartition(":")
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    model, tokenizer = load_model(None)
    texts = texts_of(options.treebank, tokenizer, options.texts, options.tokens)
    # Evenly from all of them: those with a number before them are longer, and come last.
    texts = texts[:: len(texts) // int(count)][: int(count)]
    facts: dict[str, Any] = {}
    bare(model, tokenizer, texts[:64], 64)
    before, wall = _processor(), time.perf_counter()
    if name == "bare":
        for first in range(0, len(texts), PART):
            bare(model, tokenizer, texts[first : first + PART], 64)
    else:
        facts = _run(name, model, tokenizer, texts, part=options.part)
    spent, wall = _processor() - before, time.perf_counter() - wall
    facts |= {"processor": spent - facts.get("labels", 0.0), "wall": wall}
    of = resource.RUSAGE_CHILDREN if name == "2 workers" else resource.RUSAGE_SELF
    # The system forgets the highest of all parts when the peak is read within each.
    peak = max([_peak(of), *facts.get("peaks", [])])
    return facts | {"peak": peak, "texts": len(texts)}


def _run(name: str, model: Any, tokenizer: Any, texts: list[str], *, part: int) -> dict[str, Any]:
    given: dict[str, Any] = {"part_size": part, "battery": False, "progress": False}
    with tempfile.TemporaryDirectory() as folder, _PeakWatch(Path(folder)) as watch:
        if name == "1 worker":
            result = hs.heads(model, tokenizer, iter(texts), out=folder, **given)
        else:
            result = hs.heads(None, texts=iter(texts), out=folder, workers=2, **given)
    start = time.process_time()
    labels = result.labels
    facts = {"labels": time.process_time() - start, "labelled": sum(map(bool, labels))}
    if name == "1 worker":
        facts |= {"peaks": watch.peaks, "tokens": result.tokens}
    return facts


class _PeakWatch:
    """Reads the peak of memory of this process within each part: the highest of all parts so far
    would rise with their number even where each takes as much as those before it.

    Args:
        folder: of the run.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._ended = folder / "parts", threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.peaks: list[float] = []
        """MiB, within each part."""

    def __enter__(self) -> _PeakWatch:
        _reset_peak()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(LOOK):
            finished = len(list(self._folder.glob("*.safetensors")))
            if finished > len(self.peaks):
                self.peaks.append(_peak_here())
                _reset_peak()


def _peak_here() -> float:
    """Highest memory of this process since `_reset_peak`, or since its start elsewhere."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return _peak(resource.RUSAGE_SELF)
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def _reset_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    except OSError:
        # Not Linux, or not allowed: peaks are then those since the start.
        return


def _peak(of: int) -> float:
    # Kilobytes on Linux.
    return resource.getrusage(of).ru_maxrss / 1024


def held_labels(count: int) -> float:
    """Processor seconds that labels of so many texts take."""
    cells = [(layer, head) for layer in range(6) for head in range(12)]
    shape = count, len(Tally(PATTERNS).rows), len(cells)
    rng = np.random.default_rng(0)
    values = rng.uniform(0.0, 0.3, shape)
    # The last row holds the length of each text.
    values[:, -1] = rng.integers(LEAST, MOST, count)[:, None]
    heads = Heads(Tally.of_values(PATTERNS, cells, values))
    start = time.process_time()
    assert len(heads.all_labels) == len(cells) * len(PATTERNS)
    return time.process_time() - start


def _processor() -> float:
    of = [resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in of)


def turns(options: argparse.Namespace) -> list[tuple[str, int]]:
    """Variants and their numbers of texts, in the order in which they run."""
    wanted = GROUPS.get(options.only, ("bare", "1 worker", "bare", "2 workers"))
    return [(name, _count_of(name, options)) for name in wanted]


def _count_of(name: str, options: argparse.Namespace) -> int:
    return min(options.bare, options.texts) if name == "bare" else options.texts


def table(rows: list[dict[str, Any]]) -> str:
    """What each variant took; rates next to that of the bare pass, in processor time."""
    each = _each(rows, "bare")
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
    of_pass = _each(rows, "bare")
    return {"pass": of_pass, "rest": _each(rows, "1 worker") - of_pass}


def _each(rows: list[dict[str, Any]], name: str) -> float:
    """Processor seconds a text; NaN for a variant that was not run."""
    own = [row for row in rows if row["variant"] == name]
    spent, texts = (sum(row[field] for row in own) for field in ("processor", "texts"))
    return spent / texts if texts else float("nan")


def _named(numbers: tuple[int, ...]) -> list[str]:
    return [f"{number} machine{'s' if number > 1 else ''} of 2 cores" for number in numbers]


def _hours(hours: float) -> str:
    return f"{60 * hours:.1f} min" if hours < 1 else f"{hours:,.1f} h"


def main() -> None:
    options = arguments()
    if options.measure:
        print(json.dumps(measure(options.measure, options)))
        return
    if options.only == "labels":
        print("\n".join(f"{count:,} texts: {held_labels(count):.1f} s" for count in HELD))
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
    document = {"machine": facts, "part": options.part, "rows": rows}
    (options.results / "million_texts.json").write_text(json.dumps(document, indent=2) + "\n")
    print(f"{table(rows)}\n\n{after(rows)}\nload {load[0]:.1f} to {load[1]:.1f}")


def after(rows: list[dict[str, Any]]) -> str:
    """What follows from the rows that there are."""
    by_name = {row["variant"]: row for row in rows}
    lines = []
    if {"1 worker", "2 workers"} <= set(by_name):
        gain = by_name["1 worker"]["wall"] / by_name["2 workers"]["wall"]
        lines.append(f"2 workers took {gain:.2f} times less by the clock than 1")
    peaks = by_name.get("1 worker", {}).get("peaks", [])
    if peaks:
        for name, some in zip(QUARTERS, np.array_split(peaks, len(QUARTERS)), strict=True):
            if len(some):
                lines.append(f"peak memory within parts, {name}: {_spread(some)} MiB")
    if {"bare", "1 worker"} <= set(by_name):
        lines.append(calculated(rows))
    return "\n".join(lines)


def _spread(peaks: np.ndarray) -> str:
    return f"median {np.median(peaks):.0f}, {min(peaks):.0f} to {max(peaks):.0f}"


if __name__ == "__main__":
    main()
