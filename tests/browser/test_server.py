"""The page of `headscope serve` in a real browser, from a real port."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import headscope as hs
from headscope.record import Layer, ModelFacts, Record, Stack, Tokens
from headscope.testing import random_weights

MEGABYTE = 1_000_000


@pytest.fixture
def record(rng):
    return hs.from_weights(
        random_weights(rng, (6, 4, 9, 9)), [f"w{number}" for number in range(9)], model="tiny"
    )


def chunks(view):
    return [url.split("/chunk/")[1] for url in view.requests if "/chunk/" in url]


def test_it_opens_works_and_follows_its_address(served, record):
    with served(record, fragment="#v=2&layer=3&heads=2") as view:
        assert (view.state("layer"), view.state("heads")) == ("3", "2")
        assert view.colours() > 20
        view.page.locator('[data-tile="3-0"]').click()
        view.root.and_(view.page.locator('[data-heads="0"]')).wait_for(state="attached")
        assert view.page.evaluate("location.hash") == "#v=2&layer=3&heads=0"


def test_the_token_leaves_the_address_and_a_reload_still_works(served, record):
    with served(record) as view:
        assert "token" not in view.page.url
        assert view.page.title() == "tiny"
        view.page.reload()
        view.root.and_(view.page.locator('[data-ready="true"]')).wait_for(state="attached")


def test_who_opens_the_page_without_the_token_is_told(served, record):
    with served(record) as view:
        other = view.page.context.new_page()  # the same browser, and another tab
        other.goto(view.page.url)
        failure = other.locator("[data-failure]")
        failure.wait_for()
        assert "open the address that `headscope serve` printed" in failure.inner_text()
        assert other.title() == "headscope"


def layers(view):
    """The layers that were asked for."""
    return {name.split("/")[2] for name in chunks(view) if name.startswith("layer/")}


def heads(view, layer):
    """The heads of a layer that were asked for."""
    return {
        name.split("/")[3] for name in chunks(view) if name.startswith(f"weights/self/{layer}/")
    }


def test_layers_are_sent_when_they_are_looked_at(served, record):
    with served(record, layer=0) as view:
        view.page.wait_for_timeout(1500)  # neighbours are fetched when nothing else is to be done
        assert layers(view) == {"0", "1"}
        assert {name for name in chunks(view) if name.startswith("thumbs")} == {
            f"thumbs/self/{n}" for n in range(6)
        }
        view.page.keyboard.press("]")
        view.root.and_(view.page.locator('[data-layer="1"]')).wait_for(state="attached")
        view.page.wait_for_timeout(1500)
        assert layers(view) == {"0", "1", "2"}
        assert len(chunks(view)) == len(set(chunks(view)))


def test_a_pair_is_shown_from_rows_alone(served, record):
    with served(record, view="head", layer=0, heads=[2], query=5, key=3) as view:
        view.page.locator(
            '.all-heads [data-tile="5-3"]:not([title$="not in this page"])'
        ).wait_for()
        titles = view.page.locator(".all-heads .tile").evaluate_all(
            "cells => cells.map(cell => cell.title)"
        )
        shown = [title.split(": ")[1] for title in titles]
        assert {name for name in chunks(view) if name.startswith("row")} == {
            f"row-weight/self/{n}/5" for n in range(6)
        }
        assert "5" not in layers(view)
    weights = [
        record["self"].layer(layer).weights_of(head)[5, 3]
        for layer in range(6)
        for head in range(4)
    ]
    assert [float(text.replace("<.001", "0")) for text in shown] == pytest.approx(
        weights, abs=0.006
    )


def test_evidence_is_served(served, record):
    with served(record, evidence=hs.heads(record), view="overview") as view:
        tiles = view.page.locator("[data-tile]")
        tiles.first.wait_for()
        assert tiles.count() == 24
        assert {name.split("/")[0] for name in chunks(view)} >= {"status", "numbers", "values"}


def test_what_is_waited_for_is_said(served, record):
    with served(record) as view:
        held = []
        view.page.route("**/chunk/layer/self/4", lambda route: held.append(route))
        view.page.locator('[data-tile="4-0"]').click()
        said = view.page.locator("[data-loading] span")
        said.wait_for()
        assert said.inner_text() == "Loading layer 4 …"
        assert view.state("layer") == "0"
        held[0].continue_()
        view.root.and_(view.page.locator('[data-layer="4"]')).wait_for(state="attached")
        view.page.locator("[data-loading]").wait_for(state="detached")


def test_twelve_layers_of_twelve_heads_at_512_tokens_open_within_a_megabyte(served, rng):
    count = 512
    tokens = Tokens(pieces=tuple(f"w{number}" for number in range(count)))
    features = dict.fromkeys(("queries", "keys"), (12, count, 64))
    layers = tuple(
        Layer(
            layer=number,
            **{
                name: rng.standard_normal(shape).astype(np.float32)
                for name, shape in features.items()
            },
        )
        for number in range(12)
    )
    record = Record(
        stacks={"self": Stack(name="self", query=tokens, key=tokens, layers=layers)},
        model=ModelFacts(name="big"),
    )
    with served(record) as view:
        view.page.locator("[data-loading]").wait_for(state="detached")
        sizes = view.page.evaluate(
            "performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation')).map(({ "
            "name, transferSize }) => [name, transferSize])"
        )
        assert view.state("heads") == "0"
        # Of so many lines only those of a token are drawn.
        view.token("query", 3).hover()
        assert view.colours("token") > 20
    assert len([name for name, _ in sizes if "/chunk/thumbs" in name]) == 12
    assert 200_000 < sum(size for _, size in sizes) < MEGABYTE


@pytest.fixture
def other_server():
    """A server of somebody else on this machine: gives its port, and the requests that it was
    sent.
    """
    heard = []

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self):
            heard.append((self.path, dict(self.headers)))
            self.send_response(200)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>elsewhere</title>")

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port, heard
    server.shutdown()
    thread.join()
    server.server_close()


def test_another_server_on_this_machine_is_sent_nothing_that_lets_it_in(
    served, record, other_server
):
    """Browsers send cookies to every port of an address, so that a token in one would be
    everybody's.
    """
    port, heard = other_server
    with served(record) as view:
        elsewhere = view.page.context.new_page()
        elsewhere.goto(f"http://127.0.0.1:{port}/opened")
        elsewhere.evaluate(
            "fetch('/asked', { credentials: 'include' }).then((answer) => answer.text())"
        )
        assert elsewhere.evaluate("sessionStorage.length") == 0
        assert view.page.context.cookies() == []
        assert view.page.evaluate("document.cookie") == ""
    assert {"/opened", "/asked"} <= {path for path, _ in heard}
    assert "right-token" not in str(heard)


TRIES = """async (address) => {
    const tried = (options) => fetch(address, options).then(async (answer) => await answer.text(), () => "refused");
    return [
        await tried({ credentials: "include" }),
        await tried({ mode: "no-cors", credentials: "include" }),
        // a header of ours is asked for first, and the answer has no word of leave
        await tried({ headers: { "X-Headscope-Token": "right-token" } }),
    ];
}"""
FRAME = """(address) => new Promise((done) => {
    const frame = document.body.appendChild(document.createElement("iframe"));
    frame.onload = () => done(frame.contentDocument === null);
    frame.src = address;
})"""
SCRIPT = """(address) => new Promise((done) => {
    const script = document.head.appendChild(document.createElement("script"));
    script.onload = () => done("ran");
    script.onerror = () => done("refused");
    script.src = address;
})"""


@pytest.mark.parametrize("where", ["a file", "another port", "another name and port"])
def test_a_page_of_elsewhere_reads_nothing(
    where, served, record, other_server, tmp_path, chromium_only
):
    """Another page in the same browser, which knows the port, and even the token."""
    (tmp_path / "evil.html").write_text("<!doctype html><title>elsewhere</title>")
    addresses = {
        "a file": (tmp_path / "evil.html").as_uri(),
        "another port": f"http://127.0.0.1:{other_server[0]}/",
        "another name and port": f"http://localhost:{other_server[0]}/",
    }
    with served(record) as view:
        base = view.page.url.split("#")[0]
        evil = view.page.context.new_page()
        answers = []
        evil.on(
            "response",
            lambda answer: (
                answer.url.startswith(base) and answers.append((answer.url, answer.status))
            ),
        )
        evil.goto(addresses[where])
        assert evil.evaluate(TRIES, f"{base}header.json") == ["refused", "refused", "refused"] or (
            evil.evaluate(TRIES, f"{base}header.json") == ["refused", "", "refused"]
        )
        assert evil.evaluate(SCRIPT, f"{base}live.js") == "refused"
        assert evil.evaluate(FRAME, base)
        assert answers
        assert {status for _, status in answers} <= {403, 405}
        evil.close()


def test_a_link_from_elsewhere_opens_the_page(served, record, other_server):
    with served(record) as view:
        address = view.page.url.split("#")[0] + "?token=right-token"
        elsewhere = view.page.context.new_page()
        elsewhere.goto(f"http://127.0.0.1:{other_server[0]}/")
        elsewhere.evaluate("(address) => { location.href = address; }", address)
        elsewhere.locator('[data-ready="true"]').wait_for(state="attached")
        assert "right-token" not in elsewhere.url


def test_a_server_that_has_ended_is_said(serving, browser, record):
    context = browser.new_context()
    page = context.new_page()
    with serving(hs.view(record, view="head")) as port:
        page.goto(f"http://127.0.0.1:{port}/?token=right-token")
        page.locator('[data-ready="true"]').wait_for(state="attached")
        page.wait_for_timeout(1500)
    page.locator('[data-tile="5-0"]').click()
    failure = page.locator("[data-failure]")
    failure.wait_for()
    assert "Start `headscope serve` again" in failure.inner_text()
    context.close()
