"""How many controls are seen at once: tiles, tokens and clauses of the sentence do not count."""

import numpy as np
import pytest
from PIL import Image

from headscope.testing import random_record

CONTROLS = """() => {
  const root = document.querySelector("#headscope").shadowRoot;
  const things = ".tile, .pair-cell, .clause, .word, .token, .query-option, .plate-head, [data-listed], .tray-name, [data-guess] *";
  const seen = (element) => {
    const box = element.getBoundingClientRect();
    const menu = element.parentElement.closest("details:not([open])");
    if (menu && !(element.matches("summary") && element.parentElement === menu)) return false;
    return box.width > 1 && box.height > 1 && getComputedStyle(element).visibility !== "hidden";
  };
  return [...root.querySelectorAll("button, select, input, textarea, summary, a[href]")]
    .filter((element) => !element.closest(things) && !element.matches(".skip") && seen(element))
    .map((element) => element.ariaLabel || element.textContent || element.name);
}"""


@pytest.fixture(scope="module")
def record():
    return random_record()


@pytest.mark.parametrize("place", ["overview", "head", "matrix", "text", "neuron", "compare"])
def test_no_place_has_more_than_twelve_controls(show, record, place):
    chosen = {"tray": ["0-1", "1-2", "0-0"]} if place == "compare" else {}
    view = show(record, view=place, **chosen)
    controls = view.page.evaluate(CONTROLS)
    assert 5 <= len(controls) <= 12, controls


def test_the_poster_has_every_head_and_any_key_closes_it(show, record):
    view = show(record, view="overview")
    view.page.keyboard.press("f")
    view.settle()
    poster = view.page.locator('[data-poster] [data-canvas="poster"]')
    stack = next(iter(record.stacks.values()))
    size = poster.evaluate("canvas => [canvas.width, canvas.height]")
    assert size == [120 * stack.heads, 120 * len(stack)]
    assert view.colours("poster") > 10
    with view.page.expect_download() as saved:
        view.page.locator("[data-poster-save]").click()
    assert saved.value.suggested_filename.endswith("-poster.png")
    # Its sentence is there, and ends before the margin does.
    pixels = np.asarray(Image.open(saved.value.path()).convert("L"))
    assert pixels[-120:].any()
    assert not pixels[:, -60:].any()
    view.page.keyboard.press("Escape")
    view.settle()
    assert view.page.locator("[data-poster]").count() == 0
    assert view.errors == []
