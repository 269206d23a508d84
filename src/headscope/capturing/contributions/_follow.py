"""Where the outputs of attention go, read off the records of a pass: to the residual and the norms,
by their numbers.

Every sum of two tensors is compared with the outputs that wait for one, every input of a module
with the sums, whatever the modules are called. What is found is proved afterwards: the pieces must
sum to the model's own vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import nn

from headscope.capturing.contributions._residual_path import (
    NormUse,
    ResidualPath,
    order_of,
    same,
    scale_of,
)
from headscope.capturing.watching.tape import ModuleUse
from headscope.capturing.watching.watch_plan import is_affine


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


class FunctionUse(NamedTuple):
    """A function of torch that does more than to pass on what it is given.

    Args:
        given: the tensors among its arguments.
    """

    given: Sequence[torch.Tensor]


Record = Sum | FunctionUse | ModuleUse
NormOf = Callable[[ModuleUse, ResidualPath], NormUse | None]
"""Function of a use of a module on a path: the norm that it is; None for none."""


def follow(
    paths: Sequence[ResidualPath],
    record: Record,
    norm_of: NormOf,
    matrices: Sequence[ModuleUse] = (),
) -> None:
    """Note in paths what one more record of the pass shows.

    Args:
        paths: those of outputs that were there before, in the order of their calls, and that have
            not ended. What is noted in them are copies: models write into their own tensors.
        record: what the model did next.
        norm_of: tells norms from other modules.
        matrices: the last uses of matrices, the latest first.
    """
    if isinstance(record, Sum):
        _follow_sum(paths, record, matrices)
        return
    for path in paths:
        if isinstance(record, FunctionUse):
            path.used = path.used or _is_used(path, record)
        elif path.takes(record.given):
            _meet(path, record, norm_of)


def _follow_sum(paths: Sequence[ResidualPath], added: Sum, matrices: Sequence[ModuleUse]) -> None:
    """Note a sum at the paths whose output it takes up."""
    parts = [(path, _parts_in(path, added)) for path in paths]
    for path, own_and_other in parts:
        if own_and_other is not None:
            own, other = own_and_other
            maker = next((use.module for use in matrices if same(use.output, other)), None)
            _add(path, (own, other, added.whole), maker, paths)
    _note_next(paths, added)


def _note_next(paths: Sequence[ResidualPath], added: Sum) -> None:
    """Note what a parallel layer goes on with, which becomes the stream of the next one."""
    where = added.whole.data_ptr()
    summed = [path for path in paths if path.total is None and path.where == where]
    for path in paths:
        if path.total is added.whole and summed:
            path.next = summed[0].call.number


def _is_used(path: ResidualPath, use: FunctionUse) -> bool:
    """Whether a function works with a path's sum, of which no norm is known yet."""
    if path.stream is None or path.after is not None:
        return False
    return any(given.data_ptr() == path.where and path.takes(given) for given in use.given)


def _parts_in(path: ResidualPath, added: Sum) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Which of two addends is the path's, and the other one."""
    if path.after is not None:
        known = [path.after.output, path.after.given]
    else:
        known = [path.branch if path.stream is None else path.stream]
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
    parts_and_whole: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    maker: nn.Module | None,
    paths: Sequence[ResidualPath],
) -> None:
    """Note a sum: of the path's own addend and another one, which a matrix may have made."""
    own, other, whole = parts_and_whole
    if not path.takes(whole):
        return
    if path.after is not None:
        is_normed = same(own, path.after.output)
        path.maker, path.total = maker, whole
        path.goes_on = "normed" if is_normed else "stream"
        if is_normed and not _is_of_another(path, other, paths):
            path.again = path.hold(whole)
            path.where = whole.data_ptr()
        else:
            path.ended = True
        return
    if path.stream is None:
        _lay_out(path, own)
    elif path.used or _is_of_another(path, other, paths):
        path.ended = True
        return
    path.addends.append(path.hold(other))
    path.makers.append(maker)
    path.stream, path.where = path.hold(whole), whole.data_ptr()


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
    wanted = path.branch if path.stream is None else path.stream
    if path.after is not None:
        wanted = path.again
    if wanted is None or not same(use.given, wanted):
        return
    norm = norm_of(use, path) if path.takes(use.output) else None
    if norm is None:
        path.ended = is_affine(use.module) and path.stream is not None
    elif path.after is not None:
        path.second, path.ended = norm, True
    elif path.stream is None:
        path.before = norm if path.before is None else path.before
    else:
        path.after = norm
