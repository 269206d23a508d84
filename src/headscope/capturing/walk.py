"""What every pass needs to know of a model, quickly: torch's own walk over modules takes as long as
the attention of a short text.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import nn

DIGITS = re.compile(r"\d+")
COMPILED = re.compile(r"(^|\.)_orig_mod(?![^.])")
"""The wrapper of a compiled module in names."""
IDLE = nn.Identity, nn.Dropout
"""Parts of a sequence that are not layers of it."""


def named_modules_of(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """All modules, each once with its first name, in the order of ``model.named_modules()``."""
    modules = [("", model)]
    _walk(model, "", modules, {id(model)})
    return modules


def _walk(
    module: nn.Module, path: str, modules: list[tuple[str, nn.Module]], seen: set[int]
) -> None:
    """Add the parts of a module, whose path ends with a dot, to those that were seen."""
    for own, child in module._modules.items():
        if child is None or id(child) in seen:
            continue
        seen.add(id(child))
        name = path + own
        modules.append((name, child))
        if child._modules:  # most have none
            _walk(child, f"{name}.", modules, seen)


def modules_of(model: nn.Module) -> list[nn.Module]:
    """All modules, each once, in the order of ``model.modules()``."""
    return [module for _, module in named_modules_of(model)]


def parameters_of(model: nn.Module) -> list[nn.Parameter]:
    """All parameters; one that two modules share comes twice."""
    held = [each for module in modules_of(model) for each in module._parameters.values()]
    return [each for each in held if each is not None]


class BlockPlace(NamedTuple):
    """Where a module stands in a list of blocks.

    Args:
        path: of the list.
        number: of the block.
        blocks: all blocks of the list, by their whole names.
        is_list: whether it is a ``ModuleList``: then each of its blocks is a layer.
    """

    path: str
    number: int
    blocks: dict[str, nn.Module]
    is_list: bool


def place_of(model: nn.Module, name: str) -> BlockPlace | None:
    """The list of blocks that a module stands in: the first whose blocks have numbers for names.

    Without one it is a ``ModuleDict``, or parts of a module whose names differ in a number
    (``encoder_layer_0``), the innermost around the module in which two blocks are of one class.
    """
    holder, path, around = _plain(model), "", []
    for own in name.split(".") if name else ():
        block = f"{path}.{own}".lstrip(".")
        if own.isdecimal():
            return _numbered(holder, path, block)
        around.append((holder, path, block))
        holder, path = _plain(getattr(holder, own)), block
    # The module itself comes last: a block may have several that compute attention.
    for holder, path, block in [*around[-2::-1], *around[-1:]]:
        template, blocks = _beside(holder, path, block)
        kinds = [type(part) for part in blocks.values()]
        if block in blocks and kinds.count(type(blocks[block])) > 1:
            return BlockPlace(template, list(blocks).index(block), blocks, False)
    return None


def block_of(model: nn.Module, name: str) -> tuple[str, int] | None:
    """Path of the list of blocks that a module stands in, and the number of its block there."""
    place = place_of(model, name)
    return None if place is None else place[:2]


def _numbered(holder: nn.Module, path: str, block: str) -> BlockPlace:
    blocks, number = _parts(holder, path), int(block.rpartition(".")[2])
    if isinstance(holder, nn.Sequential):
        blocks = {name: part for name, part in blocks.items() if not isinstance(part, IDLE)}
        number = list(blocks).index(block)
    return BlockPlace(path, number, blocks, isinstance(holder, nn.ModuleList))


def _beside(holder: nn.Module, path: str, block: str) -> tuple[str, dict[str, nn.Module]]:
    """Parts of a module that may be blocks beside one of them, and what stands for their path."""
    is_keyed, beside = isinstance(holder, nn.ModuleDict), _template(path, block)
    if not is_keyed and beside == block:
        return block, {}
    blocks = {}
    for name, part in _parts(holder, path).items():
        if (is_keyed or _template(path, name) == beside) and not isinstance(part, IDLE):
            blocks[name] = part
    return path if is_keyed else beside, blocks


def _template(path: str, block: str) -> str:
    """The name of a block that stands for all whose names differ from it in their numbers."""
    return path + DIGITS.sub("N", block.removeprefix(path))


def _parts(holder: nn.Module, path: str) -> dict[str, nn.Module]:
    """Parts of a module by their whole names."""
    parts = holder._modules.items()
    return {f"{path}.{own}".lstrip("."): part for own, part in parts if part is not None}


def _plain(module: nn.Module) -> nn.Module:
    """The module inside the wrapper of ``torch.compile``, which names leave out."""
    return getattr(module, "_orig_mod", module)


def arguments_of(model: nn.Module | type[nn.Module]) -> tuple[str, ...]:
    """Names of the arguments of a module's forward, or of a class of modules."""
    if isinstance(model, type):
        return _named(model.forward)[1:]
    # A wrapper may have put a forward of its own on the instance, as accelerate does, which takes
    # no self.
    own = vars(model).get("forward")
    return _named(type(model).forward)[1:] if own is None else _named(own)


@lru_cache(maxsize=256)
def _named(forward: Callable) -> tuple[str, ...]:
    """Names of a function's arguments; none if it has no signature."""
    try:
        return tuple(inspect.signature(forward).parameters)
    except (TypeError, ValueError):
        return ()


def reads_target(model: nn.Module) -> bool:
    """Whether a model is an encoder-decoder whose decoder reads a text. Object detectors, and
    classifiers made of an encoder alone, have the same setting and read none.
    """
    if not getattr(getattr(model, "config", None), "is_encoder_decoder", False):
        return False
    named = arguments_of(model)
    # A wrapper such as PEFT's names no arguments and passes all on.
    return "decoder_input_ids" in named or named[:1] == ("args",)


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
        names = {id(module): COMPILED.sub("", name).lstrip(".") for name, module in walked}
        return cls(model, tuple([module for _, module in walked]), names)


def is_affine(module: nn.Module) -> bool:
    """Whether a module multiplies with a matrix."""
    return has_weight(module) and getattr(module.weight, "ndim", 0) == 2


def may_attend(module: nn.Module) -> bool:
    """Whether a module may compute attention: torch's own matrices, norms and activations do not,
    nor do others without parts and parameters.
    """
    is_own = module._parameters and type(module).__module__[:9] != "torch.nn."
    return bool(module._modules or is_own)


def has_weight(module: nn.Module) -> bool:
    """Whether a module has a vector or a matrix of weights, and is not an embedding."""
    weight = getattr(module, "weight", None)
    if not isinstance(weight, torch.Tensor) or isinstance(module, nn.Embedding):
        return False
    return weight.ndim in (1, 2)
