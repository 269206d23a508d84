"""The widget's module in a real browser, loaded as anywidget loads it, with a kernel that answers
from Python's bytes.

Real notebooks are driven by tools/drive_notebooks.py.
"""

import pytest

import headscope as hs
from headscope.testing import random_weights


@pytest.fixture
def record(rng):
    return hs.from_weights(random_weights(rng, (6, 4, 9, 9)), [f"w{number}" for number in range(9)])


def test_two_in_one_notebook_do_not_hear_each_other(record, widgets):
    page = widgets(hs.view(record, view="head"), hs.view(record, view="head", layer=3))
    page.locator("[data-headscope]").nth(1).locator('[data-side="query"]').first.focus()
    page.keyboard.press("]")
    page.locator('[data-headscope][data-layer="4"]').wait_for(state="attached")
    assert page.locator('[data-headscope][data-layer="0"]').count() == 1
    assert page.evaluate("models.map((model) => [model.state.selection.layer, model.saved])") == [
        [0, 0],
        [4, 1],
    ]


def test_what_python_sets_is_shown(record, widgets):
    page = widgets(hs.view(record, view="head"))
    page.evaluate(
        "models[0].set('selection', { ...models[0].state.selection, layer: 5, heads: [1] })"
    )
    page.evaluate("models[0].tell('change:selection')")
    page.locator('[data-headscope][data-layer="5"][data-heads="1"]').wait_for(state="attached")
    assert page.evaluate("models[0].saved") == 0


def test_styles_of_the_notebook_do_not_reach_in_and_its_colours_do(record, widgets):
    page = widgets(hs.view(record, view="head"))
    page.locator('[data-headscope][data-theme="dark"]').wait_for(state="attached")
    style = "(element) => [getComputedStyle(element).fontSize, getComputedStyle(element).display]"
    size, display = page.locator('[data-tile="0-1"]').evaluate(style)
    assert (size != "40px", display != "none") == (True, True)


def test_closing_one_leaves_the_other(record, widgets):
    page = widgets(hs.view(record, view="head"), hs.view(record, view="head"))
    page.evaluate("models[0].close()")
    assert page.locator("[data-headscope]").count() == 1
    page.locator('[data-tile="0-1"]').click()
    page.locator('[data-headscope][data-heads="1"]').wait_for(state="attached")
