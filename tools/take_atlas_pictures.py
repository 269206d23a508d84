"""Take the picture of two atlases: how much each head changed.

python tools/take_atlas_pictures.py
"""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any

import torch
from playwright.sync_api import Browser, sync_playwright

import find_chromium
import headscope as hs
from headscope.capturing import load_model
from picture_texts import TEXTS
from take_live_pictures import FOLDER, WIDTH, saved

NOISE = 0.3
"""Standard deviations of each tensor of weights: every head still finds itself, see
benchmarks/atlas_matching.py.
"""


def noisy(model: Any) -> Any:
    """The model with normal noise in its weights."""
    changed = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weights in changed.parameters():
            noise = torch.randn(weights.shape, generator=generator)
            weights.add_(NOISE * weights.std() * noise)
    return changed


PICTURES = {"atlas_comparison": ("#/", 760)}
"""File name: the address, and the height of the picture."""


def atlas_pictures(browser: Browser) -> None:
    """All of them, in both colours."""
    model, tokenizer = load_model(None)
    options: dict[str, Any] = {"battery": False, "progress": False}
    atlases = [hs.atlas(each, tokenizer, TEXTS, **options) for each in (model, noisy(model))]
    compared = atlases[0].compare(atlases[1], names=("MiniLM", "with noise"))
    with tempfile.TemporaryDirectory() as folder:
        page = compared.view().save(Path(folder) / "page").as_uri()
        for name, (address, height) in PICTURES.items():
            for scheme, suffix in (("light", ""), ("dark", "_dark")):
                context = browser.new_context(
                    viewport={"width": WIDTH, "height": height},
                    color_scheme=scheme,
                    reduced_motion="reduce",
                )
                tab = context.new_page()
                tab.goto(f"{page}{address}")
                tab.locator("h1").wait_for()
                tab.wait_for_timeout(500)
                saved(tab.screenshot(), FOLDER / f"{name}{suffix}.webp")
                context.close()


if __name__ == "__main__":
    with sync_playwright() as playwright:
        atlas_pictures(
            playwright.chromium.launch(
                executable_path=find_chromium.needed(), args=find_chromium.FLAGS
            )
        )
