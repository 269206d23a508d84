"""Checks of a model's name before torch is imported, which takes seconds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from headscope.errors import ModelError

HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")


def check_name(name: str | Path) -> None:
    """Raise where a model is neither in a folder nor called as models of the hub are.

    Raises:
        ModelError: saying how a name looks.
    """
    if not Path(name).exists() and not HUB_NAME.fullmatch(str(name)):
        raise ModelError(
            f"There is no folder {str(name)!r}, and a hub name looks like "
            "'google-bert/bert-base-uncased'"
        )


def check_revision(name: str | Path | None, revision: Any) -> str:
    """A revision, which only a repository on the hub has.

    Raises:
        ModelError: where the model is in a folder, or the demo model.
    """
    if name is None or Path(name).exists():
        what = "the demo model" if name is None else f"the folder {str(name)!r}"
        raise ModelError(
            f"revision={revision!r} is of a repository on the hub, and {what} has none; leave it "
            "out"
        )
    return str(revision)
