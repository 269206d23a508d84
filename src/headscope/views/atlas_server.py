"""The folder of an atlas over HTTP, on this machine.

The page reads its data as scripts, which can send no header, so the token is a part of the path:
who does not know it finds nothing. As of the other servers, a request whose ``Host`` is not this
machine, or that the page of another site has caused, is refused whatever it knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headscope.views.guard import CLOSED, refusal

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def atlas_application(folder: Path, token: str) -> AtlasGuard:
    """The application that serves a folder that `AtlasPage.save` wrote.

    Args:
        folder: of the page.
        token: what the path must begin with.
    """
    files = StaticFiles(directory=folder, html=True)
    return AtlasGuard(Starlette(routes=[Mount(f"/{token}", files)]))


@dataclass(frozen=True)
class AtlasGuard:
    """Refuses who comes from elsewhere, and adds the headers that keep the page closed.

    Args:
        app: what answers to all others.
    """

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI has it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_closed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(CLOSED)
                headers["Content-Security-Policy"] = POLICY
            await send(message)

        refused = refusal(Headers(scope=scope))
        answer = PlainTextResponse(refused, 403) if refused else self.app
        await answer(scope, receive, send_closed)
