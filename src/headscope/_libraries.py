"""Libraries that are asked for only where their form of a table is."""

from __future__ import annotations

import importlib
from typing import Any

from headscope.errors import HeadscopeError


def library(name: str) -> Any:
    """A library of arrays or tables, loaded at its first use.

    Args:
        name: of the module, such as ``"pandas"``.

    Raises:
        HeadscopeError: where it is not installed, with the command that installs it.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # polars is the user's own choice; the extra brings the others
        wanted = "polars" if error.name == "polars" else "'headscope[tables]'"
        raise HeadscopeError(
            f"This needs {error.name}, which is not installed: pip install {wanted}"
        ) from None
