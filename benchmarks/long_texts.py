"""What pages of long texts take, beside an earlier version in the same run.

    python benchmarks/long_texts.py                   # this version alone
    python benchmarks/long_texts.py --before 2047e1b  # and that commit, taking turns

Records are made up: random queries and keys of 64 numbers, causal. A page of 2 x 4 heads at 4,096
tokens, each in a process of its own: processor time of `hs.view`, and the highest resident memory
above what was resident before. And one head of 32,768 tokens as `headscope serve` makes it: header,
thumbnail, kinds and weights.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

ROOT = Path(__file__).resolve().parent.parent
FEATURES = 64
INTERVAL = 0.005


def made_up(layers: int, heads: int, tokens: int) -> Any:
    """A record of random queries and keys."""
    from headscope.record import Layer, Mask, ModelFacts, Record, Stack, Tokens  # noqa: PLC0415

    rng = np.random.default_rng(0)
    made = []
    for number in range(layers):
        queries, keys = (
            rng.standard_normal((heads, tokens, FEATURES), dtype=np.float32) for _ in range(2)
        )
        visible = Mask.causal(tokens, tokens)
        made.append(
            Layer(layer=number, queries=2 * queries, keys=keys, scale=1 / 8, visible=visible)
        )
    words = Tokens(pieces=tuple(f"w{at % 97}" for at in range(tokens)))
    stack = Stack(name="self", query=words, key=words, layers=tuple(made))
    return Record(stacks={"self": stack}, model=ModelFacts(name="random"))


def page(layers: int, heads: int, tokens: int) -> None:
    """Make a self-contained page."""
    import headscope as hs  # noqa: PLC0415

    _ = hs.view(made_up(1, 1, 16)).html  # what is imported and read once
    record = made_up(layers, heads, tokens)
    print(json.dumps(measured(lambda: hs.view(record).html)))


def serve(layers: int, heads: int, tokens: int) -> None:
    """Make everything that the page of one head asks the server for."""
    import headscope as hs  # noqa: PLC0415

    record = made_up(layers, heads, tokens)

    def act() -> None:
        live = hs.view(record).on_demand
        for name in ("layer/self/0", "visible/self/0", "thumbs/self/0", "kinds/self/0"):
            live.chunk(name)
        for kind in ("weights", "queries", "keys"):
            live.chunk(f"{kind}/self/0/0")

    print(json.dumps(measured(act)))


WAYS = {"page": page, "serve": serve}


def measured(act: Any) -> dict[str, float]:
    """Processor seconds of an act, and MiB that it takes above what was resident before."""
    process, stop = psutil.Process(), threading.Event()
    before = peak = process.memory_info().rss

    def watch() -> None:
        nonlocal peak
        while not stop.wait(INTERVAL):
            peak = max(peak, process.memory_info().rss)

    thread = threading.Thread(target=watch)
    thread.start()
    start = time.process_time()
    try:
        act()
        seconds = time.process_time() - start
    finally:
        stop.set()
        thread.join()
    return {"seconds": seconds, "mib": (peak - before) / 2**20}


def run(source: Path, way: str, shape: tuple[int, int, int], gib: float) -> dict[str, float] | str:
    """One measurement in a new process, whose memory is limited; its last line where it fails."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (int(gib * 2**30),) * 2)

    done = subprocess.run(
        [sys.executable, __file__, "--child", way, *map(str, shape)],
        env=os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limited,
    )
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    return json.loads(done.stdout.splitlines()[-1])


def source_of(commit: str, folder: Path) -> Path:
    """The source of an earlier commit, with the bundles of this one."""
    packed = subprocess.run(
        ["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    static = Path("src/headscope/views/static")
    shutil.copytree(ROOT / static, folder / static, dirs_exist_ok=True)
    return folder / "src"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--before", help="an earlier commit to measure as well")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--gib", type=float, default=7, help="most memory of a process")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sources = {"now": ROOT / "src"}
        if options.before:
            sources["before"] = source_of(options.before, Path(folder))
        for way, shape in (("page", (2, 4, 4096)), ("serve", (1, 1, 32768))):
            results: dict[str, list[dict[str, float]]] = {name: [] for name in sources}
            for _ in range(options.rounds):
                for name, source in sources.items():
                    result = run(source, way, shape, options.gib)
                    print(way, shape, name, result, file=sys.stderr)
                    if not isinstance(result, str):
                        results[name].append(result)
            for name, rows in results.items():
                if rows:
                    seconds = min(row["seconds"] for row in rows)
                    mib = max(row["mib"] for row in rows)
                    print(f"{way} {shape} {name}: {seconds:.2f} s, {mib:.0f} MiB above start")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        WAYS[sys.argv[2]](*map(int, sys.argv[3:6]))
    else:
        main()
