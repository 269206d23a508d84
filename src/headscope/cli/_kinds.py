"""Files of another kind are not replaced by a slip of the pen: a record that took an hour by a
page.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path

from headscope.errors import FileError

FORCE = "--force"
overwriting: ContextVar[bool] = ContextVar("overwriting", default=False)
"""Whether a file of another kind may be replaced, in the command that runs."""
STARTS = {
    b"%PDF": ".pdf",
    b"\x89PNG": ".png",
    b"PK\x03\x04": ".npz",
    b"PAR1": ".parquet",
}
"""How files begin whose kind is known."""
PAGES = (".html", ".htm", ".xhtml")
READ = 512


def without_force(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """The arguments without ``--force``, and whether it was among them; behind ``--`` all are
    values.
    """
    listed = list(arguments)
    end = listed.index("--") if "--" in listed else len(listed)
    kept = [each for each in listed[:end] if each != FORCE]
    return kept + listed[end:], len(kept) < end


def check_kind(out: Path, kind: str) -> None:
    """Raise where a file is there already that is of another kind than the one that would be
    written.

    Args:
        out: the file.
        kind: what would be written, as a suffix.

    Raises:
        FileError: naming both kinds.
    """
    there, kind = kind_of(out), PAGES[0] if kind in PAGES else kind
    if there is None or there == kind:
        return
    raise FileError(
        f"{out} already exists and is {_named(there)}; add {FORCE} to replace it with "
        f"{_named(kind)}, or choose another name"
    )


def kind_of(path: Path) -> str | None:
    """What a file is, as a suffix, by how it begins or else by its name; None where there is none,
    or it is empty.
    """
    try:
        with path.open("rb") as file:
            start = file.read(READ)
    except OSError:
        return None
    if not start or not path.is_file():
        return None
    for mark, kind in STARTS.items():
        if start.startswith(mark):
            return kind
    # eight bytes say how long the header of a record is, which is JSON
    if start[8:9] == b"{" and int.from_bytes(start[:8], "little") < 2**40:
        return ".safetensors"
    if start.lstrip().lower().startswith((b"<!doctype html", b"<html")):
        return ".html"
    return path.suffix.lower()


def _named(kind: str) -> str:
    names = {".safetensors": "a record", ".html": "a page", "": "a file of another kind"}
    return names.get(kind, f"a file {kind}")
