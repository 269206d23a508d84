"""What is no input is refused before a model is loaded, and what is parsed stays as it is."""

import pytest

import headscope as hs
from headscope.capturing import capture_many, parse_call, parse_texts
from headscope.errors import CaptureError, TextError
from headscope.testing import tiny_model, tiny_tokenizer

TEXT = "the cat sat."


@pytest.fixture(scope="module")
def bert():
    return tiny_model("bert"), tiny_tokenizer()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: hs.capture("no/model", text=" "), TextError, "The text is empty"),
        (lambda: hs.capture("no/model", text=["a"]), TextError, "capture reads one text"),
        (lambda: hs.capture("no/model", text={"input_ids": 1}), TextError, "got a dict"),
        (lambda: hs.capture("no/model"), CaptureError, "capture needs a text"),
        (lambda: hs.capture("no/model", image=3), CaptureError, "image must be a PIL picture"),
        (lambda: hs.capture("no/model", sound=3), CaptureError, "A sound must be floats"),
        (lambda: hs.generate("no/model", prompt=" "), TextError, "text is empty"),
        (lambda: hs.generate("no/model"), CaptureError, "generate needs a prompt"),
        (lambda: capture_many("no/model", texts="ab"), TextError, "reads many inputs"),
    ],
)
def test_what_is_no_input_is_refused_before_a_model_is_loaded(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_target_that_is_none_is_refused_by_models_that_read_it_alone(bert):
    given = parse_call(TEXT, None, {"target": 3})
    assert hs.capture(*bert, given).texts == (TEXT,)
    with pytest.raises(TextError, match="target must be a string, not int"):
        given.decoder_text()


def test_what_is_parsed_stays_as_it_is(bert):
    outcomes = parse_texts([TEXT, 3])
    assert parse_texts(outcomes) == outcomes
    assert isinstance(outcomes[1], CaptureError)
    told = {}
    records = list(capture_many(*bert, outcomes, on_error=told.__setitem__))
    assert len(records) == 1
    assert told == {1: outcomes[1]}
