"""The server over a real port: what it sends, and whom it refuses."""

import gzip
import http.client
import json
import os
import socket
import threading
import time
from itertools import product
from urllib.parse import quote

import pytest

import headscope as hs
from headscope.testing import random_record
from headscope.views import _html
from headscope.views import server as _server
from headscope.views._on_demand import OnDemand
from headscope.views.listening import LimitedProtocol

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
        given = {"Host": f"127.0.0.1:{port}", "X-Headscope-Token": TOKEN}
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


def test_the_page_itself_is_sent_to_everyone_and_holds_nothing_of_the_record(ask, shown):
    status, headers, body = ask("/", X_Headscope_Token=None)
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b"broken()" not in body  # the title, which may be a text
    assert b"<title>headscope</title>" in body
    assert len(body) < 1000
    assert ask("/live.js", X_Headscope_Token=None)[0] == 200


def test_header_and_chunks_are_those_of_the_view(ask, shown):
    given = OnDemand(shown.record, shown.options)
    assert json.loads(ask("/header.json")[2]) == given.header
    for name in ("layer/cross/2", "thumbs/cross/0", "weights/cross/1/3", "row-weight/cross/1/4"):
        data = given.chunk(name)
        assert ask(f"/chunk/{name}")[2] == data
        status, headers, packed = ask(f"/chunk/{name}", Accept_Encoding="gzip, br")
        assert (status, headers["content-encoding"], gzip.decompress(packed)) == (200, "gzip", data)


@pytest.mark.parametrize(
    "path", ["/chunk/gone", "/chunk/../_server.py", "/chunk/", "/static/page.js", "/%2e%2e/etc"]
)
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


OF_ANOTHER_KIND = {
    "record": [1],
    "evidence": [1],
    "quantities": [{}],
    "stack": [{}, ["self"]],
    "quantity": [[], {}],
    "view": [["head"]],
    "layer": ["0", 0.0, True, 10**400],
    "head": [[0]],
    "heads": [["0"], [[0]]],
    "layers": [[{}]],
    "width": ["wide", 10**400],
    "hide_special": ["yes"],
    "title": [3],
    "": [None],
}


@pytest.mark.parametrize("name", OF_ANOTHER_KIND)
def test_options_of_another_kind_are_said(name, ask):
    for value in OF_ANOTHER_KIND[name]:
        status, _, body = ask(f"/figure/svg?options={quote(json.dumps({name: value}))}")
        assert status == 400, body
        assert name.encode() in body


@pytest.mark.parametrize("sign", ["[", '{"a":'])
def test_nested_options_are_said(sign, ask):
    assert ask(f"/figure/svg?options={quote(sign * 5000)}")[0] == 400


@pytest.mark.parametrize("kind", ["layer", "thumbs", "visible", "quantity-x"])
def test_a_number_of_5000_digits_is_no_chunk(kind, ask):
    assert ask(f"/chunk/{kind}/cross/{'1' * 5000}")[0] == 404
    assert ask(f"/chunk/row-weight/cross/0/{'1' * 5000}")[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_nothing_can_be_changed(method, ask):
    assert ask("/header.json", method)[0] == 405


HOLDING = "/header.json /chunk/thumbs/cross/0 /figure/svg /gone // /live.js/ /./header.json".split()
"""Paths that need the token."""
PATHS = ["/", "/live.js", *HOLDING]


@pytest.mark.parametrize("token", [None, "wrong", "", "right-toke", "right-token2", "\xe9"])
def test_who_does_not_know_the_token_learns_nothing(token, ask):
    for path in HOLDING:
        status, headers, body = ask(path, X_Headscope_Token=token)
        assert status == 403, path
        assert body == b"Open the address that `headscope serve` printed: it carries the token"
        assert "set-cookie" not in headers


def test_the_token_counts_in_the_header_only(ask, port):
    """A cookie would be sent to every other server on this machine, an address is kept in
    histories.
    """
    assert ask(f"/header.json?token={TOKEN}", X_Headscope_Token=None)[0] == 403
    assert ask("/header.json", X_Headscope_Token=None, Cookie=f"headscope-{port}={TOKEN}")[0] == 403
    for path in (f"/?token={TOKEN}", "/header.json"):
        status, headers, _ = ask(path)
        assert (status, "set-cookie" in headers) == (200, False)


OTHER_HOSTS = (
    "evil.example evil.example:80 127.0.0.1.evil.example localhost.evil.example [::1 localhost:x "
    "10.0.0.1 evil.example@127.0.0.1"
).split()


@pytest.mark.parametrize("host", ["", *OTHER_HOSTS])
def test_another_name_is_refused_whatever_it_knows(host, ask):
    for path in PATHS:
        status, _, body = ask(path, Host=host)
        assert (status, body) in [
            (403, b"This server answers to localhost only"),
            (400, b"Invalid HTTP request received."),
        ], path


@pytest.mark.parametrize(
    "host", ["localhost:{port}", "127.0.0.1:{port}", "[::1]:{port}", "LOCALHOST:{port}"]
)
def test_this_machine_has_several_names(host, ask, port):
    assert ask("/header.json", Host=host.format(port=port))[0] == 200


def test_a_forwarded_port_may_have_another_number(ask):
    assert ask("/header.json", Host="localhost:9999")[0] == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1", ""]
)
def test_another_page_is_refused_whatever_it_knows(origin, ask, port):
    status, _, body = ask("/header.json", Origin=origin.format(port=port))
    assert (status, body) == (403, b"This server answers to its own page only")


def test_its_own_page_is_not(ask, port):
    assert (
        ask("/header.json", Origin=f"http://127.0.0.1:{port}", Sec_Fetch_Site="same-origin")[0]
        == 200
    )


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "same-origin, cross-site"])
def test_what_a_page_of_another_site_or_port_has_caused_is_refused(site, ask):
    ways = [("cors", "empty"), ("no-cors", "image"), ("no-cors", "script"), ("navigate", "iframe")]
    for path, (mode, where) in product(PATHS, ways):
        status, _, body = ask(path, Sec_Fetch_Site=site, Sec_Fetch_Mode=mode, Sec_Fetch_Dest=where)
        assert (status, body) == (403, b"This server answers to its own page only"), path


def test_a_link_to_the_address_opens_it(ask):
    for site in ("cross-site", "same-site", "none"):
        headers = {
            "Sec_Fetch_Site": site,
            "Sec_Fetch_Mode": "navigate",
            "Sec_Fetch_Dest": "document",
        }
        assert ask("/", X_Headscope_Token=None, **headers)[0] == 200
        assert ask("/header.json", X_Headscope_Token=None, **headers)[0] == 403


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
    from headscope.views.listening import listening_on

    with listening_on(0) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"


@pytest.fixture
def raw(port):
    """Connections that are written to byte by byte."""
    opened = []

    def raw(data=b""):
        connection = socket.create_connection(("127.0.0.1", port), timeout=20)
        opened.append(connection)
        connection.sendall(data)
        return connection

    yield raw
    for connection in opened:
        connection.close()


def is_closed(connection):
    """Whether the other side closes the connection, within its time limit."""
    try:
        while connection.recv(1000):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n",
        b"garbage",
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\nbegun",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET / HTTP",
    ],
    ids=["nothing", "half a request", "garbage", "half a body", "half a second request"],
)
def test_who_does_not_finish_a_request_is_not_waited_for(sent, raw, monkeypatch):
    monkeypatch.setattr(LimitedProtocol, "seconds_for_request", 0.3)
    assert is_closed(raw(sent))


def test_a_byte_now_and_then_does_not_keep_a_connection(raw, monkeypatch):
    monkeypatch.setattr(LimitedProtocol, "seconds_for_request", 1.0)
    connection = raw(b"GET / HTTP/1.1\r\n")
    begun = time.monotonic()
    while time.monotonic() < begun + 20:
        try:
            connection.sendall(b"X")
        except ConnectionError:
            return
        time.sleep(0.05)
    pytest.fail("the connection is still open after 20 s")


def test_an_answer_may_take_longer_than_a_request(ask, monkeypatch, shown):
    monkeypatch.setattr(LimitedProtocol, "seconds_for_request", 0.3)
    chunk = OnDemand.chunk
    monkeypatch.setattr(OnDemand, "chunk", lambda *asked: (time.sleep(1), chunk(*asked))[1])
    assert ask("/chunk/thumbs/cross/0")[0] == 200


def test_connections_that_ask_nothing_keep_nobody_out(raw, ask, monkeypatch):
    monkeypatch.setattr(LimitedProtocol, "most_connections", 5)
    idle = [raw(b"GET / HTTP/1.1\r\n") for _ in range(20)]
    assert ask("/header.json")[0] == 200
    for connection in idle:
        connection.settimeout(0.2)
    assert sum(is_closed(connection) for connection in idle) >= 15


def test_figures_do_not_keep_chunks_waiting(ask, monkeypatch):
    drawing, enough = threading.Semaphore(0), threading.Event()

    def draw(*_):
        drawing.release()
        assert enough.wait(60)
        return b"<svg/>"

    monkeypatch.setattr("headscope.views.answers.figure_file", draw)
    statuses = []
    asking = [
        threading.Thread(target=lambda: statuses.append(ask("/figure/svg")[0])) for _ in range(45)
    ]
    for thread in asking:
        thread.start()
    try:
        assert drawing.acquire(timeout=20)
        begun = time.monotonic()
        while (
            len(statuses) < 45 - 1 - _server.MOST_FIGURES_WAITING and time.monotonic() < begun + 5
        ):
            time.sleep(0.01)
        assert ask("/chunk/thumbs/cross/0")[0] == 200
        assert not drawing.acquire(blocking=False)  # one at a time
    finally:
        enough.set()
        for thread in asking:
            thread.join()
    assert sorted(statuses) == [200] * (1 + _server.MOST_FIGURES_WAITING) + [503] * (
        44 - _server.MOST_FIGURES_WAITING
    )


@pytest.mark.parametrize("how", ["cut", "overwritten"])
def test_a_record_that_changes_while_it_is_served_is_an_error(how, serving, tmp_path, monkeypatch):
    """Neither the end of the server (SIGBUS) nor other numbers."""
    monkeypatch.setattr(_html, "bundle", lambda name="page.js": f"export const name = '{name}';")
    path = hs.save(random_record(layers=3, heads=4), tmp_path / "run.safetensors")
    os.utime(path, ns=(10**18, 10**18))
    with serving(hs.view(hs.load(path))) as port:

        def ask(name):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", f"/chunk/{name}", headers={"X-Headscope-Token": TOKEN})
            answer = connection.getresponse()
            body = answer.read()
            connection.close()
            return answer.status, body

        assert ask("row-weight/cross/1/4")[0] == 200
        if how == "cut":
            os.truncate(path, 4096)
        else:
            other = hs.save(
                random_record(layers=3, heads=4, seed=1), tmp_path / "other.safetensors"
            )
            path.write_bytes(other.read_bytes())
        intact = OnDemand(random_record(layers=3, heads=4), {})
        names = [f"{part}/cross/{layer}" for part in ("layer", "thumbs") for layer in range(3)]
        names += [f"row-weight/cross/{layer}/2" for layer in range(3)]
        answers = {name: ask(name) for name in names}
        for name, (
            status,
            body,
        ) in answers.items():  # what was read before the change is right, and kept
            assert status == 409 or body == intact.chunk(name)
        refused = [body for status, body in answers.values() if status == 409]
        assert len(refused) >= 3
        assert all(b"run.safetensors was changed since it was opened" in body for body in refused)
