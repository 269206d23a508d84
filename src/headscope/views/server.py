"""The viewer over HTTP: the header is sent at once, arrays are made and sent when the page asks for
them.

Only requests with the token may read. It is in the address that is opened first; then our script
keeps it for its tab and sends it in a header. The server binds the loopback address only. A request
whose ``Host`` is not this machine (DNS rebinding), or that the page of another site or port has
caused, is refused even with the token: see `headscope.views.guard`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from headscope.errors import FileError, HeadscopeError
from headscope.views import _html
from headscope.views.answers import MEDIA_TYPES, PageAnswers, packed_opening
from headscope.views.guard import Guard

if TYPE_CHECKING:
    from headscope.views.opening import View

STARTER = 'import {{ serve }} from "./{script}"; await serve(document.getElementById("headscope"));'
POLICY = (
    "default-src 'none'; script-src 'self' '{hash}'; style-src 'unsafe-inline'; img-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
OF_FOLDERS = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
NO_MEMORY = (
    "This machine has too little free memory for this part of the page; show fewer heads or layers"
)
CHUNKS_AT_ONCE = 4
"""Number of threads; more would wait for each other, as most of a chunk is made under Python's
lock.
"""
MOST_FIGURES_WAITING = 8
"""Number of figures that may wait; one is drawn at a time, and takes a second or more."""
BYTES = "application/octet-stream"

Act = Callable[[Request], Response]
FindAnswers = Callable[[Request], PageAnswers | None]


def application(shown: View, token: str) -> Guard:
    """The application that serves one view.

    Args:
        shown: the view.
        token: the token that a request must have.
    """
    answers = PageAnswers(shown)
    return guarded(record_routes(lambda request: answers), token, script="live.js")


def atlas_application(folder: Path, token: str) -> Guard:
    """The application that serves the folder of an atlas, on this machine.

    The page reads its data as scripts, which can send no header, so the token is a part of the
    path: without it there is nothing to be read.

    Args:
        folder: the folder of the page, as `FolderPage.save` wrote it.
        token: the first part of every path.
    """
    files = StaticFiles(directory=folder, html=True)
    return Guard(Starlette(routes=[Mount(f"/{token}", files)]), OF_FOLDERS, token=None)


def guarded(routes: Sequence[BaseRoute], token: str, *, script: str) -> Guard:
    """An application with the page, its script and these routes, closed to requests without the
    token.

    Args:
        routes: the routes to add.
        token: the token that a request must have.
        script: the bundle that draws the page; its ``serve`` is called.
    """
    starter = STARTER.format(script=script)
    # Without the title of the record, which comes with the header: this page is sent without a
    # token, too.
    page = _html.document(
        "headscope",
        head='<link rel="icon" href="data:,">',
        body=f'<script type="module">{starter}</script>',
    )
    fixed = [
        _fixed("/", page, "text/html; charset=utf-8"),
        _fixed(f"/{script}", _html.bundle(script), "text/javascript; charset=utf-8"),
    ]
    policy = POLICY.format(hash=_html.script_hash(starter))
    return Guard(Starlette(routes=[*fixed, *routes]), policy, token)


def record_routes(find: FindAnswers, prefix: str = "") -> list[Route]:
    """The routes of a record: its header, chunks, figures, and its opening.

    Args:
        find: finds the answers that a request asks for; None where they are no longer kept.
        prefix: beginning of the paths.
    """
    at_once = anyio.CapacityLimiter(CHUNKS_AT_ONCE)

    def here(request: Request) -> PageAnswers:
        answers = find(request)
        if answers is None:
            raise GoneError("This record is no longer kept; ask for it again")
        return answers

    def header(request: Request) -> Response:
        text = json.dumps(here(request).header, ensure_ascii=False)
        return sent(request, text.encode(), "application/json")

    def chunk(request: Request) -> Response:
        data = here(request).chunk(request.path_params["name"])
        if data is None:
            return PlainTextResponse("There is no such chunk", 404)
        return sent(request, data, BYTES)

    def opening(request: Request) -> Response:
        answers = here(request)
        chunks = answers.opening(sent_json(request, "looking"))
        head = {"id": request.path_params.get("id", ""), "header": answers.header}
        return sent(request, packed_opening(OF_RECORD | head, chunks), BYTES)

    return [
        Route(f"{prefix}/header.json", in_thread(header, at_once)),
        Route(f"{prefix}/chunk/{{name:path}}", in_thread(chunk, at_once)),
        Route(f"{prefix}/opening", in_thread(opening, at_once)),
        Route(f"{prefix}/figure/{{kind}}", _figures(here)),
    ]


OF_RECORD: Any = {"output": None, "changes": [], "address": "", "python": "", "timings": {}}
"""Fields of an opening that are empty for a record that no live model has just made."""


class GoneError(Exception):
    """A record that was asked for is no longer kept."""


def in_thread(act: Act, limiter: anyio.CapacityLimiter) -> Callable[[Request], Awaitable[Response]]:
    """A handler that makes its answer in a thread; errors in the request become its answer."""

    def answer(request: Request) -> Response:
        try:
            return act(request)
        except GoneError as error:
            return PlainTextResponse(str(error), 410)
        except FileError as error:  # the file of the record has changed since it was opened
            return PlainTextResponse(str(error), 409)
        except (HeadscopeError, ValueError) as error:
            return PlainTextResponse(str(error), 400)
        except MemoryError:
            return PlainTextResponse(NO_MEMORY, 503)
        # Python's JSON reader raises this for thousands of nested brackets.
        except RecursionError:
            return PlainTextResponse("Options are not nested that deeply", 400)

    async def answered(request: Request) -> Response:
        return await anyio.to_thread.run_sync(answer, request, limiter=limiter)

    return answered


def sent_json(request: Request, name: str) -> Any:
    """The value of a request's query, read as JSON; an empty object where it has none.

    Raises:
        ValueError: where it is not JSON.
    """
    return json.loads(request.query_params.get(name, "{}"))


def sent(request: Request, data: bytes, media_type: str) -> Response:
    """A response with the data, gzipped for clients that accept it."""
    # The port may be forwarded from a machine far away, where bytes take longer than compressing.
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(data, media_type=media_type)
    return Response(_html.packed(data), media_type=media_type, headers={"Content-Encoding": "gzip"})


def _fixed(path: str, text: str, media_type: str) -> Route:
    """A route with a text that stays the same while the application runs."""
    return Route(path, lambda request: sent(request, text.encode(), media_type))


def _figures(here: Callable[[Request], PageAnswers]) -> Callable[[Request], Awaitable[Response]]:
    """A handler of requests for figures."""

    def draw(request: Request) -> Response:
        kind = request.path_params["kind"]
        data = here(request).figure(kind, sent_json(request, "options"))
        return sent(request, data, MEDIA_TYPES[kind])

    drawn = in_thread(draw, anyio.CapacityLimiter(1))
    waiting = 0

    async def figure(request: Request) -> Response:
        # A thread and a queue of their own, so that chunks need not wait for figures.
        nonlocal waiting
        if waiting > MOST_FIGURES_WAITING:
            return PlainTextResponse(
                "Many figures are being drawn; ask again when they are done", 503
            )
        waiting += 1
        try:
            return await drawn(request)
        finally:
            waiting -= 1

    return figure
