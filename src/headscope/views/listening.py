"""Listening on this machine, and nowhere else."""

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
    """Raise where what a server needs is not installed.

    Raises:
        HeadscopeError: with what to install.
    """
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise HeadscopeError(
            f"serve needs the package {error.name}: pip install 'headscope[server]'"
        ) from None


def new_token() -> str:
    """What requests must know, for one server."""
    return secrets.token_urlsafe(24)


def address_of(listening: socket.socket, token: str) -> str:
    """What to open in a browser."""
    return f"http://{HOST}:{listening.getsockname()[1]}/?token={token}"


def quiet_server(application: ASGIApp) -> uvicorn.Server:
    """A server that says nothing but errors, and waits for nobody when it ends."""
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
    # A connection that comes while the server ends is cut off after that second: no error of ours.
    logging.getLogger("uvicorn.error").addFilter(_is_no_late_connection)
    return uvicorn.Server(config)


def _is_no_late_connection(line: logging.LogRecord) -> bool:
    return "timeout graceful shutdown exceeded" not in line.getMessage()


def listening_on(port: int) -> socket.socket:
    """A socket that listens on the loopback address.

    Raises:
        HeadscopeError: where the port is taken, or none.
    """
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if sys.platform != "win32":  # there it would let two servers share a port
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
