"""Zeros that take no memory before something is written to them."""

import sys
from pathlib import Path

import numpy as np
import pytest

from headscope.capturing.building._lazy_zeros import untouched_zeros


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 0, 5), ()])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_they_are_zeros_that_can_be_written_to(shape, dtype):
    found = untouched_zeros(shape, np.dtype(dtype))
    np.testing.assert_array_equal(found, np.zeros(shape, dtype))
    assert found.dtype == dtype
    found += 1
    np.testing.assert_array_equal(found, np.ones(shape, dtype))


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="resident memory is read from /proc"
)
def test_only_what_is_written_to_is_resident():
    before, found = resident(), untouched_zeros((64, 2**20), np.dtype("float32"))
    found[7] = 1
    assert found[:, ::1024].sum() == 1024
    assert resident() - before < 32 * 2**20  # of 256 MiB


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096
