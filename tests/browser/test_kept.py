"""Pages that one test after the other uses are as they were when they were opened."""

import pytest

import headscope as hs
from headscope.testing import random_weights

WINDOW = {"size": (900, 700), "scheme": "light", "density": 1}


@pytest.fixture
def kept(page_open, rng):
    record = hs.from_weights(random_weights(rng, (2, 3, 5, 5)), list("abcde"))
    return page_open(hs.page(record, view="head").html, **WINDOW)


def is_the_same_load(view):
    return view.page.evaluate("() => { const was = window.seen; window.seen = true; return !!was }")


def test_what_an_address_holds_is_put_back_without_another_load(kept):
    view = kept.as_opened()
    before = view.text("main")
    is_the_same_load(view)
    view.follow(view="matrix", layer=1, heads=[2])
    view.page.set_viewport_size({"width": 400, "height": 700})
    view.page.locator(".matrix-plane").hover()
    kept.as_opened()
    assert (view.state("view"), view.address(), view.text("main")) == ("head", "", before)
    assert view.page.viewport_size == {"width": 900, "height": 700}
    assert is_the_same_load(view)


@pytest.mark.parametrize(
    "leave",
    [
        lambda view: view.token("query", 3).focus(),
        lambda view: view.token("query", 1).evaluate("token => { token.style.width = '7px' }"),
        lambda view: view.page.evaluate("localStorage.setItem('left', '1')"),
    ],
    ids=["a focus", "a style", "a store"],
)
def test_a_page_is_loaded_anew_where_a_test_left_anything_else(kept, leave):
    view = kept.as_opened()
    before = view.text("main")
    is_the_same_load(view)
    leave(view)
    kept.as_opened()
    assert view.text("main") == before
    assert not is_the_same_load(view)


def test_errors_and_requests_are_those_of_one_test(kept):
    view = kept.as_opened()
    for wrong in ("console.error('broken')", "fetch('http://127.0.0.1:9/gone').catch(() => 0)"):
        view.page.evaluate(wrong)
        view.settle()
        with pytest.raises(AssertionError):
            kept.check()
        kept.check()
