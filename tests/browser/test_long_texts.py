"""Long texts, sentence by sentence, in a real browser."""

import numpy as np
import pytest

import headscope as hs
from headscope.views import _grouped

COUNT = 1230
"""41 sentences of 30 tokens each."""


@pytest.fixture(scope="module")
def record():
    rng = np.random.default_rng(5)
    queries, keys = (rng.normal(size=(1, 3, COUNT, 4)).astype(np.float32) for _ in range(2))
    scores = np.einsum("lhqf,lhkf->lhqk", queries, keys)
    # Head 2 looks from each sentence at the one five before it.
    at = np.arange(COUNT) // 30
    scores[0, 2] = np.where(at[:, None] - at == 5, 8, 0)
    scores[..., ~np.tril(np.ones((COUNT, COUNT), bool))] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    pieces = ["." if at % 30 == 29 else f"w{at}" for at in range(COUNT)]
    return hs.from_weights(weights.astype(np.float32), tokens=pieces)


NODES = """() => {
  let count = 0;
  const walk = (root) => {
    for (const element of root.querySelectorAll("*")) {
      count++;
      if (element.shadowRoot) walk(element.shadowRoot);
    }
  };
  walk(document);
  return count;
}"""


def test_a_long_text_opens_by_sentence_and_is_read_by_a_click(show, record):
    view = show(record, view="matrix", head=2)
    page = view.page
    assert page.locator("[data-sentences]").get_attribute("data-sentences") == "41"
    assert page.evaluate(NODES) <= 600
    assert "1,230 tokens" in page.locator(".facts").inner_text()
    box = page.locator(".sentence-cells").bounding_box()
    page.mouse.click(box["x"] + 1, box["y"] + box["height"] * 20.5 / 41)
    assert page.locator("[data-chosen]").inner_text() == "Sentence 21 looks at"
    assert page.locator("[data-listed]").first.get_attribute("data-listed") == "15"
    read = page.locator("[data-read]")
    assert (read.count(), read.first.get_attribute("data-token")) == (30, "600")
    strip = page.locator("[data-minimap]").bounding_box()
    page.mouse.click(strip["x"] + 9, strip["y"] + strip["height"] * 465 / COUNT)
    assert float(page.locator('[data-token="450"]').get_attribute("title").split()[0]) > 5
    page.keyboard.press("Escape")
    page.locator('[data-option="overview"]').click()
    page.locator('[data-tile="0-1"]').click()
    assert page.evaluate(NODES) <= 600
    assert view.errors == []


def test_pictures_side_by_side_are_drawn(show, record):
    view = show(record, view="compare", tray=["0-0", "0-2"])
    view.page.locator("[data-picture][data-layer]").nth(1).wait_for()
    assert view.colours("sentences") > 2


def test_a_text_beyond_what_a_page_draws_still_says_its_length(show, record, monkeypatch):
    monkeypatch.setattr(_grouped, "MOST_TOKENS", 1000)
    view = show(record, view="text", head=2)
    assert "1,230 tokens" in view.page.locator(".facts").inner_text()
    assert view.page.locator("[data-token]").first.inner_text().endswith(".")
    assert view.errors == []
