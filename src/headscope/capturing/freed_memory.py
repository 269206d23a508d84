"""Memory that is freed stays with the process for the next pass; what is said where there is too
little of it.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from traceback import walk_tb

import torch

from headscope.errors import CaptureError

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


ALLOCATED = re.compile(r"allocate ([\d.,]+ (?:bytes|[KMGT]iB))")
"""Bytes in the messages of torch and NumPy."""


@contextmanager
def naming_memory() -> Generator[None]:
    """Say what to choose instead where there is too little memory.

    Raises:
        CaptureError: naming the tokens, and the bytes that were asked for.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        asked = ALLOCATED.search(str(error))
        # On a CPU torch has no class for it.
        if asked is None and not isinstance(error, MemoryError | torch.OutOfMemoryError):
            raise
        of = f", {asked[1]} more," if asked else ""
        raise CaptureError(
            f"There is too little memory{of} for {_tokens_of(error)}: give shorter texts "
            "(truncate=True cuts them) or fewer at once, keep less (heads=, keep='statistics' "
            "with rows=), load the model with dtype='bfloat16', or run it on device='cpu'"
        ) from error


def _tokens_of(error: BaseException) -> str:
    """The tokens that were given to whatever raised, as far as its frames know them."""
    for frame, _ in walk_tb(error.__traceback__):
        named = getattr(frame.f_locals.get("inputs"), "arguments", frame.f_locals)
        ids = named.get("input_ids")
        if isinstance(ids, torch.Tensor) and ids.ndim == 2:
            return f"{len(ids)} x {ids.shape[1]:,} tokens"
    return "this input"
