"""What a layer is given, and returns, where copies of a batch stand one behind the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from headscope.studies.ablation._module_calls import SCALARS, ModuleCall, tensors_of


class NotAlikeError(Exception):
    """An argument is not the same for all copies, nor what a layer below returned."""


@dataclass(frozen=True, eq=False)
class Leaf:
    """One argument: of all copies together, and of each."""

    together: Any
    each: list[Any]


def batch_shape(call: ModuleCall) -> tuple[int, int] | None:
    """How many texts and tokens a layer returned states of; None where they have other axes."""
    states = next(iter(tensors_of(call.returned)), None)
    if states is None or states.ndim != 3:
        return None
    return states.shape[0], states.shape[1]


def repeated(tensor: torch.Tensor, size: int, count: int) -> torch.Tensor:
    """Copies behind each other in the batch axis, where a tensor has one."""
    # A single axis is that of tokens, as of positions.
    if tensor.ndim < 2 or tensor.shape[0] != size:
        return tensor
    return tensor.repeat(count, *[1] * (tensor.ndim - 1))


def mapped(value: Any, beside: Any, leaf: Callable[[Any, Any], Leaf]) -> Any:
    """The same lists, tuples and dictionaries with a leaf for each pair of what is in them.

    Raises:
        NotAlikeError: where the two differ, or hold anything else than tensors and numbers.
    """
    if type(value) is dict:
        if type(beside) is not dict or value.keys() != beside.keys():
            raise NotAlikeError
        return {name: mapped(own, beside[name], leaf) for name, own in value.items()}
    if type(value) in (tuple, list):
        if type(beside) is not type(value) or len(beside) != len(value):
            raise NotAlikeError
        return type(value)(mapped(*pair, leaf) for pair in zip(value, beside, strict=True))
    if not isinstance(value, (torch.Tensor, *SCALARS)):
        raise NotAlikeError
    return leaf(value, beside)


def parts_of(returned: Any, count: int) -> Any:
    """What a layer returned of all copies, and of each.

    Raises:
        NotAlikeError: where it is not of copies.
    """
    states = next(iter(tensors_of(returned)), None)
    size = 0 if states is None or not states.ndim else states.shape[0]

    def parted(own: Any, _: Any) -> Leaf:
        if not isinstance(own, torch.Tensor):
            return Leaf(own, [own] * count)
        if not size or size % count or own.ndim < 2 or own.shape[0] != size:
            raise NotAlikeError
        # Not copied: whoever writes to one of them is seen to have written to all.
        return Leaf(own, list(own.split(size // count)))

    return mapped(returned, returned, parted)


def picked(made: Any, number: int | None) -> Any:
    """Of leaves, what one copy is given; what all are given where None."""
    if isinstance(made, Leaf):
        return made.together if number is None else made.each[number]
    if isinstance(made, dict):
        return {name: picked(own, number) for name, own in made.items()}
    return type(made)(picked(own, number) for own in made)


def leaves_of(made: Any) -> Iterator[Leaf]:
    if isinstance(made, Leaf):
        yield made
    else:
        for own in made.values() if isinstance(made, dict) else made:
            yield from leaves_of(own)
