"""Products of two tensors, in each way in which torch is asked for one, read as an einsum."""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import torch

EQUATIONS_REMEMBERED = 256
"""A model has a handful, and asks for each in every layer."""


@dataclass(frozen=True)
class AxisOrder:
    """How to bring one tensor of an einsum into the order of axes wanted.

    Args:
        order: of its axes.
        new: the place at which an axis of length 1 is put in afterwards: of heads that share one
            tensor; None for nowhere.
    """

    order: tuple[int, ...]
    new: int | None = None

    @cached_property
    def is_turned(self) -> bool | None:
        """Whether the two axes that are wanted last stand last in the tensor, but exchanged; None
        where they do not stand last.
        """
        last, count = self.order[-2:], len(self.order)
        return last[0] > last[1] if sorted(last) == [count - 2, count - 1] else None

    def read(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor in the order wanted."""
        permuted = tensor if list(self.order) == sorted(self.order) else tensor.permute(self.order)
        return permuted if self.new is None else permuted.unsqueeze(self.new)

    def written(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor in the order wanted, as the einsum holds it."""
        squeezed = tensor if self.new is None else tensor.squeeze(self.new)
        return squeezed.permute(sorted(range(len(self.order)), key=self.order.__getitem__))


Readings = tuple[AxisOrder, AxisOrder, AxisOrder]


@lru_cache(EQUATIONS_REMEMBERED)
def attention_axes(equation: str, sizes: tuple[int, int] = (4, 4)) -> Readings | None:
    """How to read weights, values and context of ``weights, values -> context``.

    The key axis is summed over; the query axis is of weights and context, the feature axis of
    values and context; of the two axes that all three share the first of the weights is the batch.
    Values without a head axis are shared by all heads. With one shared axis the tensors have three
    axes each.

    Args:
        equation: such as ``"bnij,jbnd->ibnd"``, or with an ellipsis.
        sizes: how many axes weights and values have.

    Returns:
        Readings that give ``[batch head query key]``, ``[batch head key feature]`` and ``[batch
        query head feature]``, or ``[shared query key]``, ``[shared key feature]`` and ``[shared
        query feature]``; None where the equation is of another form.
    """
    letters = _letters(equation, sizes)
    if letters is None:
        return None
    axes = letters.axes(letters.first)
    if axes is None:
        return None
    shared, query, key, feature = axes
    context = (*shared[:1], query, *shared[1:], feature)
    return (
        _reading(letters.first, (*shared, query, key)),
        _reading(letters.second, (*shared, key, feature)),
        _reading(letters.output, context),
    )


@lru_cache(EQUATIONS_REMEMBERED)
def product_axes(equation: str, sizes: tuple[int, int] = (4, 4)) -> Readings | None:
    """How to read queries, keys and scores of ``queries, keys -> scores``.

    The feature axis is summed over; of the two axes that all three share the first of the scores is
    the batch. Keys without a head axis are shared by all heads. With one shared axis the tensors
    have three axes each.

    Args:
        equation: such as ``"ibnd,jbnd->bnij"``, or with an ellipsis.
        sizes: how many axes queries and keys have.

    Returns:
        Readings that give ``[batch head query feature]``, ``[batch head key feature]`` and ``[batch
        head query key]``, or all without the head; None where the equation is of another form.
    """
    letters = _letters(equation, sizes)
    if letters is None:
        return None
    axes = letters.axes(letters.output)
    if axes is None:
        return None
    shared, query, feature, key = axes
    return (
        _reading(letters.first, (*shared, query, feature)),
        _reading(letters.second, (*shared, key, feature)),
        _reading(letters.output, (*shared, query, key)),
    )


@lru_cache(EQUATIONS_REMEMBERED)
def exchanged(equation: str) -> str:
    """The same einsum with its two operands exchanged."""
    inputs, arrow, output = equation.partition("->")
    first, comma, second = inputs.partition(",")
    return f"{second}{comma}{first}{arrow}{output}"


@dataclass(frozen=True)
class _Letters:
    first: str
    second: str
    output: str

    def axes(self, ordered: str) -> tuple[tuple[str, ...], str, str, str] | None:
        """The shared axes, the first operand's own, the one summed over, and the second's own; None
        for other forms.

        An axis before the last of the first operand's own, which the second has not, is that of
        heads that share.

        Args:
            ordered: the operand by which shared axes are put in order.
        """
        first, second, output = self.first, self.second, self.output
        shared = sorted(
            (letter for letter in output if letter in first and letter in second), key=ordered.index
        )
        summed = [letter for letter in first if letter in second and letter not in output]
        of_first = sorted(
            (axis for axis in output if axis in first and axis not in second), key=ordered.index
        )
        of_second = [letter for letter in output if letter in second and letter not in first]
        if len(shared) == 1 and len(of_first) == 2:
            shared.append(of_first.pop(0))
        if (len(summed), len(of_first), len(of_second)) != (1, 1, 1) or len(shared) not in (1, 2):
            return None
        return tuple(shared), of_first[0], summed[0], of_second[0]


def _letters(equation: str, sizes: tuple[int, int]) -> _Letters | None:
    """The letters of both operands and the result, an ellipsis written out; None where it cannot
    be.
    """
    inputs, _, output = equation.replace(" ", "").partition("->")
    first, _, second = inputs.partition(",")
    if "..." in equation:
        hidden = [
            size - len(side) + 3
            for side, size in zip((first, second), sizes, strict=True)
            if "..." in side
        ]
        if not hidden or len(set(hidden)) != 1 or hidden[0] < 0:
            return None
        spare = "".join(letter for letter in string.ascii_letters if letter not in equation)[
            : hidden[0]
        ]
        first, second, output = (side.replace("...", spare) for side in (first, second, output))
    sides = first, second, output
    return (
        _Letters(*sides) if all(len(set(side)) == len(side) for side in sides) and output else None
    )


def _reading(letters: str, wanted: tuple[str, ...]) -> AxisOrder:
    absent = [index for index, letter in enumerate(wanted) if letter not in letters]
    order = tuple(letters.index(letter) for letter in wanted if letter in letters)
    return AxisOrder(order, absent[0] if absent else None)


_OF_MATMUL, _OF_BMM, _OF_SUM = ("input", "other"), ("input", "mat2"), ("input", "batch1", "batch2")
SUMS_OF_PRODUCTS: dict[Any, tuple[str, ...]] = {
    torch.baddbmm: _OF_SUM,
    torch.Tensor.baddbmm: _OF_SUM,
}
ARGUMENTS: dict[Any, tuple[str, ...]] = SUMS_OF_PRODUCTS | {
    torch.matmul: _OF_MATMUL,
    torch.Tensor.matmul: _OF_MATMUL,
    torch.Tensor.__matmul__: _OF_MATMUL,
    torch.mm: _OF_BMM,
    torch.Tensor.mm: _OF_BMM,
    torch.bmm: _OF_BMM,
    torch.Tensor.bmm: _OF_BMM,
}
"""What functions call their arguments; the last two are the factors."""
PRODUCTS: set[Any] = {*ARGUMENTS, torch.einsum}
MATMUL = "...ij,...jk->...ik"
FUSED: Any = torch.nn.functional.scaled_dot_product_attention


class MatrixProduct(NamedTuple):
    """A product of two tensors.

    Args:
        left: the first factor.
        right: the second one.
        equation: how an einsum names which axes are multiplied.
        scale: what the product is multiplied by.
        added: a tensor, what it is multiplied by, and that is then added to the product; None where
            there is none.
    """

    left: torch.Tensor
    right: torch.Tensor
    equation: str = MATMUL
    scale: float = 1.0
    added: tuple[torch.Tensor, float] | None = None

    @property
    def axes(self) -> tuple[int, int]:
        """How many axes the factors have."""
        return self.left.ndim, self.right.ndim

    def exchanged(self) -> MatrixProduct:
        """With the factors exchanged."""
        return self._replace(left=self.right, right=self.left, equation=exchanged(self.equation))

    def aligned(self) -> MatrixProduct:
        """With as many axes in both factors of attention, as ``matmul`` broadcasts them."""
        if self.equation is not MATMUL or set(self.axes) != {3, 4}:
            return self
        left, right = (each[None] if each.ndim == 3 else each for each in (self.left, self.right))
        return self._replace(left=left, right=right)


def product_of(func: Any, args: tuple, options: dict[str, Any]) -> MatrixProduct | None:
    """The product that one of `PRODUCTS` computes; None where it has other than two factors."""
    if func is torch.einsum:
        equation, *operands = args
        factors = operands[0] if _are_listed(args) else operands
        is_read = len(factors) == 2 and isinstance(equation, str)
        return MatrixProduct(*factors, equation) if is_read else None
    given = dict(zip(ARGUMENTS[func], args, strict=False)) | options
    left, right = (given.get(name) for name in ARGUMENTS[func][-2:])
    if left is None or right is None:
        return None
    if func not in SUMS_OF_PRODUCTS:
        return MatrixProduct(left, right)
    added = given["input"], float(given.get("beta", 1.0))
    return MatrixProduct(left, right, scale=float(given.get("alpha", 1.0)), added=added)


def with_factors(
    act: tuple[Callable, tuple, dict[str, Any]], left: torch.Tensor, right: torch.Tensor
) -> tuple[tuple, dict[str, Any]]:
    """The arguments of a product with other factors.

    Args:
        act: a function of torch, its arguments and options.
        left: the first factor.
        right: the second one.
    """
    func, args, options = act
    if func is torch.einsum:
        return ((args[0], [left, right]) if _are_listed(args) else (args[0], left, right)), options
    names = ARGUMENTS[func]
    given = dict(zip(names, args, strict=False)) | options
    given |= dict(zip(names[-2:], (left, right), strict=True))
    own = tuple(given.pop(name) for name in names)
    return (*own, *args[len(names) :]), given


def _are_listed(args: tuple) -> bool:
    """Whether an einsum was given its tensors in a list."""
    return len(args) == 2 and isinstance(args[1], list | tuple)
