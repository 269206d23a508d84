"""The widget's module in a real browser, loaded as anywidget loads it, with a kernel that answers from Python's bytes.

Real notebooks are driven by tools/drive_notebooks.py.
"""

import base64
import json

import pytest

import headscope as hs
from headscope.testing import random_weights
from headscope.views import _html

HOST = """<!doctype html><meta charset="utf-8"><body data-jp-theme-light="false">
<style>* { color: red !important; font-size: 40px !important; } button { display: none; }</style>
<script type="application/json" id="views">%s</script>
<script>
  window.models = JSON.parse(document.getElementById("views").textContent).map(({ header, selection, chunks }) => {
    const heard = new Map();
    const state = { _header: header, selection };
    const tell = (event, ...told) => [...(heard.get(event) ?? [])].forEach((hear) => hear(...told));
    return {
      state, tell, asked: [], saved: 0,
      get: (name) => state[name],
      set: (name, value) => { state[name] = value; },
      save_changes() { this.saved += 1; },
      on: (event, hear) => heard.set(event, (heard.get(event) ?? new Set()).add(hear)),
      off: (event, hear) => heard.get(event)?.delete(hear),
      send({ id, name }) {
        this.asked.push(name);
        const bytes = Uint8Array.from(atob(chunks[name]), (sign) => sign.charCodeAt(0));
        setTimeout(() => tell("msg:custom", { type: "chunk", id }, [new DataView(bytes.buffer)]));
      },
    };
  });
  window.start = async (script) => {
    for (const model of models) {
      // one blob for each widget, as anywidget makes it
      const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
      const widget = (await import(address)).default;
      const el = document.body.appendChild(document.createElement("div"));
      model.close = widget.render({ model, el });
    }
  };
</script>"""


@pytest.fixture
def widgets(browser, tmp_path):
    """Open the live widgets of some views in one page; checks in the end that they asked for nothing but chunks."""
    opened = []

    def widgets(*views):
        told = [
            {
                "header": view.header,
                "selection": view.header["selection"],
                "chunks": {name: base64.b64encode(_html.packed(data)).decode() for name, data in view.chunks.items()},
            }
            for view in views
        ]
        path = tmp_path / "host.html"
        path.write_text(HOST % json.dumps(told).translate(_html.ESCAPES), encoding="utf-8")
        context = browser.new_context(viewport={"width": 1100, "height": 800}, reduced_motion="reduce")
        context.set_offline(True)
        page = context.new_page()
        requests, errors = [], []
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: message.type == "error" and errors.append(message.text))
        opened.append((context, path, requests, errors))
        page.goto(path.as_uri())
        page.evaluate("(script) => start(script)", _html.bundle("live.js"))
        for number in range(len(views)):
            page.locator('[data-headscope][data-ready="true"]').nth(number).wait_for(state="attached")
        return page

    yield widgets
    for context, path, requests, errors in opened:
        assert [url for url in requests if url != path.as_uri() and not url.startswith("blob:")] == []
        assert errors == []
        context.close()


@pytest.fixture
def record(rng):
    return hs.from_weights(random_weights(rng, (6, 4, 9, 9)), [f"w{number}" for number in range(9)])


def test_two_in_one_notebook_do_not_hear_each_other(record, widgets):
    page = widgets(hs.view(record), hs.view(record, layer=3))
    page.get_by_role("button", name="Next layer").nth(1).click()
    page.locator('[data-headscope][data-layer="4"]').wait_for(state="attached")
    assert page.locator('[data-headscope][data-layer="0"]').count() == 1
    assert page.evaluate("models.map((model) => [model.state.selection.layer, model.saved])") == [[0, 0], [4, 1]]


def test_what_python_sets_is_shown(record, widgets):
    page = widgets(hs.view(record))
    page.evaluate("models[0].set('selection', { ...models[0].state.selection, layer: 5, heads: [1] })")
    page.evaluate("models[0].tell('change:selection')")
    page.locator('[data-headscope][data-layer="5"][data-heads="1"]').wait_for(state="attached")
    assert page.evaluate("models[0].saved") == 0


def test_only_layers_that_are_near_are_asked_for(record, widgets):
    page = widgets(hs.view(record, layer=2))
    page.wait_for_timeout(1500)
    asked = set(page.evaluate("models[0].asked"))
    assert asked == {"thumbs/self", "weights/self/1", "weights/self/2", "weights/self/3"}


def test_styles_of_the_notebook_do_not_reach_in_and_its_colours_do(record, widgets):
    page = widgets(hs.view(record))
    page.locator('[data-headscope][data-theme="dark"]').wait_for(state="attached")
    style = "(element) => [getComputedStyle(element).fontSize, getComputedStyle(element).display]"
    size, display = page.locator('button[data-head="1"]').evaluate(style)
    assert (size != "40px", display != "none") == (True, True)


def test_closing_one_leaves_the_other(record, widgets):
    page = widgets(hs.view(record), hs.view(record))
    page.evaluate("models[0].close()")
    assert page.locator("[data-headscope]").count() == 1
    page.locator('button[data-head="1"]').click()
    page.locator('[data-headscope][data-heads="0,2,3"]').wait_for(state="attached")


HOSTILE = [
    "</script><script>window.broken=1</script>",
    "<img src=x onerror=window.broken=1>",
    '"><svg onload=window.broken=1>',
    "&quot;&#x22; &lt;b&gt;",
    "</iframe></textarea>",
    "\u2028\u202e\x00",
]


@pytest.mark.parametrize("shell", ["widget", "frame", "server"])
def test_hostile_tokens_stay_inert_in_every_live_shell(shell, rng, widgets, served, browser, tmp_path):
    weights = random_weights(rng, (1, 2, len(HOSTILE), len(HOSTILE)))
    record = hs.from_weights(weights, HOSTILE, model=HOSTILE[0])

    def check(place, page):
        labels = place.locator('[data-side="query"] .label')
        labels.first.wait_for()
        assert labels.all_inner_texts()[:5] == HOSTILE[:5]
        labels.nth(1).click()
        assert [frame.evaluate("window.broken") for frame in page.frames] == [None] * len(page.frames)

    if shell == "widget":
        page = widgets(hs.view(record, title=HOSTILE[1]))
        check(page, page)
    elif shell == "server":
        with served(record, title=HOSTILE[1]) as view:
            check(view.page, view.page)
    else:
        path = tmp_path / "frame.html"
        path.write_text(hs.view(record, title=HOSTILE[1])._repr_html_(), encoding="utf-8")
        page = browser.new_page()
        page.goto(path.as_uri())
        check(page.frame_locator("iframe"), page)
        assert page.locator("iframe").count() == 1
        page.close()
