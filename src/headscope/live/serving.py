"""Serving a model: one that is loaded, or one that is named and loaded while its page is open."""

from __future__ import annotations

import os
import socket
import threading
import webbrowser
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
import torch

from headscope.capturing import LoadOptions, ParsedInput, check_reader, load_for, parse_call
from headscope.capturing.loading import config_of, kept_arguments
from headscope.errors import HeadscopeError, check_option_names
from headscope.live._facts import atlas_for, check_atlas, parse_atlas, parse_limits
from headscope.live._model import LiveModel
from headscope.live._queue import StopSignal
from headscope.views.listening import address_of, listening_on, new_token, quiet_server

if TYPE_CHECKING:
    from headscope.atlases import Atlas
    from headscope.live._server import LiveHost

WARMED_WITH = "The cat sat on the mat."
"""Read once where no text was given: the first run of a model takes several times as long as the
next ones.
"""
Say = Callable[[str], None]


class ServeOptions(TypedDict, total=False):
    """What a live model may be asked for, and what is shown next to it."""

    max_tokens: int
    """Most tokens that are read at a time; by default 1,024."""
    seconds: float
    """Most seconds that a run may take; by default 60."""
    beside: tuple[Any, Any] | None
    """A second model and its tokenizer, to compare the first with on what is typed."""
    atlas: Atlas | str | os.PathLike[str] | None
    """The model's atlas, or the folder of one: drawings are compared with its mean maps, too."""


def serve(
    model: Any,
    tokenizer: Any,
    text: Any = "",
    *,
    port: int = 0,
    open_: bool = False,
    **options: Unpack[ServeOptions],
) -> None:
    """Show a loaded model in the browser: what is typed there it reads, and heads can be changed.

    Prints the address and serves until it is interrupted. The server listens on this machine only,
    and answers only requests with the token of the address. While it runs, torch has one thread
    less than there are cores, so that pages are answered while the model runs.

    Args:
        model: a loaded transformers model, best with the head that it was trained with.
        tokenizer: its tokenizer, or its processor.
        text: that the page begins with, or a conversation, a list of messages.
        port: to listen on; 0 for any free one.
        open_: whether to open the page in the browser.
        **options: see `headscope.live.serving.ServeOptions`.

    Raises:
        HeadscopeError: without the extra ``server``, or where the port is taken.
        ModelError: where the atlas is of another model.

    Example:
        >>> serve(model, tokenizer, "The cat sat on the mat.", open_=True)
    """
    from headscope.live._server import LiveHost, live_application

    check_option_names("serve", options, ServeOptions.__annotations__, HeadscopeError)
    given = {name: options[name] for name in ("max_tokens", "seconds") if name in options}
    limits = parse_limits(**given)
    check_reader(tokenizer, "serve")
    beside, atlas = options.get("beside"), atlas_for(model, options.get("atlas"))
    if beside is not None and not (isinstance(beside, tuple | list) and len(beside) == 2):
        raise HeadscopeError(f"beside is a model and its tokenizer, not {repr(beside)[:60]}")
    with listening_on(port) as listening, _fewer_threads():
        live = LiveModel(model, tokenizer, limits=limits, text=text)
        token = new_token()
        address = address_of(listening, token)
        print(f"Listening on {address}", flush=True)  # noqa: T201 - the one way to learn it
        if open_:
            webbrowser.open(address)
        host = LiveHost(live.facts["name"], text, limits, live, atlas=atlas)
        if beside is not None:
            host.second = LiveModel(*beside, limits=limits, records=live.records)
        quiet_server(live_application(host, token)).run(sockets=[listening])


@dataclass(frozen=True)
class UnloadedModel:
    """A model to serve that is not loaded yet.

    Args:
        name: hub name or folder; None for the demo model.
        text: that the page begins with.
        limits: ``max_tokens`` and ``seconds``, where they are given.
        beside: hub name or folder of a second model, to compare the first with.
        atlas: folder of the model's atlas, to compare drawings with.
    """

    name: str | Path | None
    text: Any = ""
    limits: Mapping[str, Any] = field(default_factory=dict)
    beside: str | Path | None = None
    atlas: Path | None = None


def serve_named(
    model: UnloadedModel,
    listening: socket.socket,
    *,
    announce: Callable[[str], None],
    say: Say,
    **loading: Unpack[LoadOptions],
) -> None:
    """Serve a model that is loaded meanwhile: its page opens at once and reports it.

    Args:
        model: which.
        listening: where.
        announce: is called with the token before anything is loaded.
        say: is called with lines for the user.
        **loading: see `headscope.capturing.LoadOptions`; a revision is that of the first model.

    Raises:
        HeadscopeError: where there is no such atlas, or it is of another model; before anything is
            announced.
    """
    from headscope.live._server import LiveHost, live_application

    host = LiveHost(str(model.name or "the demo model"), model.text, parse_limits(**model.limits))
    if model.atlas is not None:
        host.atlas = parse_atlas(model.atlas)
        check_atlas(host.atlas, config_of(model.name, **loading))
    token = new_token()
    with _fewer_threads() as threads:
        server = quiet_server(live_application(host, token))
        announce(token)
        say(f"Loading {host.name}; torch has {threads} of {_cores()} cores, the page the rest")

        def load() -> None:
            _load(host, model, loading)
            for live in filter(None, (host.live, host.second)):
                say(f"{live.facts['name']} runs on {live.facts['device']}, {live.facts['dtype']}")
            if host.failed:
                say(f"error: {host.failed}")

        threading.Thread(target=load, daemon=True).start()
        server.run(sockets=[listening])


def _load(host: LiveHost, model: UnloadedModel, loading: LoadOptions) -> None:
    """Load a model into its host, and a second one where it has a name."""
    try:
        loaded = _loaded(model.name, loading)
        live = LiveModel(*loaded, limits=host.limits, text=host.text)
        _warm(live)
        if model.beside is not None:
            others: LoadOptions = {**loading, "revision": None}
            loaded = _loaded(model.beside, others)
            second = LiveModel(*loaded, limits=host.limits, text=host.text, records=live.records)
            _warm(second)
            host.second = second
        # Not before: a model is for one thread at a time.
        host.live = live
    except HeadscopeError as error:
        host.failed = str(error)
    except Exception as error:  # noqa: BLE001 - a thread has nobody else to tell
        host.failed = f"The model cannot be loaded: {type(error).__name__}: {error}"


def _loaded(name: str | Path | None, loading: LoadOptions) -> tuple[Any, Any]:
    """A model with the head that it was kept with, and what it reads with."""
    reads = kept_arguments(name, **loading)
    return load_for(name, _any_input(reads), kept=True, allow_unfit=True, **loading)


def _any_input(reads: Collection[str]) -> ParsedInput:
    """An input of the kinds that a model reads, which shows whether its processor is loaded, too.

    Args:
        reads: the arguments of its forward.
    """
    options: dict[str, Any] = {}
    if "pixel_values" in reads:
        options["image"] = np.zeros((8, 8, 3), np.uint8)
    elif {"input_values", "input_features"} & set(reads):
        options |= {"sound": np.zeros(8, np.float32), "sampling_rate": 1}
    text = WARMED_WITH if "input_ids" in reads or not options else None
    return parse_call(text, None, options)


def _warm(live: LiveModel) -> None:
    """Run a model once as it is and once changed, which finds the places of its attention."""
    fields = live.facts["fields"]
    if "text" not in fields or {"image", "audio"} & set(fields):
        return
    text = live.facts["text"] or WARMED_WITH
    signal = StopSignal(float("inf"))
    first = live.parsed({"input": {"text": text}})
    try:
        live.ask(first, signal)
        stack = live.facts["stacks"][0]
        change = {"do": "zero", "layer": stack["layers"][0], "heads": [0], "stack": stack["name"]}
        live.ask(live.parsed({"input": {"text": text}, "changes": [change]}), signal)
    except HeadscopeError:
        return  # the page tells, where it asks the same


@contextmanager
def _fewer_threads() -> Generator[int]:
    """Let torch have one thread less than there are cores, and as many as before afterwards.

    Its threads spin while they wait for each other: with as many as there are cores, a pass takes
    several times as long as soon as anything else runs, as the page does.
    """
    before = torch.get_num_threads()
    fewer = max(1, min(before, _cores() - 1))
    torch.set_num_threads(fewer)
    try:
        yield fewer
    finally:
        torch.set_num_threads(before)


def _cores() -> int:
    return os.cpu_count() or 1
