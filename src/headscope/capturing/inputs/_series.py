"""What a model of time series is to read, from a series that is parsed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32

from headscope.capturing.device import device_of
from headscope.capturing.inputs.inputs import Inputs
from headscope.capturing.media.input_positions import SERIES, elements_of, grid_of, positions_of
from headscope.capturing.walk import arguments_of
from headscope.errors import CaptureError


def inputs_of_series(
    model: Any, series: Float32[np.ndarray, "time channel"], *, truncate: bool = False
) -> Inputs:
    """The arguments of a model of time series, and which value each of their entries is.

    A model of several channels (PatchTST) has them as an axis of its input, and others (TimesFM)
    read each as a series of its own. Both fold them into the batch, so that no channel attends to
    another.

    Args:
        model: of patches of time series.
        series: what it is to read.
        truncate: whether of a series that is too long only the last steps are read.

    Raises:
        CaptureError: where the model reads no time series, or the series does not fit it.
    """
    reads, patch = arguments_of(model), _patch_of(model)
    wanted = getattr(model.config, "num_input_channels", None)
    first = max(0, len(series) - model.config.context_length) if truncate else 0
    if first:
        warnings.warn(
            f"The time series has {len(series)} steps and {type(model).__name__} reads "
            f"{len(series) - first}: those before are cut off",
            stacklevel=2,
        )
    series = series[first:]
    length, channels = series.shape
    _check_size(model, series)
    values = torch.from_numpy(series).to(device_of(model), model.dtype)
    numbers = torch.arange(1, length * channels + 1, dtype=torch.int32).reshape(channels, length)
    arguments, marks = {"past_values": values[None]}, {"past_values": numbers.T[None]}
    if wanted is None:
        arguments, marks = {"past_values": values.T}, {"past_values": numbers}
    if "past_values_padding" in reads:
        arguments["past_values_padding"] = torch.zeros_like(arguments["past_values"])
    if "freq" in reads:
        # How often a value was taken: 0 stands for often, from every minute to every day.
        arguments["freq"] = torch.zeros(channels, 1, dtype=torch.long, device=values.device)
    # A step that is read keeps the number that it has in the whole series.
    places = grid_of(channels, length) + np.array([0, first])
    elements = elements_of(SERIES, [places], [0])
    positions = positions_of(model, 1, marks, elements, span=patch)
    return Inputs(arguments, (), (), positions)


def _patch_of(model: Any) -> int:
    """Steps that a patch of the model holds."""
    patch = getattr(model.config, "patch_length", None)
    if "past_values" not in arguments_of(model) or not isinstance(patch, int):
        raise CaptureError(
            f"{type(model).__name__} reads no patches of time series; series= is for PatchTST and "
            "TimesFM"
        )
    return patch


def _check_size(model: Any, series: Float32[np.ndarray, "time channel"]) -> None:
    length, channels = series.shape
    name, config = type(model).__name__, model.config
    wanted = getattr(config, "num_input_channels", None)
    if length > config.context_length:
        raise CaptureError(
            f"The time series has {length} steps and {name} reads {config.context_length}; give "
            "the last ones, or pass truncate=True to keep these"
        )
    if wanted is None:
        if length % config.patch_length:
            raise CaptureError(
                f"The time series has {length} steps and {name} reads patches of "
                f"{config.patch_length}; give a multiple of that"
            )
        return
    if channels != wanted:
        raise CaptureError(
            f"The time series has {channels} channels and {name} reads {wanted}; give as many, "
            "with the axes [time channel]"
        )
    if length != config.context_length:
        raise CaptureError(
            f"The time series has {length} steps and {name} reads {config.context_length}; give "
            "as many"
        )
