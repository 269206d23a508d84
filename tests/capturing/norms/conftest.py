"""Models, and records of them with norms."""

import torch

from headscope.capturing.entry import capture_encoded

TEXT = "the cat sat. the cat"


def captured(model, inputs):
    """Records of bare tensors, with norms."""
    from headscope.capturing import entry as _capture
    from headscope.capturing.keep import KeepChoice

    before = _capture.KeepChoice
    _capture.KeepChoice = lambda: KeepChoice(frozenset({"weights", "qk", "norms", "alti"}))
    try:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return capture_encoded(model, None, inputs)
    finally:
        _capture.KeepChoice = before
