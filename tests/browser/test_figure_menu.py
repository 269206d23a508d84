"""The download button: the very figure that Python draws, or where there is none the call."""

import json
from contextlib import nullcontext

import pytest

import headscope as hs
from headscope.testing import random_weights

PIECES = ["[CLS]", "the", "cat", "[SEP]", "it", "slept", "[SEP]"]


pytestmark = pytest.mark.usefixtures("chromium_only")


@pytest.fixture
def record(rng):
    return hs.from_weights(
        random_weights(rng, (3, 4, 7, 7)), PIECES, sentence_b_start=4, model="org/tiny"
    )


def saved(view, kind):
    """The file that the button gives."""
    with view.page.expect_download() as download:
        view.page.locator(f'[data-figure="{kind}"]').click()
    return download.value.suggested_filename, download.value.path().read_bytes()


def words(view):
    return view.page.locator("[data-figure-words]").inner_text()


CHOSEN = {
    "head": {"layer": 1, "heads": [2], "query": 2, "hide_special": True, "filter": "aa"},
    "matrix": {"layer": 1, "head": 1, "hide_special": True},
    "text": {"layer": 0, "head": 1, "key": 2},
}


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_the_server_gives_the_figure_that_python_draws(kind, served, record):
    with served(record, view="head", theme="dark", **CHOSEN["head"]) as view:
        view.more().page.locator("[data-figure-menu]").click()
        name, data = saved(view, kind)
    wanted = hs.figure(record, view="head", layer=1, head=2, query=2, filter="aa", hide_special=True,
                       theme="dark")  # fmt: skip
    assert name == f"head-1-2.{kind}"
    assert data == wanted.to_bytes(kind)


@pytest.mark.parametrize("name", [name for name in CHOSEN if name != "head"])
def test_every_view_has_its_figure(name, served, record):
    with served(record, view=name, **CHOSEN[name]) as view:
        view.more().page.locator("[data-figure-menu]").click()
        call = words(view)
        _, data = saved(view, "svg")
    wanted = eval(call, {"hs": hs, "record": record})
    assert (
        call
        == f"hs.figure(record, view={json.dumps(name)}, "
        + ", ".join(f"{option}={value}" for option, value in CHOSEN[name].items())
        + ")"
    )
    assert data == wanted.to_bytes("svg")


def test_the_page_alone_says_what_draws_the_figure(show, record, tmp_path):
    view = show(record, view="head", **CHOSEN["head"])
    view.more().page.locator("[data-figure-menu]").click()
    assert view.page.locator("[data-figure]").count() == 0
    call = words(view)
    view.page.keyboard.press("Escape")
    assert not view.page.locator("[data-figure-words]").first.is_visible()
    assert "query=" not in view.address()  # still the page's own: Escape let go of nothing
    hs.save(record, tmp_path / "run.safetensors")
    drawn = eval(call, {"hs": hs, "record": hs.load(tmp_path / "run.safetensors")})
    assert drawn.to_bytes("svg").startswith(b"<?xml")


def test_what_cannot_be_drawn_is_said(served, record):
    with served(record, view="matrix", head=0) as view:
        view.more().page.locator("[data-figure-menu]").click()
        view.page.route(
            "**/figure/**",
            lambda route: route.continue_(url=route.request.url.replace("layer", "lair")),
        )
        view.page.locator('[data-figure="pdf"]').click()
        view.page.get_by_text("A figure of a page has no option 'lair'").wait_for()
        view.errors.clear()  # the browser notes the answer 400


@pytest.mark.parametrize("opener", ["served", "show"])
def test_numbers_of_your_own_are_drawn_where_python_has_them(opener, request, record, rng):
    quantities = {"mine": [rng.random((7, 7)) for _ in range(3)]}
    opened = request.getfixturevalue(opener)(
        record, view="matrix", quantity="mine", quantities=quantities
    )
    with opened if opener == "served" else nullcontext(opened) as view:
        view.root.and_(view.page.locator('[data-quantity="mine"]')).wait_for(state="attached")
        view.more().page.locator("[data-figure-menu]").click()
        call = view.text("[data-figure-words]")
        assert call.startswith('hs.figure(record, view="matrix", layer=0, head=')
        assert call.endswith('quantity="mine", quantities=quantities)')
        if opener == "served":
            drawn = eval(call, {"hs": hs, "record": record, "quantities": quantities})
            assert saved(view, "svg")[1] == drawn.to_bytes("svg")
        view.more().page.locator("[data-quantities]").select_option("weight")
        view.page.locator("[data-figure-words]").wait_for()
