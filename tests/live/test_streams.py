"""Answers that come line by line: writing on, and what matters to a guess."""

import re

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.composition import attended
from headscope.live import _lens as matters_module
from headscope.testing import tiny_model, tiny_tokenizer

from .conftest import TEXT, masked_model, page_of

ZERO = {"do": "zero", "layer": 0, "heads": [1]}


def test_it_writes_what_generate_writes(page):
    status, lines = page.lines("/write", {"input": {"text": TEXT}, "tokens": 4})
    wanted = hs.generate(page.live.model, tiny_tokenizer(), TEXT, max_new_tokens=4, do_sample=False)
    *tokens, end = lines
    assert status == 200
    assert [line["id"] for line in tokens] == list(wanted.generation.tokens.ids)
    assert [line["probability"] for line in tokens] == pytest.approx(
        wanted.generation.probabilities, abs=1e-5
    )
    assert [line["entropy"] for line in tokens] == pytest.approx(
        wanted.generation.entropies, abs=1e-5
    )
    assert tokens[0]["alternatives"][0]["id"] == tokens[0]["id"]
    assert len(tokens[0]["alternatives"]) == 5
    assert end["text"] == TEXT + wanted.generation.text
    header = page.get(f"/record/{end['id']}/header.json").json()
    assert len(header["generation"]["labels"]) == len(tokens)


def test_changes_hold_while_it_writes(page):
    _, lines = page.lines("/write", {"input": {"text": TEXT}, "tokens": 3, "changes": [ZERO]})
    with hs.intervene(page.live.model, hs.Zero(layer=0, heads=[1])):
        wanted = hs.generate(
            page.live.model, tiny_tokenizer(), TEXT, max_new_tokens=3, do_sample=False
        )
    shares = [line["probability"] for line in lines[:-1]]
    assert shares == pytest.approx(wanted.generation.probabilities, abs=1e-5)


def test_a_choice_is_read_in_place_of_the_rest(page):
    tokenizer = tiny_tokenizer()
    ids = tokenizer(TEXT)["input_ids"]
    choice = tokenizer("dog")["input_ids"][1]
    message = {"input": {"text": TEXT}, "tokens": 1, "at": 4, "written": [choice]}
    _, lines = page.lines("/write", message)
    assert lines[-1]["text"].startswith(
        tokenizer.decode([*ids[:4], choice], skip_special_tokens=True)
    )


def test_it_goes_on_from_tokens_that_are_others_once_they_are_a_text(page):
    tokenizer, model = tiny_tokenizer(), page.live.model
    read = tokenizer(TEXT)["input_ids"]
    part, dog = tokenizer.convert_tokens_to_ids(["##s", "dog"])
    given = [*read[:2], part, part, dog]
    again = tokenizer(tokenizer.decode(given, skip_special_tokens=True))["input_ids"]
    assert again[: len(given)] != given
    message = {"input": {"text": TEXT}, "tokens": 2, "at": 2, "written": [part, part, dog]}
    _, (first, second, end) = page.lines("/write", message)
    with torch.no_grad():
        odds = model(torch.tensor([given])).logits[0, -1].softmax(-1)
    assert first["probability"] == pytest.approx(float(odds.max()), abs=1e-5)
    record = page.live.records.get(end["id"]).record
    assert record["self"].query.ids == (*given, first["id"])
    assert second["id"] == record.generation.tokens.ids[-1]


def asked_why(page, at, token, changes=()):
    """Status and lines, without the picture's tables, whose numbers are rounded."""
    question = {"input": {"text": TEXT}, "changes": list(changes), "at": at, "id": token}
    return page.lines("/why", question)


@pytest.mark.parametrize("changes", [[], [ZERO]])
def test_why_a_token_is_said_is_what_why_says(page, changes):
    model, tokenizer = page.live.model, tiny_tokenizer()
    with hs.intervene(model, *[hs.Zero(layer=0, heads=[1])][: len(changes)]):
        wanted = hs.why(model, tokenizer, TEXT, 7, position=3, allow_unfit=True)
    status, (*done, end) = asked_why(page, 3, 7, changes)
    assert status == 200
    reached = [line["done"] for line in done]
    assert reached == sorted(reached)
    assert 0 < reached[-1] <= done[-1]["of"]
    picture = end["picture"]
    assert picture["says"][0] == wanted.sentences[0]
    assert picture["answer"] == wanted.answer
    assert sum(picture["words"]) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(("at", "token"), [(None, 1), ("a", 1), (-1, 3)])
def test_why_of_no_place_or_token_is_refused(page, at, token):
    status, (said,) = asked_why(page, at, token)
    assert status == 400
    assert "at is a place of the output" in said["error"]


def asked_attended(page, **place):
    return page.lines("/attended", {"input": {"text": TEXT}, "changes": [], **place})


def test_why_a_head_attended_is_what_attended_says(page):
    wanted = attended(page.live.model, tiny_tokenizer(), TEXT, head=(2, 1), query=3, key=1)
    status, (told,) = asked_attended(page, stack="self", place=[2, 1, 3, 1])
    assert status == 200
    assert told["pair"] == [[*wanted.query], [*wanted.key]]
    assert told["html"] == wanted._repr_html_()
    _, (told,) = asked_attended(page, stack="self", place=[2, 1, 3])
    weights = hs.capture(page.live.model, tiny_tokenizer(), TEXT)["self"].layer(2).weights_of(1)[3]
    assert told["pair"][1][1] == weights.argmax()


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (None, "place is .layer, head, query, key. from 0 on, not None"),
        ([2, 1], "place is"),
        ([2, True, 3], "place is"),
        ([2, 1, 99], "position is 99"),
        ([9, 1, 3], "9"),
    ],
)
def test_why_a_head_attended_of_no_pair_is_refused(page, place, message):
    _, (said,) = asked_attended(page, stack="self", place=place)
    assert re.search(message, said["error"])


def test_the_lens_ends_with_what_the_model_says(page):
    _, lines = page.lines("/write", {"input": {"text": TEXT}, "tokens": 2, "lens": True})
    for line in lines[:-1]:
        assert [layer["layer"] for layer in line["lens"]] == [0, 1, 2]
        last = [guess["id"] for guess in line["lens"][2]["predictions"]]
        assert last == [guess["id"] for guess in line["alternatives"]]
    # What the lens makes the model compute is no token of the text.
    _, plain = page.lines("/write", {"input": {"text": TEXT}, "tokens": 2})
    assert lines[-1] == plain[-1] | {"id": lines[-1]["id"]}


def lens(page, text, at, changes=()):
    message = {"page": "one", "input": {"text": text}, "changes": list(changes), "at": at}
    answer = page.post("/lens", message)
    return answer.status_code, answer.json()


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "distilbert"])
def test_the_lens_of_a_text_that_is_read_ends_with_what_the_model_says(name):
    masked = name in ("bert", "distilbert")
    if masked:
        own = page_of(*masked_model(name))
    else:
        own = page_of(tiny_model(name, writes=True), tiny_tokenizer())
    text = "the [MASK] sat on it." if masked else TEXT
    for changes in ((), (ZERO,)):
        place = own.ask(text, changes)[0]["output"]["places"][-1]
        status, said = lens(own, text, place["at"], changes)
        assert (status, said.get("at")) == (200, place["at"]), said
        assert [layer["layer"] for layer in said["layers"]] == list(range(len(said["layers"])))
        last = said["layers"][-1]["predictions"]
        wanted = place["after"] if changes else place["before"]
        assert [guess["id"] for guess in last] == [guess["id"] for guess in wanted]
        assert [guess["probability"] for guess in last] == pytest.approx(
            [guess["probability"] for guess in wanted], abs=1e-4
        )
        assert said["layers"][0]["predictions"] != last


def test_the_lens_of_an_inner_layer_is_the_head_on_its_states(page):
    ids = tiny_tokenizer()(TEXT, return_tensors="pt")
    model = page.live.model
    with torch.no_grad():
        states = model(**ids, output_hidden_states=True).hidden_states[1][0, 3]
        odds = model.lm_head(model.transformer.ln_f(states)).softmax(-1)
    said = lens(page, TEXT, 3)[1]["layers"][0]["predictions"]
    assert [guess["probability"] for guess in said] == pytest.approx(
        odds.topk(5).values.tolist(), abs=1e-5
    )


@pytest.mark.parametrize(
    ("at", "words"), [(99, "one of the places"), (-1, "from 0 on"), ("a", "at")]
)
def test_a_lens_of_no_place_is_said(at, words, page):
    status, said = lens(page, TEXT, at)
    assert (status, words in said["error"]) == (400, True)


def test_a_model_whose_head_cannot_be_given_other_states_says_so():
    status, said = lens(page_of(tiny_model("opt", writes=True), tiny_tokenizer()), TEXT, 3)
    assert (status, "cannot be given other states" in said["error"]) == (400, True)


def test_who_guesses_no_tokens_has_no_lens(bare):
    status, said = lens(bare, TEXT, 0)
    assert (status, "predicts no tokens" in said["error"]) == (400, True)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"tokens": 0}, "tokens is a number from 1"),
        ({"tokens": 10_000}, "tokens is a number from 1"),
        ({"tokens": 30}, "room for"),
        ({"tokens": 2, "written": [-1]}, "each of written is a number from 0"),
        ({"tokens": 2, "written": 7}, "written is a list of numbers from 0"),
        ({"tokens": 2, "written": [None]}, "written is a list of numbers from 0"),
        ({"tokens": 2, "at": "4"}, "at is a number"),
    ],
    ids=str,
)
def test_what_cannot_be_written_is_said(more, words, page):
    status, lines = page.lines("/write", {"input": {"text": TEXT}} | more)
    assert (status, words in lines[0]["error"]) == (400, True)


def test_who_does_not_write_says_so(bare):
    status, lines = bare.lines("/write", {"input": {"text": TEXT}, "tokens": 2})
    assert (status, "does not write" in lines[0]["error"]) == (400, True)


def loss(model, at, number, *interventions):
    with torch.no_grad(), hs.intervene(model, *interventions):
        logits = model(**tiny_tokenizer()(TEXT, return_tensors="pt")).logits
    return -float(logits[0, at].double().log_softmax(-1)[number])


def test_every_head_in_turn(page):
    model = page.live.model
    message = {"input": {"text": TEXT}, "target": {"at": 3, "id": 7}, "method": "exact"}
    _, lines = page.lines("/matters", message)
    *done, values = lines
    assert done == [{"done": number, "of": 15} for number in range(16)]
    assert values["stack"] == "self"
    whole = loss(model, 3, 7)
    for layer, head, effect in values["values"]:
        without = loss(model, 3, 7, hs.Zero(layer=layer, heads=[head]))
        assert effect == pytest.approx(without - whole, abs=2e-6)
    assert len(values["values"]) == 15


def test_with_changes_heads_matter_to_the_changed_model(page):
    message = {
        "input": {"text": TEXT},
        "target": {"at": 3, "id": 7},
        "method": "exact",
        "changes": [ZERO],
    }
    _, lines = page.lines("/matters", message)
    effects = {(layer, head): effect for layer, head, effect in lines[-1]["values"]}
    change = hs.Zero(layer=0, heads=[1])
    whole = loss(page.live.model, 3, 7, change)
    without = loss(page.live.model, 3, 7, change, hs.Zero(layer=1, heads=[2]))
    assert effects[0, 1] == pytest.approx(0, abs=1e-9)
    assert effects[1, 2] == pytest.approx(without - whole, abs=2e-6)


def test_the_gradient_is_the_slope_of_a_head_that_is_turned_down(page):
    message = {"input": {"text": TEXT}, "target": {"at": 3, "id": 7}, "method": "gradient"}
    _, lines = page.lines("/matters", message)
    values = {(layer, head): effect for layer, head, effect in lines[-1]["values"]}
    assert len(values) == 15
    exact = page.lines("/matters", message | {"method": "exact"})[1][-1]["values"]
    sizes = np.array([abs(effect) for _, _, effect in exact])
    slopes = np.array([values[layer, head] for layer, head, _ in exact])
    # Of the first order, so that they go together and are not the same.
    assert np.corrcoef(sizes, slopes)[0, 1] > 0.5


def test_states_are_set_apart_where_nothing_is_guessed(bare):
    message = {"input": {"text": TEXT}, "target": {}, "method": "exact"}
    _, lines = bare.lines("/matters", message)
    assert all(effect >= 0 for _, _, effect in lines[-1]["values"])
    assert "cosine" in lines[-1]["label"]
    status, lines = bare.lines("/matters", message | {"method": "gradient"})
    assert (status, "one of exact" in lines[0]["error"]) == (400, True)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ({"at": 99}, "at is a position"),
        ({"id": 10**6}, "id is a token or class"),
        ({"id": "a"}, "target is"),
        ([1], "target is"),
    ],
    ids=str,
)
def test_what_cannot_matter_is_said(target, words, page):
    message = {"input": {"text": TEXT}, "target": target, "method": "exact"}
    status, lines = page.lines("/matters", message)
    assert (status, words in lines[0]["error"]) == (400, True)


def test_an_error_on_the_way_is_the_last_line(page, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("broken")

    monkeypatch.setattr(matters_module, "Zero", fail)
    message = {"input": {"text": TEXT}, "target": {}, "method": "exact"}
    status, lines = page.lines("/matters", message)
    assert status == 200
    assert lines[0] == {"done": 0, "of": 15}
    assert "broken" in lines[-1]["error"]
