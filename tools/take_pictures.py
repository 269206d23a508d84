"""Take the pictures of README and docs anew, from the demo model.

make pictures
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

import find_chromium
import headscope as hs
from headscope.capturing import load_model
from picture_texts import TEXTS

PAIR = ("The rabbit quickly hopped across the road.", "The turtle slowly crawled behind it because it was tired.")
FOLDER = Path(__file__).parent.parent / "docs" / "pictures"
PICTURES = {
    "head_view": ("layer=1&mute=1", "light"),
    "head_view_dark": ("layer=1&mute=1", "dark"),
    "head_view_pinned": ("layer=3&heads=1,5,8&query=15", "light"),
    "model_view": ("view=model", "light"),
    "matrix_view": ("view=matrix&layer=3&heads=8&query=15&key=14", "light"),
    "neuron_view": ("view=neuron&layer=3&heads=8&query=15&key=14", "dark"),
    "text_view": ("view=text&layer=3&heads=8&query=15", "light"),
    "pair_view": ("view=pair&query=15&key=2", "light"),
}
"""File name: what the page's address says, and the colours."""
WITH_EVIDENCE = {
    "model_view_labels": ("view=model&label=delimiter", "light"),
    "scatter_view": ("view=scatter&layer=1&heads=8", "light"),
    "scatter_view_map": ("view=scatter&x=map&label=delimiter&layer=4&heads=5", "dark"),
    "head_card": ("view=head&layer=1&heads=8", "light"),
}
"""The same of the page with evidence."""


def main() -> None:
    """Open the page once for each picture."""
    model, tokenizer = load_model(None)
    record = hs.capture(model, tokenizer, *PAIR)
    found = hs.heads(hs.capture_many(model, tokenizer, list(TEXTS)))
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        plain = hs.page(record).save(Path(folder) / "page.html")
        labelled = hs.page(record, evidence=found).save(Path(folder) / "evidence.html")
        browser = playwright.chromium.launch(executable_path=find_chromium.needed(), args=find_chromium.FLAGS)
        for name, (selection, scheme) in (PICTURES | WITH_EVIDENCE).items():
            page = labelled if name in WITH_EVIDENCE else plain
            tab = browser.new_page(viewport={"width": 1240, "height": 760}, color_scheme=scheme)
            tab.goto(f"{page.as_uri()}#v=2&{selection}")
            tab.locator('[data-headscope][data-ready="true"]').wait_for(state="attached")
            tab.wait_for_timeout(500)
            tab.screenshot(path=FOLDER / f"{name}.png")
            tab.close()
            print(FOLDER / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
