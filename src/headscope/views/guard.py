"""Who may ask the server: its own page, which knows the token, and nobody else.

The token travels in a header. A cookie would not do: browsers send cookies to every port of an
address, so that each other server on this machine, of whatever user, would learn it. A header is
sent by nobody but our own script, which keeps the token in the session storage of its tab, and a
page of elsewhere cannot add it without asking first.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_HEADER = "X-Headscope-Token"

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""The names that a browser on this machine, or at the other end of a forwarded port, calls the
server by.
"""

OPEN_TO_ALL = ("/", "/live.js", "/model.js")
"""Paths that hold nothing of the record: they are asked for before a script of ours could send the
token.
"""

CLOSED = {
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Guard:
    """Refuses requests from elsewhere or without the token, and adds the headers that keep the page
    closed.

    Args:
        app: answers all other requests.
        policy: the content security policy of every answer.
        token: what the header of a request must hold; None where the path holds it, as of pages
            that read their data as scripts, which can send no header.
    """

    app: ASGIApp
    policy: str
    token: str | None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI has it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_closed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(CLOSED)
                headers["Content-Security-Policy"] = self.policy
            await send(message)

        headers = Headers(scope=scope)
        refused = refusal(headers) or self._refusal_of_path(scope["path"], headers)
        answer = PlainTextResponse(refused, 403) if refused else self.app
        await answer(scope, receive, send_closed)

    def _refusal_of_path(self, path: str, headers: Headers) -> str:
        if self.token is None or path in OPEN_TO_ALL:
            return ""
        given = headers.get(TOKEN_HEADER, "")
        if secrets.compare_digest(given.encode(), self.token.encode()):
            return ""
        return "Open the address that `headscope serve` printed: it carries the token"


def refusal(headers: Headers) -> str:
    """Why a request with these headers is none of our page's; empty where it may be.

    A ``Host`` that is not this machine comes from DNS rebinding. ``Origin`` and ``Sec-Fetch-Site``
    are written by the browser, and no page can change them; programs that are no browser send
    neither.
    """
    host = headers.get("host", "")
    if not _is_loopback(host):
        return "This server answers to localhost only"
    own_page = "This server answers to its own page only"
    if any(origin != f"http://{host}" for origin in headers.getlist("origin")):
        return own_page
    # "none" is an address that was typed or opened by another program
    sites = headers.getlist("sec-fetch-site")
    if all(site in ("same-origin", "none") for site in sites):
        return ""
    # a link to the address, as a notebook or mail program on the web shows it, opens the page as a
    # whole
    opens_page = (
        headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    )
    return "" if opens_page else own_page


def _is_loopback(host: str) -> bool:
    try:
        parts = urlsplit(f"//{host}")
        parts.port  # noqa: B018 - raises where it is none
    except ValueError:
        return False
    return parts.hostname in LOOPBACK and parts.username is None
