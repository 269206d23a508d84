"""How many controls are seen at once: tiles, tokens and clauses of the sentence do not count."""

from itertools import pairwise

import numpy as np
import pytest
from PIL import Image, ImageSequence

import headscope as hs
from headscope.testing import random_record, tiny_model, tiny_tokenizer

CONTROLS = """() => {
  const root = document.querySelector("#headscope").shadowRoot;
  const things = ".tile, .clause, .word, .token, .key-row, .plate-head, [data-listed], .tray-name, "
    + "[data-guess] *";
  const seen = (element) => {
    const box = element.getBoundingClientRect();
    return box.width > 1 && box.height > 1 && element.checkVisibility({ visibilityProperty: true });
  };
  return [...root.querySelectorAll("button, select, input, textarea, summary, a[href]")]
    .filter((element) => !element.closest(things) && !element.matches(".skip") && seen(element))
    .map((element) => element.ariaLabel || element.textContent || element.name);
}"""


@pytest.fixture(scope="module")
def record():
    return random_record()


@pytest.fixture(scope="module")
def everything():
    """Three stacks, queries and keys, and the lengths of values: all drawings, all lists."""
    model = tiny_model("t5")
    return hs.capture(model, tiny_tokenizer(), text="the cat sat on", target="it ran", keep="norms")


@pytest.mark.parametrize("given", ["record", "everything"])
@pytest.mark.parametrize("place", ["overview", "head", "matrix", "text", "neuron", "compare"])
def test_no_place_has_more_than_twelve_controls(show, request, given, place):
    more = {"compare": {"tray": ["0-1", "1-2", "0-0"]}, "text": {"query": [0]}}
    tray = {"tray": ["0-1", "1-0"]} | more.get(place, {})
    view = show(request.getfixturevalue(given), view=place, **tray)
    controls = view.page.evaluate(CONTROLS)
    assert 5 <= len(controls) <= 12, controls
    names = [name for name in controls if name == "neurons" or "value norms" in name]
    assert given == "record" or place != "text" or len(names) == 2


def opened_on_black(show, record, key):
    """All heads on black, opened by a key; the file that its button saves, as pixels by frame."""
    view = show(record, view="overview")
    view.page.keyboard.press(key)
    view.settle()
    with view.page.expect_download() as saved:
        view.page.locator("[data-poster-save]").click()
    with Image.open(saved.value.path()) as image:
        frames = [np.asarray(frame.convert("L")) for frame in ImageSequence.Iterator(image)]
    return view, saved.value.suggested_filename, frames


def test_the_poster_has_every_head_and_any_key_closes_it(show, record):
    view, name, frames = opened_on_black(show, record, "f")
    stack = next(iter(record.stacks.values()))
    assert name.endswith("-poster.png")
    assert [frame.shape for frame in frames] == [(120 * len(stack) + 240, 120 * stack.heads + 240)]
    assert view.colours("poster") > 10
    # Its sentence is there, and ends before the margin does.
    assert frames[0][-120:].any()
    assert not frames[0][:, -60:].any()
    view.page.keyboard.press("Escape")
    view.settle()
    assert view.page.locator("[data-poster]").count() == 0
    assert view.errors == []


def test_the_film_shows_one_layer_after_the_other(show, record, chromium_only):
    view, name, frames = opened_on_black(show, record, "p")
    assert name.endswith("-film.webp")
    assert len(frames) == len(next(iter(record.stacks.values())))
    assert {frame.shape for frame in frames} == {(720, 1280)}
    # Rows that were shown stay, so that each frame has more at the left than the one before.
    lit = [int((frame[:600, :640] > 60).sum()) for frame in frames]
    assert all(before < after for before, after in pairwise(lit))
    assert all((frame[:600, 660:] > 60).any() for frame in frames)
    shown = view.page.locator('[data-canvas="film"]')
    view.page.locator('[data-canvas="film"][data-layer="1"]').wait_for()
    assert shown.evaluate("canvas => [canvas.width, canvas.height]") == [1280, 720]
    view.page.keyboard.press("Escape")
    view.settle()
    assert shown.count() == 0
    assert view.errors == []
