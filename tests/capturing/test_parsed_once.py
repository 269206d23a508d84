"""A text, picture or sound is parsed once, and nobody behind asks again what it is."""

from collections import Counter

import numpy as np
import pytest

import headscope as hs
from headscope import CaptureError, TextError
from headscope.capturing import capture_many, generate_many, parse_call, parse_texts
from headscope.capturing.inputs import parse
from headscope.cli import run
from headscope.testing import tiny_model, tiny_tokenizer

TEXTS = ["the cat sat.", "it slept on the mat.", "a dog barked", "so it went on."]


@pytest.fixture
def parsed(monkeypatch):
    """How often each text was looked at."""
    counts = Counter()
    own = parse.check_text

    def counting(text, *name):
        counts[text] += 1
        return own(text, *name)

    monkeypatch.setattr(parse, "check_text", counting)
    return counts


@pytest.fixture(scope="module")
def bert():
    return tiny_model("bert"), tiny_tokenizer()


def test_capture_parses_text_and_pair_once(bert, parsed):
    hs.capture(*bert, TEXTS[0], TEXTS[1])
    assert parsed == {TEXTS[0]: 1, TEXTS[1]: 1}


def test_capture_parses_the_target_once(parsed):
    model, tokenizer = tiny_model("bart"), tiny_tokenizer()
    hs.capture(model, tokenizer, TEXTS[0], target=TEXTS[1])
    assert parsed == {TEXTS[0]: 1, TEXTS[1]: 1}


@pytest.mark.parametrize("batch_tokens", [4096, 1], ids=["together", "alone"])
def test_capture_many_parses_each_text_once(bert, parsed, batch_tokens):
    texts = [TEXTS[0], tuple(TEXTS[1:3]), {"sentence1": TEXTS[3], "label": 1}]
    records = list(capture_many(*bert, texts, batch_tokens=batch_tokens))
    assert len(records) == len(texts)
    assert parsed == dict.fromkeys(TEXTS, 1)


def test_texts_of_a_batch_that_fails_are_not_parsed_again(bert, parsed, monkeypatch):
    from headscope.capturing import many

    own = many.run

    def stopping(model, inputs, *given, **options):
        if inputs.count > 1:
            raise RuntimeError("out of memory")
        return own(model, inputs, *given, **options)

    monkeypatch.setattr(many, "run", stopping)
    assert len(list(capture_many(*bert, TEXTS))) == len(TEXTS)
    assert parsed == dict.fromkeys(TEXTS, 1)


def test_generate_parses_each_prompt_once(parsed):
    writer = tiny_model("gpt2", writes=True), tiny_tokenizer()
    options = {"max_new_tokens": 2, "allow_unfit": True}
    hs.generate(*writer, TEXTS[0], **options)
    list(generate_many(*writer, TEXTS[1:], **options))
    assert parsed == dict.fromkeys(TEXTS, 1)


@pytest.mark.filterwarnings("ignore:.* texts are too few")
def test_heads_parses_each_text_once_however_often_it_runs_them(bert, parsed):
    options = {"random_weights": True, "position_mean": True, "allow_unfit": True}
    hs.heads(*bert, TEXTS, **options)
    assert parsed == dict.fromkeys(TEXTS, 1)


def test_effect_parses_each_text_once(bert, parsed):
    hs.effect(
        *bert, TEXTS, interventions=[hs.Zero(layer=0, heads=[1])], controls=[], allow_unfit=True
    )
    assert parsed == dict.fromkeys(TEXTS, 1)


def test_the_command_line_parses_each_text_once(bert, parsed, tmp_path, capsys):
    folder = tmp_path / "model"
    for part in bert:
        part.save_pretrained(folder)
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    run(["heads", "--texts", str(tmp_path / "texts.txt"), "--model", str(folder), "--allow-unfit"])
    assert parsed == dict.fromkeys(TEXTS, 1)
    parsed.clear()
    out = str(tmp_path / "a.safetensors")
    run(["capture", TEXTS[0], TEXTS[1], "--model", str(folder), "--out", out])
    assert parsed == {TEXTS[0]: 1, TEXTS[1]: 1}


def test_a_picture_is_parsed_once_and_read_once(tmp_path, monkeypatch):
    from PIL import Image

    from headscope.capturing.media import picture_input

    path = tmp_path / "picture.png"
    Image.fromarray(np.arange(12 * 20 * 3, dtype=np.uint8).reshape(12, 20, 3)).save(path)
    counts = Counter()
    for name in ("parse_picture", "_from_file"):
        own = getattr(picture_input, name)

        def counting(given, own=own, name=name):
            counts[name] += 1
            return own(given)

        monkeypatch.setattr(picture_input, name, counting)
    given = parse_call(None, None, {"image": path})
    assert counts == {"parse_picture": 1}
    held = given.in_memory()
    path.unlink()
    assert held.pictures[0].read().size == held.pictures[0].read(1).size == (20, 12)
    assert counts == {"parse_picture": 1, "_from_file": 1}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        pytest.param(
            lambda: hs.capture("no/model", text=" "),
            TextError,
            "The text is empty",
            id="a blank text",
        ),
        pytest.param(
            lambda: hs.capture("no/model", text=["a"]),
            TextError,
            "capture reads one text",
            id="two texts",
        ),
        pytest.param(
            lambda: hs.capture("no/model", text={"input_ids": 1}),
            TextError,
            "was given a dict",
            id="an encoding",
        ),
        pytest.param(
            lambda: hs.capture("no/model"), CaptureError, "capture needs a text", id="nothing"
        ),
        pytest.param(
            lambda: hs.capture("no/model", image=3),
            CaptureError,
            "image must be a PIL picture",
            id="no picture",
        ),
        pytest.param(
            lambda: hs.capture("no/model", sound=3),
            CaptureError,
            "A sound must be floats",
            id="no sound",
        ),
        pytest.param(
            lambda: hs.generate("no/model", prompt=" "),
            TextError,
            "The text is empty",
            id="a blank prompt",
        ),
        pytest.param(
            lambda: hs.generate("no/model"), CaptureError, "generate needs a prompt", id="no prompt"
        ),
        pytest.param(
            lambda: capture_many("no/model", texts="ab"),
            TextError,
            "reads many inputs",
            id="one of many",
        ),
    ],
)
def test_what_is_no_input_is_refused_before_a_model_is_loaded(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_target_that_is_none_is_refused_by_models_that_read_it_alone(bert):
    given = parse_call(TEXTS[0], None, {"target": 3})
    assert hs.capture(*bert, given).texts == (TEXTS[0],)
    with pytest.raises(TextError, match="target must be a string, not int"):
        given.decoder_text()


def test_what_is_parsed_stays_as_it_is(bert):
    outcomes = parse_texts([TEXTS[0], 3])
    assert parse_texts(outcomes) == outcomes
    assert isinstance(outcomes[1], CaptureError)
    told = {}
    records = list(capture_many(*bert, outcomes, on_error=told.__setitem__))
    assert len(records) == 1
    assert told == {1: outcomes[1]}
