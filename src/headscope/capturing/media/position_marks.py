"""Following positions through a model: from which element of the input (a pixel, a sample, a word)
each of them comes.

Every tensor that is followed has a tensor of whole numbers, its marks, which say of every entry
from which element of the input it comes. Whatever moves entries (views, slices, windows, shifts,
joining) moves the marks likewise, by the same function; what computes with entries keeps them. So
nothing need be known about how a model cuts pictures into patches, which tokens it puts before,
behind or between them, and how it folds windows into the batch.

A mark is 0 where nothing is known, the number of an element from 1 on, or a negative number for a
learned token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
MOVES: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(SHAPES | ORDERS | COPIES | PARTS | PIECES, (0,)),
    "where": (0, 1, 2),
    "masked_scatter": (0, 2),
}
"""Functions that move entries and compute nothing, with the places of the arguments that hold
them.
"""
TURNS: set[Any] = {torch.Tensor.T.__get__, torch.Tensor.mT.__get__}  # ty: ignore[missing-attribute]
CONVOLUTIONS = dict.fromkeys(
    ("conv1d", "conv2d", "conv3d"), ("input", "weight", "bias", "stride", "padding", "dilation")
)
POOLS = dict.fromkeys(
    ("max_pool1d", "max_pool2d", "max_pool3d"),
    ("input", "kernel_size", "stride", "padding", "dilation"),
) | dict.fromkeys(
    ("avg_pool1d", "avg_pool2d", "avg_pool3d"), ("input", "kernel_size", "stride", "padding")
)
WINDOWS = CONVOLUTIONS | POOLS
"""Functions that make one entry of each window, with the names of their arguments in order."""
PRODUCTS = {
    **dict.fromkeys(
        ("matmul", "__matmul__", "mm", "bmm", "linear", "scaled_dot_product_attention"), 0
    ),
    **dict.fromkeys(("addmm", "baddbmm"), 1),
}
"""Functions whose result has a row for each row of one argument, with the place of that."""
FUSED = "scaled_dot_product_attention"
MIXING = {"matmul", "__matmul__", "bmm", FUSED}
"""Those of two activations."""


class FunctionCall(NamedTuple):
    """One function of torch and what it was given."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    options: dict[str, Any]

    @property
    def name(self) -> str:
        """Of the function."""
        return getattr(self.function, "__name__", "")

    @property
    def given(self) -> list[Any]:
        """All arguments."""
        return [*self.args, *self.options.values()]


class PositionMarks(TorchFunctionMode):
    """Follows marks while the block is open. Open it before all other modes, so that it sees what
    these compute.

    Args:
        learned: parameters that may stand among tokens, such as a class token; the first is
            numbered -1.
        starts: the first mark of each argument of the model, rising.

    Attributes:
        away: whether nothing is followed now.
    """

    def __init__(self, learned: Iterable[torch.Tensor], starts: Sequence[int] = (1,)) -> None:
        super().__init__()
        self.away: bool = False
        self._starts = starts
        self._learned = {
            tensor.untyped_storage().data_ptr(): -number
            for number, tensor in enumerate(learned, start=1)
        }

    def unfollowed(self, function: Callable) -> Callable:
        """The function, in which nothing is followed."""

        def looking_away(*args: Any) -> Any:
            before, self.away = self.away, True
            try:
                return function(*args)
            finally:
                self.away = before

        return looking_away

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run one torch function as it is, then mark what came out.

        torch turns a mode off while it is asked, so that work on marks is not followed itself.
        """
        options = kwargs or {}
        result = func(*args, **options)
        if not self.away:
            self._mark(FunctionCall(func, args, options), result)
        return result

    def _mark(self, act: FunctionCall, result: Any) -> None:
        """Mark what a function returned, or what it wrote to."""
        if act.name == "__setitem__":
            self._write(*act.args)
        elif isinstance(result, torch.Tensor):
            mark = self._mark_of(act, result)
            # Marks of another shape say nothing of these entries, and none are better than wrong.
            if mark is not None and mark.shape == result.shape:
                setattr(result, MARK, mark)
        elif isinstance(result, tuple | list) and result and isinstance(result[0], torch.Tensor):
            self._mark_each(act, result)

    def _mark_each(self, act: FunctionCall, results: Iterable[Any]) -> None:
        """Mark the pieces of a tensor, or the first of several results.

        What a function returns besides its first result, such as indices, is no input.
        """
        if act.name in MOVES:
            marks = self._moved(act) or ()
        else:
            marks = [self._kept(act.given, next(iter(results)))]
        for result, mark in zip(results, marks, strict=False):
            if mark is not None:
                setattr(result, MARK, mark)

    def _mark_of(self, act: FunctionCall, result: torch.Tensor) -> torch.Tensor | None:
        if act.name in JOINS or act.name in MOVES or act.function in TURNS:
            return self._moved(act)
        if act.name in WINDOWS:
            return _of_windows(act, result)
        if act.name in PRODUCTS:
            return _of_product(act, result)
        if act.name == "embedding":
            mark = marks_of(act.args[0])
            return None if mark is None else mark.unsqueeze(-1).expand(result.shape)
        return self._kept(act.given, result)

    def _moved(self, act: FunctionCall) -> Any:
        """What the function does to the marks of its arguments; None where none of them has any."""
        if act.name in JOINS:
            return self._joined(act)
        held = _moved_arguments(act)
        if all(self._own(tensor) is None for tensor in held.values()):
            return None
        if act.name == "pad":
            return self._padded(act)
        moved = list(act.args)
        for index, tensor in held.items():
            moved[index] = self._marks(tensor)
        if act.function is functional.unfold:
            # It cuts windows out of floating-point numbers only; doubles hold every mark exactly.
            return act.function(moved[0].double(), *moved[1:], **act.options).to(moved[0].dtype)
        if act.name == "view":
            # Marks spread over features need not lie in memory as the numbers do, which view wants.
            return moved[0].reshape(*act.args[1:], **act.options)
        return act.function(*moved, **act.options)

    def _joined(self, act: FunctionCall) -> torch.Tensor | None:
        tensors = list(act.args[0])
        if all(self._own(tensor) is None for tensor in tensors):
            return None
        marks = [self._marks(tensor) for tensor in tensors]
        return act.function(marks, *act.args[1:], **act.options)

    def _padded(self, act: FunctionCall) -> torch.Tensor | None:
        """Padding with a constant has mark 0; padding with copies of entries is not followed."""
        args, options = act.args, act.options
        mode = options.get("mode", args[2] if len(args) > 2 else "constant")
        widths = options.get("pad", args[1] if len(args) > 1 else None)
        return functional.pad(self._marks(args[0]), widths) if mode == "constant" else None

    def _kept(self, given: Iterable[Any], result: torch.Tensor) -> torch.Tensor | None:
        """The marks of arguments of the result's shape: elements of the input go before learned
        tokens, and what is made of several elements has none.

        Where none has that shape, marks are stretched along axes on which they are all the same,
        such as features.
        """
        tensors = [each for each in given if isinstance(each, torch.Tensor) and each.ndim > 1]
        # A learned tensor that is added to others, such as one of positions, is none of them.
        computed = any(one.shape == result.shape and not self._is_learned(one) for one in tensors)
        if computed:
            tensors = [each for each in tensors if not self._is_learned(each)]
        owned = [self._own(each) for each in tensors]
        marks = [mark for mark in owned if mark is not None and mark.ndim == result.ndim]
        fitting = [mark for mark in marks if mark.shape == result.shape]
        if not fitting:
            stretched = (_stretched(mark, result.shape) for mark in marks)
            return next((mark for mark in stretched if mark is not None), None)
        kept = fitting[0]
        for mark in fitting[1:]:
            if mark is not kept:
                kept = _first(kept, mark, self._starts)
        return kept

    def _is_learned(self, tensor: torch.Tensor) -> bool:
        """Whether it is a parameter, or a view of one."""
        return tensor.is_floating_point() and tensor.untyped_storage().data_ptr() in self._learned

    def _write(self, target: torch.Tensor, where: Any, source: Any) -> None:
        given = marks_of(source) if isinstance(source, torch.Tensor) else None
        if marks_of(target) is None and given is None:
            return
        # Marks may share one number in memory among many entries; writing needs one for each.
        written = self._marks(target).clone()
        written[where] = 0 if given is None else given
        setattr(target, MARK, written)

    def _own(self, tensor: Any) -> torch.Tensor | None:
        """The marks of a tensor that was marked, or is a learned one."""
        mark = marks_of(tensor)
        if mark is None and isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
            # A view of a parameter, such as a class token expanded to the batch, keeps its storage.
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


def position_marks(tensor: torch.Tensor | None, *, heads: int) -> np.ndarray | None:
    """The marks ``[batch position]`` of a tensor with four axes, of which this one is the heads';
    None if all are 0, or if features of one position come from several elements, as where features
    attend to each other.
    """
    mark = marks_of(tensor)
    if mark is None or not mark.numel():
        return None
    first = mark.select(heads, 0)[..., 0].cpu().numpy()
    return first if first.any() and not _is_mixed(mark.select(heads, 0)) else None


def _moved_arguments(act: FunctionCall) -> dict[int, torch.Tensor]:
    """The tensors whose entries a function moves, by their places among its arguments."""
    moved = {}
    for index in MOVES.get(act.name, (0,)):
        if index < len(act.args) and isinstance(act.args[index], torch.Tensor):
            moved[index] = act.args[index]
    if act.name == "where":
        # The condition comes first in torch.where and second in Tensor.where; it is not moved.
        moved = {index: tensor for index, tensor in moved.items() if tensor.dtype != torch.bool}
    return moved


def _even(tensor: torch.Tensor, number: int) -> torch.Tensor:
    # Strides of 0 let one number in memory stand for all entries, however many there are.
    return torch.full((), number, dtype=torch.int32, device=tensor.device).expand(tensor.shape)


def _stretched(mark: torch.Tensor, shape: torch.Size) -> torch.Tensor | None:
    for axis, (size, wanted) in enumerate(zip(mark.shape, shape, strict=True)):
        if size != wanted:
            # Along an axis with a stride of 0 all marks are the same, so one can stand for any.
            if not size or (size > 1 and mark.stride(axis)):
                return None
            mark = mark.narrow(axis, 0, 1)
    return mark.expand(shape)


def _first(
    one: torch.Tensor, other: torch.Tensor, starts: Sequence[int] | None = None
) -> torch.Tensor:
    """The marks of one, and of the other where these say more.

    Args:
        one: goes first.
        other: of the same shape.
        starts: the first mark of each argument; what is made of two elements of one of them has
            none then. Of a text that looks at a picture the marks are its own.
    """
    shape = one.shape
    if one.ndim and one.stride(-1) == 0 and other.stride(-1) == 0:
        # Features of a token share its mark: one is compared, and the outcome spread over them.
        one, other = one[..., :1], other[..., :1]
    takes = (one == 0) | ((one < 0) & (other > 0))
    first = torch.where(takes, other, one)
    if starts is not None:
        bounds = torch.tensor(starts, device=one.device)
        given = [torch.bucketize(each.contiguous(), bounds, right=True) for each in (one, other)]
        apart = (one > 0) & (other > 0) & (one != other) & (given[0] == given[1])
        first = first.masked_fill(apart, 0)
    return first.expand(shape)


def _of_product(act: FunctionCall, result: torch.Tensor) -> torch.Tensor | None:
    """Each row has the mark of the row that went in. Where channels attend to channels, rows hold
    many positions, and each column has the mark of the column of values.
    """
    index, tensors = PRODUCTS[act.name], (*act.args, *act.options.values())
    mark = marks_of(tensors[index])
    if act.name in MIXING and (mark is None or _is_mixed(mark)):
        values = marks_of(tensors[2 if act.name == FUSED else index + 1])
        if values is not None:
            return _along_columns(values, result)
    if mark is None or not mark.numel() or mark.shape[:-1] != result.shape[:-1]:
        return None
    return mark[..., :1].expand(result.shape)


def _along_columns(values: torch.Tensor, result: torch.Tensor) -> torch.Tensor | None:
    if values.shape[:-2] != result.shape[:-2] or not _is_mixed(values) or _is_mixed(values.mT):
        return None
    return values[..., :1, :].expand(result.shape)


def _is_mixed(mark: torch.Tensor) -> bool:
    """Whether the features of a row come from several elements."""
    if mark.ndim < 2 or mark.stride(-1) == 0 or not mark.numel():
        return False
    first, last = mark[..., 0], mark[..., -1]
    return bool(((first != last) & (first > 0) & (last > 0)).any())


def _of_windows(act: FunctionCall, result: torch.Tensor) -> torch.Tensor | None:
    """Each place that comes out has the mark of the middle of what went into it."""
    given = dict(zip(WINDOWS[act.name], act.args, strict=False)) | act.options
    mark, axes = marks_of(given["input"]), result.ndim - 2
    if mark is None or mark.ndim != result.ndim:
        return None
    sizes = given["weight"].shape[2:] if act.name in CONVOLUTIONS else given["kernel_size"]
    steps = given.get("stride") or (sizes if act.name in POOLS else 1)
    # The channels of a pixel share its mark, so the first stands for all, unless others were joined
    # to it: a UNet puts what it scaled up, which is not followed, before what it kept.
    mark = _first(mark[:, :1], mark[:, -1:])
    for axis in range(axes):
        width, step, apart = (
            _of_axis(each, axis) for each in (sizes, steps, given.get("dilation", 1))
        )
        reach, padding = apart * (width - 1), given.get("padding", 0)
        if isinstance(padding, str):
            # As torch does: of an odd number of places "same" puts the smaller half in front.
            before = {"same": reach // 2, "valid": 0}[padding]
        else:
            before = _of_axis(padding, axis)
        places = torch.arange(result.shape[axis + 2], device=mark.device)
        # Of the two middles of an even window its padding makes the second the place itself.
        middles = places * step - before + (reach + (before > 0)) // 2
        there = (mark != 0).movedim(axis + 2, 0).flatten(1).any(1).nonzero().flatten()
        if step == 1 and len(there) == len(places):  # padded beforehand, such as a causal one
            middles = there
        # The middle of a window may lie in the padding; the nearest real entry stands for it then.
        mark = mark.index_select(axis + 2, middles.clamp(0, mark.shape[axis + 2] - 1))
    return mark.expand(result.shape)


def _of_axis(setting: Any, axis: int) -> int:
    if isinstance(setting, int):
        return setting
    return setting[axis] if len(setting) > 1 else setting[0]
