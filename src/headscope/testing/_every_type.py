"""Every model type of transformers, tried with a tiny model of random weights."""

from __future__ import annotations

import importlib
import inspect
import re
import warnings
from copy import deepcopy
from dataclasses import replace
from typing import Any

from headscope.errors import ModelError
from headscope.testing._architectures import ARCHITECTURES, KINDS
from headscope.testing._examine import READS_NOTHING, UNREADABLE, Support, examine
from headscope.testing._models import sharpen, tiny_model
from headscope.testing._shrink import Shrinking

SHRINKINGS = (
    Shrinking(8),
    Shrinking(4),
    Shrinking(16),
    Shrinking(2),
    Shrinking(8, side=None),
    Shrinking(1),
)
"""Tried in turn until a model is captured: a width must stay a multiple of the number of heads, of
the groups of a norm and the like, and the windows of a picture must fill it; these differ.
"""
MOST_PARAMETERS = 60_000_000
"""A model of more is not built: hundreds are tried, on two cores and within minutes."""
NO_ATTENTION = "computed no softmax attention"
FOLDER = re.compile(r"(?<=')[^']*site-packages/")
"""Start of a path in a message, up to the packages of this environment."""


def every_type() -> list[str]:
    """The architectures with a configuration of their own, and all other model types of the
    transformers that is installed.
    """
    from transformers import CONFIG_MAPPING

    known = {name.partition(" (")[0] for name in ARCHITECTURES}
    return [*ARCHITECTURES, *sorted(set(CONFIG_MAPPING.keys()) - known)]


def family_of(name: str) -> str:
    """The folder of transformers that a model type lies in, which those of one family share."""
    from transformers.models.auto.configuration_auto import model_type_to_module_name

    return model_type_to_module_name(name.partition(" (")[0])


def examine_type(name: str, *, batch_size: int = 2) -> Support:
    """What can be captured of an architecture or model type, found out with a tiny model of it.

    Args:
        name: one of `every_type`.
        batch_size: how many texts, pictures or sounds the batch holds.
    """
    if name in ARCHITECTURES:
        reads = next(kind for kind, names in KINDS.items() if name in names)
        try:
            model = tiny_model(name)
        except ModelError as error:  # of a transformers that is older than the architecture
            return Support(name, "", reads=reads, unbuilt=str(error))
        return replace(examine(model, name, batch_size=batch_size), reads=reads)
    return _first_captured(name, batch_size)


def _first_captured(name: str, batch_size: int) -> Support:
    """Of the first size in which the model type is captured; else why not, of the first tried."""
    refused: Support | None = None
    unbuilt = ""
    for shrinking in SHRINKINGS:
        # Hundreds of models of others, in sizes that nobody tried: they raise whatever they like.
        # What they warn of, such as positions that are numbered, is no reason to leave one out.
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = _shrunk_model(name, shrinking)
                support = examine(model, name, batch_size=batch_size)
        except Exception as error:  # noqa: BLE001
            unbuilt = unbuilt or f"{type(error).__name__}: {_first_line(error)}"
            continue
        if not support.refused:
            return support
        if support.refused.startswith((UNREADABLE, READS_NOTHING)):
            unbuilt = unbuilt or support.refused
            continue
        refused = refused or support
        # Another size would bring no attention.
        if NO_ATTENTION in support.refused:
            break
    return refused or Support(name, "", unbuilt=unbuilt)


def _shrunk_model(name: str, shrinking: Shrinking) -> Any:
    """A tiny model with random weights.

    Raises:
        ModelError: where it is too large still.
        Exception: whatever the model raises for the sizes it is given.
    """
    import torch

    config = shrinking.configuration(name)
    make = _maker_of(config)
    with torch.device("meta"):  # counts the weights without making them
        # Of a copy: a model writes its choice of attention into its configuration.
        parameters = sum(each.numel() for each in make(deepcopy(config)).parameters())
    if parameters > MOST_PARAMETERS:
        raise ModelError(f"its smallest model has {parameters / 1e6:.0f} million weights")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = make(config).eval()
        sharpen(model)
    return model


def _maker_of(config: Any) -> Any:
    """What makes a model of a configuration: transformers' automatic classes, or for a part of
    another model the class that names its configuration.
    """
    from transformers import AutoModel, PreTrainedModel

    from headscope.capturing import loader_of

    for loader in (loader_of(config), AutoModel):
        if type(config) in loader._model_mapping:
            return loader.from_config
    name = type(config).__module__.replace("configuration_", "modeling_")
    candidates = [
        each
        for each in vars(importlib.import_module(name)).values()
        if inspect.isclass(each)
        and issubclass(each, PreTrainedModel)
        and each.config_class is type(config)
        and "PreTrained" not in each.__name__
    ]
    if not candidates:
        raise LookupError(f"no model has {type(config).__name__} as its configuration")
    # The bare model before those with a head for some task.
    candidates.sort(key=lambda each: (not each.__name__.endswith("Model"), len(each.__name__)))
    return candidates[0]._from_config


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    # Without the folder of this environment, so that the table is the same on every machine.
    return FOLDER.sub("", lines[0].strip()) if lines else ""
