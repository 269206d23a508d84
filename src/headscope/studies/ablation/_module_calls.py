"""Calls of modules that are kept, and modules that answer from them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

SCALARS = (bool, int, float, str, torch.dtype, torch.device, type(None))

Wrap = Callable[[str, Callable], Callable]
"""Makes of a module's name and forward what is called in its place."""


@dataclass(frozen=True, eq=False)
class ModuleCall:
    """One call of a module: what it was given, what it returned, the tensors in both, and how often
    these had been written to.
    """

    given: Any
    returned: Any
    tensors: tuple[torch.Tensor, ...]
    versions: tuple[int, ...]

    @classmethod
    def of(cls, given: Any, returned: Any) -> ModuleCall:
        """A call that was just made."""
        tensors = tuple(tensors_of((given, returned)))
        return cls(given, returned, tensors, versions_of(tensors))

    @property
    def is_known(self) -> bool:
        """Whether it was kept, and nothing of it was written to since."""
        if self.given is None:
            return False
        return tuple(map(_version_of, self.tensors)) == self.versions


NOT_KEPT = ModuleCall(None, None, (), ())
"""Holds the place of a call, since later calls are known by their number."""


@contextmanager
def wrapped(model: nn.Module, names: Iterable[str], wrap: Wrap) -> Generator[None]:
    """Call something else in place of the forward of these modules while the block is open."""
    with ExitStack() as undo:
        for name in names:
            module = model.get_submodule(name)
            own = module.__dict__.get("forward")
            module.forward = wrap(name, module.forward)
            undo.callback(_restore, module, own)
        yield


def _restore(module: nn.Module, own: Any) -> None:
    # A module has no forward of its own but that of its class, unless somebody patched it before.
    if own is None:
        del module.forward
    else:
        module.forward = own


def versions_of(value: Any) -> tuple[int, ...]:
    """How often each tensor in a value was written to; -1 for those that are not counted."""
    return tuple(map(_version_of, tensors_of(value)))


def _version_of(tensor: torch.Tensor) -> int:
    # torch counts writes in _version, but not of tensors made in inference mode, where reading it
    # raises.
    return -1 if tensor.is_inference() else tensor._version


def tensors_of(value: Any) -> Iterable[torch.Tensor]:
    """The tensors in lists, tuples and dictionaries, in their order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from tensors_of(part)
    elif isinstance(value, dict):
        yield from tensors_of(list(value.values()))


def same(one: Any, two: Any) -> bool:
    """Whether two arguments are equal to the last bit; False for anything that keeps a state, such
    as a cache.
    """
    if isinstance(one, torch.Tensor):
        return _same_tensor(one, two)
    if type(one) is not type(two):
        return False
    if type(one) in (tuple, list):
        return len(one) == len(two) and all(map(same, one, two))
    if type(one) is dict:
        return one.keys() == two.keys() and all(
            same(value, two[name]) for name, value in one.items()
        )
    return isinstance(one, SCALARS) and one == two


def _same_tensor(one: torch.Tensor, two: Any) -> bool:
    if not isinstance(two, torch.Tensor) or one.is_inference() or two.is_inference():
        return False
    if one is two:
        return True
    alike = one.shape == two.shape and one.dtype == two.dtype and one.device == two.device
    return alike and torch.equal(one, two)
