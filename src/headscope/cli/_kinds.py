"""Protection of existing files of another kind: a page must not replace a record that took an hour
by a mistyped name.
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
"""First bytes of files of known kinds."""
PAGES = (".html", ".htm", ".xhtml")
READ = 512


def without_force(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """The arguments without ``--force``, and whether it was among them; after ``--`` all are
    values.
    """
    listed = list(arguments)
    end = listed.index("--") if "--" in listed else len(listed)
    kept = [each for each in listed[:end] if each != FORCE]
    return kept + listed[end:], len(kept) < end


def check_kind(out: Path, kind: str) -> None:
    """Raise where a file of another kind exists already.

    Args:
        out: the file that would be written.
        kind: its kind, as a suffix.

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
    """The kind of a file, as a suffix, by its first bytes or else by its name; None where it does
    not exist or is empty.
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
    # A .safetensors file begins with the length of its header in eight bytes, and the header is
    # JSON. The limit excludes text whose ninth character happens to be a brace.
    if start[8:9] == b"{" and int.from_bytes(start[:8], "little") < 2**40:
        return ".safetensors"
    if start.lstrip().lower().startswith((b"<!doctype html", b"<html")):
        return ".html"
    return path.suffix.lower()


def _named(kind: str) -> str:
    names = {".safetensors": "a record", ".html": "a page", "": "a file of another kind"}
    return names.get(kind, f"a file {kind}")
