"""headscope serve."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from headscope.cli import _run as run
from headscope.cli._files import RECORD
from headscope.cli._page import PageChoices, shown_page
from headscope.cli._page_files import PageFiles
from headscope.cli._records import compared_atlases
from headscope.cli._run import Count, ModelOptions
from headscope.errors import HeadscopeError
from headscope.views import listening as ports

if TYPE_CHECKING:
    import socket

    import uvicorn

    from headscope.views import View

NOT_OF_MODELS = "Options of a page are for a record file; in the page of a model choose them there"


@Parameter(name="*", group="Live model")
@dataclass(frozen=True)
class LiveChoices:
    """What a live model may be asked for, and what is shown next to it."""

    atlas: Path | None = None
    """Folder of the model's atlas, which headscope atlas wrote: drawings are compared with its mean
    maps, too.
    """
    max_tokens: Count = None
    """Most tokens that the model reads at a time; by default 1024."""
    seconds: Annotated[float | None, Parameter(validator=Number(gt=0))] = None
    """Most seconds that a run may take; by default 60."""

    @property
    def limits(self) -> dict[str, Any]:
        """Those that were given."""
        limits = {"tokens": self.max_tokens, "seconds": self.seconds}
        return {name: limit for name, limit in limits.items() if limit is not None}


def serve(
    record: str | None = None,
    other: Path | None = None,
    /,
    *,
    port: int = 0,
    chat: Path | None = None,
    page: PageChoices | None = None,
    files: PageFiles = PageFiles(),
    model: ModelOptions = ModelOptions(),
    live: LiveChoices = LiveChoices(),
    open_: Annotated[bool, Parameter(name="--open")] = False,
) -> None:
    """Show a record in the browser, layer by layer; or a model, or an atlas of heads.

    headscope serve run.safetensors --open

    headscope serve --model path/to/a/model

    Args:
        record: The record file (.safetensors) to show, however large or remote, the folder of an
            atlas or of a tree of HeadVis; with --model, which reads what is typed in the page, the
            text that it begins with. The server listens on this machine only, and answers only
            requests with the token of the printed address.
        other: The folder of a second atlas, to show beside the first, heads matched one to one.
        port: Port to listen on; by default any free one.
        chat: A conversation to read in place of a text: a .json file with a list of messages, each
            with role and content.
        page: What can be looked at, and what is shown first; of a record file.
        files: What can be looked at besides; of a record file.
        model: Model that reads what is typed; with a record file the one that reads the texts of
            the evidence.
        live: What is typed, and what is shown next to it; of a model.
        open_: Open the page in the browser.
    """
    from headscope.storage import load

    is_folder = record is not None and model.model is None and os.path.isdir(record)  # noqa: PTH112
    if other is not None and not is_folder:
        raise HeadscopeError(
            f"Expected the folders of two atlases, got {record} and {other}; to see another record "
            f"beside the first, give --beside {other}"
        )
    # With --model a file's name is still a record; any other text is what the page begins with, and
    # without it several words are.
    is_file = record is not None and (
        record.endswith(RECORD)
        or (model.model is None and (len(record.split()) < 2 or os.path.exists(record)))  # noqa: PTH110
    )
    begins = run.text_or_chat(record, chat)
    if is_file and live.atlas is not None and not is_folder:
        raise HeadscopeError(
            "--atlas is of the model of --model; an atlas by itself is shown with headscope serve "
            f"{live.atlas}"
        )
    # The port is opened first: if it is taken, that is reported before the model is loaded.
    with ports.listening_on(port) as listening:
        if is_folder:
            _serve_atlas(Path(record or ""), other, listening, open_)
        elif is_file:
            files.check()
            loaded = load(Path(record or ""))
            view = shown_page(loaded, page or {}, files.given(loaded, model))
            run.say_what(loaded)
            token = ports.new_token()
            _say_listening(ports.address_of(listening, token), open_)
            server_of(view, token).run(sockets=[listening])
        elif page or replace(files, beside=()) != PageFiles():
            raise HeadscopeError(NOT_OF_MODELS)
        else:
            _serve_model(begins or "", files, model, live, listening, opens=open_)


def _serve_model(
    text: Any,
    files: PageFiles,
    model: ModelOptions,
    live: LiveChoices,
    listening: socket.socket,
    *,
    opens: bool,
) -> None:
    from headscope.capturing import parse_call

    if len(files.beside) > 1:
        raise HeadscopeError(
            f"Expected one model for --beside, got {', '.join(files.beside)}; give one"
        )
    second = next(iter(files.beside), None)
    run.check_model(second)
    if text:
        parse_call(text)
    model.check()
    from headscope.live.serving import UnloadedModel, serve_named

    def announce(token: str) -> None:
        _say_listening(ports.address_of(listening, token), opens)

    named = UnloadedModel(model.model, text, live.limits, second, live.atlas)
    say = partial(print, flush=True)
    with run.quiet():
        serve_named(named, listening, announce=announce, say=say, **model.loading)


def _serve_atlas(folder: Path, other: Path | None, listening: socket.socket, opens: bool) -> None:
    """Serve the atlas of a run, compared with another or alone, or a tree of HeadVis; its page is
    written again, so that it fits this version.
    """
    from headscope.results import load
    from headscope.views.server import atlas_application

    atlas = load(folder) if other is None else compared_atlases(folder, other)
    if getattr(atlas, "KIND", "") not in ("atlas", "atlas comparison", "headvis"):
        raise HeadscopeError(f"{folder} holds {atlas!r} and no atlas; print it, or view() it")
    run.say(atlas.summary)
    with tempfile.TemporaryDirectory(prefix="headscope-") as page:
        with run.status("Writing the page"):
            atlas.view().save(page)
        token = ports.new_token()
        host, port = listening.getsockname()[:2]
        _say_listening(f"http://{host}:{port}/{token}/", opens)
        ports.quiet_server(atlas_application(Path(page), token)).run(sockets=[listening])


def _say_listening(address: str, opens: bool) -> None:
    from headscope.views.file_page import open_page

    run.say(f"Listening on {address}")
    run.say("Ctrl-C ends it")
    # A program that reads the address through a pipe would otherwise wait for it for ever.
    print(end="", flush=True)  # noqa: T201
    if opens:
        open_page(address)


def server_of(view: View, token: str) -> uvicorn.Server:
    """A server of one view that logs only errors, and closes its connections when it ends."""
    from headscope.views.server import application

    return ports.quiet_server(application(view, token))
