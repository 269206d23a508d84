"""The viewer over HTTP: the header is sent at once, arrays are made and sent when the page asks for them.

Whoever knows the token may read, and nobody else: it is in the address that is opened first, and from then on in a
cookie that scripts cannot read and other sites do not cause to be sent. The server binds the loopback address only. A
request whose ``Host`` is not this machine (DNS rebinding), or whose ``Origin`` is another page, is refused whatever it
knows.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from headscope.errors import HeadscopeError
from headscope.views import _html
from headscope.views._download import MEDIA_TYPES, figure_file
from headscope.views._on_demand import OnDemand

if TYPE_CHECKING:
    from headscope.views._view import View

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""The names that a browser on this machine, or at the other end of a forwarded port, calls the server by."""

STARTER = 'import { serve } from "./live.js"; await serve(document.getElementById("headscope"));'


def application(shown: View, token: str) -> Starlette:
    """The application that serves one view.

    Args:
        shown: the view.
        token: what a request must know.
    """
    given = OnDemand(shown.record, shown.options)
    starter = f'<script type="module">{STARTER}</script>'
    page = _html.document(given.header["title"], head='<link rel="icon" href="data:,">', body=starter)
    header = json.dumps(given.header, ensure_ascii=False)
    script = _html.bundle("live.js")

    def answer(request: Request) -> Response:
        data = given.chunk(request.path_params["name"])
        if data is None:
            return PlainTextResponse("There is no such chunk", 404)
        return _answer(request, data, "application/octet-stream")

    async def chunk(request: Request) -> Response:
        return await run_in_threadpool(answer, request)

    def draw(request: Request) -> Response:
        kind = request.path_params["kind"]
        try:
            options = json.loads(request.query_params.get("options", "{}"))
            data = figure_file(shown.record, kind, options, shown.options)
        except (HeadscopeError, ValueError) as error:
            return PlainTextResponse(str(error), 400)
        return _answer(request, data, MEDIA_TYPES[kind])

    async def figure(request: Request) -> Response:
        return await run_in_threadpool(draw, request)

    routes = [
        Route("/", lambda request: _answer(request, page.encode(), "text/html; charset=utf-8")),
        Route("/live.js", lambda request: _answer(request, script.encode(), "text/javascript; charset=utf-8")),
        Route("/header.json", lambda request: _answer(request, header.encode(), "application/json")),
        Route("/chunk/{name:path}", chunk),
        Route("/figure/{kind}", figure),
    ]
    return Starlette(routes=routes, middleware=[Middleware(BaseHTTPMiddleware, dispatch=_guard(token))])


Next = Callable[[Request], Awaitable[Response]]


def _guard(token: str) -> Callable[[Request, Next], Awaitable[Response]]:
    """Refuses who comes from elsewhere or does not know the token, and adds the headers that keep the page closed."""
    policy = (
        f"default-src 'none'; script-src 'self' '{_html.script_hash(STARTER)}'; style-src 'unsafe-inline'; "
        "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = {
        "Content-Security-Policy": policy,
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
    }

    async def guard(request: Request, answer: Next) -> Response:
        refused = _refusal(request)
        if refused:
            response: Response = PlainTextResponse(refused, 403)
        elif not _knows(request, token):
            response = PlainTextResponse("Open the address that `headscope serve` printed: it carries the token", 403)
        else:
            response = await answer(request)
            if request.query_params.get("token"):
                response.set_cookie(_cookie(request), token, httponly=True, samesite="strict")
        response.headers.update(headers)
        return response

    return guard


def _refusal(request: Request) -> str:
    """Why this request is none of our page's; empty where it may be."""
    host = request.headers.get("host", "")
    if _place(host)[0] not in LOOPBACK:
        return "This server answers to localhost only"
    origin = request.headers.get("origin")
    if origin is not None and origin != f"http://{host}":
        return "This server answers to its own page only"
    return ""


def _knows(request: Request, token: str) -> bool:
    given = (request.query_params.get("token"), request.cookies.get(_cookie(request)))
    return any(secrets.compare_digest(each.encode(), token.encode()) for each in given if each)


def _cookie(request: Request) -> str:
    """Cookies know no ports, so that another server on this machine needs another name."""
    return f"headscope-{_place(request.headers['host'])[1]}"


def _place(host: str) -> tuple[str | None, int]:
    """Name and port of a ``Host`` header; no name where it is none."""
    try:
        parts = urlsplit(f"//{host}")
        return parts.hostname, parts.port or 80
    except ValueError:
        return None, 80


def _answer(request: Request, data: bytes, media_type: str) -> Response:
    """The data, gzipped for everyone who takes that: the port may be forwarded from far away."""
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(data, media_type=media_type)
    return Response(_html.packed(data), media_type=media_type, headers={"Content-Encoding": "gzip"})
