"""Models, and records of them with norms."""

import torch

from headscope.capturing import capture_encoded

TEXT = "the cat sat. the cat"


def captured(model, inputs):
    """Records of bare tensors, with norms."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return capture_encoded(model, None, inputs, keep=("weights", "qk", "norms", "alti"))
