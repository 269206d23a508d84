import json

import pytest

from headscope.testing import tiny_model, tiny_tokenizer
from headscope.views import _html

from ..processors import with_head

pytest.importorskip("starlette", reason="needs the extra server: pip install 'headscope[server]'")
pytest.importorskip("httpx", reason="starlette's test client needs httpx")

TOKEN = "right-token"
TEXT = "the cat sat on it."


def unpacked(data):
    """Head and chunks of an opening."""
    size = int.from_bytes(data[:4], "little")
    head, rest = json.loads(data[4 : 4 + size]), data[4 + size :]
    chunks = {}
    for name, count in head["chunks"]:
        chunks[name], rest = rest[:count], rest[count:]
    assert rest == b""
    return head, chunks


class Page:
    """Asks as the page of a live model does."""

    def __init__(self, client):
        self.client = client
        self.headers = {"X-Headscope-Token": TOKEN, "Origin": "http://localhost"}

    def get(self, path, **options):
        return self.client.get(path, headers=self.headers, **options)

    def post(self, path, message, **headers):
        given = self.headers | {"Content-Type": "application/json"} | headers
        content = message if isinstance(message, bytes) else json.dumps(message)
        return self.client.post(path, content=content, headers=given)

    def ask(self, text=TEXT, changes=(), **more):
        message = {"page": "one", "input": {"text": text}, "changes": list(changes), "looking": {}}
        answer = self.post("/ask", message | more)
        assert answer.status_code == 200, answer.text
        return unpacked(answer.content)

    def lines(self, path, message):
        answer = self.post(path, {"page": "one", "changes": []} | message)
        return answer.status_code, [json.loads(line) for line in answer.text.splitlines()]


def masked_model(name):
    """A tiny model with random weights that guesses hidden words, and its tokenizer."""
    model = with_head("MaskedLM", name)
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"mask_token": "[MASK]"})
    return model, tokenizer


def page_of(model, tokenizer, **options):
    from starlette.testclient import TestClient

    from headscope.live._model import LiveModel
    from headscope.live._queue import ModelQueue
    from headscope.live._server import LiveHost, live_application

    beside, atlas = options.pop("beside", None), options.pop("atlas", None)
    live = LiveModel(model, tokenizer, **options)
    host = LiveHost("tiny", limits=live.facts["limits"], live=live, atlas=atlas)
    if beside is not None:
        host.second = LiveModel(beside, tokenizer, records=live.records, **options)
    queue = ModelQueue(host.limits["queue"], host.limits["seconds"])
    page = Page(TestClient(live_application(host, TOKEN, queue), base_url="http://localhost"))
    page.live, page.queue = live, queue
    return page


@pytest.fixture(scope="module", autouse=True)
def _any_bundle():
    # Of the module, not of the session: tests of real pages may follow in the same process.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_html, "bundle", lambda name="page.js": f"export const name = '{name}';")
        yield


@pytest.fixture(scope="module")
def page():
    """A causal model of 3 layers and 5 heads."""
    return page_of(tiny_model("gpt2", writes=True), tiny_tokenizer())


@pytest.fixture(scope="module")
def bare():
    """An encoder without a head."""
    return page_of(tiny_model("bert"), tiny_tokenizer())
