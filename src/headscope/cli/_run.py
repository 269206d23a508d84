"""Options, messages and checks of commands that run a model."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter
from cyclopts.validators import Number

from headscope.cli._kinds import check_kind, overwriting
from headscope.errors import FileError

if TYPE_CHECKING:
    from headscope.cli._media import Media
    from headscope.record import Record

MODEL = Group("Model")
"""The group of a model's options in the help of every command."""
RECORD_SUFFIX = ".safetensors"
ran: ContextVar[str] = ContextVar("ran", default="")
"""Where and how the model of this command ran."""
DEVICE = re.compile(r"auto|cpu|(cuda|mps|xpu)(:\d+)?")


def _device(_: Any, given: str | None) -> None:
    """Refuse an impossible name of a device before torch is imported; whether the device exists is
    known only to torch.
    """
    if given is not None and not DEVICE.fullmatch(given):
        raise ValueError(f"Expected auto, cpu, cuda, cuda:1, mps or xpu, got {given!r}.")


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True)
class MachineOptions:
    """Where and how the model runs."""

    device: Annotated[str, Parameter(validator=_device)] = "auto"
    """Device that the model runs on: auto (the first CUDA GPU if there is one, else the CPU), cpu,
    cuda, cuda:1, mps, xpu.
    """
    dtype: Literal["auto", "float32", "bfloat16", "float16", "float64"] = "auto"
    """Precision of the model's weights: auto is that of its files; on a CPU, half precision is
    loaded as float32.
    """
    revision: str | None = None
    """Branch, tag or commit of the model on the hub; by default the main branch."""
    batch_size: Annotated[int | None, Parameter(validator=Number(gte=1))] = None
    """Maximum number of texts that run at once; by default as many as have 4096 tokens
    (support: 2).
    """
    trust_remote_code: Annotated[bool, Parameter(negative="")] = False
    """Run code that comes with the model's files."""

    @property
    def loading(self) -> dict[str, Any]:
        """The options of `headscope.capturing.LoadOptions`."""
        return {
            name: getattr(self, name)
            for name in ("device", "dtype", "revision", "trust_remote_code")
        }

    def read_many(self) -> dict[str, Any]:
        """The options of `headscope.capture_many` that say how many texts run at once."""
        return {} if self.batch_size is None else {"batch_size": self.batch_size}


def check_model(name: str | None, revision: str | None) -> None:
    """Raise where no model can have this name, a revision has no model, or the hub cannot be
    reached.

    These errors are reported before torch is imported.

    Raises:
        ModelError: naming the form of a model's name, or what could not be reached.
    """
    from headscope.capturing import check_name, check_revision, reached

    if name is not None:
        check_name(name)
    if revision is not None:
        check_revision(name, revision)
    if name is not None:
        reached(name, revision)


def check_tokenizer(name: str | None) -> None:
    """Raise where no tokenizer can have this name, or the hub cannot be reached, before torch is
    imported.

    Raises:
        ModelError: naming the form of a tokenizer's name, or what could not be reached.
    """
    if name is not None:
        check_model(name, None)


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True)
class ModelOptions(MachineOptions):
    """Which model runs, where, and what it reads."""

    model: str | None = None
    """Hub name or folder; by default all-MiniLM-L6-v2, from the extra "demo"."""
    target: str | None = None
    """Text for the decoder of an encoder-decoder; by default what the model generates."""
    target_tokenizer: str | None = None
    """Hub name or folder of the tokenizer of the target side, if it has its own."""
    truncate: Annotated[bool, Parameter(negative="")] = False
    """Truncate texts that are too long for the model, instead of stopping."""
    allow_unfit: Annotated[bool, Parameter(negative="")] = False
    """Run a model or texts that do not fit the question anyway: an untrained head, a model that
    sees the word it predicts, texts of mostly unknown tokens.
    """

    def check(self) -> None:
        """Raise where no model can have this name, before torch is imported.

        Raises:
            ModelError: naming the form of a model's name.
        """
        check_model(self.model, self.revision)
        check_tokenizer(self.target_tokenizer)


def captured(
    texts: tuple[str | None, str | None],
    options: ModelOptions,
    out: Path | None,
    *,
    media: Media | None = None,
    writes: bool = False,
    kind: str | None = None,
    **more: Any,
) -> Record:
    """The record of a text, picture or sound; errors of the input are raised before the model is
    loaded.

    Args:
        texts: the text, and the second of a pair.
        options: the model and how it runs.
        out: the file that will be written; None for none.
        media: pictures and sound.
        kind: kind of that file, as a suffix; by default that of its name.
        writes: whether the record goes to ``out`` layer by layer, after a line that says what will
            be stored.
        **more: options of `headscope.capture`.

    Raises:
        HeadscopeError: errors of the input, the model or the file to write.
    """
    if out is not None:
        check_writable(out, kind)
    from headscope.capturing import parse_call

    files = media.given if media else {}
    given = parse_call(*texts, {"target": options.target} | files)
    options.check()
    with status("Loading PyTorch and transformers"):
        from headscope.capturing import budget, capture, load_for, load_tokenizer
    # Pictures and sound are read while the model is not loaded yet, so that a broken file is
    # reported soon.
    given = given.in_memory()
    with status(f"Loading {options.model or 'the demo model'}"), quiet():
        model, tokenizer = load_for(options.model, given, **options.loading)
        target_tokenizer = (
            load_tokenizer(options.target_tokenizer) if options.target_tokenizer else None
        )
    reads: dict[str, Any] = {"truncate": options.truncate, "target_tokenizer": target_tokenizer}
    if writes:
        with status("Counting what is kept"), quiet():
            counted = budget(model, tokenizer, given, **reads, **more)
        say(f"This {counted}")
        more["out"] = out
    with status("Capturing"), quiet():
        return capture(model, tokenizer, given, **reads, **more)


def say(line: str) -> None:
    """Print one line of results to standard output."""
    print(line)  # noqa: T201


def say_what(record: Record) -> None:
    """Print what a record holds, whether some of its positions have no names, and whether some
    layers were not seen.
    """
    say(record.summary)
    if record.model.ran:
        say(f"Ran on {record.model.ran}")
    if record.numbered:
        say(f"Some positions have no token and are numbered: {record.numbered}")
    if record.unseen:
        say(f"Layers whose attention could not be captured are left out: {record.unseen}")


def note_where(model: Any) -> None:
    """Note which model was loaded, and where and how it runs, for `say_where`."""
    from headscope.capturing import facts_of

    facts = facts_of(model)
    ran.set(f"{facts.name} ran on {facts.ran}")


def say_where() -> None:
    """Print where and how the model of a study ran, where one did."""
    if ran.get():
        say(ran.get())


def say_checked(record: Record) -> None:
    """Print what a record was checked against, where it was."""
    if record.verification:
        say(record.verification)


@contextmanager
def status(what: str) -> Generator[None]:
    """Show a status line on stderr where it is a terminal; print nothing elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


@contextmanager
def quiet() -> Generator[None]:
    """Keep transformers and the hub's client from writing bars, reports and retries between our
    lines.

    That positions are numbered, or layers not seen, is printed as a line of its own (`say_what`),
    not as a warning.
    """
    from huggingface_hub.utils import logging as hub
    from transformers.utils import logging as transformers

    levels = [(library, library.get_verbosity()) for library in (hub, transformers)]
    for library, _ in levels:
        library.set_verbosity_error()
    transformers.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            for message in (
                "Some positions have no names",
                "The attention of some layers was not seen",
            ):
                warnings.filterwarnings("ignore", message=message)
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
            f"Expected a {RECORD_SUFFIX} file for --out, got {out}; use "
            f"{out.with_suffix(RECORD_SUFFIX)}"
        )


def check_folder(folder: Path) -> None:
    """Raise where files could not be written into a folder, before any long work.

    Raises:
        FileError: saying why.
    """
    if folder.exists() and not folder.is_dir():
        raise FileError(f"Expected a folder for --out, got the file {folder}")
    if not folder.exists():
        check_writable(folder)
    elif not os.access(folder, os.W_OK):
        raise FileError(f"Cannot write {folder}: no permission to write to the folder")


def check_writable(out: Path, kind: str | None = None) -> None:
    """Raise where a file could not be written, or would replace one of another kind, before any
    long work.

    Args:
        out: the file.
        kind: its kind, as a suffix; by default that of its name.

    Raises:
        FileError: saying why.
    """
    if out.is_dir():
        raise FileError(f"Expected a file for --out, got the folder {out}")
    if not out.absolute().parent.is_dir():
        raise FileError(
            f"Cannot write {out}: there is no folder {out.absolute().parent}; create it first"
        )
    if not os.access(out.absolute().parent, os.W_OK):
        raise FileError(
            f"Cannot write {out}: no permission to write to the folder {out.absolute().parent}"
        )
    if not overwriting.get():
        check_kind(out, out.suffix.lower() if kind is None else kind)
