"""The folder of an atlas over HTTP, on this machine.

The page reads its data as scripts, which can send no header, so the token is a part of the path:
without it there is nothing to be read. As with the other servers, a request whose ``Host`` is not
this machine, or that the page of another site has caused, is refused even with the token.
"""

from __future__ import annotations

from pathlib import Path

from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from headscope.views.guard import Guard

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def atlas_application(folder: Path, token: str) -> Guard:
    """The application that serves a folder that `AtlasPage.save` wrote.

    Args:
        folder: the folder of the page.
        token: the first part of every path.
    """
    files = StaticFiles(directory=folder, html=True)
    return Guard(Starlette(routes=[Mount(f"/{token}", files)]), POLICY, token=None)
