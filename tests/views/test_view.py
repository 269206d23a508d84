"""A view as Python and a notebook have it."""

from html.parser import HTMLParser

import pytest

import headscope as hs
from headscope.errors import HeadscopeError
from headscope.testing import random_record, random_weights
from headscope.views import View, _html, file_page


@pytest.fixture(autouse=True)
def bundle(monkeypatch):
    """Stand-ins for the scripts; the real ones are tested in the browser."""
    monkeypatch.setattr(_html, "bundle", lambda name="page.js": f"run('{name}' && \"now\")")


def elements(text):
    found = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: found.append((tag, dict(attributes)))
    parser.feed(text)
    return found


def test_a_notebook_keeps_a_picture_of_what_a_view_opens_on():
    whole, one = hs.view(random_record()), hs.view(random_record(), view="matrix", layer=1, head=2)
    large = hs.view(random_record(queries=300, keys=300))
    assert whole._repr_png_().startswith(b"\x89PNG")
    assert whole.still().recipe["view"] == "overview"
    assert one._repr_png_() != whole._repr_png_()
    # which would take longer than the page, and no figure shows what needs a choice of the reader
    assert large._repr_png_() is hs.view(random_record(), view="neuron")._repr_png_() is None


@pytest.mark.parametrize("name", ["head", "matrix", "text", "neuron"])
def test_each_view_opens_by_its_name(name):
    made = hs.view(random_record(), view=name, layer=1, head=2)
    assert isinstance(made, View)
    assert (
        made.header["selection"] | {"view": name, "layer": 1, "heads": [2]}
        == made.header["selection"]
    )


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("model", {"view": "overview", "tiles": "lines"}),
        ("pair", {"view": "head"}),
        ("scatter", {"view": "overview", "order": "kind"}),
    ],
)
def test_a_view_of_print_opens_the_place_that_took_over(name, place):
    made = hs.view(random_record(), view=name)
    assert made.header["selection"] | place == made.header["selection"]


def test_a_notebook_shows_it_in_a_frame_that_may_run_scripts_and_save_files_only():
    shown = hs.view(random_record())
    script, frame, style, note = elements(shown._repr_html_())
    assert (script, frame[0]) == (("script", {}), "iframe")
    assert frame[1]["sandbox"] == "allow-scripts allow-downloads"
    assert frame[1]["srcdoc"] == shown.html
    assert (style[0], note) == ("style", ("p", {"class": "headscope-untrusted"}))
    assert set(frame[1]) == {"data-headscope-frame", "sandbox", "title", "style", "srcdoc"}


def test_marimo_gets_the_same_frame_without_a_script():
    shown = hs.view(random_record())
    mime, text = shown._mime_()
    assert mime == "text/html"
    assert elements(text) == elements(shown._repr_html_())[1:2]


def test_a_frame_is_ascii_whatever_the_tokens_are(rng):
    tokens = ["caf\u00e9", "\u65e5\u672c", "\U0001f469\u200d\U0001f4bb"]
    shown = hs.view(hs.from_weights(random_weights(rng, (1, 2, 3, 3)), tokens))
    assert shown._repr_html_().isascii()
    assert elements(shown._repr_html_())[1][1]["srcdoc"] == shown.html


def test_a_view_is_one_line_as_text():
    assert (
        repr(hs.view(random_record())) == "<View of random: cross 2 layers x 3 heads, 5 x 7 tokens>"
    )


def test_open_writes_a_page_and_hands_it_to_the_browser(monkeypatch):
    opened = []
    monkeypatch.setattr(file_page.webbrowser, "open", lambda at: opened.append(at) or True)
    shown = hs.view(random_record())
    path = shown.open()
    assert opened == [path.as_uri()]
    assert path.read_text(encoding="utf-8") == shown.html
    path.unlink()
    path.parent.rmdir()


def test_open_without_a_browser_says_where_the_page_is(monkeypatch, tmp_path):
    monkeypatch.setattr(file_page.webbrowser, "open", lambda _: False)
    monkeypatch.setattr(file_page.tempfile, "mkdtemp", lambda prefix: str(tmp_path))
    with pytest.raises(HeadscopeError, match=r"No browser could be opened; open"):
        hs.view(random_record()).open()
    assert (tmp_path / "view.html").exists()
