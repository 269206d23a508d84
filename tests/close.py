"""What is equal of two computations: floats but for their last digits, everything else exactly.

The last bits of a float depend on the machine, on what is computed together with it and on its
place in memory.
"""

import dataclasses
import json
from pathlib import Path

import numpy as np

NUMBERS = Path(__file__).parent / "studies" / "numbers"
DIGITS = {"rtol": 1e-5, "atol": 1e-6}
HALF = {"rtol": 1e-3, "atol": 1e-6}


def assert_close(ours, theirs, **digits):
    """Fails where arrays or tensors, or data classes, dicts or sequences of them, differ."""
    if dataclasses.is_dataclass(theirs):
        ours, theirs = dataclasses.asdict(ours), dataclasses.asdict(theirs)
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys()
        ours, theirs = [ours[name] for name in theirs], list(theirs.values())
    if isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_close(one, other, **digits)
        return
    ours, theirs = _array(ours), _array(theirs)
    assert ours.shape == theirs.shape
    if theirs.dtype.kind == "f":
        least = HALF if theirs.dtype == np.float16 else DIGITS
        np.testing.assert_allclose(ours, theirs, **(least | digits))
    else:
        np.testing.assert_array_equal(ours, theirs)


def _array(values):
    return np.asarray(values.detach() if hasattr(values, "detach") else values)


def assert_same_numbers(ours, kept, where="all"):
    """Fails where numbers, in dicts and lists as JSON has them, differ from those that were kept by
    more than another processor makes of the same texts; null is NaN.

    A model's last digits turn a draw of a test from one side to the other, so that p may differ by
    a few draws.
    """
    if isinstance(kept, dict):
        assert ours.keys() == kept.keys(), where
        for name, each in kept.items():
            assert_same_numbers(ours[name], each, f"{where}, {name}")
    elif isinstance(kept, list):
        assert len(ours) == len(kept), where
        for number, (one, other) in enumerate(zip(ours, kept, strict=True)):
            assert_same_numbers(one, other, f"{where}, {number}")
    elif isinstance(ours, float):
        wanted = np.nan if kept is None else kept
        is_p = any(name in where for name in (", p,", ", p_corrected,", ", corrected,"))
        least = 0.01 if is_p else 1e-4
        np.testing.assert_allclose(ours, wanted, rtol=1e-3, atol=least, err_msg=where)
    else:
        assert ours == kept, where


def numbers_before(study):
    """The numbers of a study on real data, as they were before it was rewritten."""
    return json.loads((NUMBERS / f"{study}.json").read_text())
