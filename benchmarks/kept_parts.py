"""How long `headscope serve` takes to open a kept record of a very long text, part by part.

    python benchmarks/kept_parts.py                 # 131,072 tokens: 1.4 GB of disk, 4 of memory
    python benchmarks/kept_parts.py --tokens 40000

A made-up record of 4 layers of 8 heads on 2 (queries and keys alone), of 40 documents, is saved,
and read again in a new process: processor time until the page has its header and one head, then of
the small picture of one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

LAYERS, HEADS, SHARED, FEATURES, DOCUMENTS = 4, 8, 2, 64, 40
FIRST = ("layer/self/0", "visible/self/0", "weights/self/0/0")
"""What the page of one head asks the server for."""


def make(path: Path, tokens: int) -> None:
    """Save the record."""
    import headscope as hs  # noqa: PLC0415
    from headscope.record import Part, Tokens  # noqa: PLC0415

    rng = np.random.default_rng(0)
    queries, keys = (
        {
            layer: rng.standard_normal((heads, tokens, FEATURES), dtype=np.float32)
            for layer in range(LAYERS)
        }
        for heads in (HEADS, SHARED)
    )
    ends = np.linspace(0, tokens, DOCUMENTS + 1).astype(int).tolist()
    parts = tuple(
        Part(name=f"document {n}", kind="document", tokens=tuple(range(*ends[n - 1 : n + 1])))
        for n in range(1, DOCUMENTS + 1)
    )
    pieces = tuple(f"w{at % 97}" for at in range(tokens))
    record = hs.foreign.from_queries_keys(queries, keys, list(pieces), rotary="applied")
    words = Tokens(pieces=pieces, parts=parts)
    stack = replace(record["self"], query=words, key=words)
    hs.save(replace(record, stacks={"self": stack}), path)


def read(path: Path) -> None:
    """Open it as the server does."""
    import headscope as hs  # noqa: PLC0415

    hs.view(
        hs.foreign.from_queries_keys(
            *[np.ones((1, 1, 2, 8), np.float32)] * 2, ["a", "b"], rotary="none"
        )
    )
    start = time.process_time()
    live = hs.view(hs.load(path)).on_demand
    sizes = {name: len(live.chunk(name) or b"") for name in FIRST}
    print(f"first head: {time.process_time() - start:.1f} s of processor time; bytes {sizes}")
    start = time.process_time()
    size = len(live.chunk("thumb/self/0/0") or b"")
    print(f"small picture of one head: {time.process_time() - start:.1f} s; {size:,} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tokens", type=int, default=131_072)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        way, path = given.child
        return make(Path(path), given.tokens) if way == "make" else read(Path(path))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "record.safetensors"
        for way in ("make", "read"):
            command = [sys.executable, __file__, "--tokens", str(given.tokens), "--child", way]
            env = os.environ | {"OMP_NUM_THREADS": "1"}
            subprocess.run([*command, str(path)], env=env, check=True)
        print(f"file: {path.stat().st_size / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
