"""A live model in a widget of a notebook: what the page asks goes through the kernel's messages."""

import base64
import threading

import pytest

pytest.importorskip("starlette", reason="needs the extra server: pip install 'headscope[server]'")
pytest.importorskip("anywidget", reason="needs the extra notebook")

from playwright.sync_api import expect

from headscope.live import live_widget
from headscope.testing import tiny_model, tiny_tokenizer
from headscope.views import _html

from .live_pages import SLOW, open_more, wait_for, wait_until_ready

TEXT = "the cat sat on it."
HOST = """<!doctype html><meta charset="utf-8"><body data-jp-theme-light="false">
<input data-outside aria-label="outside">
<script>
  const heard = new Map(), state = { asked: {}, selection: {} };
  const tell = (event, ...told) => [...(heard.get(event) ?? [])].forEach((hear) => hear(...told));
  window.model = {
    state, tell,
    get: (name) => state[name],
    set(name, value) { state[name] = value; window.traits(name, value); },
    save_changes() {},
    on: (event, hear) => heard.set(event, (heard.get(event) ?? new Set()).add(hear)),
    off: (event, hear) => heard.get(event)?.delete(hear),
    async send(message) {
      for (const [content, data] of await window.kernel(message)) {
        const bytes = Uint8Array.from(atob(data), (sign) => sign.charCodeAt(0));
        tell("msg:custom", content, [new DataView(bytes.buffer)]);
      }
    },
  };
  window.start = async (script) => {
    const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
    const widget = (await import(address)).default;
    const el = document.body.appendChild(document.createElement("div"));
    model.close = widget.render({ model, el });
  };
</script>"""


@pytest.fixture
def notebook(browser, tmp_path, monkeypatch):
    """The widget of a tiny model in a page that stands for a notebook: gives both."""
    from headscope.live.kernel import LiveWidget

    monkeypatch.setattr(LiveWidget, "send", lambda self, *told: self.sending(*told))
    widget = live_widget(tiny_model("gpt2", writes=True), tiny_tokenizer(), TEXT)
    told, whole = {}, threading.Condition()

    def sent(content, buffers):
        with whole:
            part = [content, base64.b64encode(buffers[0]).decode()]
            told.setdefault(content["id"], []).append(part)
            whole.notify_all()

    def kernel(message):
        widget._handle_custom_msg(message, [])
        name = message["id"]
        if message["type"] != "ask":
            return []
        with whole:
            assert whole.wait_for(lambda: name in told and not told[name][-1][0]["more"], 30)
            return told.pop(name)

    widget.sending = sent
    context = browser.new_context(
        viewport={"width": 1100, "height": 900}, reduced_motion="reduce", offline=True
    )
    page = context.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.expose_function("kernel", kernel)
    page.expose_function("traits", lambda name, value: setattr(widget, name, value))
    path = tmp_path / "notebook.html"
    path.write_text(HOST, encoding="utf-8")
    page.goto(path.as_uri())
    page.evaluate("(script) => start(script)", _html.bundle("model.js"))
    wait_until_ready(page)
    open_more(page)
    yield page, widget
    context.close()
    widget.close()
    assert errors == []


def test_a_text_is_typed_a_head_silenced_and_python_sees_both(notebook):
    page, widget = notebook
    page.locator('[data-field="text"]').fill("a dog")
    expect(page.locator(".facts")).to_contain_text("6 tokens", timeout=SLOW)
    page.locator('[data-tile="1-3"]').click()
    page.locator('[data-do="zero"]').click()
    expect(page.locator("[data-kl]")).to_contain_text("moved", timeout=SLOW)
    wait_for(page, lambda: widget.asked.get("changes") and widget.selection.get("layer") == 1)
    assert widget.asked["input"] == {"text": "a dog"}
    assert widget.asked["changes"] == [{"do": "zero", "layer": 1, "heads": [3]}]
    assert widget.record.texts == ("a dog",)


def test_python_asks_and_the_page_follows(notebook):
    page, widget = notebook
    page.evaluate("""() => {
        model.state.asked = { input: { text: "the sea" }, changes: [] };
        model.tell("change:asked");
    }""")
    expect(page.locator('[data-field="text"]')).to_have_value("the sea", timeout=SLOW)
    expect(page.locator(".facts")).to_contain_text("8 tokens", timeout=SLOW)
    page.locator('[data-panel="write"]').click()
    page.locator("[data-token-count]").select_option("10")
    page.locator("[data-write]").click()
    expect(page.locator("[data-written-token]")).to_have_count(10, timeout=SLOW)
    # the record of all that was written comes after the last token of it
    wait_for(page, lambda: widget.record.generation is not None)
    assert len(widget.record.generation.tokens) == 10


def test_keys_of_the_notebook_are_its_own(notebook):
    page, _ = notebook
    page.locator('[data-tile="1-3"]').click()
    page.locator("[data-outside]").focus()
    page.keyboard.press("x")
    page.locator("body").press("x")
    page.wait_for_timeout(200)
    assert page.locator("[data-change]").count() == 0
    page.evaluate("model.close()")
    assert page.locator("[data-headscope]").count() == 0
