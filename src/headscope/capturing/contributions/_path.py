"""Where the output of one attention goes: to the residual and through norms, by its numbers.

Every sum of two tensors is compared with the outputs that wait for one, every input of a module
with the sums, whatever the modules are called. What is found is proved afterwards: the pieces must
sum to the model's own vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from headscope.capturing.building.padding import SideTokens
from headscope.capturing.calls.call import Call, Visibility
from headscope.capturing.walk import is_affine
from headscope.capturing.watching.running import ModuleUse
from headscope.norms import Norm

SCALED_WITHIN = 2e-6
"""How far a tensor may be from another one times a number, relative to the largest value."""


class Sum(NamedTuple):
    """Two tensors that were added.

    Args:
        first: one of them, as it was before.
        second: the other one.
        whole: their sum.
    """

    first: torch.Tensor
    second: torch.Tensor
    whole: torch.Tensor


@dataclass(frozen=True, eq=False)
class NormUse:
    """A norm that took a tensor.

    Args:
        norm: the norm.
        name: of its module.
        output: what came out.
    """

    norm: Norm
    name: str
    output: torch.Tensor


NormOf = Callable[[ModuleUse, int], NormUse | None]
"""Function of a use of a module and the width of vectors: the norm that it is; None for none."""


@dataclass(eq=False, kw_only=True)
class ResidualPath:
    """What has been observed of one call's output so far. Models write into their own tensors: all
    here are copies.

    Args:
        call: with its projection.
        sides: its tokens.
        visibility: what the queries may attend to.
        weights: ``[text head query key]``, where they were computed already.
        layers: arguments of `Layer` for each example, into which the results are written.
        reads: what modules with parameters read before the output was there.
        value: the matrix that made the values, and its columns that hold them; None if unknown.
        output: ``[batch query model]``, or ``[query model]`` of all examples where they are packed.
        packed: whether the model keeps examples of different lengths one after the other, without
            padding.
        before: a norm of the output itself, before anything is added.
        scale: what the output was multiplied by before it was added, ``[model]``.
        order: which rows of the model's tensors are the output's, row by row; None where they are
            in the same order.
        residuals: what was added and had been read before, as it is or times a number: one, where
            all is well.
        others: what else was added.
        stream: the sum.
        where: where the model keeps the last sum.
        used: whether something other than a sum or a known norm worked with the sum.
        after: the norm that took the sum.
        goes_on: what the model continues with: ``"stream"`` (pre-norm), ``"normed"`` (post-norm),
            or not known.
        again: this with what a feed-forward part adds, in post-norm models.
        second: the norm that took that.
        ended: whether nothing more can be learnt.
    """

    call: Call
    sides: tuple[SideTokens, SideTokens]
    visibility: Visibility
    weights: torch.Tensor | None
    layers: list[dict]
    reads: Sequence[ModuleUse]
    value: tuple[nn.Module, tuple[int, ...]] | None
    output: torch.Tensor
    packed: bool = False
    before: NormUse | None = None
    scale: torch.Tensor | None = None
    order: torch.Tensor | None = None
    residuals: list[torch.Tensor] = field(default_factory=list)
    others: list[torch.Tensor] = field(default_factory=list)
    stream: torch.Tensor | None = None
    where: int = 0
    used: bool = False
    after: NormUse | None = None
    goes_on: str = ""
    again: torch.Tensor | None = None
    second: NormUse | None = None
    ended: bool = False

    @property
    def width(self) -> int:
        """Features of the model."""
        return self.output.shape[-1]

    @property
    def branch(self) -> torch.Tensor:
        """What is to be added: the output, or what its own norm makes of it."""
        return self.output if self.before is None else self.before.output

    @property
    def last(self) -> torch.Tensor | None:
        """What was seen last on its way."""
        if self.after is not None:
            return self.again
        return self.branch if self.stream is None else self.stream

    def takes(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is as large as the output."""
        return (
            tensor.ndim >= 2
            and tensor.numel() == self.output.numel()
            and tensor.shape[-1] == self.width
        )

    def ordered(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor of the model in the order of the output: ``[batch * query model]``."""
        rows = tensor.reshape(-1, self.width)
        return rows if self.order is None else rows[self.order]


def follow(
    paths: Sequence[ResidualPath], record: Sum | list[torch.Tensor] | ModuleUse, norm_of: NormOf
) -> None:
    """Note in paths what one more record of the pass shows.

    Args:
        paths: those of outputs that were there before, in the order of their calls, and that have
            not ended.
        record: what the model did next: a sum, the use of a module, or what another function took
            that does more than to pass it on.
        norm_of: tells norms from other modules.
    """
    if isinstance(record, Sum):
        parts = [(path, _parts_in(path, record)) for path in paths]
        for path, own_and_other in parts:
            if own_and_other is not None and path.takes(record.whole):
                _add(path, own_and_other, record.whole, paths)
        return
    for path in paths:
        if isinstance(record, list):
            path.used = path.used or _is_used(path, record)
        elif path.takes(record.given):
            _meet(path, record, norm_of)


def _is_used(path: ResidualPath, given: list[torch.Tensor]) -> bool:
    """Whether a function works with a path's sum, of which no norm is known yet."""
    if path.stream is None or path.after is not None:
        return False
    return any(each.data_ptr() == path.where and path.takes(each) for each in given)


def _parts_in(path: ResidualPath, added: Sum) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Which of two addends is the path's, and the other one."""
    known = [path.branch if path.stream is None else path.stream]
    if path.after is not None:
        known.insert(0, path.after.output)
    for own, other in ((added.first, added.second), (added.second, added.first)):
        if path.takes(own) and path.takes(other):
            if any(same(own, tensor) for tensor in known):
                return own, other
            # By numbers, not by identity: dropout, a reshape or a scale makes another tensor of it.
            if path.stream is None and _is_branch(path, own):
                return own, other
    return None


def _is_branch(path: ResidualPath, tensor: torch.Tensor) -> bool:
    """Whether a tensor is the path's output in another order of rows, or multiplied with
    something.
    """
    if (
        tensor.ndim == path.output.ndim == 3
        and tensor.shape[0] == path.output.shape[1] != tensor.shape[1]
    ):
        tensor = tensor.transpose(0, 1)
    if scale_of(tensor, path.branch) is not None:
        return True
    return path.before is None and order_of(tensor, path.output) is not None


def _add(
    path: ResidualPath,
    own_and_other: tuple[torch.Tensor, torch.Tensor],
    whole: torch.Tensor,
    paths: Sequence[ResidualPath],
) -> None:
    """Note a sum of the path's own addend and another one."""
    own, other = own_and_other
    if path.after is not None:
        is_normed = same(own, path.after.output)
        path.goes_on = "normed" if is_normed else "stream"
        path.ended = not is_normed or _is_of_another(path, other, paths)
        if not path.ended:
            path.again, path.where = _copy(whole), whole.data_ptr()
        return
    if path.stream is None:
        _lay_out(path, own)
    elif path.used or _is_of_another(path, other, paths):
        path.ended = True
        return
    kind = path.residuals if _was_read(other, path.reads) else path.others
    kind.append(_copy(other))
    path.stream, path.where = _copy(whole), whole.data_ptr()


def _lay_out(path: ResidualPath, own: torch.Tensor) -> None:
    """Find how the model's rows and numbers are to be read: their order, and what the output was
    multiplied by.
    """
    if same(own, path.branch):
        return
    batch, queries = path.output.shape[:2]
    if own.ndim == path.output.ndim == 3 and own.shape[:2] == (queries, batch):
        order = torch.arange(batch * queries, device=own.device).reshape(queries, batch).T.flatten()
        if scale_of(own.reshape(batch * queries, -1)[order], path.branch) is not None:
            path.order = order
    if path.order is None and scale_of(own, path.branch) is None:
        path.order = order_of(own, path.output)
        return
    scale = scale_of(path.ordered(own), path.branch)
    path.scale = None if scale is None or torch.equal(scale, torch.ones_like(scale)) else scale


def _is_of_another(path: ResidualPath, tensor: torch.Tensor, paths: Sequence[ResidualPath]) -> bool:
    """Whether a tensor is the output of another attention that waits."""
    return any(
        other is not path
        and other.stream is None
        and other.takes(tensor)
        and (same(tensor, other.branch) or _is_branch(other, tensor))
        for other in paths
    )


def _meet(path: ResidualPath, use: ModuleUse, norm_of: NormOf) -> None:
    """A module took something as large as the output: a norm of it, or the end of its way."""
    if path.last is None or not same(use.given, path.last):
        return
    norm = norm_of(use, path.width) if path.takes(use.output) else None
    if norm is None:
        path.ended = is_affine(use.module) and path.stream is not None
    elif path.after is not None:
        path.second, path.ended = norm, True
    elif path.stream is None:
        path.before = path.before or norm
    else:
        path.after = norm


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone()


def same(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two tensors hold the same numbers, row by row of features."""
    if (
        first.numel() != second.numel()
        or first.shape[-1] != second.shape[-1]
        or first.dtype != second.dtype
    ):
        return False
    return torch.equal(first.reshape(second.shape), second)


def _was_read(addend: torch.Tensor, reads: Sequence[ModuleUse]) -> bool:
    """Whether modules had read this before, as it is or times a number."""
    alike = [read.given for read in reads if read.given.shape[-1] == addend.shape[-1]]
    if any(same(addend, read) for read in alike):
        return True
    scales = (scale_of(addend, read) for read in alike)
    return any(scale is not None and bool((scale == scale[0]).all()) for scale in scales)


def scale_of(tensor: torch.Tensor, whole: torch.Tensor) -> torch.Tensor | None:
    """``[model]`` with ``tensor = scale * whole``, found from the numbers; None where there is no
    such scale.

    One number is tried first; one for each feature only where there are several rows to tell it
    from.
    """
    if tensor.numel() != whole.numel():
        return None
    ours, theirs = (each.reshape(-1, whole.shape[-1]).double() for each in (whole, tensor))
    largest = theirs.abs().max()
    within = SCALED_WITHIN if tensor.dtype in (torch.float32, torch.float64) else 1e-2
    if not largest > 0 or not torch.isfinite(largest):
        return None
    for axes in (None, 0):
        if axes == 0 and len(ours) < 3:
            break
        squares = (ours**2).sum() if axes is None else (ours**2).sum(0)
        products = (ours * theirs).sum() if axes is None else (ours * theirs).sum(0)
        scale = torch.where(squares > 0, products / squares.clamp(min=1e-300), 0.0)
        if (scale * ours - theirs).abs().max() <= within * largest:
            return scale.expand(whole.shape[-1])
    return None


def order_of(tensor: torch.Tensor, output: torch.Tensor) -> torch.Tensor | None:
    """Which rows of a tensor are those of the output, in its order; None where they are others, or
    some are alike.
    """
    theirs, ours = tensor.reshape(-1, output.shape[-1]), output.reshape(-1, output.shape[-1])
    if len(theirs) != len(ours) or theirs.dtype != ours.dtype or len(ours) < 2:
        return None
    # two matrix products may round differently, so rows are first put in order by plain numbers
    first, second = (np.lexsort(part.float().cpu().numpy()[:, :4].T) for part in (theirs, ours))
    order = torch.from_numpy(first[np.argsort(second)]).to(output.device)
    if not torch.equal(theirs[order], ours):
        return None
    sorted_rows = ours[torch.from_numpy(second).to(output.device)]
    alike = (sorted_rows[1:] == sorted_rows[:-1]).all(-1).any()
    return None if alike else order
