"""How soon the first picture of an atlas is there, in a real browser.

    python benchmarks/atlas.py              # 6 x 12 and 32 x 32 heads, about two minutes

Models of random weights, as what a head does makes no difference to drawing it. The page is opened
from disk; the time is from the start of navigation to two animation frames after all tiles stand.
Medians of some openings, each in a new context; the load of the machine is printed, as other work
slows all of it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import transformers
from playwright.sync_api import sync_playwright

import headscope as hs
from headscope.atlases import Atlas
from headscope.testing import tiny_tokenizer

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
import find_chromium

WORDS = ("the", "cat", "dog", "sat", "ran", "on", "by", "it", "us", "me", "all")
DRAWN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    print(f"load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium.needed(), args=find_chromium.FLAGS
        )
        for layers, heads in ((6, 12), (32, 32)):
            page = Path(folder) / f"{layers}x{heads}"
            atlas_of(layers, heads).view().save(page)
            size = sum(file.stat().st_size for file in page.rglob("*") if file.is_file())
            opened = [first_picture(browser, page) for _ in range(rounds)]
            print(
                f"{layers} x {heads}: {statistics.median(opened):.2f} s "
                f"({min(opened):.2f} to {max(opened):.2f}), {size / 1e6:.1f} MB"
            )
        browser.close()


def atlas_of(layers: int, heads: int) -> Atlas:
    """An atlas of sixty texts made of a few words."""
    rng = np.random.default_rng(0)
    tokenizer = tiny_tokenizer()
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=4 * heads,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=64,
    )
    texts = [" ".join(rng.choice(WORDS, rng.integers(3, 8))) for _ in range(60)]
    return hs.atlas(transformers.BertModel(config).eval(), tokenizer, texts, progress=False)


def first_picture(browser, folder: Path) -> float:
    """Seconds until all tiles are drawn."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    start = time.perf_counter()
    page.goto((folder / "index.html").as_uri())
    page.locator("[data-tile]").last.wait_for(state="attached")
    page.evaluate(DRAWN)
    took = time.perf_counter() - start
    context.close()
    return took


if __name__ == "__main__":
    main()
