"""The viewer over HTTP: the header is sent at once, arrays are made and sent when the page asks for
them.

Whoever knows the token may read, and nobody else: it is in the address that is opened first, and
from then on our script keeps it for its tab and sends it in a header. The server binds the loopback
address only. A request whose ``Host`` is not this machine (DNS rebinding), or that the page of
another site or port has caused, is refused whatever it knows: see `_guard`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from headscope.errors import FileError, HeadscopeError
from headscope.views import _html
from headscope.views._download import MEDIA_TYPES, figure_file
from headscope.views._guard import Guard
from headscope.views._on_demand import OnDemand

if TYPE_CHECKING:
    from headscope.views.opening import View

STARTER = 'import { serve } from "./live.js"; await serve(document.getElementById("headscope"));'
POLICY = (
    f"default-src 'none'; script-src 'self' '{_html.script_hash(STARTER)}'; style-src "
    "'unsafe-inline'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
CHUNKS_AT_ONCE = 4
"""More threads would only wait for each other: most of a chunk is made under Python's lock."""
MOST_FIGURES_WAITING = 8
"""One figure is drawn at a time, and takes a second or more."""


def application(shown: View, token: str) -> Guard:
    """The application that serves one view.

    Args:
        shown: the view.
        token: what a request must know.
    """
    given = OnDemand(shown.record, shown.options)
    starter = f'<script type="module">{STARTER}</script>'
    # the title comes with the header: this page is sent to who does not know the token too
    page = _html.document("headscope", head='<link rel="icon" href="data:,">', body=starter)
    header = json.dumps(given.header, ensure_ascii=False)
    routes = [
        _fixed("/", page, "text/html; charset=utf-8"),
        _fixed("/live.js", _html.bundle("live.js"), "text/javascript; charset=utf-8"),
        _fixed("/header.json", header, "application/json"),
        Route("/chunk/{name:path}", _chunks(given)),
        Route("/figure/{kind}", _figures(shown)),
    ]
    return Guard(Starlette(routes=routes), token, POLICY)


def _fixed(path: str, text: str, media_type: str) -> Route:
    """A text that is the same as long as the application runs."""
    return Route(path, lambda request: _answer(request, text.encode(), media_type))


def _chunks(given: OnDemand) -> Callable[[Request], Awaitable[Response]]:
    """Answers requests for the bytes of arrays."""
    at_once = anyio.CapacityLimiter(CHUNKS_AT_ONCE)

    def answer(request: Request) -> Response:
        try:
            data = given.chunk(request.path_params["name"])
        except FileError as error:  # the record was changed since it was opened
            return PlainTextResponse(str(error), 409)
        if data is None:
            return PlainTextResponse("There is no such chunk", 404)
        return _answer(request, data, "application/octet-stream")

    async def chunk(request: Request) -> Response:
        return await anyio.to_thread.run_sync(answer, request, limiter=at_once)

    return chunk


def _figures(shown: View) -> Callable[[Request], Awaitable[Response]]:
    """Answers requests for figures."""
    at_once = anyio.CapacityLimiter(1)
    waiting = 0

    def draw(request: Request) -> Response:
        kind = request.path_params["kind"]
        try:
            options = json.loads(request.query_params.get("options", "{}"))
            data = figure_file(shown.record, kind, options, shown.options)
        except (HeadscopeError, ValueError) as error:
            return PlainTextResponse(str(error), 400)
        except RecursionError:
            return PlainTextResponse("Options of a figure are not nested", 400)
        return _answer(request, data, MEDIA_TYPES[kind])

    async def figure(request: Request) -> Response:
        # a thread and a queue of their own: figures that wait for each other must not keep chunks
        # waiting
        nonlocal waiting
        if waiting > MOST_FIGURES_WAITING:
            return PlainTextResponse(
                "Many figures are being drawn; ask again when they are done", 503
            )
        waiting += 1
        try:
            return await anyio.to_thread.run_sync(draw, request, limiter=at_once)
        finally:
            waiting -= 1

    return figure


def _answer(request: Request, data: bytes, media_type: str) -> Response:
    """The data, gzipped for everyone who takes that: the port may be forwarded from far away."""
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(data, media_type=media_type)
    return Response(_html.packed(data), media_type=media_type, headers={"Content-Encoding": "gzip"})
