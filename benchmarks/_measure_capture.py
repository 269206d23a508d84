"""One measurement of one shape in a process of its own, printed as JSON; `capture_cost.py` asks for
it.

python benchmarks/_measure_capture.py time minilm --rounds 4 --variants plain ...
python benchmarks/_measure_capture.py memory minilm --variants plain
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Sequence
from pathlib import Path

import torch
import transformers
from _capture_models import SHAPES, Shape, inputs_of, model_of
from _capture_variants import VARIANTS, Variant

ROUNDS_OF_SHORT = 8
"""For each round that is asked for: passes over short texts take hundredths of a second."""

SLOW = {'keep="norms"', 'keep="alti"'}


def seconds(shape: Shape, variants: Sequence[Variant], rounds: int) -> dict[str, float]:
    """Shortest processor time of every variant; all take turns, so that a busy minute falls on all
    alike.
    """
    models: dict[tuple[str, str], object] = {}
    for variant in variants:
        known = variant.implementation, variant.needs
        if known not in models:
            models[known] = variant.made(model_of(shape, variant.implementation))
    inputs = inputs_of(shape, models[variants[0].implementation, ""])
    timings: dict[str, list[float]] = {variant.name: [] for variant in variants}
    for number in range(rounds * (ROUNDS_OF_SHORT if shape.is_short else 1)):
        for variant in variants:
            if variant.name in SLOW and number >= max(2, rounds):
                continue  # it takes many times as long as the others
            start = time.process_time()
            kept = variant.run(models[variant.implementation, variant.needs], inputs)
            timings[variant.name].append(time.process_time() - start)
            del kept
            gc.collect()
    return {name: min(times) for name, times in timings.items()}


def mebibytes(shape: Shape, variant: Variant) -> dict[str, float]:
    """Peak of one variant above what was resident before it, and what of that stays with its
    result.
    """
    model = model_of(shape, variant.implementation)
    inputs = inputs_of(shape, model)
    variant.run(model, inputs)  # what libraries set up once is no part of it
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    before, _ = resident()
    kept = variant.run(model, inputs)
    after, peak = resident()
    del kept
    return {"peak": peak - before, "kept": after - before}


def resident() -> tuple[float, float]:
    """Resident memory now and at its highest, in MiB."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    known = dict(line.split(":", 1) for line in lines)
    now, highest = (int(known[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return now, highest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("measure", choices=("time", "memory"))
    parser.add_argument("shape", choices=tuple(SHAPES))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--variants", nargs="+", required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    shape, variants = (
        SHAPES[options.shape],
        [variant for variant in VARIANTS if variant.name in options.variants],
    )
    measured = (
        seconds(shape, variants, options.rounds)
        if options.measure == "time"
        else mebibytes(shape, *variants)
    )
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
