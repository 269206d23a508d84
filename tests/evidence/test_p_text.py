import numpy as np

from headscope.evidence import p_text


def test_nothing_is_printed_that_the_method_cannot_tell():
    assert [p_text(p) for p in (0.5, 0.05, 0.0012, 1e-7, np.nan)] == [
        "0.50",
        "0.050",
        "0.001",
        "< 0.001",
        "-",
    ]
