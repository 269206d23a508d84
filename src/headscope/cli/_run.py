"""What commands that run a model share."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from headscope.errors import FileError

if TYPE_CHECKING:
    from headscope.cli._media import Media
    from headscope.record import Record

RECORD_SUFFIX = ".safetensors"


@Parameter(name="*")
@dataclass(frozen=True)
class ModelOptions:
    """Which model runs, and what it reads."""

    model: str | None = None
    """Hub name or folder; all-MiniLM-L6-v2 from the extra "demo" by default."""
    target: str | None = None
    """What the decoder of an encoder-decoder reads; by default what the model itself generates."""
    target_tokenizer: str | None = None
    """Hub name or folder of the target side's tokenizer, where it is another one."""
    truncate: Annotated[bool, Parameter(negative="")] = False
    """Cut a text that is longer than the model's positions instead of stopping."""
    trust_remote_code: Annotated[bool, Parameter(negative="")] = False
    """Let the model bring code of its own, and run it."""


def captured(
    texts: tuple[str | None, str | None],
    options: ModelOptions,
    out: Path,
    *,
    media: Media | None = None,
    shows_budget: bool = False,
    **more: Any,
) -> Record:
    """The record of a text, picture or sound; what can be wrong without the model is found before it is loaded.

    Args:
        texts: the text, and the second of a pair.
        options: which model.
        out: where the result will be written.
        media: pictures and sound.
        shows_budget: whether to say what will be kept, before the run.
        **more: options of `headscope.capture`.

    Raises:
        HeadscopeError: whatever is wrong with what is read, the model or the place to write to.
    """
    files = media.given if media else {}
    check_place(out)
    with status("Loading PyTorch and transformers"):
        from headscope.capturing import budget, capture, check_text, load_for, load_tokenizer
    for text in texts:
        if text is not None:
            check_text(text)
    if media:
        media.check_files()
    with status(f"Loading {options.model or 'the demo model'}"), quiet():
        model, tokenizer = load_for(options.model, texts[0], trust_remote_code=options.trust_remote_code, **files)
        target_tokenizer = load_tokenizer(options.target_tokenizer) if options.target_tokenizer else None
    reads: dict[str, Any] = {"target": options.target, "truncate": options.truncate} | files
    reads["target_tokenizer"] = target_tokenizer
    if shows_budget:
        with status("Counting what is kept"), quiet():
            counted = budget(model, tokenizer, *texts, **reads, **more)
        say(f"This {counted}")
    with status("Capturing"), quiet():
        return capture(model, tokenizer, *texts, **reads, **more)


def say(line: str) -> None:
    """One line of result on standard output."""
    print(line)  # noqa: T201


@contextmanager
def status(what: str) -> Generator[None]:
    """Show on a terminal's stderr that something is going on; say nothing elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


@contextmanager
def quiet() -> Generator[None]:
    """Keep transformers and the hub's client from writing bars, reports and retries between our lines."""
    from huggingface_hub.utils import logging as hub
    from transformers.utils import logging as transformers

    levels = [(library, library.get_verbosity()) for library in (hub, transformers)]
    for library, _ in levels:
        library.set_verbosity_error()
    transformers.disable_progress_bar()
    try:
        yield
    finally:
        for library, level in levels:
            library.set_verbosity(level)
        transformers.enable_progress_bar()


def check_record_name(out: Path) -> None:
    """Raise where a record would be written to a file of another kind.

    Raises:
        FileError: with the name to use.
    """
    if out.suffix != RECORD_SUFFIX:
        raise FileError(
            f"A record is a {RECORD_SUFFIX} file, and --out is {out}; name it {out.with_suffix(RECORD_SUFFIX)}"
        )


def check_place(out: Path) -> None:
    """Raise where a file could not be written, before any long work.

    Raises:
        FileError: saying why.
    """
    if out.is_dir():
        raise FileError(f"--out is the folder {out}; name a file in it")
    if not out.absolute().parent.is_dir():
        raise FileError(f"Cannot write {out}: there is no folder {out.absolute().parent}; make it first")
    if not os.access(out.absolute().parent, os.W_OK):
        raise FileError(f"Cannot write {out}: the folder {out.absolute().parent} may not be written to; choose another")
