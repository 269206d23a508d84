"""Measure what capturing costs, as ratios to a plain forward pass under sdpa in the same run.

    python benchmarks/capture_cost.py
    python benchmarks/capture_cost.py --shapes minilm gpt2 --rounds 2

README.md in this folder says what is measured, and how to read it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from _capture_models import SHAPES
from _capture_variants import VARIANTS

ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
OWN_MAPPINGS = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
"""Every array of some size is a mapping of its own, given back when it is freed: resident memory is
what is in use.
"""
HERE = Path(__file__).resolve().parent
PLAIN = VARIANTS[0].name


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--shapes",
        nargs="+",
        choices=tuple(SHAPES),
        default=tuple(SHAPES),
        help="models and lengths",
    )
    parser.add_argument(
        "--variants",
        nargs="+",
        metavar="PART",
        default=[""],
        help="those whose name holds one of these",
    )
    parser.add_argument("--rounds", type=int, default=4, help="runs of every variant, taking turns")
    parser.add_argument(
        "--results", type=Path, default=HERE / "results", help="folder for the results"
    )
    return parser.parse_args()


def in_a_process(measure: str, shape: str, *more: str) -> dict[str, float]:
    command = [sys.executable, str(HERE / "_measure_capture.py"), measure, shape, *more]
    environment = {**os.environ, **ONE_THREAD, **(OWN_MAPPINGS if measure == "memory" else {})}
    return json.loads(
        subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout
    )


def measure_all(shape: str, names: list[str], rounds: int) -> list[dict[str, object]]:
    """One row for each variant: time in turns in one process, memory in a process each.

    Memory of short texts is not measured: what libraries do beside is more than that.
    """
    fitting = {variant.name for variant in VARIANTS if variant.fits(SHAPES[shape])}
    names = [name for name in names if name in fitting]
    times = in_a_process("time", shape, "--rounds", str(rounds), "--variants", *names)
    rows: list[dict[str, object]] = [
        {
            "shape": SHAPES[shape].name,
            "variant": name,
            "seconds": times[name],
            "time_ratio": times[name] / times[PLAIN],
        }
        for name in names
    ]
    if SHAPES[shape].is_short:
        return rows
    memory = {name: in_a_process("memory", shape, "--variants", name) for name in names}
    for row, used in zip(rows, memory.values(), strict=True):
        row["peak_mib"], row["kept_mib"] = used["peak"], used["kept"]
        row["peak_ratio"] = used["peak"] / memory[PLAIN]["peak"]
    return rows


def table(rows: list[dict[str, object]]) -> str:
    """Time and peak memory of every variant, by shape."""
    shapes = list(dict.fromkeys(row["shape"] for row in rows))
    by_variant = {(row["variant"], row["shape"]): row for row in rows}
    lines = [
        "| variant | " + " | ".join(shapes) + " |",
        "| --- | " + " | ".join("---:" for _ in shapes) + " |",
    ]
    for name in dict.fromkeys(row["variant"] for row in rows):
        cells = [_cell(by_variant.get((name, shape))) for shape in shapes]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "–"
    if "peak_ratio" not in row:
        is_plain = row["variant"] == PLAIN
        return f"{1e3 * row['seconds']:.1f} ms" if is_plain else f"{row['time_ratio']:.2f}"
    if row["variant"] == PLAIN:
        return f"{row['seconds']:.2f} s, {row['peak_mib']:.0f} MiB"
    return f"{row['time_ratio']:.2f} × time, {row['peak_ratio']:.2f} × memory"


def facts() -> dict[str, str]:
    """What a reader has to know of the machine; ratios depend on it less than seconds do."""
    named = {"date": datetime.now(UTC).date().isoformat(), "system": platform.platform()}
    return named | {name: version(name) for name in ("headscope", "torch", "transformers")}


def main() -> None:
    options = arguments()
    names = [
        v.name
        for v in VARIANTS
        if v.name == PLAIN or any(part in v.name for part in options.variants)
    ]
    rows: list[dict[str, object]] = []
    for shape in options.shapes:
        measured = measure_all(shape, names, options.rounds)
        print(table(measured), file=sys.stderr)
        rows += measured
    options.results.mkdir(parents=True, exist_ok=True)
    document = {"machine": facts(), "settings": {"rounds": options.rounds}, "rows": rows}
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    (options.results / "capture_cost.json").write_text(text, encoding="utf-8")
    (options.results / "capture_cost.md").write_text(table(rows) + "\n", encoding="utf-8")
    print(table(rows))


if __name__ == "__main__":
    main()
