"""The modules of a model, and those at which a pass is watched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from headscope.capturing.walk import named_modules_of

ATTENTION_NAME = re.compile(r"attention|attn", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class ModelModules:
    """The modules of a model, found in one walk, and the names that they have as if nothing had
    been compiled.

    Args:
        model: whose they are.
        all: each once, in the order of ``model.modules()``.
        names: by id, the first name of each.
    """

    model: nn.Module
    all: tuple[nn.Module, ...]
    names: dict[int, str]

    @classmethod
    def of(cls, model: nn.Module) -> ModelModules:
        """Those of a model as it is now."""
        walked = named_modules_of(model)
        names = {id(module): name for name, module in walked}
        for number, name in names.items():
            if "_orig_mod" in name:
                parts = (part for part in name.split(".") if part != "_orig_mod")
                names[number] = ".".join(parts)
        return cls(model, tuple([module for _, module in walked]), names)


@dataclass(frozen=True, eq=False)
class WatchedModules:
    """The modules at which a pass is watched.

    Args:
        modules: all of the model.
        running: modules of which it is recorded when they run.
        makers: matrices and norms that may make queries and keys.
        matrices: which may be output projections.
    """

    modules: ModelModules
    running: Sequence[nn.Module]
    makers: Sequence[nn.Module]
    matrices: Sequence[nn.Module]

    @classmethod
    def of(cls, modules: ModelModules) -> WatchedModules:
        """All modules of a model that may have to do with attention."""
        with_weight = [module for module in modules.all if _has_weight(module)]
        return cls(
            modules=modules,
            running=_may_attend(modules),
            makers=with_weight,
            matrices=[module for module in with_weight if is_affine(module)],
        )

    @classmethod
    def running_of(cls, modules: ModelModules) -> WatchedModules:
        """All modules of a model, of which nothing is to be known but that they run."""
        return cls(modules=modules, running=_may_attend(modules), makers=(), matrices=())


def names_of(model: nn.Module) -> dict[int, str]:
    """First name of each module by its id, as if nothing had been compiled."""
    return ModelModules.of(model).names


def is_affine(module: nn.Module) -> bool:
    """Whether a module multiplies with a matrix."""
    return _has_weight(module) and getattr(module.weight, "ndim", 0) == 2


def _may_attend(modules: ModelModules) -> list[nn.Module]:
    """The modules that may compute attention: neither torch's own matrices, norms and activations,
    nor others without parts and parameters.
    """
    return [
        module
        for module in modules.all
        if module._modules or (module._parameters and type(module).__module__[:9] != "torch.nn.")
    ]


def _has_weight(module: nn.Module) -> bool:
    weight = getattr(module, "weight", None)
    if not isinstance(weight, torch.Tensor) or isinstance(module, nn.Embedding):
        return False
    return weight.ndim in (1, 2)
