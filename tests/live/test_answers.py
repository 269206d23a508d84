"""Answers about pictures from a live model: LLaVA, Qwen2-VL and Qwen3-VL with random weights."""

import base64
import io
from functools import partial

import numpy as np
import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

import headscope as hs

from ..processors import tiny_chat_llava, tiny_llava, tiny_qwen_vl
from .conftest import page_of

Image = pytest.importorskip("PIL.Image", reason="needs the extra pictures")

PIXELS = np.random.default_rng(0).integers(0, 256, (24, 40, 3), np.uint8)
QUESTION = "what is it"
ZERO = {"do": "zero", "stack": "text", "layer": 0, "heads": [1]}


def coded(pixels=PIXELS):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


PICTURE = coded()
MODELS = {
    "llava": tiny_chat_llava,
    "qwen2_vl": tiny_qwen_vl,
    "qwen3_vl": partial(tiny_qwen_vl, "qwen3_vl"),
}


@pytest.fixture(scope="module", params=list(MODELS))
def seeing(request):
    return page_of(*MODELS[request.param]())


@pytest.fixture(scope="module")
def llava():
    return page_of(*tiny_chat_llava())


def asked(page, text=QUESTION, **more):
    return page.lines("/answer", {"input": {"text": text, "image": PICTURE}, "tokens": 5} | more)


def own(page, *interventions, **options):
    with hs.intervene(page.live.model, *interventions):
        return hs.answer(
            page.live.model,
            page.live.reads_with,
            image=PIXELS,
            question=QUESTION,
            need=None,
            max_new_tokens=5,
            allow_unfit=True,
            **options,
        )


def test_it_answers_as_python_does(seeing):
    status, (*tokens, end) = asked(seeing)
    wanted = own(seeing)
    assert (status, end["question"], end["text"]) == (200, QUESTION, wanted.text)
    assert [line["probability"] for line in tokens] == pytest.approx(wanted.probabilities, abs=1e-5)
    assert end["picture"] == hs.view(wanted).picture
    assert seeing.get(f"/record/{end['id']}/header.json").json()["generation"]["stack"] == "text"


def test_other_heads_need_no_other_run(seeing):
    first = asked(seeing)[1][-1]
    for shown in ({"layers": [1]}, {"heads": [(0, 2), (1, 5)], "keep_sinks": True}):
        status, lines = asked(seeing, **shown)
        assert (status, len(lines), lines[0]["id"]) == (200, 1, first["id"])
        assert lines[0]["picture"] == hs.view(own(seeing, **shown)).picture
        assert lines[0]["picture"] != first["picture"]


def test_changes_hold_while_it_answers(seeing):
    lines = asked(seeing, changes=[ZERO])[1]
    wanted = own(seeing, hs.Zero(stack="text", layer=0, heads=[1]))
    assert [line["probability"] for line in lines[:-1]] == pytest.approx(
        wanted.probabilities, abs=1e-5
    )
    assert wanted.probabilities != pytest.approx(own(seeing).probabilities, abs=1e-3)


def test_each_layer_says_its_own_and_the_last_one_what_the_model_says(seeing):
    given = {"text": QUESTION, "image": PICTURE}
    head, _ = seeing.ask(input=given)
    place = head["output"]["places"][-1]
    answer = seeing.post("/lens", {"page": "one", "input": given, "changes": [], "at": place["at"]})
    assert answer.status_code == 200, answer.text
    layers = [each["predictions"] for each in answer.json()["layers"]]
    assert len(layers) == len(seeing.live.facts["stacks"][-1]["layers"]) > 1
    for guess, wanted in zip(layers[-1], place["before"], strict=True):
        assert guess["id"] == wanted["id"]
        assert guess["probability"] == pytest.approx(wanted["probability"], abs=1e-4)
    assert layers[0] != layers[-1]


def test_a_conversation_is_answered_in_its_form(llava):
    turns = [
        {"role": "user", "content": "a cat"},
        {"role": "assistant", "content": "no"},
        {"role": "user", "content": QUESTION},
    ]
    lines = llava.lines("/answer", {"input": {"messages": turns, "image": PICTURE}, "tokens": 3})[1]
    prompt = "user : <image> a cat assistant : no user : what is it assistant :"
    wanted = hs.answer(
        llava.live.model,
        llava.live.reads_with,
        prompt,
        image=PIXELS,
        need=None,
        chat_template=False,
        max_new_tokens=3,
        allow_unfit=True,
    )
    assert lines[-1]["text"] == wanted.text
    assert wanted.prompt == prompt


def test_tables_of_an_answer_hold_no_text_that_is_not_escaped(llava):
    end = asked(llava, "<script>alert(1)</script> <b>")[1][-1]
    assert "<script" not in end["picture"]["tables"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"input": {"text": " ", "image": PICTURE}}, "question is empty"),
        ({"input": {"text": "a", "image": "x"}}, "in base64"),
        ({"tokens": 0}, "tokens is a number from 1"),
        ({"tokens": 150}, "positions to write"),
        ({"layers": [9]}, "no head 9-0"),
        ({"layers": []}, "an empty list"),
        ({"layers": [[0, 1, 2]]}, "Expected a layer such as"),
        ({"heads": [[0, 99]]}, "no head 0-99"),
        ({"heads": [[0, 1], 2]}, "heads holds pairs of layer and head; leave out"),
        ({"layers": [0], "heads": [[0, 1]]}, "leave out layers"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_answered_is_one_line(more, words, llava):
    status, lines = asked(llava, **more)
    assert words in lines[-1]["error"]
    assert "\n" not in lines[-1]["error"]
    # What is wrong with heads is known when the answer was written.
    assert status == (200 if len(lines) > 1 else 400)


def test_documents_are_cut_and_one_that_is_left_out_changes_the_answer():
    model = AutoModelForCausalLM.from_pretrained(hs.answering.DEMO)
    tokenizer = AutoTokenizer.from_pretrained(hs.answering.DEMO)
    serving = page_of(model, tokenizer)
    documents = ["The code of the mill is amber falcon.", "Copper opens the tower."]
    turns = [{"role": "document", "content": text} for text in documents]
    turns.append({"role": "user", "content": "Which code opens the mill?"})
    end = serving.lines("/answer", {"input": {"messages": turns}, "tokens": 8})[1][-1]
    wanted = hs.answer(model, tokenizer, turns)
    assert end["text"] == wanted.text
    assert end["picture"]["needed"][0] == [0]
    assert end["picture"]["shares"] == wanted.view().picture["shares"]
    other = serving.lines("/answer", {"input": {"messages": turns[1:]}, "tokens": 8})[1][-1]
    assert other["text"] != end["text"]


def test_of_a_text_sentences_are_parts(page):
    text = "A cat sat here. It was red."
    end = page.lines("/answer", {"input": {"text": text}, "tokens": 3})[1][-1]
    assert len(end["picture"]["parts"]) == 2


def test_what_does_not_write_answers_nothing():
    headless = page_of(*tiny_llava())
    if not headless.live.facts["writes"]:
        status, lines = headless.lines("/answer", {"input": {"text": "a"}})
        assert (status, "does not write" in lines[0]["error"]) == (400, True)


def test_it_stops_when_it_is_told_to(llava):
    from headscope.live._answering import answer_question, parse_answer
    from headscope.live._queue import StoppedError, StopSignal

    given = {"input": {"text": "no", "image": PICTURE}, "changes": [], "tokens": 40}
    signal, told = StopSignal(60), []

    def tell(line):
        told.append(line)
        signal.stop()

    with pytest.raises(StoppedError):
        answer_question(llava.live, parse_answer(llava.live, given), signal, tell)
    assert len(told) == 1


def test_the_tokens_of_a_picture_count(llava):
    limits = {**llava.live.facts["limits"], "tokens": 36}
    short = page_of(llava.live.model, llava.live.reads_with, limits=limits)
    status, lines = asked(short)
    assert (status, "have 34 tokens, and with an answer of 5 at most 31" in lines[0]["error"]) == (
        400,
        True,
    )
    assert asked(short, tokens=2)[0] == 200


def test_places_of_a_picture_are_no_words_that_cannot_be_read(seeing):
    header = seeing.ask(input={"text": QUESTION, "image": PICTURE})[0]["header"]
    assert "unseen" not in header
