"""The page of an answer: no script, every string escaped, the heat of each word as it is."""

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

import headscope as hs
from headscope import PageError
from headscope.views._thumbs import png_address

from ..answers import made_answer


def pictures(page, kind):
    """The overlays of a class, in the order of the words, as arrays."""
    addresses = re.findall(rf'class="heat {kind} h\d+" alt="" src="([^"]+)"', page)
    return [_pixels(address) for address in addresses]


def _pixels(address):
    data = base64.b64decode(address.removeprefix("data:image/png;base64,"))
    return np.asarray(Image.open(io.BytesIO(data)))


def test_a_picture_comes_back_as_it_was():
    rng = np.random.default_rng(1)
    for channels in (3, 4):
        pixels = rng.integers(0, 256, (5, 8, channels), np.uint8)
        np.testing.assert_array_equal(_pixels(png_address(pixels)), pixels)


def test_each_word_has_its_heat():
    answer = made_answer(words=5)
    page = hs.view(answer).html
    plain, signed = pictures(page, "plain"), pictures(page, "signed")
    assert (len(plain), len(signed)) == (5, 5)
    values = np.nan_to_num(answer.values())
    for word, overlay in enumerate(plain):
        grid = np.nan_to_num(answer.heat(word))
        wanted = 255 * 0.72 * (grid / values.max()) ** 0.75
        np.testing.assert_allclose(overlay[..., 3], wanted, atol=0.51)
        assert overlay[0, 5, 3] == 0  # the sink
    less = answer.heat(1, relative=True) < 0
    assert (signed[1][less][:, 0] > signed[1][less][:, 2]).all()
    assert (signed[1][~less][:, 0] < signed[1][~less][:, 2]).all()


def test_the_page_runs_nothing_and_escapes_what_users_wrote():
    answer = made_answer(words=3, question='</title><script>alert("x")</script>')
    page = hs.view(answer).html
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert "&lt;/title&gt;&lt;script&gt;" in page
    assert page.count('type="radio"') == 3
    assert hs.view(answer).html == page


def test_what_a_notebook_shows_is_apart_from_other_answers():
    first, second = (hs.view(made_answer(words=count))._repr_html_() for count in (3, 4))
    names = [set(re.findall(r'id="([^"]+)"', each)) for each in (first, second)]
    assert names[0]
    assert not names[0] & names[1]


@pytest.mark.parametrize("theme", ["light", "dark", "auto"])
def test_the_theme_is_as_asked(theme, tmp_path):
    page = hs.view(made_answer(words=2), theme=theme, title="A & B")
    assert ("prefers-color-scheme" in page.html) == (theme == "auto")
    assert "<title>A &amp; B</title>" in page.html
    assert page.save(tmp_path / "page.html").read_text(encoding="utf-8") == page.html


@pytest.mark.parametrize(
    ("options", "told"),
    [({"theme": "blue"}, "theme is 'blue'"), ({"layer": 2}, "no option 'layer'")],
)
def test_options_that_there_are_not(options, told):
    with pytest.raises(PageError, match=told):
        hs.view(made_answer(words=2), **options)


def test_answers_without_pixels_or_with_one_word_or_none():
    from dataclasses import replace

    bare = hs.view(made_answer(words=1, pictures=())).html
    assert 'class="base"' not in bare
    assert 'type="checkbox"' not in bare
    empty = replace(made_answer(words=1), words=(), text="")
    assert "There is no word in it" in hs.view(empty).html
