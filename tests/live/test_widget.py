"""The live widget without a browser: questions are messages, answered as the server does."""

import json
import threading

import pytest

from headscope.errors import HeadscopeError, RecordError
from headscope.live import live_widget
from headscope.testing import tiny_model, tiny_tokenizer

from .conftest import TEXT, unpacked

pytest.importorskip("anywidget", reason="needs the extra notebook")


class Kernel:
    """Asks a widget as its page does, and waits for the whole answer."""

    def __init__(self, widget):
        self.widget, self.parts, self.ended = widget, {}, threading.Condition()
        widget.send = self.sent

    def sent(self, content, buffers):
        with self.ended:
            self.parts.setdefault(content["id"], []).append((content, buffers[0]))
            self.ended.notify_all()

    def is_whole(self, name):
        return name in self.parts and not self.parts[name][-1][0]["more"]

    def ask(self, path, body=None):
        name = f"{path}{len(self.parts)}"
        more = {} if body is None else {"body": json.dumps(body)}
        self.widget._handle_custom_msg({"type": "ask", "id": name, "path": path} | more, [])
        with self.ended:
            assert self.ended.wait_for(lambda: self.is_whole(name), 30)
        parts = self.parts[name]
        return parts[0][0]["status"], b"".join(data for _, data in parts)


@pytest.mark.parametrize("limits", [{"max_tokens": 0}, {"seconds": 0}, {"seconds": "long"}])
def test_limits_are_checked_as_those_of_a_server(limits):
    with pytest.raises(HeadscopeError, match=next(iter(limits))):
        live_widget(tiny_model("gpt2", writes=True), tiny_tokenizer(), TEXT, **limits)


@pytest.fixture
def kernel(monkeypatch):
    from headscope.live.kernel import LiveWidget

    # The instance's own send is set before the page can ask.
    monkeypatch.setattr(LiveWidget, "send", lambda self, *told: self.sending(*told))
    widget = live_widget(tiny_model("gpt2", writes=True), tiny_tokenizer(), TEXT)
    kernel = Kernel(widget)
    widget.sending = kernel.sent
    yield kernel
    widget.close()


def question(text=TEXT, **more):
    return {"page": "one", "input": {"text": text}, "changes": [], "looking": {}} | more


def test_a_question_is_answered_as_by_the_server(kernel):
    status, data = kernel.ask("model.json")
    assert (status, json.loads(data)["text"]) == (200, TEXT)
    status, data = kernel.ask("ask", question(looking={"layer": 1}))
    head, chunks = unpacked(data)
    assert (status, "layer/self/1" in chunks) == (200, True)
    status, data = kernel.ask(f"record/{head['id']}/chunk/layer%2Fself%2F1")
    assert data == chunks["layer/self/1"]
    name = "figure/svg?options=" + "%7B%22view%22%3A%22matrix%22%7D"
    assert kernel.ask(f"record/{head['id']}/{name}")[1].startswith(b"<")


def test_what_cannot_be_is_an_answer_and_it_goes_on(kernel):
    assert kernel.ask("nothing")[0] == 404
    status, data = kernel.ask("ask", question(""))
    assert (status, "text" in json.loads(data)["error"]) == (400, True)
    assert kernel.ask("ask", question())[0] == 200


def test_lines_come_one_by_one(kernel):
    status, data = kernel.ask("write", question(tokens=3))
    assert (status, len([json.loads(line) for line in data.splitlines()])) == (200, 4)
    # A part for each line, and an empty one that ends the answer.
    (parts,) = [parts for name, parts in kernel.parts.items() if name.startswith("write")]
    assert len(parts) == 5


def test_the_record_that_is_shown_is_there_in_python(kernel):
    widget = kernel.widget
    with pytest.raises(RecordError, match="Nothing is shown yet"):
        widget.record  # noqa: B018 - raises
    head, _ = unpacked(kernel.ask("ask", question())[1])
    widget._shown_id = head["id"]
    assert widget.record.texts == (TEXT,)
    widget.ask("the dog")
    assert widget.asked["input"] == {"text": "the dog"}


def test_a_question_that_nobody_waits_for_stops(kernel):
    model, begun, stopped = kernel.widget._live.model, threading.Event(), threading.Event()

    def wait(*_):
        begun.set()
        assert stopped.wait(30)

    handle = next(model.modules()).register_forward_pre_hook(wait)
    asking = {"type": "ask", "id": "a", "path": "ask", "body": json.dumps(question("the sea"))}
    kernel.widget._handle_custom_msg(asking, [])
    assert begun.wait(30)
    kernel.widget._handle_custom_msg({"type": "stop", "id": "a"}, [])
    # The next question waits for the model, so that it is answered when the first has stopped.
    threading.Timer(0.3, stopped.set).start()
    try:
        assert kernel.ask("model.json")[0] == 200
        with kernel.ended:
            assert kernel.ended.wait_for(lambda: kernel.is_whole("a"), 30)
    finally:
        handle.remove()
    assert kernel.parts["a"][0][0]["status"] == 409
    assert kernel.ask("ask", question("the sea"))[0] == 200


@pytest.mark.parametrize("content", [None, "a", {}, {"type": "ask"}, {"type": "ask", "id": 3}])
def test_what_is_no_message_of_the_page_is_left_aside(content, kernel):
    kernel.widget._handle_custom_msg(content, [])
    assert kernel.ask("model.json")[0] == 200
