"""Sockets and servers that listen on this machine only."""

from __future__ import annotations

import logging
import secrets
import socket
import sys
from typing import TYPE_CHECKING

from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

HOST = "127.0.0.1"


def check_server() -> None:
    """Raise where a package that the server needs is not installed.

    Raises:
        HeadscopeError: naming the package, and how to install it.
    """
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise HeadscopeError(
            f"serve needs the package {error.name}: pip install 'headscope[server]'"
        ) from None


def new_token() -> str:
    """A new random token for one server."""
    return secrets.token_urlsafe(24)


def address_of(listening: socket.socket, token: str) -> str:
    """The address to open in a browser."""
    return f"http://{HOST}:{listening.getsockname()[1]}/?token={token}"


def quiet_server(application: ASGIApp) -> uvicorn.Server:
    """A server that logs only errors, and closes its connections when it ends."""
    import uvicorn

    from headscope.views.connections import LimitedProtocol

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
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or "a port is a number from 0 to 65535"
        raise HeadscopeError(
            f"Cannot listen on port {port}: {reason}; choose another with --port, or omit it for "
            "any free one"
        ) from None
    return listening
