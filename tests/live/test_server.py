"""What a live model answers, and whom it refuses."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
import transformers

import headscope as hs
from headscope.live import _model as live_model
from headscope.live._queue import StoppedError, StopSignal, TooLongError, stoppable
from headscope.live._server import LiveHost, live_application
from headscope.testing import tiny_model, tiny_tokenizer

from .conftest import TEXT, TOKEN, page_of

ZERO = {"do": "zero", "layer": 0, "heads": [1]}
TOKENS = tiny_tokenizer()
HOW = ("gradient", "exact")


def logits(model, text, *interventions):
    with torch.no_grad(), hs.intervene(model, *interventions):
        return model(**tiny_tokenizer()(text, return_tensors="pt")).logits[0].double()


def test_a_model_says_what_it_is(page, bare):
    page.ask()
    facts = page.get("/model.json").json()
    assert (facts["kind"], facts["device"], facts["dtype"]) == ("next-token", "cpu", "float32")
    assert facts["stacks"] == [{"name": "self", "layers": [0, 1, 2], "heads": 5}]
    assert (facts["loading"], facts["writes"], facts["fields"]) == (False, True, ["text"])
    assert facts["limits"]["changes"] == 64
    assert bare.get("/model.json").json()["kind"] == "none"


def test_an_answer_holds_all_that_is_drawn_first(page):
    head, chunks = page.ask(looking={"layer": 2, "heads": [3]})
    assert {f"thumbs/self/{row}" for row in range(3)} < chunks.keys()
    assert "layer/self/2" in chunks
    for name in ("queries/self/2/3", "thumbs/self/1"):
        assert page.get(f"/record/{head['id']}/chunk/{name}").content == chunks[name]
    header = page.get(f"/record/{head['id']}/header.json").json()
    assert header == head["header"]
    assert header["title"] == TEXT


def test_it_guesses_what_plain_torch_guesses(page):
    head, _ = page.ask()
    odds = logits(page.live.model, TEXT).softmax(-1)
    places = head["output"]["places"]
    assert [place["at"] for place in places] == list(range(len(odds)))
    for place in places:
        best = odds[place["at"]].topk(5)
        assert [guess["id"] for guess in place["before"]] == best.indices.tolist()
        shares = [guess["probability"] for guess in place["before"]]
        assert shares == pytest.approx(best.values.tolist(), abs=1e-5)
    assert "after" not in places[0]


def test_a_change_shows_before_and_after_and_how_far_heads_moved(page):
    head, chunks = page.ask(changes=[ZERO], looking={"layer": 1, "quantity": "difference"})
    wanted = hs.effect(
        page.live.model, tiny_tokenizer(), TEXT, interventions=[hs.Zero(layer=0, heads=[1])]
    )
    place = head["output"]["places"][3]
    assert place["kl"] == pytest.approx(wanted.output.values[3], abs=1e-5)
    changed = logits(page.live.model, TEXT, hs.Zero(layer=0, heads=[1]))[3].softmax(-1)
    assert place["after"][0]["id"] == int(changed.argmax())
    moved = np.array(head["output"]["moved"]["self"]["values"], float)
    own = np.isnan(moved)
    assert list(zip(*own.nonzero(), strict=True)) == [(0, 1)]
    assert moved[~own] == pytest.approx(wanted.moved[~own], rel=1e-3)
    assert head["output"]["moved"]["self"] == head["header"]["stacks"][0]["moved"]
    assert head["address"] == "zero:0-1"
    assert head["python"] == "interventions=[hs.Zero(layer=0, heads=[1])]"
    assert "quantity-difference/self/1" in chunks


@pytest.mark.parametrize(
    "kind", ["ForTokenClassification", "ForSequenceClassification", "ForNextSentencePrediction"]
)
def test_a_classifier_gives_its_classes_before_and_after(kind):
    model = getattr(transformers, f"Bert{kind}")(tiny_model("bert", num_labels=2).config).eval()
    output = page_of(model, tiny_tokenizer()).ask(changes=[ZERO])[0]["output"]
    before, after = (logits(model, TEXT, *each) for each in ((), (hs.Zero(layer=0, heads=[1]),)))
    assert output["kind"] == "classes"
    assert len(output["places"]) == len(before.reshape(-1, 2))
    for name, rows in (("before", before), ("after", after)):
        for place, odds in zip(output["places"], rows.reshape(-1, 2).softmax(-1), strict=True):
            given = {guess["label"]: guess["probability"] for guess in place[name]}
            wanted = {f"LABEL_{number}": float(share) for number, share in enumerate(odds)}
            assert given == pytest.approx(wanted, abs=1e-6)
    assert any(place["before"] != place["after"] for place in output["places"])


def test_a_discriminator_says_what_was_replaced_and_which_heads_matter():
    """ELECTRA gives one logit for each token."""
    page = page_of(transformers.ElectraForPreTraining(tiny_model("electra").config).eval(), TOKENS)
    output = page.ask(changes=[ZERO])[0]["output"]
    odds = logits(page.live.model, TEXT).sigmoid()
    shares = [{g["label"]: g["probability"] for g in each["before"]} for each in output["places"]]
    assert output["kind"] == "classes"
    assert [each["replaced"] for each in shares] == pytest.approx(odds.tolist(), abs=1e-6)
    question = {"input": {"text": TEXT}, "target": {}}
    found = [page.lines("/matters", question | {"method": how})[1][-1] for how in HOW]
    slopes, rises = ([abs(value) for *_, value in each["values"]] for each in found)
    # Heads of random weights matter so little that turning down and zeroing are nearly one.
    assert rises == pytest.approx(slopes, rel=0.2, abs=1e-6)


def test_a_number_of_each_token_is_no_class():
    config = tiny_model("bert", num_labels=1).config
    page = page_of(transformers.BertForTokenClassification(config).eval(), TOKENS)
    output = page.ask(changes=[ZERO])[0]["output"]
    assert "one number for each token" in output["note"]
    assert all(place["before"] == [] for place in output["places"])
    change = hs.Zero(layer=0, heads=[1])
    apart = (logits(page.live.model, TEXT) - logits(page.live.model, TEXT, change)).abs()[:, 0]
    assert [each["kl"] for each in output["places"]] == pytest.approx(apart.tolist(), abs=1e-6)


def test_the_same_question_is_the_same_record_and_undoing_runs_nothing(page, monkeypatch):
    first, _ = page.ask()
    page.ask(changes=[ZERO])
    monkeypatch.setattr(live_model, "run_once", None)
    assert page.ask()[0]["id"] == first["id"]
    assert page.ask(changes=[{"do": "zero", "layer": 0, "heads": [1, 1]}])[0]["id"] != first["id"]


def test_a_bare_encoder_tells_how_far_its_states_moved(bare):
    head, _ = bare.ask(changes=[ZERO])
    assert "no head that predicts" in head["output"]["note"]
    places = head["output"]["places"]
    assert all(place["kl"] > 0 and place["before"] == [] for place in places)
    assert bare.ask()[0]["output"]["places"] == []


def test_other_texts_are_taken_from(page):
    patch = {"do": "patch", "layer": 1, "heads": [0], "from": "the dog sat on it."}
    mean = {"do": "mean", "layer": 2, "heads": [0], "from": f"{TEXT}\nthe dog sat on it."}
    head, _ = page.ask(changes=[patch, mean])
    record = hs.capture(page.live.model, tiny_tokenizer(), "the dog sat on it.")
    wanted = logits(page.live.model, TEXT, hs.Patch(record=record, what="output", layer=1, heads=0))
    alone, _ = page.ask(changes=[patch])
    assert alone["output"]["places"][-1]["after"][0]["id"] == int(wanted[-1].argmax())
    assert len(head["changes"]) == 2


def test_downloads_are_the_record_and_its_page(page, tmp_path):
    name = page.ask()[0]["id"]
    answer = page.get(f"/record/{name}/download")
    (tmp_path / "a.safetensors").write_bytes(answer.content)
    assert hs.load(tmp_path / "a.safetensors").texts == (TEXT,)
    assert "attachment" in answer.headers["content-disposition"]
    assert page.get(f"/record/{name}/page").text.startswith("<!doctype html>")
    chosen = page.get(f"/record/{name}/page", params={"selection": '{"layer": 2, "view": "text"}'})
    assert '"view":"text"' in chosen.text.replace(" ", "")
    for wrong in ("[1]", "{", '{"layer": 99}', '{"no": 1}'):
        assert page.get(f"/record/{name}/page", params={"selection": wrong}).status_code == 400


def test_a_record_that_is_gone_is_410_and_comes_back_when_asked_again(monkeypatch):
    page = page_of(tiny_model("gpt2", writes=True), tiny_tokenizer())
    page.live.records.most = 2
    first = page.ask("the cat")[0]["id"]
    page.ask("the dog")
    assert page.get(f"/record/{first}/header.json").status_code == 200
    page.ask("the sun")
    page.ask("the sea")
    for path in ("header.json", "chunk/layer/self/0", "opening", "figure/svg", "download", "page"):
        assert page.get(f"/record/{first}/{path}").status_code == 410, path
    assert len(page.live.records) == 2
    assert page.ask("the cat")[0]["id"] != first


def test_bytes_count_too():
    page = page_of(tiny_model("gpt2", writes=True), tiny_tokenizer())
    page.live.records.most_bytes = 1
    page.ask("the cat")
    page.ask("the dog")
    assert len(page.live.records) == 1


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ([], "JSON object"),
        ({"input": None}, "input is a JSON object"),
        ({"input": {"text": ""}}, "text"),
        ({"input": {"text": 3}}, "text is a text"),
        ({"input": {"text": "a", "image": "x"}}, "takes text and no 'image'"),
        ({"input": {"text": "a" * 20_001}}, "at most 20,000"),
        ({"input": {"text": "the cat " * 30}}, "tokens"),
        ({"input": {"text": TEXT}, "changes": [{"do": "zero", "layer": 9}]}, "Layer 9"),
        ({"input": {"text": TEXT}, "changes": [ZERO | {"heads": [7]}]}, "7"),
        ({"input": {"text": TEXT}, "page": ""}, "page is a random name"),
        ({"input": {"text": TEXT}, "page": ["a"]}, "a random name of the tab"),
        ({"input": {"text": TEXT}, "looking": [1]}, "looking is a JSON object"),
        (b"{", "Expecting"),
        (b"[" * 50_000, "nested"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_asked_is_one_line_and_the_server_goes_on(message, words, page):
    if isinstance(message, dict):
        message = {"page": "one"} | message
    answer = page.post("/ask", message)
    assert answer.status_code == 400
    assert words in answer.json()["error"]
    assert "\n" not in answer.json()["error"]
    page.ask()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"X-Headscope-Token": "wrong"}, 403),
        ({"X-Headscope-Token": ""}, 403),
        ({"Host": "evil.example"}, 403),
        ({"Origin": "http://localhost:1"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ],
    ids=str,
)
def test_others_are_refused(headers, status, page):
    message = {"page": "one", "input": {"text": TEXT}}
    assert page.post("/ask", message, **headers).status_code == status


def test_a_post_without_an_origin_is_refused(page):
    headers = {"X-Headscope-Token": TOKEN, "Content-Type": "application/json"}
    assert page.client.post("/ask", content="{}", headers=headers).status_code == 403


def test_bodies_are_counted_while_they_come(page):
    headers = page.headers | {"Content-Type": "application/json"}
    answer = page.client.post("/ask", content=(b" " * 10_000 for _ in range(8)), headers=headers)
    assert (answer.status_code, "65,536" in answer.json()["error"]) == (413, True)


def test_answers_are_closed(page):
    assert "default-src 'none'" in page.get("/model.json").headers["content-security-policy"]
    assert page.client.get("/").status_code == 200
    assert "model.js" in page.client.get("/").text


def test_a_model_that_is_loading_says_so():
    from starlette.testclient import TestClient

    host = LiveHost("some/model", "a text")
    client = TestClient(live_application(host, TOKEN), base_url="http://localhost")
    headers = {"X-Headscope-Token": TOKEN, "Origin": "http://localhost"}
    facts = client.get("/model.json", headers=headers).json()
    assert (facts["loading"], facts["name"], facts["text"]) == (True, "some/model", "a text")
    kind = {"Content-Type": "application/json"}
    answer = client.post("/ask", content="{}", headers=headers | kind)
    assert (answer.status_code, "being loaded" in answer.json()["error"]) == (503, True)
    assert client.get("/record/a/header.json", headers=headers).status_code == 410
    host.failed = "no such model"
    assert client.get("/model.json", headers=headers).json()["failed"] == "no such model"


def test_any_error_is_told_and_the_server_goes_on(page, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("out of\nmemory")

    with monkeypatch.context() as patch:
        patch.setattr(page.live.model, "forward", fail)
        answer = page.post("/ask", {"page": "one", "input": {"text": "the sea."}})
    assert answer.status_code == 400
    assert "out of memory" in answer.json()["error"]
    page.ask("the sea.")


def blocked(page, monkeypatch):
    """Let the next run wait inside: gives what tells that it began, and what lets it go on."""
    begun, go_on = threading.Event(), threading.Event()
    run_once = live_model.run_once

    def run(*args):
        begun.set()
        assert go_on.wait(30)
        return run_once(*args)

    monkeypatch.setattr(live_model, "run_once", run)
    return begun, go_on


def asked_aside(page, text, name):
    """Ask in a thread: gives the thread and the list that its status comes to."""
    statuses = []
    message = {"page": name, "input": {"text": text}}
    thread = threading.Thread(
        target=lambda: statuses.append(page.post("/ask", message).status_code)
    )
    thread.start()
    return thread, statuses


def test_a_newer_question_of_a_page_stops_the_older_one(monkeypatch):
    page = page_of(tiny_model("gpt2", writes=True), tiny_tokenizer())
    with page.client:  # one loop for all threads, as a server has
        begun, go_on = blocked(page, monkeypatch)
        older, first = asked_aside(page, "the cat", "one")
        assert begun.wait(30)
        newer, second = asked_aside(page, "the dog", "one")
        other, third = asked_aside(page, "the sun", "two")
        waits = threading.Event()
        while len(page.queue) < 2:
            waits.wait(0.01)
        # the older question of the page waits in the model, the newer one in the queue
        waits.wait(0.3)
        go_on.set()
        for thread in (older, newer, other):
            thread.join(60)
    assert (first, second, third) == ([409], [200], [200])


def test_too_many_pages_are_told_to_come_again(monkeypatch):
    page = page_of(tiny_model("gpt2", writes=True), tiny_tokenizer())
    with page.client:
        begun, go_on = blocked(page, monkeypatch)
        threads = [asked_aside(page, "the cat", str(number)) for number in range(8)]
        assert begun.wait(30)
        waits = threading.Event()
        while len(page.queue) < 8:
            waits.wait(0.01)
        ninth, statuses = asked_aside(page, "the cat", "ninth")
        ninth.join(30)
        go_on.set()
        for thread, _ in threads:
            thread.join(60)
    assert statuses == [503]
    assert [own for _, own in threads] == [[200]] * 8


def test_a_run_stops_between_modules_and_leaves_the_model_as_it_was():
    model, tokenizer = tiny_model("gpt2", writes=True), tiny_tokenizer()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    signal, seen = StopSignal(60), []
    model.transformer.h[1].register_forward_pre_hook(lambda *_: (seen.append(1), signal.stop()))
    with stoppable(model, signal), pytest.raises(StoppedError):
        hs.capture(model, tokenizer, TEXT, interventions=[hs.Zero(layer=0, heads=[1])])
    assert seen == [1]
    assert sum(len(module._forward_pre_hooks) for module in model.modules()) == 1
    assert not any(module._forward_hooks for module in model.modules())
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


def test_a_run_that_takes_too_long_is_stopped():
    model = tiny_model("gpt2", writes=True)
    signal = StopSignal(0.0)
    signal.start()
    with stoppable(model, signal), pytest.raises(TooLongError, match="0 seconds"):
        hs.capture(model, tiny_tokenizer(), TEXT)


def test_a_page_that_goes_away_stops_its_run(page):
    import anyio

    begun, stopped = threading.Event(), []

    def wait_for_stop(module, *_):
        begun.set()
        signal = page.queue._newest["gone"]
        for _ in range(3000):
            try:
                signal.check()
            except StoppedError:
                stopped.append(True)
                return
            threading.Event().wait(0.01)

    message = {"page": "gone", "input": {"text": "the sea and the sun."}}
    messages = [
        {"type": "http.request", "body": json.dumps(message).encode(), "more_body": False},
        {"type": "http.disconnect"},
    ]

    async def receive():
        if len(messages) == 1:
            await anyio.to_thread.run_sync(begun.wait, 30)
        return messages.pop(0)

    sent = []

    async def send(part):
        sent.append(part)

    headers = page.headers | {"Content-Type": "application/json", "Host": "localhost"}
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/ask",
        "raw_path": b"/ask",
        "query_string": b"",
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }
    handle = next(iter(page.live.model.modules())).register_forward_pre_hook(wait_for_stop)
    try:
        # In a thread of its own: a browser of other tests may hold this one's event loop.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(anyio.run, page.client.app, scope, receive, send).result(60)
    finally:
        handle.remove()
    assert stopped == [True]
    assert sent[0]["status"] == 409
    assert len(page.queue) == 0
