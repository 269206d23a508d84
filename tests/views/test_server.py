"""The server over a real port: what it sends, and whom it refuses."""

import gzip
import http.client
import json

import pytest

import headscope as hs
from headscope.testing import random_record
from headscope.views import _html
from headscope.views._on_demand import OnDemand

TOKEN = "right-token"


@pytest.fixture(scope="module")
def shown():
    return hs.view(random_record(layers=3, heads=4), title="</title><script>broken()</script>")


@pytest.fixture(scope="module")
def port(shown, serving):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_html, "bundle", lambda name="page.js": f"export const name = '{name}';")
        with serving(shown) as port:
            yield port


@pytest.fixture
def ask(port):
    """Ask as a page of the server would, with whatever headers are to be otherwise."""

    def ask(path, method="GET", **headers):
        given = {"Host": f"127.0.0.1:{port}", "Cookie": f"headscope-{port}={TOKEN}"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in given.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), body

    return ask


def test_the_page_holds_no_data_but_its_title(ask, shown):
    status, headers, body = ask("/")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b"&lt;script&gt;broken()" in body
    assert b"<script>broken()" not in body
    assert len(body) < 1000


def test_header_and_chunks_are_those_of_the_view(ask, shown):
    given = OnDemand(shown.record, shown.options)
    assert json.loads(ask("/header.json")[2]) == given.header
    for name in ("layer/cross/2", "thumbs/cross/0", "weights/cross/1/3", "row-weight/cross/1/4"):
        data = given.chunk(name)
        assert ask(f"/chunk/{name}")[2] == data
        status, headers, packed = ask(f"/chunk/{name}", Accept_Encoding="gzip, br")
        assert (status, headers["content-encoding"], gzip.decompress(packed)) == (200, "gzip", data)


@pytest.mark.parametrize("path", ["/chunk/gone", "/chunk/../_server.py", "/chunk/", "/static/page.js", "/%2e%2e/etc"])
def test_there_is_nothing_else(path, ask):
    assert ask(path)[0] == 404


def test_a_figure_is_the_one_that_python_draws(ask, shown):
    status, headers, body = ask('/figure/svg?options={"view":"matrix","head":2}')
    assert (status, headers["content-type"].split(";")[0]) == (200, "image/svg+xml")
    assert body == hs.figure(shown.record, view="matrix", head=2).to_bytes("svg")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/figure/exe", b"not 'exe'"),
        ("/figure/svg?options=[1]", b"JSON object"),
        ("/figure/svg?options={", b"Expecting"),
        ('/figure/svg?options={"layer":9}', b"9"),
    ],
)
def test_a_figure_that_cannot_be_is_said(path, words, ask):
    status, _, body = ask(path)
    assert status == 400
    assert words in body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_nothing_can_be_changed(method, ask):
    assert ask("/header.json", method)[0] == 405


PATHS = ["/", "/live.js", "/header.json", "/chunk/thumbs/cross/0", "/figure/svg", "/gone"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "cookie", [None, "headscope-{port}=wrong", "headscope-{port}=", "headscope-1=right-token", "x"]
)
def test_who_does_not_know_the_token_learns_nothing(path, cookie, ask, port):
    status, _, body = ask(path, Cookie=cookie and cookie.format(port=port))
    assert status == 403
    assert body == b"Open the address that `headscope serve` printed: it carries the token"
    status, headers, _ = ask(f"{path}?token=wrong", Cookie=None)
    assert (status, "set-cookie" in headers) == (403, False)


def test_the_token_of_the_address_becomes_a_cookie_that_stays_here(ask, port):
    status, headers, _ = ask(f"/?token={TOKEN}", Cookie=None)
    assert status == 200
    assert headers["set-cookie"] == f"headscope-{port}={TOKEN}; HttpOnly; Path=/; SameSite=strict"
    assert "set-cookie" not in ask("/")[1]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "[::1",
        "localhost:x",
        "",
        "10.0.0.1",
    ],
)
def test_another_name_is_refused_whatever_it_knows(path, host, ask):
    status, _, body = ask(f"{path}?token={TOKEN}", Host=host)
    assert (status, body) in [(403, b"This server answers to localhost only"), (400, b"Invalid HTTP request received.")]


@pytest.mark.parametrize("host", ["localhost:{port}", "127.0.0.1:{port}", "[::1]:{port}", "LOCALHOST:{port}"])
def test_this_machine_has_several_names(host, ask, port):
    assert ask("/header.json", Host=host.format(port=port))[0] == 200


def test_a_forwarded_port_may_have_another_number(ask):
    assert ask("/header.json", Host="localhost:9999", Cookie=f"headscope-9999={TOKEN}")[0] == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1", ""]
)
def test_another_page_is_refused_whatever_it_knows(origin, ask, port):
    status, _, body = ask("/header.json", Origin=origin.format(port=port))
    assert (status, body) == (403, b"This server answers to its own page only")


def test_its_own_page_is_not(ask, port):
    assert ask("/header.json", Origin=f"http://127.0.0.1:{port}")[0] == 200


@pytest.mark.parametrize("path", [*PATHS, "/?token=wrong"])
def test_every_answer_keeps_the_page_closed(path, ask):
    _, headers, _ = ask(path)
    rules = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["connect-src"] == "'self'"
    assert rules["frame-ancestors"] == "'none'"
    assert "unsafe" not in rules["script-src"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


def test_only_the_loopback_address_is_bound():
    from headscope.cli._serve import listening_on

    with listening_on(0) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"
