"""What is said where there is too little memory."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from traceback import walk_tb

import torch

from headscope.errors import CaptureError

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
