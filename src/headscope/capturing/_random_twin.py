"""The same architecture without what it learnt."""

from __future__ import annotations

import copy
from typing import Any

import torch

from headscope.capturing.device import device_of
from headscope.capturing.run import unwrapped
from headscope.errors import CaptureError


def random_twin(model: Any, *, seed: int = 0) -> Any:
    """A model of the same architecture with random weights, as its training began: the null model
    of `heads`.

    The caller's random state is left as it was.

    Args:
        model: a loaded transformers model.
        seed: of the weights.

    Raises:
        CaptureError: where the model cannot be made again from its configuration.

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
        # A copy, since making a model writes to its configuration, such as how it attends.
        twin = type(model)._from_config(copy.deepcopy(model.config), dtype=model.dtype)
    return twin.to(device_of(model)).eval()
