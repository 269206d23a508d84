"""How long records take to write, open, read and check: python benchmarks/files.py."""

import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

import headscope as hs
from headscope.testing import random_record

ROUNDS = 200


def main():
    record = random_record(layers=12, heads=12, queries=128, keys=128)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.safetensors"
        times = {
            "hs.save, file and folder synced": [
                timed(lambda: hs.save(record, path)) for _ in range(9)
            ]
        }
        times["hs.load"] = [timed(lambda: hs.load(path)) for _ in range(20)]
        loaded = hs.load(path)
        places = [(layer, head) for layer in range(12) for head in range(12)] * 2
        heads = [
            timed(lambda at=at: loaded["cross"].layer(at[0]).part("weights", at[1]))
            for at in places[:ROUNDS]
        ]
        times["one head, read"] = heads
        checked = [timed(lambda at=at: loaded["cross"].weights(*at)) for at in places[:ROUNDS]]
        times["one head, read and its values checked"] = checked
        whole = (
            np.memmap(path, mode="r")[-12 * 12 * 128 * 128 * 4 :]
            .view(np.float32)
            .reshape(144, 128, 128)
        )
        mapped = [timed(lambda at=at: np.array(whole[at % 144])) for at in range(ROUNDS)]
        times["one head copied from a map of the file"] = mapped
        times["hs.load(path, check=True)"] = [
            timed(lambda: hs.load(path, check=True)) for _ in range(9)
        ]
        size = path.stat().st_size
    print(
        f"12 layers x 12 heads, 128 x 128 tokens: {size / 1e6:.1f} MB; load "
        f"{os.getloadavg()[0]:.1f}; medians in ms"
    )
    for name, each in times.items():
        print(f"{name:40} {1000 * statistics.median(each):8.3f}")


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
