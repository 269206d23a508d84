"""Sockets and servers that listen on this machine only."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import sys
import warnings
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from headscope.errors import HeadscopeError

HOST = "127.0.0.1"


def new_token() -> str:
    """A new random token for one server."""
    return secrets.token_urlsafe(24)


def address_of(listening: socket.socket, token: str) -> str:
    """The address to open in a browser."""
    return f"http://{HOST}:{listening.getsockname()[1]}/?token={token}"


def quiet_server(application: ASGIApp) -> uvicorn.Server:
    """A server that logs only errors, and closes its connections when it ends."""
    # Where Ctrl-C comes before the server was awaited, Python would tell of it.
    warnings.filterwarnings("ignore", "coroutine 'Server.serve' was never awaited")
    config = uvicorn.Config(
        application,
        http=LimitedProtocol,
        log_level="error",
        ws="none",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
    )
    # A connection that is still answered when the server ends is cut off after that second. uvicorn
    # logs it as an error; for us it is a normal end.
    logging.getLogger("uvicorn.error").addFilter(_is_no_late_connection)
    return uvicorn.Server(config)


def _is_no_late_connection(line: logging.LogRecord) -> bool:
    said = f"{line.getMessage()} {line.exc_info[1] if line.exc_info else ''}"
    return "timeout graceful shutdown exceeded" not in said


def listening_on(port: int) -> socket.socket:
    """A socket that listens on the loopback address.

    Raises:
        HeadscopeError: where the port is taken or is not a valid port.
    """
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # Without it, a port stays blocked for a minute after a server on it has ended. On Windows it
    # would let two servers share a port.
    if sys.platform != "win32":
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        listening.listen(128)
    except (OSError, OverflowError, TypeError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or "a port is a number from 0 to 65535"
        raise HeadscopeError(
            f"Cannot listen on port {port}: {reason}; choose another with --port, or omit it for "
            "any free one"
        ) from None
    return listening


MOST_CONNECTIONS = 64
"""A browser opens six for one address; several windows and a forwarded port stay far below."""
SECONDS_FOR_REQUEST = 10.0
"""From the start of a connection, or the last answer, to the end of the next request's headers."""


class LimitedProtocol(H11Protocol):
    """uvicorn's protocol with limits: of connections, and of the time until a request is whole."""

    most_connections = MOST_CONNECTIONS
    seconds_for_request = SECONDS_FOR_REQUEST
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Accept the connection; where there are too many, close the one that has waited longest
        for its request.
        """
        super().connection_made(transport)
        self._make_room()
        self._set_deadline()

    def handle_events(self) -> None:
        """Read what has arrived, and stop the clock where it completes a request."""
        super().handle_events()
        self._set_deadline()

    def on_response_complete(self) -> None:
        """Wait for the next request, or close."""
        super().on_response_complete()
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._stop_clock()

    def _set_deadline(self) -> None:
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if is_answering or self.transport.is_closing():
            self._stop_clock()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.seconds_for_request, self.transport.close)

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _make_room(self) -> None:
        # A connection that was just closed stays in the set until the event loop removes it.
        held: list[Any] = [each for each in self.connections if not each.transport.is_closing()]
        if len(held) <= self.most_connections:
            return
        # Connections with a deadline have sent no whole request: nobody waits for their answer.
        waiting = [each for each in held if each._deadline is not None]
        oldest = min(waiting, key=lambda each: each._deadline.when(), default=self)
        oldest.transport.abort()
