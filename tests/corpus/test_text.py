"""A text of a corpus is known by what it says."""

import pytest

from headscope.corpus import CorpusText, key_of
from headscope.errors import TextError


def test_the_name_is_that_of_the_content():
    text = CorpusText("The cat sat.", group="one", times=2)
    assert text.name == CorpusText("The cat sat.").name
    assert len(text.name) == 32
    assert CorpusText(("a", "b")).name == CorpusText(["a", "b"]).name
    assert CorpusText({"x": 1, "y": 2}).name == CorpusText({"y": 2, "x": 1}).name


def test_texts_that_say_something_else_have_other_names():
    given = ["a", ["a"], ["a", "b"], "ab", {"text": "a"}, "\ud800"]
    assert len({CorpusText(each).name for each in given}) == len(given)


def test_a_text_alone_is_no_document_of_its_name():
    text = CorpusText("a")
    assert text.document != CorpusText("b", group=text.name).document
    assert CorpusText("a", group="d").document == CorpusText("b", group="d").document


def test_keys_of_two_uses_differ():
    assert key_of("cut", "a") != key_of("draw", "a")
    assert key_of("cut", "a", "b") != key_of("cut", "ab")


def test_what_json_cannot_hold_is_refused():
    with pytest.raises(TextError, match="rows with paths of pictures"):
        CorpusText({"image": object()}).name  # noqa: B018
