"""Evidence of heads for commands that write a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headscope.cli._heads import _records
from headscope.cli._run import ModelOptions, status
from headscope.cli._texts import SUFFIXES, read_texts
from headscope.errors import FileError, TextError

if TYPE_CHECKING:
    from headscope.patterns import Heads
    from headscope.record import Record

TALLY = ".npz"


def check_evidence(this_text: bool, file: Path | None) -> None:
    """Raise where evidence is asked for that cannot be had, before any work.

    Raises:
        TextError: where both kinds are asked for.
        FileError: where the file is not there, or no file of texts.
    """
    if file is None:
        return
    if this_text:
        raise TextError("--evidence is of this one text, and --evidence-of of a file of texts; give one of them")
    if file.suffix not in (*SUFFIXES, TALLY):
        raise FileError(f"--evidence-of is {file}; evidence is read from {', '.join((*SUFFIXES, TALLY))}")
    if not file.is_file():
        raise FileError(f"{file} is not there")


def evidence_of(record: Record, file: Path | None, model: ModelOptions | None) -> Heads:
    """What kinds of heads there are: over the texts of a file, or on the record alone.

    Args:
        record: what the page shows.
        file: texts, or a tally that `headscope.patterns.Tally.save` kept; checked by `check_evidence`.
        model: which model reads the texts.

    Raises:
        HeadscopeError: whatever is wrong with the texts or the model.
    """
    from headscope.patterns import Heads, heads, load_tally

    if file is None:
        return heads(record)
    if file.suffix == TALLY:
        return Heads(load_tally(file))
    options = model or ModelOptions()
    with status(f"Reading {file}"):
        texts = read_texts(file)
    return heads(_records(texts, ModelOptions(options.model, trust_remote_code=options.trust_remote_code)))
