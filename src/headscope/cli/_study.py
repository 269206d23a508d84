"""Reading, checking and writing for commands that study a model over texts."""

from __future__ import annotations

import json
import warnings
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.cli._left_out import left_out
from headscope.cli._run import (
    ModelOptions,
    check_writable,
    note_where,
    quiet,
    say,
    say_where,
    status,
)
from headscope.cli._table_file import TABLES, write_table
from headscope.errors import FigureError, FileError, HeadscopeError, TextError

if TYPE_CHECKING:
    from headscope.capturing import Outcome

PAGE = ".html"
FEW = "are too few to tell up to"
"""Part of the warning about too few texts of `headscope.studies.heads` and other studies."""
PICTURES = (".svg", ".pdf", ".png")


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
    if texts is not None:
        return outcomes_of(texts)
    from headscope.capturing import parse_call

    return [parse_call(text or "", text_b)]


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
    from headscope.capturing.inputs.parse import is_conversation

    try:
        held = json.loads(chat.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileError(f"Cannot read {chat}: {error}") from None
    if isinstance(held, dict):
        held = held.get("messages")
    if not is_conversation(held):
        raise FileError(
            f"Expected a conversation in {chat}: a list such as "
            '[{"role": "user", "content": "Hello"}]'
        )
    return held


def outcomes_of(texts: Path) -> list[Outcome]:
    """The parsed texts of a file; where there are many, one that cannot be read is left out later,
    with its number.

    Raises:
        HeadscopeError: why a single text cannot be read.
    """
    from headscope.capturing import parse_texts

    outcomes = list(parse_texts(texts))
    if len(outcomes) == 1 and isinstance(outcomes[0], HeadscopeError):
        raise outcomes[0]
    return outcomes


def check_results(out: Path | None, plot: Path | None, texts: Path | None) -> None:
    """Raise where a result could not be written, or a file could not be read, before any long work.

    Raises:
        FileError: saying why.
        FigureError: where figures cannot be drawn.
    """
    for name, path, kinds in (("--out", out, TABLES), ("--plot", plot, PICTURES)):
        if path is None:
            continue
        check_writable(path)
        if path.suffix not in kinds:
            raise FileError(f"Expected {', '.join(kinds)} for {name}, got {path}")
    for path in (out, texts):
        if path is not None and path.suffix == ".parquet" and find_spec("pyarrow") is None:
            raise FileError(
                f"{path} needs pyarrow, which is not installed: pip install 'headscope[tables]', "
                "or use .csv"
            )
    if plot is not None and find_spec("matplotlib") is None:
        raise FigureError("--plot needs matplotlib: pip install 'headscope[figures]'")


def check_result(out: Path | None) -> None:
    """Raise where a result could not be written as a table or as a page, before any long work.

    Raises:
        FileError: saying why.
    """
    if out is None or out.suffix != PAGE:
        check_results(out, None, None)
    else:
        check_writable(out)


def write_result(result: Any, out: Path | None) -> None:
    """Write a result that can be viewed: its page for an .html file, else its table."""
    if out is None:
        return
    if out.suffix == PAGE:
        with status("Writing the page"):
            result.view().save(out)
    else:
        write_table(result, out)
    say(f"Wrote {out.resolve()}")


def loaded(
    texts: list[Outcome], options: ModelOptions, *, classifies: bool = False
) -> tuple[Any, Any]:
    """The model and its tokenizer; errors of the texts are raised before.

    Args:
        texts: texts that it will read.
        options: the model and how it runs.
        classifies: whether it must have a trained classifier.

    Raises:
        HeadscopeError: errors of the texts or the model.
    """
    if options.target is not None or options.target_tokenizer is not None:
        raise TextError(
            "--target and --target-tokenizer are for commands that read one text; remove them"
        )
    options.check()
    with status("Loading PyTorch and transformers"):
        from headscope.capturing import load_classifier, load_model, load_tokenizer
    with status(f"Loading {options.model or 'the demo model'}"), quiet():
        if classifies:
            model = load_classifier(options.model, **options.loading)
            tokenizer = load_tokenizer(options.model, **options.loading)
        else:
            model, tokenizer = load_model(options.model, **options.loading)
    note_where(model)
    return model, tokenizer


def capturing(
    texts: list[Outcome], options: ModelOptions, path: Path | None = None
) -> dict[str, Any]:
    """Options of `headscope.capture_many`: a progress bar on terminals, and a line for each text
    that is left out.

    With a file of texts, also ``groups``, the documents of the texts, where the file has that
    field.
    """
    left_out.begin(of=len(texts))
    # One of many texts may be left out; a single one that cannot be read is an error.
    on_error = _stop if len(texts) == 1 else left_out.number
    shared = {
        "truncate": options.truncate,
        "allow_unfit": options.allow_unfit,
    } | options.read_many()
    return shared | {"progress": True, "on_error": on_error} | groups_of(path)


def groups_of(path: Path | None) -> dict[str, Any]:
    """The option ``groups`` of a study over the texts of a file; empty where it names none."""
    from headscope.capturing import groups_in

    groups = groups_in(path)
    return {} if groups is None else {"groups": groups}


@contextmanager
def warnings_as_lines(*parts: str) -> Generator[None]:
    """Print our warnings that contain one of these parts each time that they are given."""
    with warnings.catch_warnings():
        for part in parts:
            warnings.filterwarnings("always", message=f".*{part}")
        yield


def few_texts_as_a_line() -> AbstractContextManager[None]:
    """Print a study's warning about too few texts for any label as a line of ours."""
    return warnings_as_lines(FEW)


def tell(result: Any, out: Path | None, plot: Path | None, **look: Any) -> None:
    """Print a result, write its table, and draw it.

    Args:
        result: a `headscope.results.Result`.
        out: file of its table, if wanted.
        plot: file of its figure, if wanted.
        **look: options of the figure.
    """
    say(str(result))
    say_where()
    write_files(result, out, plot, **look)


def write_files(result: Any, out: Path | None, plot: Path | None, **look: Any) -> None:
    """Write the table of a result, and draw it, where files were given for these."""
    if out is not None:
        write_table(result, out)
        say(f"Wrote {out.resolve()}")
    if plot is not None:
        with status("Drawing"):
            path = result.plot(plot, **look)
        say(f"Wrote {path.resolve()}")


def _stop(_: int, error: HeadscopeError) -> None:
    raise error
