"""What commands read and load, and what they print of it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.cli._files import hs, left_out, quiet, say, status
from headscope.errors import FileError, HeadscopeError, TextError

if TYPE_CHECKING:
    from headscope.capturing import Outcome
    from headscope.record import Record

TEXT = "text"
ran: ContextVar[str] = ContextVar("ran", default="")
"""Where and how the model of this command ran."""


def check_model(name: str | None, revision: str | None = None) -> None:
    """Raise where no model or tokenizer can have this name, a revision has no model, or the hub
    cannot be reached, before torch is imported.

    Raises:
        ModelError: naming the form of a model's name, or what could not be reached.
    """
    if revision is not None:
        hs.capturing.check_revision(name, revision)
    if name is not None:
        hs.capturing.check_name(name)
        hs.capturing.reached(name, revision)


def text_or_chat(text: str | None, chat: Path | None, *others: object) -> Any:
    """The text of a command, or the messages of a file, which may hold them in a field "messages".

    Args:
        text: that was given, or None.
        chat: the file, or None.
        *others: what else was given in its place.

    Raises:
        TextError: where a text is given with the file.
        FileError: where the file cannot be read, or holds something else.
    """
    if chat is None:
        return text
    if text is not None or any(others):
        raise TextError("Expected --chat alone, got a text with it; leave one of them out")
    return messages_of(chat, "--chat")


def messages_of(chat: Path, option: str) -> Any:
    """The messages of a file, which may hold them in a field "messages".

    Raises:
        FileError: where the file cannot be read, or holds something else.
    """
    held = read_json(chat, option)
    held = held.get("messages") if isinstance(held, dict) else held
    if not hs.capturing.is_conversation(held):
        raise FileError(
            f"Expected a conversation in {chat}: a list such as "
            '[{"role": "user", "content": "Hello"}]'
        )
    return held


def read_json(file: Path, option: str) -> Any:
    """What a file of JSON holds that an option names.

    Raises:
        FileError: where it cannot be read.
    """
    try:
        return json.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise FileError(f"{option} is {file}: {error.strerror}") from None
    except ValueError as error:
        raise FileError(f"{option} is {file}, which is not JSON: {error}") from None


def say_what(record: Record) -> None:
    """Print what a record holds, whether some of its positions have no names, whether some layers
    were not seen, and what it was checked against.
    """
    for before, told in (
        ("", record.summary),
        ("Ran on ", record.model.ran),
        ("Some positions have no token and are numbered: ", record.numbered),
        ("Layers whose attention could not be captured are left out: ", record.unseen),
        ("", record.verification),
    ):
        if told:
            say(f"{before}{told}")


def load(how: str, name: str | None, *given: Any, **options: Any) -> Any:
    """A model or tokenizer that was loaded; where and how a model runs is noted for `say_where`.

    Args:
        how: function of `headscope.capturing`.
        name: of what is loaded.
        *given: further arguments.
        **options: of the function.
    """
    with status("Loading PyTorch and transformers"):
        function = getattr(hs.capturing, how)
    with status(f"Loading {name or 'the demo model'}"), quiet():
        loaded = function(name, *given, **options)
    model = loaded[0] if isinstance(loaded, tuple) else loaded
    if how != "load_tokenizer":
        facts = hs.capturing.facts_of(model)
        ran.set(f"{facts.name} ran on {facts.ran}")
    return loaded


def say_where() -> None:
    """Print where and how the model of a study ran, where one did."""
    if ran.get():
        say(ran.get())


def parse_texts(
    text: str | None, text_b: str | None, texts: Path | None, chat: Path | None = None
) -> list[Outcome]:
    """One text, a pair, a conversation, or the texts of a file.

    Raises:
        TextError: where both a text and a file are given, or neither.
        FileError: where the file cannot be read.
    """
    text = text_or_chat(text, chat, text_b, texts)
    if (text is None) == (texts is None):
        raise TextError(
            "Expected a text (or a pair), or a file of texts with --texts, or of a conversation "
            "with --chat"
        )
    if texts is None:
        return alone_or_all([hs.capturing.parse_call(text or "", text_b)])
    return alone_or_all(hs.capturing.parse_texts(texts), file=texts)


def alone_or_all(outcomes: Any, what: str = TEXT, file: Path | None = None) -> list[Outcome]:
    """Parsed texts, which are counted; where there are many, one that cannot be read is left out
    later, with its number.

    Args:
        outcomes: of reading them.
        what: one of them is called.
        file: that they were read of, if any.

    Raises:
        HeadscopeError: why a single text cannot be read.
    """
    listed = list(outcomes)
    left_out.begin(what, len(listed), file)
    if len(listed) == 1 and isinstance(listed[0], HeadscopeError):
        raise listed[0]
    return listed


@contextmanager
def warnings_as_lines(*parts: str) -> Generator[None]:
    """Print our warnings that contain one of these parts each time that they are given."""
    with warnings.catch_warnings():
        for part in parts:
            warnings.filterwarnings("always", message=f".*{part}")
        yield
