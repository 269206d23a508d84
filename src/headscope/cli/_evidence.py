"""Evidence of heads for commands that write a page."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.cli._left_out import left_out
from headscope.cli._run import ModelOptions, note_where, quiet, status
from headscope.cli._texts import read_texts
from headscope.errors import FileError, TextError

if TYPE_CHECKING:
    from headscope.patterns import Heads
    from headscope.record import Record

TALLY = ".npz"
"""Of headscope 0.1."""
RESULT = ".safetensors"
TREEBANK = ".conllu"

MOST_COMPARED = 256
"""More heads than these are not compared with each other over the texts, which takes longest."""


def check_evidence(this_text: bool, file: Path | None) -> None:
    """Raise where evidence is asked for that cannot be had, before any work.

    Raises:
        TextError: where both kinds are asked for.
        FileError: where the file does not exist, or no file of texts.
    """
    if file is None:
        return
    if this_text:
        raise TextError(
            "--evidence uses this one text, --evidence-of a file of texts; use one of them"
        )
    from headscope.tasks import SUFFIXES

    known = (*SUFFIXES, RESULT, TALLY, TREEBANK)
    if file.suffix not in known:
        raise FileError(f"Expected {', '.join(known)} for --evidence-of, got {file}")
    if file.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise FileError(
            f"{file} needs pyarrow, which is not installed: pip install 'headscope[tables]', or "
            "use .csv"
        )
    if file.suffix not in (RESULT, TALLY, TREEBANK):
        read_texts(file)
    elif not file.is_file():
        raise FileError(f"{file} does not exist")


def evidence_of(record: Record, file: Path | None, options: ModelOptions) -> Heads:
    """What kinds of heads there are: over the texts of a file, or on the record alone.

    Args:
        record: what the page shows.
        file: texts, a tally that `headscope.patterns.Tally.save` kept, or a treebank, whose
            relations are the labels; checked by `check_evidence`.
        options: which model reads the texts.

    Raises:
        HeadscopeError: whatever is wrong with the texts or the model.
    """
    from headscope.patterns import Heads, heads, load_tally

    if file is None:
        return heads(record)
    if file.suffix == RESULT:
        return _kept_heads(file)
    if file.suffix == TALLY:
        return Heads(load_tally(file))
    from headscope.capturing import capture_many, load_model

    with status(f"Loading {options.model or 'the demo model'}"), quiet():
        model, tokenizer = load_model(options.model, **options.loading)
    note_where(model)
    reading: dict[str, Any] = {"truncate": options.truncate, "progress": True} | options.read_many()
    if file.suffix == TREEBANK:
        from headscope.studies import relations

        return relations(model, tokenizer, file, trees=False, **reading).as_heads()
    texts = read_texts(file)
    left_out.begin(of=len(texts), where=" of the evidence")
    records = capture_many(model, tokenizer, texts, on_error=left_out.number, **reading)
    cells = sum(layer.heads for stack in record.stacks.values() for layer in stack)
    return heads(records, distances=cells <= MOST_COMPARED)


def _kept_heads(file: Path) -> Heads:
    """Heads that were kept by ``Heads.save``.

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
