"""Protection of the server: it answers only its own page, which knows the token.

The token is sent in a header. A cookie would not do: browsers send cookies to every port of an
address, so that every other server on this machine, of any user, would learn it. Only our own
script sends the header; it keeps the token in the session storage of its tab. A page of another
site cannot add the header, because browsers ask the server first whether it may.
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
"""Names of the server for a browser on this machine, or at the other end of a forwarded port."""

OPEN_TO_ALL = ("/", "/live.js", "/model.js")
"""Paths without data of the record: they are requested before our script can send the token."""

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
        app: the application that answers all other requests.
        policy: the content security policy of every answer.
        token: the token that the header of a request must hold; None where it is part of the path,
            as for pages that read their data as scripts, which can send no header.
    """

    app: ASGIApp
    policy: str
    token: str | None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI defines it."""
        # Such as "lifespan", the start and the end of the server, which has no headers to check.
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
        # As bytes, because compare_digest raises for text that is not ASCII.
        given = headers.get(TOKEN_HEADER, "")
        if secrets.compare_digest(given.encode(), self.token.encode()):
            return ""
        return "Open the address that `headscope serve` printed: it carries the token"


def refusal(headers: Headers) -> str:
    """Why a request with these headers does not come from our page; empty where it may.

    A ``Host`` that is not this machine comes from DNS rebinding. ``Origin`` and ``Sec-Fetch-Site``
    are written by the browser, and no page can change them; other programs send neither.
    """
    host = headers.get("host", "")
    if not _is_loopback(host):
        return "This server answers to localhost only"
    own_page = "This server answers to its own page only"
    if any(origin != f"http://{host}" for origin in headers.getlist("origin")):
        return own_page
    # "none" is an address that was typed, or opened by another program.
    sites = headers.getlist("sec-fetch-site")
    if all(site in ("same-origin", "none") for site in sites):
        return ""
    # A link to the address, as a notebook or a mail program on the web shows it, opens the page as
    # a whole, and the other site cannot read what it opened.
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
