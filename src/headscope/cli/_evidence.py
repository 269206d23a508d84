"""Evidence of heads for commands that write a page."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.cli._left_out import left_out
from headscope.cli._run import ModelOptions, note_where, quiet, status
from headscope.errors import FileError, TextError

if TYPE_CHECKING:
    from headscope.patterns import Heads
    from headscope.record import Record

RESULT = ".safetensors"
TREEBANK = ".conllu"

MOST_COMPARED = 256
"""Number of heads up to which all are compared with each other over the texts, the slowest step."""


def check_evidence(this_text: bool, file: Path | None) -> None:
    """Raise where the evidence cannot be computed, before any work.

    Raises:
        TextError: where both kinds are given.
        FileError: where the file does not exist, or is not a file of texts.
    """
    if file is None:
        return
    if this_text:
        raise TextError(
            "--evidence uses this one text, --evidence-of a file of texts; use one of them"
        )
    from headscope.storage import SUFFIXES, read_texts

    known = (*SUFFIXES, RESULT, TREEBANK)
    if file.suffix not in known:
        raise FileError(f"Expected {', '.join(known)} for --evidence-of, got {file}")
    if file.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise FileError(
            f"{file} needs pyarrow, which is not installed: pip install 'headscope[tables]', or "
            "use .csv"
        )
    if file.suffix not in (RESULT, TREEBANK):
        read_texts(file)
    elif not file.is_file():
        raise FileError(f"{file} does not exist")


def evidence_of(record: Record, file: Path | None, options: ModelOptions) -> Heads:
    """Evidence about the heads: over the texts of a file, or on the record alone.

    Args:
        record: the record that the page shows.
        file: a file of texts, a tally saved by `headscope.patterns.Tally.save`, or a treebank,
            whose relations are the labels; checked by `check_evidence`.
        options: the model that reads the texts.

    Raises:
        HeadscopeError: errors of the texts or the model.
    """
    from headscope.patterns import heads

    if file is None:
        return heads(record)
    if file.suffix == RESULT:
        return _kept_heads(file)
    from headscope.capturing import MOST_UNKNOWN, capture_many, load_model

    with status(f"Loading {options.model or 'the demo model'}"), quiet():
        model, tokenizer = load_model(options.model, **options.loading)
    note_where(model)
    reading: dict[str, Any] = {"truncate": options.truncate, "progress": True} | options.read_many()
    if file.suffix == TREEBANK:
        from headscope.studies import relations

        return relations(model, tokenizer, file, trees=False, **reading).as_heads()
    from headscope.storage import read_texts

    texts = read_texts(file)
    reading["max_unknown"] = 1.0 if options.allow_unfit else MOST_UNKNOWN
    left_out.begin(of=len(texts), where=" of the evidence")
    records = capture_many(model, tokenizer, texts, on_error=left_out.number, **reading)
    cells = sum(layer.heads for stack in record.stacks.values() for layer in stack)
    return heads(records, distances=cells <= MOST_COMPARED)


def _kept_heads(file: Path) -> Heads:
    """The `Heads` in a file that ``Heads.save`` wrote.

    Raises:
        FileError: where the file cannot be read, or holds something else.
    """
    from headscope.patterns import Heads
    from headscope.results import load

    result = load(file)
    if not isinstance(result, Heads):
        raise FileError(
            f"Expected the result of headscope.heads, got a {type(result).__name__} in {file}; "
            f"save one with heads(...).save({file.name!r})"
        )
    return result
