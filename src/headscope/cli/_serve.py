"""headscope serve."""

from __future__ import annotations

import secrets
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from headscope.cli._page import PageChoices, PageFiles, shown_page
from headscope.cli._run import ModelOptions, say, say_what
from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    import uvicorn

    from headscope.views import View

HOST = "127.0.0.1"


def serve(
    record: Path,
    /,
    *,
    port: int = 0,
    page: PageChoices | None = None,
    files: PageFiles | None = None,
    model: ModelOptions | None = None,
    open_: Annotated[bool, Parameter(name="--open", negative="")] = False,
) -> None:
    """Show a record in the browser and send only what is looked at; for large or remote records.

    The server listens on this machine only, and answers only requests with the token of the printed
    address.

    Args:
        record: The record file (.safetensors) to show.
        port: Port to listen on; by default any free one.
        page: What can be looked at, and what is shown first.
        files: What can be looked at besides.
        model: Model that reads the texts of the evidence.
        open_: Open the page in the browser.
    """
    try:
        import starlette  # noqa: F401 - what server_of needs, before the record is read
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise HeadscopeError(
            f"serve needs the package {error.name}: pip install 'headscope[server]'"
        ) from None
    from headscope.storage import load
    from headscope.views.file_page import open_page

    with listening_on(port) as listening:
        files = files or PageFiles()
        files.check()
        loaded = load(record)
        view = shown_page(loaded, page or {}, files.given(loaded, model or ModelOptions()))
        token = secrets.token_urlsafe(24)
        address = f"http://{HOST}:{listening.getsockname()[1]}/?token={token}"
        say_what(loaded)
        say(f"Listening on {address}")
        say("Ctrl-C ends it")
        sys.stdout.flush()
        if open_:
            open_page(address)
        server_of(view, token).run(sockets=[listening])


def server_of(view: View, token: str) -> uvicorn.Server:
    """A server of one view that says nothing but errors, and waits for nobody when it ends."""
    import uvicorn

    from headscope.views.connections import LimitedProtocol
    from headscope.views.server import application

    config = uvicorn.Config(
        application(view, token),
        http=LimitedProtocol,
        log_level="error",
        ws="none",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


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
