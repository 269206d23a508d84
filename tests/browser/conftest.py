"""A real browser that opens real pages from disk, and counts every request they make."""

import base64
import json
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest

from headscope.errors import PageError
from headscope.views import _html

from .windows import Windows


class Opened:
    """A page that was opened, with what it asked for and what went wrong in it."""

    def __init__(self, page):
        self.page, self.requests, self.errors = page, [], []
        self._heard = {
            "request": lambda request: self.requests.append(request.url),
            "pageerror": lambda error: self.errors.append(str(error)),
            "console": self._printed,
            "dialog": self._refused,
        }
        for event, hear in self._heard.items():
            page.on(event, hear)

    def _printed(self, message):
        if message.type == "error":
            self.errors.append(message.text)

    def _refused(self, dialog):
        self.errors.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def leave(self):
        """Listen no longer: the next test may use the window."""
        for event, hear in self._heard.items():
            self.page.remove_listener(event, hear)

    def go(self, url):
        self.page.goto(url)
        self.root.wait_for(state="attached")
        # no wait_for_function: it needs eval, which the server's policy forbids
        self.root.and_(self.page.locator('[data-ready="true"]')).wait_for(state="attached")
        return self

    @property
    def root(self):
        return self.page.locator("[data-headscope]")

    def follow(self, **selection):
        """Show what another address says: all that it leaves out is as when the page was opened."""
        parts = ["v=2"]
        for name, value in selection.items():
            if isinstance(value, list):
                text = ",".join(map(str, value))
            else:
                text = int(value) if isinstance(value, bool) else value
            parts.append(f"{name}={text}")
        self.page.evaluate("fragment => { location.hash = fragment }", "&".join(parts))
        if "view" in selection:
            shown = f'[data-headscope][data-view="{selection["view"]}"]'
            self.page.locator(shown).wait_for(state="attached")
        self.settle()
        return self

    def token(self, side, number):
        return self.page.locator(f'[data-side="{side}"][data-token="{number}"]')

    def more(self):
        """Open the menu of what is shown and left out."""
        if self.page.locator(".more[open]").count() == 0:
            self.page.locator("[data-menu]").click()
        return self

    def choose(self, view):
        """Change to another place or drawing and wait until it has been drawn."""
        if view not in ("overview", "compare") and self.state("view") in ("overview", "compare"):
            self.page.locator('[data-option="one"]').click()
        self.page.locator(f'[data-option="{view}"]').click()
        self.page.locator(f'[data-headscope][data-view="{view}"]').wait_for(state="attached")
        self.settle()
        return self

    def address(self):
        """The fragment of the address, once what the last event changed has been written to it."""
        self.settle()
        return self.page.evaluate("location.hash")

    def text(self, selector):
        """What an element says, once what the last event changed has been drawn."""
        self.settle()
        return self.page.locator(selector).inner_text()

    def head(self, number):
        return self.page.locator(f'button[data-head="{number}"]')

    def settle(self):
        """Wait until what the last event changed has been drawn: effects run on the next frame."""
        self.page.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => "
            "setTimeout(done))))"
        )

    def state(self, name):
        self.settle()
        return self.root.get_attribute(f"data-{name}")

    def colours(self, canvas="all"):
        """How many different colours a canvas holds, all lines or those of one token: 1 where
        nothing is drawn.
        """
        self.settle()
        return self.page.evaluate(
            """(name) => {
                const canvas = document.querySelector('#headscope').shadowRoot.querySelector(`[data-canvas=${name}]`);
                const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
                return new Set(new Uint32Array(data.buffer)).size;
            }""",
            canvas,
        )


@pytest.fixture
def chromium_only(browser):
    """Skip in a Firefox, which Playwright drives over WebDriver BiDi: not all that it does is
    there.
    """
    if browser.browser_type.name != "chromium":
        pytest.skip(
            "over WebDriver BiDi Playwright has no downloads, double clicks, changed requests or "
            "system colours"
        )


@pytest.fixture(scope="session")
def windows(browser):
    """Windows of the browser that tests use one after the other."""
    windows = Windows(browser)
    yield windows
    windows.close()


@pytest.fixture
def open_file(windows):
    """Open a page from disk, and check in the end that it asked for nothing and nothing broke."""
    with ExitStack() as opened:

        def open_file(path, **window):
            return opened.enter_context(file_opened(windows, path, **window))

        yield open_file


@contextmanager
def file_opened(windows, path, *, fragment="", size=(1280, 800), scheme="light", density=1):
    """A page of a file, which asks for nothing while the block lasts."""
    with windows.window(size=size, scheme=scheme, density=density) as page:
        view, uri = Opened(page), path.as_uri()
        yield view.go(uri + fragment)
        view.leave()
        assert [url for url in view.requests if url.split("#")[0] != uri] == []
        assert view.errors == []


@pytest.fixture
def show(open_file, tmp_path):
    """Write a page to disk and open it from there, in the head view where no other is asked for."""
    import headscope as hs

    def show(record, *, fragment="", size=(1280, 800), scheme="light", density=1, **options):
        try:
            path = hs.view(record, **{"view": "head"} | options).save(tmp_path / "page.html")
        except PageError as error:
            pytest.fail(str(error))
        return open_file(path, fragment=fragment, size=size, scheme=scheme, density=density)

    return show


@pytest.fixture(scope="module")
def page_open(windows, tmp_path_factory):
    """The page of some HTML in a window of a kind, opened once for all tests of a module: a
    `KeptPage`.
    """
    with ExitStack() as opened:
        pages = {}

        def page_open(html, **window):
            key = (html, *window.values())
            if key not in pages:
                path = tmp_path_factory.mktemp("page") / "page.html"
                path.write_text(html, encoding="utf-8")
                view = opened.enter_context(file_opened(windows, path, **window))
                pages[key] = KeptPage(view, path.as_uri(), window["size"])
            return pages[key]

        yield page_open


@pytest.fixture
def show_kept(page_open):
    """Show a record as `show` does, in the page that an earlier test of the module opened for the
    same, as it was when it was opened.

    Not for tests that change what no element says, such as a function of the window.
    """
    import headscope as hs

    used = []

    def show_kept(record, *, size=(1280, 800), scheme="light", density=1, **options):
        html = hs.view(record, **{"view": "head"} | options).html
        kept = page_open(html, size=size, scheme=scheme, density=density)
        assert kept not in used, "this test shows the page already: ask for `show`"
        used.append(kept)
        return kept.as_opened()

    yield show_kept
    for kept in used:
        kept.check()


STATE = """() => {
    const elements = [...document.querySelector("#headscope").shadowRoot.querySelectorAll("*")];
    const ofOtherViews = ["data-lines", "data-cell", "data-query"];
    const isSeen = (part) => part.checkVisibility({ opacityProperty: true, visibilityProperty: true });
    const told = (part) => [
        part.localName,
        ...part.getAttributeNames().sort().filter((name) => part.localName !== "main" || !ofOtherViews.includes(name))
            .map((name) => `${name}=${part.getAttribute(name)}`),
        part.value, part.checked, part.scrollTop, part.scrollLeft,
        part.childElementCount ? "" : part.textContent,
    ];
    return JSON.stringify([
        elements.filter((part) => part.localName !== "canvas" && isSeen(part)).map(told),
        [document.documentElement.style.cssText, document.body.style.cssText, scrollX, scrollY],
        [document.activeElement === document.body, localStorage.length, sessionStorage.length, location.hash],
    ]);
}"""
"""All that is seen of a page but for its canvases, which are drawn of the same."""

PUT_BACK = """() => {
    document.activeElement.shadowRoot?.activeElement?.blur();
    document.activeElement.blur();
    scrollTo(0, 0);
    location.hash = "";
}"""


class KeptPage:
    """A page that one test after the other is given as it was when it was opened."""

    def __init__(self, view, uri, size):
        self._view, self._uri, self._size = view, uri, size
        self._first = self._state()

    def as_opened(self):
        """The page with its own selection, and nothing pointed at, focused or unfolded."""
        view, page = self._view, self._view.page
        page.keyboard.press("Escape")
        page.mouse.move(0, 0)  # what lies under the pointer hears that it leaves only in the window
        page.emulate_media(media="null")
        page.set_viewport_size({"width": self._size[0], "height": self._size[1]})
        view.settle()  # the address is written before it is changed
        if self._state() != self._first:
            page.evaluate(PUT_BACK)
            if self._state() != self._first:
                self._load()
        return view

    def _load(self):
        """Open it anew: a test unfolded or chose what is in no address."""
        self._view.page.evaluate("localStorage.clear(); sessionStorage.clear()")
        self._view.page.goto("about:blank")
        self._view.go(self._uri)

    def _state(self):
        self._view.settle()
        return self._view.page.evaluate(STATE)

    def check(self):
        """Nothing was asked for, and nothing went wrong, since the last check."""
        errors, requests = self._view.errors.copy(), self._view.requests.copy()
        self._view.errors.clear()
        self._view.requests.clear()
        assert [
            url for url in requests if url.split("#")[0] not in (self._uri, "about:blank")
        ] == []
        assert errors == []


@pytest.fixture
def served(windows, serving):
    """Open the page of a view that is served, in the head view where no other is asked for.

    It lasts for the length of a block, and checks that the page asked this server alone.
    """
    return partial(view_served, windows, serving)


@contextmanager
def view_served(windows, serving, record, *, size=(1280, 800), fragment="", **options):
    import headscope as hs

    view = hs.view(record, **{"view": "head"} | options)
    with serving(view) as port, windows.window(size=size, offline=False) as page:
        view = Opened(page)
        yield view.go(f"http://127.0.0.1:{port}/?token=right-token{fragment}")
        view.leave()
        server = (f"http://127.0.0.1:{port}/", "data:")
        assert [url for url in view.requests if not url.startswith(server)] == []
        assert view.errors == []


@pytest.fixture(scope="module")
def kept_pages(windows, serving, tmp_path_factory):
    """Pages that stay open for the tests of a module, from disk and from a server: opening one
    costs more than most of what is tried on it.
    """
    import headscope as hs

    with ExitStack() as opened:

        def open_page(source, record, *, scheme="light", size=(1280, 800), density=1, **options):
            if source == "server":
                return opened.enter_context(view_served(windows, serving, record, **options))
            path = tmp_path_factory.mktemp("page") / "page.html"
            hs.view(record, **{"view": "head"} | options).save(path)
            window = {"scheme": scheme, "size": size, "density": density}
            return opened.enter_context(file_opened(windows, path, **window))

        yield open_page


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
      send({ id, path }) {
        const name = decodeURIComponent(path.replace("chunk/", ""));
        this.asked.push(name);
        const bytes = Uint8Array.from(atob(chunks[name]), (sign) => sign.charCodeAt(0));
        setTimeout(() => tell("msg:custom", { type: "answer", id, status: 200, more: false }, [new DataView(bytes.buffer)]));
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
def widgets(windows, tmp_path):
    """Open the live widgets of some views in one page; checks in the end that they asked for
    nothing but chunks.
    """
    stack = ExitStack()
    opened = []

    def widgets(*views):
        told = [
            {
                "header": view.header,
                "selection": view.header["selection"],
                "chunks": {
                    name: base64.b64encode(_html.packed(data)).decode()
                    for name, data in view.chunks.items()
                },
            }
            for view in views
        ]
        path = tmp_path / "host.html"
        path.write_text(HOST % json.dumps(told).translate(_html.ESCAPES), encoding="utf-8")
        page = stack.enter_context(windows.window(size=(1100, 800)))
        opened.append((Opened(page), path))
        page.goto(path.as_uri())
        page.evaluate("(script) => start(script)", _html.bundle("live.js"))
        for number in range(len(views)):
            page.locator('[data-headscope][data-ready="true"]').nth(number).wait_for(
                state="attached"
            )
        return page

    with stack:
        yield widgets
        for view, path in opened:
            view.leave()
            assert [
                url for url in view.requests if url != path.as_uri() and not url.startswith("blob:")
            ] == []
            assert view.errors == []


NOTEBOOK = """<!doctype html><html><head><meta charset="{charset}"></head>
<body data-jp-theme-light="{light}" style="margin:0 40px">{outputs}</body></html>"""


@pytest.fixture
def notebook(windows, tmp_path):
    """A document with the outputs of views in it, opened offline; checks in the end that it asked
    for nothing.
    """
    stack = ExitStack()
    opened = []

    def notebook(*views, light=True, charset="utf-8", outputs=None, bare=False, wait=True):
        text = "".join(view._repr_html_() for view in views) if outputs is None else outputs
        path = tmp_path / "notebook.html"
        whole = NOTEBOOK.format(charset=charset, light=str(light).lower(), outputs=text)
        path.write_text(text if bare else whole, encoding="utf-8")
        page = stack.enter_context(windows.window(size=(1100, 800)))
        opened.append((Opened(page), path))
        page.goto(path.as_uri())
        for number in range(page.locator("iframe").count() if wait else 0):
            page.frame_locator("iframe").nth(number).locator(
                '[data-headscope][data-ready="true"]'
            ).wait_for(state="attached")
        return page

    with stack:
        yield notebook
        for view, path in opened:
            view.leave()
            own = (path.as_uri(), "about:srcdoc")
            assert [url for url in view.requests if url.split("#")[0] not in own] == []
            assert view.errors == []
