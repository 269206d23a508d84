"""Whether the hub can be reached, known within seconds: its client tries for half a minute before
it gives up.
"""

from __future__ import annotations

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
