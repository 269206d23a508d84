"""headscope answer, with a tiny LLaVA that was saved with its processor."""

import numpy as np
import pytest
from PIL import Image

import headscope as hs
from headscope.cli import run

from ..processors import tiny_chat_llava

PIXELS = np.random.default_rng(0).integers(0, 256, (24, 40, 3), np.uint8)


@pytest.fixture(scope="module")
def llava(saved):
    return saved("llava", *tiny_chat_llava())


@pytest.fixture
def here(here):
    Image.fromarray(PIXELS).save("cat.png")
    (here / "notes.png").write_text("no picture")
    return here


def ask(llava, *more, image="cat.png"):
    base = ["answer", "what is it", "--image", image, "--model", llava, "--max-new-tokens", "4"]
    return run([*base, *more])


def test_an_answer_is_printed_and_kept(here, llava, capsys):
    assert ask(llava, "--save", "answer.safetensors") == 0
    told = capsys.readouterr().out
    kept = hs.load("answer.safetensors")
    assert str(kept) in told
    assert "llava ran on cpu" in told
    assert "Wrote " in told
    given = hs.answer(llava, image="cat.png", question="what is it", max_new_tokens=4)
    np.testing.assert_array_equal(kept.attention, given.attention)


def test_heads_are_chosen_by_numbers_or_by_places(here, llava, capsys):
    for more, told in (
        (("--layers", "1", "--heads", "0", "2"), "heads 0, 2 of layer 1"),
        (("--at", "0-1", "1-3,4"), "heads 0-1, 1-3, 1-4"),
        (("--at", "1"), "all heads of layer 1"),
    ):
        assert ask(llava, *more) == 0
        assert told in " ".join(capsys.readouterr().out.split())


def test_a_table_and_a_page(here, llava):
    assert ask(llava, "--out", "words.csv") == 0
    assert (here / "words.csv").read_text().startswith("word,tokens,probability,share")
    assert ask(llava, "--out", "answer.html") == 0
    assert "what is it" in (here / "answer.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--image", "gone.png"), "The picture gone.png does not exist"),
        (("--image", "notes.png"), "Cannot read the picture notes.png"),
        (("--at", "1-0", "--heads", "2"), "remove --layers and --heads"),
        (("--at", "1-0", "0"), "whole layers and single heads"),
        (("--at", "one"), "Expected layer and heads"),
        (("--layers", "9"), "no head 9-0"),
        (("--out", "answer.txt"), "for --out"),
        (("--plot", "answer.txt"), "for --plot"),
    ],
)
def test_what_is_wrong_is_one_line(here, llava, capsys, more, told):
    assert ask(llava, *more) == 1
    error = capsys.readouterr().err
    assert told in error
    assert "Traceback" not in error
    assert not (here / "answer.txt").exists()
