"""The page of an answer: what it draws is what the answer says, and every string is escaped."""

import base64
import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import headscope as hs
from headscope.errors import PageError
from headscope.views._thumbs import png_address

from ..answers import made_answer

DOCUMENTS = [
    "At the library they use seven. The road was quiet on Friday.",
    "The code of the mill is amber falcon. It rained near the barn on Monday.",
]


@pytest.fixture(scope="module")
def asked():
    return hs.answer(None, documents=DOCUMENTS, question="Which code opens the mill?")


def floats(text, *shape):
    return np.frombuffer(base64.b64decode(text), np.float32).reshape(*shape)


def pixels_of(address):
    data = base64.b64decode(address.removeprefix("data:image/png;base64,"))
    return np.asarray(Image.open(io.BytesIO(data)))


def test_a_picture_comes_back_as_it_was():
    rng = np.random.default_rng(1)
    for channels in (3, 4):
        pixels = rng.integers(0, 256, (5, 8, channels), np.uint8)
        np.testing.assert_array_equal(pixels_of(png_address(pixels)), pixels)


def test_the_page_holds_the_numbers_of_the_answer(asked):
    picture = asked.view().picture
    words, parts = len(asked.words), len(asked.parts)
    shares = floats(picture["shares"], -1, words, parts + 3)
    for word in range(words):
        np.testing.assert_allclose(shares[0, word], asked.looked([word]), atol=1e-6)
    at = picture["heads"].index("2-0")
    np.testing.assert_allclose(shares[1 + at].mean(axis=0), asked.looked(heads=[(2, 0)]), atol=1e-6)
    logs = floats(picture["logs"], -1, words)
    np.testing.assert_allclose(logs[0].sum(), asked.part_numbers()[1].whole, atol=1e-5)
    np.testing.assert_allclose(logs[2 + 1].sum(), asked.part_numbers()[1].without, atol=1e-4)
    np.testing.assert_allclose(logs[4 + 0].sum(), asked.part_numbers()[0].alone, atol=1e-4)
    # Each part has its own text, and the mark of the template stands in none.
    first, stop = picture["parts"][1]["runs"][0]
    assert "".join(picture["pieces"][first:stop]).strip() == DOCUMENTS[1]
    assert "same" in picture["kinds"]


def test_parts_look_at_parts_as_the_weights_say(asked):
    found = floats(asked.view().picture["between"], len(asked.parts) + 1, -1)
    stack = asked.record[asked.record.generation.stack]
    weights = np.mean([layer.weights_of() for layer in stack], axis=(0, 1))
    even = np.tril(np.ones_like(weights)) / np.arange(1, len(weights) + 1)[:, None]
    one, two = (list(part.tokens) for part in asked.parts[:2])
    wanted = weights[two][:, one].sum() / even[two][:, one].sum()
    assert found[1, 0] == pytest.approx(wanted, rel=1e-4)
    assert np.isnan(found[0, 1])


def test_an_answer_that_was_loaded_is_shown_and_drawn_as_it_was(asked, tmp_path):
    loaded = hs.load(asked.save(tmp_path / "a.safetensors"))
    assert loaded.view().picture == asked.view().picture
    assert set(loaded.view().picture["kinds"]) != {"none"}
    for each, name in ((asked, "fresh.svg"), (loaded, "loaded.svg")):
        each.plot(tmp_path / name)
    fresh, again = ((tmp_path / name).read_text() for name in ("fresh.svg", "loaded.svg"))
    assert again.replace("loaded.svg", "fresh.svg") == fresh
    # And again, once it is saved without its record.
    twice = hs.load(loaded.save(tmp_path / "b.safetensors"))
    assert twice.view().picture == loaded.view().picture


def test_a_prompt_without_parts_is_one_part():
    answer = hs.answer(None, prompt="Which code opens the mill?", max_new_tokens=2)
    picture = answer.view().picture
    shares = floats(picture["shares"], -1, len(answer.words), 4)
    assert [part["name"] for part in picture["parts"]] == ["prompt"]
    np.testing.assert_allclose(shares.sum(axis=-1), 1, atol=1e-6)
    np.testing.assert_allclose(shares[..., 2], 0)


def test_of_many_heads_those_that_look_at_what_was_needed_have_tiles(asked):
    shares = np.random.default_rng(3).random((len(asked.tokens), 9, 8, len(asked.parts) + 3))
    shares[:, 7, 5, 1] = 2.0
    chosen = tuple((layer, head) for layer in range(9) for head in range(8))
    even = np.repeat(asked.even[:, :1], 9, axis=1)
    many = replace(
        asked, record=None, shares=shares, even=even, layers=tuple(range(9)), chosen=chosen
    )
    picture = many.view().picture
    assert (len(picture["heads"]), picture["heads"][0], picture["columns"]) == (24, "7-5", 0)


def test_patches_of_pictures_have_their_places_and_sinks():
    answer = made_answer(words=5)
    picture = answer.view().picture
    (shown,) = picture["pictures"]
    np.testing.assert_array_equal(pixels_of(shown["address"]), answer.pictures[0])
    assert (shown["grid"], len(shown["keys"])) == ([4, 6], 24)
    assert picture["sinks"] == [shown["keys"][5]]
    ink = np.frombuffer(base64.b64decode(picture["ink"]), np.uint8).reshape(5, -1)
    heat = (floats(picture["tops"], 5, 1) * (ink / 255.0) ** 2)[:, shown["keys"]]
    np.testing.assert_allclose(heat, answer.word_attention, atol=0.004 * answer.attention.max())
    bare = made_answer(words=1, pictures=()).view().picture["pictures"][0]
    assert (bare["address"], bare["size"]) == ("", [4, 6])


def test_the_page_runs_its_script_alone_and_escapes_what_users_wrote():
    answer = made_answer(words=3, question='</title><script>alert("x")</script>')
    page = hs.view(answer).html
    assert "default-src 'none'" in page
    assert len(re.findall("<script", page)) == 2
    assert "&lt;/title&gt;&lt;script&gt;" in page
    data = re.search(r'id="headscope-page">(.*?)</script>', page)[1]
    assert json.loads(data)["question"] == answer.question
    assert hs.view(answer).html == page


@pytest.mark.parametrize("theme", ["light", "dark", "auto"])
def test_the_theme_and_title_are_as_asked(theme, tmp_path):
    page = hs.view(made_answer(words=2), theme=theme, title="A & B")
    assert (page.picture["theme"], page.picture["model"]) == (theme, "A & B")
    assert "<title>A &amp; B</title>" in page.html
    assert page.save(tmp_path / "page.html").read_text(encoding="utf-8") == page.html


@pytest.mark.parametrize(
    ("options", "told"),
    [({"theme": "blue"}, "theme must be one of"), ({"layer": 2}, "no option 'layer'")],
)
def test_options_that_there_are_not(options, told):
    with pytest.raises(PageError, match=told):
        hs.view(made_answer(words=2), **options)


def test_an_answer_without_words_says_so():
    empty = replace(made_answer(words=1), words=(), text="")
    assert "wrote nothing" in hs.view(empty).picture["says"][0]


def test_what_is_needed_is_as_python_judges_the_answer_and_each_word(asked):
    """Of an improbable answer more than half may be lost without a part that is not needed."""
    firsts = [word.tokens[0] for word in asked.words]
    whole, lost = np.zeros(len(asked.tokens)), np.zeros((2, len(asked.tokens)))
    whole[firsts], lost[1, firsts] = [-6.0, -4.0], [1.2, 0.3]
    answer = replace(
        asked, whole=whole, none=whole - lost[1], without=whole - lost, alone=whole - lost[::-1]
    )
    assert answer.part_numbers()[1].lost > 0.75
    picture = answer.view().picture
    assert (picture["needs"], picture["needed"]) == (["none", "none", "none"], [[]] * 3)
    sure = {name: getattr(answer, name) / 6 for name in ("whole", "none", "without", "alone")}
    sure |= {"none": whole / 6 - lost[1], "without": whole / 6 - lost}
    picture = replace(answer, **sure).view().picture
    assert (picture["needs"], picture["needed"]) == (["parts", "parts", "none"], [[1], [1], []])
