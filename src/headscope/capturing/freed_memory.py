"""Memory that is freed stays with the process for the next layer and the next pass."""

from __future__ import annotations

from functools import cache

import torch

LARGEST_BLOCK = (32 << 20) - (64 << 10)
"""Bytes: a little less than the 32 MB of glibc, with what it adds itself."""


@cache
def keep_freed_memory() -> None:
    """Let memory that is freed stay with the process, as far as 64 MB.

    glibc gives it back to the system once it is more than twice the largest block, of up to 32 MB,
    that was freed before, and gets it anew, cleared, for the next layer: a tenth of the time that
    some captures and ablations took. Once a process, since the limit only rises; where the user has
    set it (``MALLOC_TRIM_THRESHOLD_``), and elsewhere, this changes nothing.
    """
    # Never written to, so that the system gives nothing for it.
    torch.empty(LARGEST_BLOCK, dtype=torch.uint8)
