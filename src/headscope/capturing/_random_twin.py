"""Models of the same architecture with random weights."""

from __future__ import annotations

import copy
from typing import Any

import torch

from headscope.capturing.device import device_of
from headscope.capturing.run import unwrapped
from headscope.errors import CaptureError


def random_twin(model: Any, *, seed: int = 0) -> Any:
    """A model of the same architecture with random weights, as before training: the null model of
    `heads`.

    The caller's random state is not changed.

    Args:
        model: a loaded transformers model.
        seed: seed of the weights.

    Raises:
        CaptureError: where the model cannot be created from its configuration.

    Example:
        >>> records = capture_many(random_twin(model), tokenizer, texts)
    """
    model = unwrapped(model)
    if not hasattr(type(model), "_from_config"):
        raise CaptureError(
            f"{type(model).__name__} is not made of a configuration; give the records of a random "
            "model"
        )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        # A copy, because creating a model writes to its configuration, such as the implementation
        # of its attention.
        twin = type(model)._from_config(copy.deepcopy(model.config), dtype=model.dtype)
    return twin.to(device_of(model)).eval()
