"""Products of two tensors, in each way in which torch is asked for one, read as an einsum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from headscope.capturing.watching._einsum import exchanged

_OF_MATMUL, _OF_BMM, _OF_SUM = ("input", "other"), ("input", "mat2"), ("input", "batch1", "batch2")
SUMS_OF_PRODUCTS: dict[Any, tuple[str, ...]] = {
    torch.baddbmm: _OF_SUM,
    torch.Tensor.baddbmm: _OF_SUM,
}
ARGUMENTS: dict[Any, tuple[str, ...]] = SUMS_OF_PRODUCTS | {
    torch.matmul: _OF_MATMUL,
    torch.Tensor.matmul: _OF_MATMUL,
    torch.Tensor.__matmul__: _OF_MATMUL,
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
        equation: how an einsum says which axes are multiplied.
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
