"""The message where a package is not installed: which extra of headscope brings it."""

from __future__ import annotations

import importlib
from typing import Any

from headscope.errors import HeadscopeError

EXTRAS = {
    "anywidget": "notebook",
    "av": "video",
    "conllu": "linguistics",
    "matplotlib": "figures",
    "networkx": "statistics",
    "pandas": "tables",
    "PIL": "pictures",
    "pyarrow": "tables",
    "scipy": "statistics",
    "starlette": "server",
    "torch": "capture",
    "torchvision": "video",
    "transformers": "capture",
    "uvicorn": "server",
    "xarray": "tables",
}
"""By the name that is imported."""
WITH_TRANSFORMERS = ("huggingface_hub", "safetensors", "tokenizers", "tqdm")
"""What transformers itself brings."""


def missing_package(error: ImportError) -> str:
    """One line that names what is not installed, and what to install."""
    # cyclopts wraps what goes wrong while it imports a command
    while not isinstance(error, ModuleNotFoundError) and isinstance(error.__cause__, ImportError):
        error = error.__cause__
    package = (error.name or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or not package:
        return f"a package is missing or does not fit: {' '.join(str(error).split())}"
    extra = "capture" if package in WITH_TRANSFORMERS else EXTRAS.get(package)
    wanted = package if extra is None else f"'headscope[{extra}]'"
    return f"this needs the package {package}, which is not installed: pip install {wanted}"


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
        # polars stands in no extra, since only who has it already asks for its tables.
        message = missing_package(error)
        raise HeadscopeError(f"{message[0].upper()}{message[1:]}") from None
