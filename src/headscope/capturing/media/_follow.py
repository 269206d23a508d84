"""Following positions through a model: from which spot of a picture, a sound or a text each of them
comes.

Beside a tensor goes a tensor of whole numbers, its marks, which say of every entry from which spot
of the input it comes. Whatever moves entries (views, slices, windows, shifts, joining) moves the
marks likewise, by the same function; what computes with entries keeps them. So nothing need be
known about how a model cuts pictures into patches, which tokens it puts before, behind or between
them, and how it folds windows into the batch.

A mark is 0 where nothing is known, the number of a spot from 1 on, or a negative number for a
learned token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

MARK = "_headscope_origin"
JOINS = {"cat", "concat", "concatenate", "stack", "hstack", "vstack"}
SHAPES = {
    "view",
    "view_as",
    "reshape",
    "reshape_as",
    "flatten",
    "unflatten",
    "squeeze",
    "unsqueeze",
    "t",
    "permute",
}
ORDERS = {"transpose", "swapaxes", "movedim", "moveaxis", "roll", "flip", "rot90", "unfold", "pad"}
COPIES = {"expand", "expand_as", "repeat", "repeat_interleave", "tile"}
PARTS = {"__getitem__", "select", "narrow", "index_select", "gather"}
PIECES = {"split", "split_with_sizes", "chunk", "tensor_split", "unbind"}
MOVES = {
    **dict.fromkeys(SHAPES | ORDERS | COPIES | PARTS | PIECES, (0,)),
    "where": (0, 1, 2),
    "masked_scatter": (0, 2),
}
"""Functions that move entries and compute nothing, with the places of the arguments that hold
them.
"""
TURNS = {torch.Tensor.T.__get__, torch.Tensor.mT.__get__}  # ty: ignore[missing-attribute]
CONVOLUTIONS = {"conv1d", "conv2d", "conv3d"}
PRODUCTS = {
    **dict.fromkeys(
        ("matmul", "__matmul__", "mm", "bmm", "linear", "scaled_dot_product_attention"), 0
    ),
    **dict.fromkeys(("addmm", "baddbmm"), 1),
}
"""Functions whose result has a row for each row of one argument, with the place of that."""


class Act(NamedTuple):
    """One function of torch and what it was given."""

    function: Callable
    args: tuple
    options: dict

    @property
    def name(self) -> str:
        """Of the function."""
        return getattr(self.function, "__name__", "")

    @property
    def given(self) -> list[Any]:
        """All arguments."""
        return [*self.args, *self.options.values()]


class Follow(TorchFunctionMode):
    """Follows marks while the block is open. Open it before all other modes, so that it sees what
    these compute.

    Args:
        learned: parameters that may stand among tokens, such as a class token; the first is
            numbered -1.
    """

    def __init__(self, learned: Iterable[torch.Tensor]) -> None:
        super().__init__()
        self._away = False
        self._learned = {
            tensor.untyped_storage().data_ptr(): -number
            for number, tensor in enumerate(learned, start=1)
        }

    def unfollowed(self, function: Callable) -> Callable:
        """The function, in which nothing is followed."""

        def looking_away(*args: Any) -> Any:
            self._away = True
            try:
                return function(*args)
            finally:
                self._away = False

        return looking_away

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        """Run one torch function as it is, then mark what came out."""
        options = kwargs or {}
        result = func(*args, **options)
        if self._away:
            return result
        act = Act(func, args, options)
        if act.name == "__setitem__":
            self._write(*args)
        elif isinstance(result, torch.Tensor):
            mark = self._mark_of(act, result)
            if mark is not None and mark.shape == result.shape:
                setattr(result, MARK, mark)
        elif isinstance(result, tuple | list) and result and isinstance(result[0], torch.Tensor):
            parts = (
                self._moved(act) or () if act.name in MOVES else [self._kept(act.given, result[0])]
            )
            for part, mark in zip(result, parts, strict=False):
                if mark is not None:
                    setattr(part, MARK, mark)
        return result

    def _mark_of(self, act: Act, result: torch.Tensor) -> torch.Tensor | None:
        if act.name in JOINS or act.name in MOVES or act.function in TURNS:
            return self._moved(act)
        if act.name in CONVOLUTIONS:
            return _convolved(act, result)
        if act.name in PRODUCTS:
            place = PRODUCTS[act.name]
            return _along_rows(
                act.args[place] if len(act.args) > place else act.options.get("query"), result
            )
        if act.name == "embedding":
            mark = marks_of(act.args[0])
            return None if mark is None else mark.unsqueeze(-1).expand(result.shape)
        return self._kept(act.given, result)

    def _moved(self, act: Act) -> Any:
        """What the function does to the marks of its arguments; None where none of them has any."""
        func, args, options = act.function, act.args, act.options
        if act.name in JOINS:
            given = list(args[0])
            if all(self._own(tensor) is None for tensor in given):
                return None
            return func([self._marks(tensor) for tensor in given], *args[1:], **options)
        held = {
            place: args[place]
            for place in MOVES.get(act.name, (0,))
            if len(args) > place and isinstance(args[place], torch.Tensor)
        }
        if (
            act.name == "where"
        ):  # the condition comes first or second, in the function or the method
            held = {place: tensor for place, tensor in held.items() if tensor.dtype != torch.bool}
        if all(self._own(tensor) is None for tensor in held.values()):
            return None
        if act.name == "pad":
            mode = options.get("mode", args[2] if len(args) > 2 else "constant")
            widths = options.get("pad", args[1] if len(args) > 1 else None)
            return functional.pad(self._marks(args[0]), widths) if mode == "constant" else None
        moved = [
            self._marks(held[place]) if place in held else given for place, given in enumerate(args)
        ]
        if (
            func is functional.unfold
        ):  # cuts windows out of numbers with a fraction only; doubles hold every mark
            return func(moved[0].double(), *moved[1:], **options).to(moved[0].dtype)
        if (
            act.name == "view"
        ):  # marks spread over features need not lie in memory as the numbers do
            return moved[0].reshape(*args[1:], **options)
        return func(*moved, **options)

    def _kept(self, given: Iterable[Any], result: torch.Tensor) -> torch.Tensor | None:
        """The marks of arguments of the result's shape: spots go before learned tokens, the first
        before the others.

        Where none has that shape, marks are stretched along axes on which they are all the same,
        such as features.
        """
        marks = [
            mark
            for tensor in given
            if (mark := self._own(tensor)) is not None and mark.ndim == result.ndim > 1
        ]
        fitting = [mark for mark in marks if mark.shape == result.shape]
        if not fitting:
            return next(
                (
                    stretched
                    for mark in marks
                    if (stretched := _stretched(mark, result.shape)) is not None
                ),
                None,
            )
        stretched = fitting[0]
        for mark in fitting[1:]:
            stretched = stretched if mark is stretched else _first(stretched, mark)
        return stretched

    def _write(self, target: torch.Tensor, where: Any, source: Any) -> None:
        mark, given = (
            marks_of(target),
            marks_of(source) if isinstance(source, torch.Tensor) else None,
        )
        if mark is None and given is None:
            return
        written = self._marks(target).clone()
        written[where] = 0 if given is None else given
        setattr(target, MARK, written)

    def _own(self, tensor: Any) -> torch.Tensor | None:
        """The marks of a tensor that was marked, or is a learned one."""
        mark = marks_of(tensor)
        if mark is None and isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
            number = self._learned.get(tensor.untyped_storage().data_ptr())
            mark = None if number is None else _even(tensor, number)
        return mark

    def _marks(self, tensor: torch.Tensor) -> torch.Tensor:
        mark = self._own(tensor)
        return _even(tensor, 0) if mark is None else mark


def marks_of(tensor: Any) -> torch.Tensor | None:
    """The marks that go with a tensor, of its shape; None where there are none."""
    return getattr(tensor, MARK, None)


def marked(tensor: torch.Tensor, marks: torch.Tensor) -> torch.Tensor:
    """Another name for the tensor's numbers, with marks broadcast to its shape; the tensor itself
    stays as it was.
    """
    view = tensor.detach()
    setattr(view, MARK, marks.to(tensor.device, torch.int32).expand(tensor.shape))
    return view


def positions_of(tensor: torch.Tensor | None, *, heads: int) -> np.ndarray | None:
    """The marks ``[batch position]`` of a tensor with four axes, of which this one is the heads';
    None if all are 0.
    """
    mark = marks_of(tensor)
    if mark is None or not mark.numel():
        return None
    positions = mark.select(heads, 0)[..., 0].cpu().numpy()
    return positions if positions.any() else None


def _even(tensor: torch.Tensor, number: int) -> torch.Tensor:
    return torch.full((), number, dtype=torch.int32, device=tensor.device).expand(tensor.shape)


def _stretched(mark: torch.Tensor, shape: torch.Size) -> torch.Tensor | None:
    for axis, (size, wanted) in enumerate(zip(mark.shape, shape, strict=True)):
        if size != wanted:
            if not size or (size > 1 and mark.stride(axis)):
                return None
            mark = mark.narrow(axis, 0, 1)
    return mark.expand(shape)


def _first(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    shape = one.shape
    if one.ndim and one.stride(-1) == 0 and other.stride(-1) == 0:
        one, other = one[..., :1], other[..., :1]
    takes = (one == 0) | ((one < 0) & (other > 0))
    return torch.where(takes, other, one).expand(shape)


def _along_rows(left: Any, result: torch.Tensor) -> torch.Tensor | None:
    mark = marks_of(left)
    if mark is None or not mark.numel() or mark.shape[:-1] != result.shape[:-1]:
        return None
    return mark[..., :1].expand(result.shape)


def _convolved(act: Act, result: torch.Tensor) -> torch.Tensor | None:
    """Each place that comes out has the mark of the middle of what went into it."""
    names = ("input", "weight", "bias", "stride", "padding", "dilation")
    given = dict(zip(names, act.args, strict=False)) | act.options
    mark, weight = marks_of(given["input"]), given["weight"]
    if mark is None or mark.ndim != weight.ndim:
        return None
    mark = mark[:, :1]
    for axis in range(2, mark.ndim):
        width = weight.shape[axis]
        step, apart = (_of_axis(given.get(name, 1), axis - 2) for name in ("stride", "dilation"))
        reach, padding = apart * (width - 1), given.get("padding", 0)
        before = (
            {"same": reach // 2, "valid": 0}[padding]
            if isinstance(padding, str)
            else _of_axis(padding, axis - 2)
        )
        middles = torch.arange(result.shape[axis], device=mark.device) * step - before + reach // 2
        mark = mark.index_select(axis, middles.clamp(0, mark.shape[axis] - 1))
    return mark.expand(result.shape)


def _of_axis(setting: Any, axis: int) -> int:
    if isinstance(setting, int):
        return setting
    return setting[axis] if len(setting) > 1 else setting[0]
