"""headscope ask, of documents and of a picture, with a tiny LLaVA that was saved with its
processor.
"""

import json

import numpy as np
import pytest
from PIL import Image

import headscope as hs
from headscope.cli import run

from ..close import assert_close
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
    base = ["ask", "--question", "what is it", "--image", image, "--model", llava]
    base += ["--max-new-tokens", "4"]
    return run([*base, *more])


def test_an_answer_is_printed_and_kept(here, llava, capsys):
    assert ask(llava, "--save", "answer.safetensors") == 0
    told = capsys.readouterr().out
    kept = hs.load("answer.safetensors")
    assert str(kept) in told
    assert "llava ran on cpu" in told
    assert "Wrote " in told
    given = hs.answer(llava, image="cat.png", question="what is it", max_new_tokens=4)
    assert_close(kept.attention, given.attention)


def test_heads_are_chosen_by_numbers_or_by_places(here, llava, capsys):
    for more, told in (
        (("--layers", "1", "--heads", "0", "2"), "heads 1-0, 1-2"),
        (("--at", "0-1", "1-3,4"), "heads 0-1, 1-3, 1-4"),
        (("--at", "1"), "all heads of layer 1"),
    ):
        assert ask(llava, *more) == 0
        assert told in " ".join(capsys.readouterr().out.split())


def test_a_table_and_a_page(here, llava):
    assert ask(llava, "--out", "words.csv") == 0
    assert (here / "words.csv").read_text().startswith("word,number,probability,part")
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


def test_documents_are_asked_without_a_model(here, capsys):
    (here / "a.txt").write_text("The code of the mill is amber falcon.")
    (here / "b.txt").write_text("At the library they use seven.")
    question = ["--question", "What is the code of the mill?"]
    assert run(["ask", "--documents", "a.txt", "b.txt", *question, "--save", "a.safetensors"]) == 0
    told = capsys.readouterr().out
    assert "“amber falcon” needed document 1" in told
    assert "retrieval_tiny ran on cpu" in told
    assert str(hs.load("a.safetensors")) in told
    assert run(["ask", "--documents", "a.txt", "b.txt", *question, "--need", "none"]) == 0
    assert "without" not in capsys.readouterr().out


def test_a_conversation_of_a_file_is_asked(here, capsys):
    messages = [
        {"role": "document", "content": "The code of the mill is amber falcon."},
        {"role": "document", "content": "At the library they use seven."},
        {"role": "user", "content": "What is the code of the mill?"},
    ]
    (here / "chat.json").write_text(json.dumps(messages))
    assert run(["ask", "chat.json", "--parts", "sentence", "--of", "document"]) == 0
    assert "needed document 1" in capsys.readouterr().out
    # Files of documents beside a conversation are asked about in its last question.
    for name, message in zip(("a.txt", "b.txt"), messages, strict=False):
        (here / name).write_text(message["content"])
    (here / "chat.json").write_text(json.dumps(messages[2:]))
    assert run(["ask", "chat.json", "--documents", "a.txt", "b.txt"]) == 0
    beside = capsys.readouterr().out
    question = ["--question", messages[2]["content"]]
    assert run(["ask", "--documents", "a.txt", "b.txt", *question]) == 0
    assert beside == capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "Expected a file of messages that ends"),
        (["chat.json"], "chat.json"),
        (["chat.json", "--question", "a"], "that ends with the question, or --question"),
        (["both.json"], "both.json has documents beside its messages"),
        (["--documents", "gone.txt", "--question", "a"], "Cannot read the document gone.txt"),
        (["--documents", "cat.png", "--question", "a"], "Cannot read the document cat.png"),
        (["--question", "a", "--image", "cat.png"], "The demo model reads text"),
    ],
)
def test_what_cannot_be_asked_is_one_line(here, capsys, given, told):
    asked = [{"role": "user", "content": "Which code opens the mill?"}]
    (here / "both.json").write_text(json.dumps({"messages": asked, "documents": ["a"]}))
    assert run(["ask", *given]) == 1
    error = capsys.readouterr().err
    assert told in " ".join(error.split())
    assert "Traceback" not in error


def test_the_words_that_parts_takes_are_named(here, capsys):
    assert run(["ask", "chat.json", "--parts", "amber|seven"]) == 2
    error = capsys.readouterr().err
    assert '"sentence"' in error
    assert "regular expression" not in error
