"""Memory that is freed stays with the process, up to a limit."""

import ctypes
import os
import platform
import subprocess
import sys

import pytest

MAPPED = """
import ctypes, sys
import torch
from headscope.capturing.freed_memory import keep_freed_memory

class Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks",
                 "uordblks", "fordblks", "keepcost")]

library = ctypes.CDLL(None)
library.mallinfo2.restype = Counts
if sys.argv[1] == "keeping":
    keep_freed_memory()
before = library.mallinfo2().hblks
# as large as the states of a batch
states = torch.empty(24 * 2**20, dtype=torch.uint8)
print(library.mallinfo2().hblks - before)
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or not hasattr(ctypes.CDLL(None), "mallinfo2"),
    reason="glibc alone tells how it got its memory",
)
def test_large_blocks_come_from_memory_that_stays():
    """What glibc maps by itself, it gives back as soon as it is freed."""

    def mapped(how):
        limits = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")
        own = {name: value for name, value in os.environ.items() if name not in limits}
        command = [sys.executable, "-c", MAPPED, how]
        ran = subprocess.run(command, capture_output=True, text=True, check=True, env=own)
        return int(ran.stdout)

    assert (mapped("as it was"), mapped("keeping")) == (1, 0)
