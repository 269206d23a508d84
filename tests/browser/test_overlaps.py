"""No two labels or controls lie on each other, at any width and for any number of heads."""

import numpy as np
import pytest

import headscope as hs
from headscope.record import Tokens

WIDTHS = (390, 768, 1280, 1920)
WORDS = (
    "[CLS]",
    "I",
    "went",
    "to",
    "the",
    "store",
    ".",
    "[SEP]",
    "At",
    "the",
    "store",
    ",",
    "fresh",
    "straw",
    "##berries",
)
OVERLAPS = """
() => {
  const root = document.querySelector("[id=headscope]").shadowRoot;
  const shown = (element) =>
    element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) &&
    !element.closest(".spoken, option, svg") && getComputedStyle(element).clipPath === "none";
  const lines = (element) =>
    [...element.childNodes].filter((node) => node.nodeType === 3 && node.data.trim()).flatMap((node) => {
      const range = document.createRange();
      range.selectNodeContents(node);
      return [...range.getClientRects()];
    });
  // What a box that scrolls or cuts leaves to be seen.
  const cut = (element, box) => {
    let { left, top, right, bottom } = box;
    for (let around = element; around; around = around.parentElement) {
      if (getComputedStyle(around).overflow === "visible") continue;
      const edge = around.getBoundingClientRect();
      [left, top] = [Math.max(left, edge.left), Math.max(top, edge.top)];
      [right, bottom] = [Math.min(right, edge.right), Math.min(bottom, edge.bottom)];
    }
    return { left, top, right, bottom };
  };
  const boxes = [];
  for (const element of root.querySelectorAll("*")) {
    // Tiles and cells are places of a picture, of which there are thousands.
    if (element.closest(".tile, .grid-cell, .heat-cells") || !shown(element)) continue;
    const control = element.matches("button, select, input, summary, a");
    for (const box of control ? [element.getBoundingClientRect()] : lines(element)) {
      const seen = cut(element, box);
      if (seen.right - seen.left > 1 && seen.bottom - seen.top > 1) boxes.push({ element, ...seen });
    }
  }
  boxes.sort((one, other) => one.top - other.top);
  const name = ({ element }) =>
    `${element.tagName.toLowerCase()}.${element.className} "${element.textContent.trim().slice(0, 24)}"`;
  const found = [];
  boxes.forEach((one, at) => {
    for (const other of boxes.slice(at + 1)) {
      if (other.top > one.bottom - MOST) break;
      // What a word covers on purpose: a drawer lies over the rows, as a sheet does.
      const over = (box) => box.element.closest(".pair-detail, .help, .choices");
      const within = one.element.contains(other.element) || other.element.contains(one.element);
      if (within || over(one) !== over(other)) continue;
      const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const high = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
      const size = `${wide.toFixed()} x ${high.toFixed()}`;
      if (wide > MOST && high > MOST) found.push(`${name(one)} and ${name(other)} by ${size}`);
    }
  });
  const beyond = document.documentElement.scrollWidth - innerWidth;
  return beyond > 0 ? [...found, `the page is ${beyond} pixels wider than the window`] : found;
}
""".replace(
    "MOST", "3.5"
)  # room that letters leave in their lines, and clauses lend each other for their frames


def overlaps(view, width):
    view.page.set_viewport_size({"width": width, "height": 800})
    view.settle()
    view.page.wait_for_timeout(150)
    return [f"{width}: {each}" for each in view.page.evaluate(OVERLAPS)]


def random_heads(rng, layers, heads, tokens):
    weights = np.exp(3 * rng.standard_normal((layers, heads, tokens, tokens)).astype(np.float32))
    return hs.from_weights(
        list(weights / weights.sum(-1, keepdims=True)), Tokens(pieces=WORDS[:tokens])
    )


@pytest.mark.parametrize(
    ("layers", "heads", "tokens", "widths"),
    # Thousands of heads are drawn anew for seconds at each width: each of two pages has half.
    [(12, 12, 15, WIDTHS), (80, 64, 6, (768, 1920)), (126, 128, 5, (1280, 390))],
)
def test_nothing_lies_on_anything_for_any_number_of_heads(show, rng, layers, heads, tokens, widths):
    record = random_heads(rng, layers, heads, tokens)
    size = (widths[0], 800)  # one width less to draw them anew for
    view = show(record, view="overview", tray=["0-1", "2-3", "5-7 view=matrix"], size=size)
    view.page.locator("[data-story] button").first.wait_for()
    found = [each for width in widths for each in overlaps(view, width)]
    for name in ("head", "compare"):
        view.choose(name)
        found += [f"{name} {each}" for width in widths for each in overlaps(view, width)]
    assert found == []


def test_nothing_lies_on_anything_in_any_view(show):
    record = hs.capture(
        None,
        text="I went to the store.",
        text_pair="At the store, I bought fresh strawberries.",
        keep="norms",
    )
    view = show(record, view="overview", tray=["0-1", "2-3", "5-7 view=matrix"])
    view.page.locator("[data-story] button").first.wait_for()
    found = [each for width in WIDTHS for each in overlaps(view, width)]
    for name in ("head", "matrix", "text", "compare"):
        view.choose(name)
        found += [f"{name} {each}" for width in WIDTHS for each in overlaps(view, width)]
    assert found == []


def test_what_lies_on_each_other_is_found(show, rng):
    view = show(random_heads(rng, 2, 3, 6))
    assert overlaps(view, 1280) == []
    view.page.locator('[data-option="one"]').evaluate(
        "button => { button.style.transform = 'translateX(60px)' }"
    )
    assert any("One head" in each for each in overlaps(view, 1280))


def test_a_pair_in_many_heads_is_a_map_of_colours(show, rng):
    size = 6
    tokens = Tokens(pieces=tuple("abcdef"))
    record = hs.from_weights(list(rng.dirichlet([0.3] * size, size=(3, 32, size))), tokens)
    view = show(record, view="head", query=[1], key=[2], size=(390, 844))
    cells = view.page.locator(".all-heads .tile")
    assert cells.count() == 96
    assert cells.nth(33).get_attribute("title").startswith("Head 1-1: ")
    assert view.page.evaluate("document.documentElement.scrollWidth") <= 390
