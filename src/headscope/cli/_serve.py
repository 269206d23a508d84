"""headscope serve."""

from __future__ import annotations

import os
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.cli import _run as run
from headscope.cli._asked import MODEL, PAGE_FILES, Request
from headscope.cli._files import RECORD, hs, quiet, say, status
from headscope.cli._page import PageChoices, beside_of, check_files, shown_page
from headscope.cli._records import compared
from headscope.cli._signature import made_from
from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    from socket import socket


@made_from(
    "headscope.live.serving:ServeOptions",
    takes=f"chat open_ {PAGE_FILES} {MODEL} max_tokens seconds atlas",
    group="Live model",
)
def serve(
    record: str | None = None,
    other: Path | None = None,
    /,
    *,
    asked: Request,
    port: int = 0,
    page: PageChoices | None = None,
    **options: Any,
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
        treebank: A file in CoNLL-U: the gold tree of one of its sentences is shown next to what
            heads attend to.
        page: What can be looked at, and what is shown first; of a record file.
        asked: What can be looked at besides; and the model that reads what is typed, or with a
            record file the texts of the evidence.
        **options: Of the page of a model.
    """
    from headscope.views.listening import listening_on

    # With --model a file's name is still a record; any other text is what the page begins with, and
    # without it several words are.
    named = record is not None and asked.model is None
    is_folder = named and os.path.isdir(record)  # noqa: PTH112
    one_word = named and (len(record.split()) < 2 or os.path.exists(record))  # noqa: PTH110
    if other is not None and not is_folder:
        raise HeadscopeError(
            f"Expected the folders of two atlases, got {record} and {other}; to see another record "
            f"beside the first, give --beside {other}"
        )
    begins = run.text_or_chat(record, asked.chat)
    is_file = one_word or str(record).endswith(RECORD)
    if is_file and "atlas" in options and not is_folder:
        raise HeadscopeError(
            "--atlas is of the model of --model; an atlas by itself is shown with headscope serve "
            f"{options['atlas']}"
        )
    # The port is opened first: if it is taken, that is reported before the model is loaded.
    with listening_on(port) as listening:
        if is_folder:
            _serve_atlas(Path(record or ""), other, listening, opens=asked.open_)
        elif is_file:
            check_files(asked)
            loaded = hs.storage.load(Path(record or ""))
            view = shown_page(loaded, page or {}, beside_of(asked, loaded))
            run.say_what(loaded)
            _listen(view, listening, opens=asked.open_)
        elif page or any(getattr(asked, name) for name in PAGE_FILES.split() if name != "beside"):
            raise HeadscopeError(
                "Options of a page are for a record file; in the page of a model choose them there"
            )
        else:
            _serve_model(begins or "", asked, listening, **options)


def _serve_model(
    text: Any, asked: Request, listening: socket, *, atlas: Path | None = None, **limits: Any
) -> None:
    if len(asked.beside) > 1:
        given = ", ".join(asked.beside)
        raise HeadscopeError(f"Expected one model for --beside, got {given}; give one")
    second = next(iter(asked.beside), None)
    run.check_model(second)
    if text:
        hs.capturing.parse_call(text)
    asked.check_model()
    from headscope.live.serving import UnloadedModel, serve_named
    from headscope.views.listening import address_of

    named = UnloadedModel(asked.model, text, limits, second, atlas)

    def announce(token: str) -> None:
        _say_listening(address_of(listening, token), opens=asked.open_)

    told = partial(print, flush=True)
    with quiet():
        serve_named(named, listening, announce=announce, say=told, **asked.loading)


def _serve_atlas(folder: Path, other: Path | None, listening: socket, *, opens: bool) -> None:
    """Serve the atlas of a run, compared with another or alone, or a tree of HeadVis; its page is
    written again, so that it fits this version.
    """
    atlas = hs.results.load(folder) if other is None else compared(folder, other)
    if getattr(atlas, "KIND", "") not in ("atlas", "atlas comparison", "headvis"):
        raise HeadscopeError(f"{folder} holds {atlas!r} and no atlas; print it, or view() it")
    say(atlas.summary)
    with tempfile.TemporaryDirectory(prefix="headscope-") as page:
        with status("Writing the page"):
            atlas.view().save(page)
        _listen(Path(page), listening, opens=opens)


def _listen(shown: Any, listening: socket, *, opens: bool) -> None:
    """Serve a view, or the folder of a page, until it is interrupted."""
    from headscope.views.listening import address_of, new_token, quiet_server
    from headscope.views.server import application, atlas_application

    token = new_token()
    make, address = application, address_of(listening, token)
    if isinstance(shown, Path):
        # Scripts of a folder can send no header: the token is a part of the path.
        make, address = atlas_application, f"{address.replace('?token=', '')}/"
    _say_listening(address, opens=opens)
    quiet_server(make(shown, token)).run(sockets=[listening])


def _say_listening(address: str, *, opens: bool) -> None:
    from headscope.views.file_page import open_page

    # A program that reads the address through a pipe would otherwise wait for it for ever.
    print(f"Listening on {address}\nCtrl-C ends it", flush=True)  # noqa: T201
    if opens:
        open_page(address)
