"""A real browser that opens real pages from disk, and counts every request they make."""

import os
from contextlib import contextmanager

import pytest

import find_chromium
from headscope.errors import PageError

SCRIPTS = (
    "<script>window.broken=1</script>",
    "<img src=x onerror=window.broken=1>",
    "<svg onload=window.broken=1>",
    "<iframe srcdoc='<script>parent.broken=1</script>'></iframe>",
    "<body onload=window.broken=1>",
    "<input autofocus onfocus=window.broken=1>",
    "<details open ontoggle=window.broken=1>",
    "<video><source onerror=window.broken=1></video>",
    "<math><mtext></table><img src=x onerror=window.broken=1>",
    "<a href=javascript:window.broken=1>x</a>",
    "<style>*{display:none!important}</style>",
    "<link rel=stylesheet href=//example.com/x.css>",
    "<base href=//example.com/>",
    "<meta http-equiv=refresh content='0;url=//example.com'>",
    "<object data=//example.com/x></object>",
    "<template shadowrootmode=open><script>window.broken=1</script></template>",
    "javascript:window.broken=1",
    "url(//example.com/x.png)",
    "expression(window.broken=1)",
    "${window.broken=1}",
    "{{constructor.constructor('window.broken=1')()}}",
    "`+window.broken=1+`",
    "';window.broken=1;//",
    '";window.broken=1;//',
)
WRAPPED = ("{}", "</script>{}", "<!--{}", "-->{}", "]]>{}", '">{}', "\u202e{}", "</style>{}")
STRANGE = [
    *("", " ", "\t", "\n", "\r\n", "\x00", "\x07\x1b[31m", "\x7f", "\u00a0", "\u00ad", "\u200b", "\u200d", "\u200e"),
    *(
        "\u2028",
        "\u202e",
        "\u2066",
        "\u2800",
        "\u3164",
        "\ufeff",
        "\ufffd",
        "\U000e0041",
        "\u0301",
        "e" + "\u0301" * 40,
    ),
    *(
        "x" * 5000,
        "\u4e2d" * 300,
        "\u0645\u0631\u062d\u0628\u0627",
        "\u05e9\u05dc\u05d5\u05dd",
        "\U0001f469\u200d\U0001f4bb",
    ),
    *("\uff37\uff49\uff44\uff45", "\u0e01\u0e33", "__proto__", "constructor", "toString", "null", "NaN", "%s%n"),
    *("../../etc/passwd", "&lt;b&gt;", "&#x3c;b>", "\\u003cb>"),
]


@pytest.fixture(scope="session")
def hostile():
    """More than 200 different tokens that would like to be more than text."""
    tokens = [wrapper.replace("{}", script) for wrapper in WRAPPED for script in SCRIPTS] + STRANGE
    assert len(set(tokens)) == len(tokens) > 200
    return tokens


@pytest.fixture(scope="session")
def browser():
    """Chromium, or the Firefox that HEADSCOPE_FIREFOX names."""
    from playwright.sync_api import sync_playwright

    if firefox := os.environ.get("HEADSCOPE_FIREFOX"):
        with sync_playwright() as playwright:
            browser = playwright.firefox.launch(
                channel="moz-firefox", executable_path=firefox, firefox_user_prefs={"ui.prefersReducedMotion": 1}
            )
            yield browser
            browser.close()
        return
    path = find_chromium.find()
    if path is None:
        pytest.fail("no Chromium was found: python tools/find_chromium.py --install")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=find_chromium.FLAGS)
        yield browser
        browser.close()


class Opened:
    """A page that was opened, with what it asked for and what went wrong in it."""

    def __init__(self, page):
        self.page, self.requests, self.errors = page, [], []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: message.type == "error" and self.errors.append(message.text))
        page.on("dialog", lambda dialog: (self.errors.append(f"dialog {dialog.message}"), dialog.dismiss()))

    def go(self, url):
        self.page.goto(url)
        self.root.wait_for(state="attached")
        # no wait_for_function: it needs eval, which the server's policy forbids
        self.root.and_(self.page.locator('[data-ready="true"]')).wait_for(state="attached")
        return self

    @property
    def root(self):
        return self.page.locator("[data-headscope]")

    def token(self, side, number):
        return self.page.locator(f'[data-side="{side}"][data-token="{number}"]')

    def choose(self, view):
        """Change to another view and wait until it has been drawn."""
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
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"
        )

    def state(self, name):
        self.settle()
        return self.root.get_attribute(f"data-{name}")

    def colours(self, canvas="all"):
        """How many different colours a canvas holds, all lines or those of one token: 1 where nothing is drawn."""
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
    """Skip in a Firefox, which Playwright drives over WebDriver BiDi: not all that it does is there."""
    if browser.browser_type.name != "chromium":
        pytest.skip(
            "over WebDriver BiDi Playwright has no downloads, double clicks, changed requests or system colours"
        )


@pytest.fixture
def show(browser, tmp_path):
    """Write a page to disk, open it from there, and check in the end that it asked for nothing and nothing broke."""
    import headscope as hs

    opened = []

    def show(record, *, fragment="", size=(1280, 800), scheme="light", density=1, **options):
        try:
            path = hs.page(record, **options).save(tmp_path / "page.html")
        except PageError as error:
            pytest.fail(str(error))
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme=scheme,
            reduced_motion="reduce",
            device_scale_factor=density,
        )
        context.set_offline(True)
        view = Opened(context.new_page())
        opened.append((context, view, path.as_uri()))
        return view.go(path.as_uri() + fragment)

    yield show
    for context, view, uri in opened:
        assert [url for url in view.requests if url.split("#")[0] != uri] == []
        assert view.errors == []
        context.close()


@pytest.fixture
def served(browser, serving):
    """Open the page of a view that is served, for the length of a block; checks that it asked this server alone."""
    import headscope as hs

    @contextmanager
    def served(record, *, size=(1280, 800), fragment="", **options):
        with serving(hs.view(record, **options)) as port:
            context = browser.new_context(viewport={"width": size[0], "height": size[1]}, reduced_motion="reduce")
            view = Opened(context.new_page())
            yield view.go(f"http://127.0.0.1:{port}/?token=right-token{fragment}")
            context.close()
        asked = [url for url in view.requests if not url.startswith((f"http://127.0.0.1:{port}/", "data:"))]
        assert asked == []
        assert view.errors == []

    return served
