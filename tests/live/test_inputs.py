"""What a live model reads beside a text: pictures, sounds, turns, pairs and targets."""

import base64
import io
import wave

import numpy as np
import pytest

from headscope.testing import tiny_model, tiny_tokenizer

from .conftest import TEXT, page_of


def coded(data):
    return base64.b64encode(data).decode()


def png(width=20, height=12):
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (width, height), (200, 30, 30)).save(file, "PNG")
    return file.getvalue()


def wav(seconds=0.05, rate=8000):
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(rate)
        steps = np.sin(np.arange(int(seconds * rate)) / 3) * 9000
        sound.writeframes(steps.astype("<i2").tobytes())
    return file.getvalue()


@pytest.fixture(scope="module")
def seeing():
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    return page_of(tiny_model("vit"), ViTImageProcessorPil(size={"height": 12, "width": 20}))


@pytest.fixture(scope="module")
def hearing():
    from transformers import Wav2Vec2FeatureExtractor

    extractor = Wav2Vec2FeatureExtractor(sampling_rate=8000, do_normalize=False)
    return page_of(tiny_model("wav2vec2"), extractor)


@pytest.fixture(scope="module")
def talking():
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = (
        "{% for turn in messages %}{{ turn['role'][0] }}. {{ turn['content'] }}. {% endfor %}"
    )
    return page_of(tiny_model("llama", writes=True), tokenizer)


def test_a_picture_is_read(seeing):
    assert seeing.get("/model.json").json()["fields"] == ["image"]
    head, _ = seeing.ask(input={"image": coded(png())})
    assert len(head["header"]["stacks"][0]["query"]["labels"]) == 16


def test_a_sound_is_heard(hearing):
    facts = hearing.get("/model.json").json()
    assert (facts["fields"], facts["sampling_rate"]) == (["audio"], 8000)
    head, _ = hearing.ask(input={"audio": coded(wav())})
    labels = head["header"]["stacks"][0]["query"]["labels"]
    frames = hearing.live.model._get_feat_extract_output_lengths(400)
    assert (len(labels), labels[0]) == (int(frames), "0.00 s")


def test_turns_are_read_in_the_form_of_the_model(talking):
    turns = [{"role": "user", "content": "a cat"}, {"role": "assistant", "content": "no"}]
    head, _ = talking.ask(input={"messages": turns})
    assert head["header"]["title"].strip() == "u. a cat. a. no."
    _, lines = talking.lines("/write", {"input": {"messages": turns[:1]}, "tokens": 2})
    (part,) = talking.live.records.get(lines[-1]["id"]).record["self"].key.parts
    assert part.name == "user"


def test_a_turn_that_is_left_out_leaves_the_others_their_names(talking):
    turns = [{"role": "user", "content": text} for text in ("a cat", "a dog", "it")]
    turns[0]["off"] = True
    _, lines = talking.lines("/write", {"input": {"messages": turns}, "tokens": 2})
    record = talking.live.records.get(lines[-1]["id"]).record
    assert [part.name for part in record["self"].key.parts] == ["user 2", "user 3"]


def test_a_page_may_begin_with_a_conversation(talking):
    from headscope.errors import TextError
    from headscope.live._model import LiveModel

    turns = [{"role": "user", "content": [{"type": "text", "text": "a cat"}]}]
    model, tokenizer = talking.live.model, talking.live.reads_with
    facts = LiveModel(model, tokenizer, text=turns).facts
    assert (facts["text"], facts["messages"]) == ("", [{"role": "user", "content": "a cat"}])
    assert LiveModel(model, tokenizer, text="a cat").facts["messages"] == []
    with pytest.raises(TextError, match="reads no conversation"):
        LiveModel(model, tiny_tokenizer(), text=turns)


def test_a_pair_and_a_target_are_read(bare):
    head, _ = bare.ask(input={"text": "a cat", "text_b": "it"})
    assert head["header"]["title"] == "a cat / it"
    writer = page_of(tiny_model("bart"), tiny_tokenizer())
    facts = writer.get("/model.json").json()
    assert (facts["kind"], facts["fields"]) == ("target", ["text", "target"])
    head, _ = writer.ask(input={"text": "a cat", "target": "it is"})
    stacks = {stack["name"]: stack for stack in head["header"]["stacks"]}
    assert stacks["decoder"]["query"]["labels"][2:] == ["i", "t", "i", "s"]
    assert head["output"]["stack"] == "cross"
    assert [place["token"] for place in head["output"]["places"]][2:] == ["i", "t", "i", "s"]


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("seeing", {"image": "no base64!"}, "in base64, which this is not"),
        ("seeing", {"image": coded(b"GIF89a")}, "cannot be read as a PNG or JPEG"),
        ("seeing", {"image": "A" * 5_600_000}, "at most 4,194,304 bytes"),
        ("seeing", {"text": "a"}, "takes image and no 'text'"),
        ("hearing", {"audio": coded(b"RIFF")}, "cannot be read"),
        ("hearing", {"audio": coded(wav(rate=16000))}, "16000 samples a second"),
        ("talking", {"messages": []}, "messages is a list"),
        ("talking", {"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "a text"),
        ("talking", {"messages": [{"role": "cat", "content": "a"}]}, "role"),
        ("talking", {"messages": [{"role": "user", "content": "a" * 40}]}, "at most 32 are read"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_field_that_cannot_be_read_is_said(name, given, words, request):
    assert_refused(request.getfixturevalue(name), given, words)


def test_a_picture_or_sound_that_is_too_large_is_said(seeing, hearing):
    assert_refused(seeing, {"image": coded(png(6000, 6000))}, "6000 x 6000 pixels")
    assert_refused(hearing, {"audio": coded(wav(31.0))}, "lasts 31.0 seconds")


def assert_refused(page, given, words):
    answer = page.post("/ask", {"page": "one", "input": given})
    assert answer.status_code in (400, 413)
    assert words in answer.json()["error"]


@pytest.mark.filterwarnings("ignore:100% of the tokens")
def test_a_page_says_that_the_model_cannot_read_the_words(page):
    def notes(text):
        return page.ask(text)[0]["header"].get("unseen", "")

    assert notes(TEXT) == ""
    said = notes("12 34 56")
    assert "of the tokens of the text are [UNK]" in said
    assert "allow_unfit" not in said
