"""No route of either server is reached without its token: all of them, as the applications have
them.
"""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

import headscope as hs
from headscope.testing import random_record
from headscope.views import _html

pytest.importorskip("starlette", reason="needs the extra server: pip install 'headscope[server]'")

TOKEN = "right-token"
FREE = {"/", "/live.js", "/model.js"}
"""The page and its script, which know nothing of a record."""
REFUSAL = b"Open the address that `headscope serve` printed: it carries the token"


def record_server():
    from headscope.views.server import application

    return application(hs.view(random_record(layers=2, heads=3)), TOKEN)


def live_server():
    from headscope.live._server import LiveHost, live_application

    return live_application(LiveHost("tiny"), TOKEN)


SERVERS = {"record": record_server, "live": live_server}


def answer_of(application, path, method, token):
    """Status and body of one request, asked as a web server would."""
    headers = [(b"host", b"localhost")]
    if token is not None:
        headers.append((b"x-headscope-token", token.encode()))
    if method == "POST":
        headers.append((b"origin", b"http://localhost"))
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
        "root_path": "",
    }
    told = []

    async def receive():
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message):
        told.append(message)

    # In a thread of its own: a browser of other tests keeps this one's event loop running.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(application(scope, receive, send))).result()
    return told[0]["status"], b"".join(part.get("body", b"") for part in told[1:])


@pytest.mark.parametrize("name", SERVERS)
def test_every_route_needs_the_token(name, monkeypatch):
    monkeypatch.setattr(_html, "bundle", lambda name="page.js": f"export const name = '{name}';")
    application, closed = SERVERS[name](), []
    for route in application.app.routes:
        path = re.sub(r"{[^}]*}", "a", route.path)
        for method in route.methods:
            for token in (None, "", "wrong"):
                status, body = answer_of(application, path, method, token)
                if route.path in FREE:
                    assert status == 200, route.path
                else:
                    assert (status, body) == (403, REFUSAL), f"{method} {route.path}"
            if route.path not in FREE:
                closed.append(route.path)
                assert answer_of(application, path, method, TOKEN)[0] != 403, route.path
    assert len(set(closed)) == {"record": 4, "live": 16}[name]
