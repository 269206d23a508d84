"""headscope serve."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from headscope.cli._page import PageChoices, PageFiles, shown_page
from headscope.cli._run import (
    RECORD_SUFFIX,
    ModelOptions,
    check_model,
    quiet,
    say,
    say_what,
    status,
)
from headscope.errors import HeadscopeError
from headscope.views.listening import (
    address_of,
    check_server,
    listening_on,
    new_token,
    quiet_server,
)

if TYPE_CHECKING:
    import socket

    import uvicorn

    from headscope.atlases import Atlas
    from headscope.headvis import HeadvisTree
    from headscope.views import View

Count = Annotated[int | None, Parameter(validator=Number(gte=1))]


def serve(
    record: str | None = None,
    /,
    *,
    port: int = 0,
    page: PageChoices | None = None,
    files: PageFiles | None = None,
    model: ModelOptions | None = None,
    beside: str | None = None,
    max_tokens: Count = None,
    seconds: Annotated[float | None, Parameter(validator=Number(gt=0))] = None,
    open_: Annotated[bool, Parameter(name="--open", negative="")] = False,
) -> None:
    """Show a record in the browser and send only what is looked at; or a model, to type texts and
    change heads; or an atlas of heads.

    With a record file it is shown, however large or remote it is; with the folder that `headscope
    atlas` wrote, its atlas; with a tree of HeadVis, whoever wrote it, what it holds of each head.
    With --model, or without a record file, the model is loaded once and reads what is typed in the
    page. The server listens on this machine only, and answers only requests with the token of the
    printed address.

    Args:
        record: The record file (.safetensors) to show, the folder of an atlas or of a
            tree of HeadVis; with --model the text that the page begins with.
        port: Port to listen on; by default any free one.
        page: What can be looked at, and what is shown first; of a record file.
        files: What can be looked at besides; of a record file.
        model: Model that reads what is typed; with a record file the one that reads the texts of
            the evidence.
        beside: Second model, to compare the first with on what is typed: hub name or folder.
        max_tokens: Most tokens that the model reads at a time; by default 1024.
        seconds: Most seconds that a run may take; by default 60.
        open_: Open the page in the browser.
    """
    check_server()
    options = model or ModelOptions()
    if record is not None and options.model is None and Path(record).is_dir():
        with listening_on(port) as listening:
            _serve_atlas(Path(record), listening, open_)
        return
    # With --model a file's name is still a record; any other text is what the page begins with.
    is_file = record is not None and (record.endswith(RECORD_SUFFIX) or options.model is None)
    if beside is not None:
        check_model(beside, None)
    if is_file and beside is not None:
        raise HeadscopeError(
            "--beside is a second model beside that of --model; compare two record files with "
            "headscope compare"
        )
    # The port is opened first: if it is taken, that is reported before the model is loaded.
    with listening_on(port) as listening:
        if record is not None and is_file:
            view = _view_of(Path(record), page or {}, files or PageFiles(), options)
            token = new_token()
            _say_where(listening, token, open_)
            server_of(view, token).run(sockets=[listening])
            return
        if page or files:
            raise HeadscopeError(
                "Options of a page are for a record file; in the page of a model choose them there"
            )
        limits = {"tokens": max_tokens, "seconds": seconds}
        asked = _ServedModel(record or "", options, beside, limits)
        _serve_model(asked, listening, opens=open_)


def _serve_atlas(folder: Path, listening: socket.socket, opens: bool) -> None:
    """Serve the atlas of a run, or a tree of HeadVis; its page is written again, so that it fits
    this version.
    """
    from headscope.views.atlas_server import atlas_application

    atlas = _atlas_of(folder)
    say(atlas.summary())
    with tempfile.TemporaryDirectory(prefix="headscope-") as page:
        with status("Writing the page"):
            atlas.view().save(page)
        token = new_token()
        host, port = listening.getsockname()[:2]
        _say_listening(f"http://{host}:{port}/{token}/", opens)
        quiet_server(atlas_application(Path(page), token)).run(sockets=[listening])


def _atlas_of(folder: Path) -> Atlas | HeadvisTree:
    from headscope.atlases import Atlas
    from headscope.headvis import is_headvis, read_headvis
    from headscope.results import load

    if is_headvis(folder):
        return read_headvis(folder)
    atlas = load(folder)
    if not isinstance(atlas, Atlas):
        raise HeadscopeError(f"{folder} holds {atlas!r} and no atlas; print it, or view() it")
    return atlas


def _view_of(file: Path, choices: Any, files: PageFiles, options: ModelOptions) -> View:
    """The view of a record file; its model and text are printed."""
    from headscope.storage import load

    files.check()
    loaded = load(file)
    view = shown_page(loaded, choices, files.given(loaded, options))
    say_what(loaded)
    return view


@dataclass(frozen=True)
class _ServedModel:
    """A model to serve: the text that it reads first, its options, a second model, and limits."""

    text: str
    options: ModelOptions
    beside: str | None
    limits: dict[str, Any]


def _serve_model(asked: _ServedModel, listening: socket.socket, *, opens: bool) -> None:
    from headscope.capturing import check_text

    if asked.text:
        check_text(asked.text)
    asked.options.check()
    from headscope.live.serving import serve_named

    with quiet():
        serve_named(
            asked.options.model,
            listening,
            text=asked.text,
            limits={name: value for name, value in asked.limits.items() if value is not None},
            announce=lambda token: _say_where(listening, token, opens),
            say=_say_now,
            beside=asked.beside,
            **asked.options.loading,
        )


def _say_where(listening: socket.socket, token: str, opens: bool) -> None:
    _say_listening(address_of(listening, token), opens)


def _say_listening(address: str, opens: bool) -> None:
    from headscope.views.file_page import open_page

    say(f"Listening on {address}")
    say("Ctrl-C ends it")
    # A program that reads the address through a pipe would otherwise wait for it for ever.
    sys.stdout.flush()
    if opens:
        open_page(address)


def _say_now(line: str) -> None:
    say(line)
    sys.stdout.flush()


def server_of(view: View, token: str) -> uvicorn.Server:
    """A server of one view that logs only errors, and closes its connections when it ends."""
    from headscope.views.server import application

    return quiet_server(application(view, token))
