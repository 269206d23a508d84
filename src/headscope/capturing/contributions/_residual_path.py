"""The path of one attention's output: to the residual, through norms, until it is known what the
layer did with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import nn

from headscope.capturing.building._real_tokens import RealTokens
from headscope.capturing.building._side_tokens import SideTokens
from headscope.capturing.calls.call import Call
from headscope.capturing.calls.visibility import Visibility
from headscope.capturing.contributions._modules import matrix_of, remembered, value_columns_of
from headscope.capturing.contributions._norm_sites import NormSite
from headscope.capturing.watching.tape import ModuleUse
from headscope.norms import Norm, ProjectionProducts, expansion_rate

SCALED_WITHIN = 2e-6
"""How far a tensor may be from another one times a number, relative to the largest value."""


@dataclass(frozen=True, eq=False)
class NormUse:
    """A norm that took a tensor, and what came out.

    Args:
        norm: the norm.
        module: that computes it.
        name: of the module.
        given: what went in.
        output: what came out.
    """

    norm: Norm
    module: nn.Module
    name: str
    given: torch.Tensor
    output: torch.Tensor


@dataclass(eq=False, kw_only=True)
class ResidualPath:
    """What has been observed of one call's output so far. Models write into their own tensors:
    all here are copies, or are looked at when they are done with (see `hold`).

    Args:
        call: with its projection.
        sides: its tokens.
        reads: what modules with parameters read before the output was there.
        values: the last matrices that were used before, among them perhaps the one that made the
            values.
        output: ``[batch query model]``, or ``[query model]`` of all examples where they are packed.
        packed: whether the model keeps examples of different lengths one after the other, without
            padding.
        before: a norm of the output itself, before anything is added.
        scale: what the output was multiplied by before it was added, ``[model]``.
        order: which rows of the model's tensors are the output's, row by row; None where they are
            in the same order.
        addends: what was added.
        makers: of each of these the matrix that gave it; None where none is known.
        residual: which of these had been read before, where a pass knows it.
        stream: the sum.
        where: where the model keeps the last sum.
        used: whether something other than a sum or a known norm worked with the sum.
        after: the norm that took the sum.
        goes_on: what the model continues with: ``"stream"`` (pre-norm), ``"normed"`` (post-norm),
            or not known.
        maker: the matrix that made what is added to that.
        total: this sum.
        next: the number of the call whose output is part of this sum.
        again: the same, in post-norm models.
        second: the norm that took that.
        ended: whether nothing more can be learnt.
        site: where the path is seen.
        is_known: whether a pass before has shown the site, where all is expected again.
        held: tensors of the model, and how often they had been written to.
        visibility: what the queries may look at; None as long as there are no layers.
        weights: ``[text head query key]``, where they were computed already.
        layers: arguments of `Layer` for each example, into which the results are written.
    """

    call: Call
    sides: tuple[SideTokens, SideTokens]
    reads: Sequence[ModuleUse]
    values: Sequence[ModuleUse]
    output: torch.Tensor
    packed: bool = False
    before: NormUse | None = None
    scale: torch.Tensor | None = None
    order: torch.Tensor | None = None
    addends: list[torch.Tensor] = field(default_factory=list)
    makers: list[nn.Module | None] = field(default_factory=list)
    residual: torch.Tensor | None = None
    stream: torch.Tensor | None = None
    where: int = 0
    used: bool = False
    after: NormUse | None = None
    goes_on: str = ""
    maker: nn.Module | None = None
    total: torch.Tensor | None = None
    next: int | None = None
    again: torch.Tensor | None = None
    second: NormUse | None = None
    ended: bool = False
    site: NormSite = field(default_factory=NormSite)
    is_known: bool = False
    held: list[tuple[torch.Tensor, int]] = field(default_factory=list)
    visibility: Visibility | None = None
    weights: torch.Tensor | None = None
    layers: list[dict] = field(default_factory=list)

    @cached_property
    def projection(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Matrix ``[head * feature model]`` and bias of the output projection.

        Raises:
            ValueError: where it is more than that.
        """
        module = self.call.projection
        if module is None:
            raise ValueError("it was not seen")
        # A copy of a small one in float64 is kept with its products, of which there are three.
        if not ProjectionProducts.is_worth_it(self.call.size[1] * self.call.value.shape[-1]):
            return matrix_of(module)
        return remembered([module], "matrix", lambda: matrix_of(module))

    @cached_property
    def products(self) -> ProjectionProducts | None:
        """Products of the output projection's parts, kept with its module; None where it is too
        wide for that.
        """
        matrix, _ = self.projection
        heads, module = self.call.size[1], self.call.projection
        if module is None or not ProjectionProducts.is_worth_it(len(matrix)):
            return None
        parts = matrix.reshape(heads, -1, matrix.shape[1])
        is_single = self.is_single
        return remembered(
            [module],
            ("products", heads, is_single),
            lambda: ProjectionProducts(parts, single=is_single),
        )

    @property
    def is_single(self) -> bool:
        """Whether its contributions, which are kept in single precision, are worked out in it."""
        inputs = self.call.size[1] * self.call.value.shape[-1]
        is_double = self.output.dtype == torch.float64
        return not is_double and ProjectionProducts.is_worth_it(inputs)

    @cached_property
    def value_columns(self) -> tuple[nn.Module, tuple[int, ...]] | None:
        """The matrix that made the values, and its columns that hold them."""
        known = self.site.columns if self.is_known else ()
        return value_columns_of(self.call.value, self.values, known=known)

    @cached_property
    def expansion(self) -> float | None:
        """Rate at which f stretches vectors; None where W_V is unknown, or does not take the
        model's vectors.
        """
        columns, projection = self.value_columns, self.call.projection
        if columns is None or projection is None:
            return None
        heads, shared = self.call.size[1], self.call.value.shape[1]
        what = ("expansion", heads, shared, columns[1])
        return remembered([columns[0], projection], what, lambda: self._expansion(*columns))

    def _expansion(self, module: nn.Module, columns: tuple[int, ...]) -> float | None:
        try:
            matrix, offset = matrix_of(module)
        except ValueError:
            return None
        if len(matrix) != self.width:
            return None
        matrix, offset = matrix[:, columns], None if offset is None else offset[list(columns)]
        projection, bias = self.projection
        heads, shared = self.call.size[1], self.call.value.shape[1]
        of_head = np.arange(heads) // (heads // shared)
        value = matrix.reshape(self.width, shared, -1)[:, of_head].reshape(self.width, -1)
        value_bias = None if offset is None else offset.reshape(shared, -1)[of_head].ravel()
        return expansion_rate(value, projection, value_bias, bias)

    @cached_property
    def residuals(self) -> list[torch.Tensor]:
        """What was added and had been read before, as it is or times a number: one of them, where
        all is well.
        """
        if self.residual is not None:
            return [self.residual]
        return find_residuals(self.addends, self.reads)

    @property
    def reader(self) -> nn.Module | None:
        """A module that was given the residual as it is; None for none, or several residuals."""
        return find_reader(self.residuals, self.reads)

    @property
    def is_plain(self) -> bool:
        """Whether the output itself and one residual are added, row by row."""
        odd = (self.before, self.scale, self.order)
        return not self.packed and len(self.residuals) == 1 and odd == (None, None, None)

    @property
    def norm_modules(self) -> tuple[nn.Module | None, nn.Module | None]:
        """The modules of the norm and of the second norm."""
        first = None if self.after is None else self.after.module
        return first, None if self.second is None else self.second.module

    @property
    def missing(self) -> frozenset[str]:
        """The kinds that are missing in any of its examples, once its contributions are written;
        ALTI, which is an option, does not count.
        """
        missing: set[str] = set()
        for layer in self.layers:
            missing |= layer["contributions"].missing.keys() - {"alti"}
        return frozenset(missing)

    def hold(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor of the model: a copy, or where the model is known not to write into it, the
        tensor itself.
        """
        tensor = tensor.detach()
        if tensor.is_inference():
            return tensor.clone()
        self.held.append((tensor, tensor._version))
        return tensor if self.is_known and not self.site.writes else tensor.clone()

    @property
    def is_overwritten(self) -> bool:
        """Whether the model has written into what is held of it."""
        return any(tensor._version != version for tensor, version in self.held)

    @property
    def width(self) -> int:
        """Features of the model."""
        return self.output.shape[-1]

    @property
    def branch(self) -> torch.Tensor:
        """What is to be added: the output, or what its own norm makes of it."""
        return self.output if self.before is None else self.before.output

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

    def unpadded(self, example: int) -> RealTokens:
        """The real tokens of one example."""
        return RealTokens(self.call, example, *(side.positions[example] for side in self.sides))

    def rows(self, tensor: torch.Tensor, texts: Sequence[RealTokens]) -> np.ndarray:
        """``[text query model]`` of texts, filled up to the longest one, in single precision or
        better, of a tensor in the model's order.
        """
        return self._rows(self.ordered(tensor), texts)

    def own_rows(self, texts: Sequence[RealTokens]) -> np.ndarray:
        """``[text query model]`` of the output itself."""
        return self._rows(self.output.reshape(-1, self.width), texts)

    def _rows(self, rows: torch.Tensor, texts: Sequence[RealTokens]) -> np.ndarray:
        batch, _, queries, _ = self.call.size
        if len(texts) == batch and all(len(text.queries) == queries for text in texts):
            own = rows.reshape(batch, queries, self.width)
        else:
            own = rows[filled_up([self._row_numbers(text) for text in texts]).to(rows.device)]
        return own.to("cpu", torch.promote_types(own.dtype, torch.float32)).numpy()

    def _row_numbers(self, text: RealTokens) -> torch.Tensor:
        """Which rows are those of a text's queries."""
        if self.packed:
            first = sum(len(at) for at in self.sides[0].positions[: text.example])
            return torch.arange(first, first + len(text.queries))
        return text.example * self.call.size[2] + text.queries


def filled_up(positions: Sequence[torch.Tensor]) -> torch.Tensor:
    """``[text place]``, the positions of each text; the last one of a shorter text is repeated."""
    longest = max(len(at) for at in positions)
    return torch.stack([torch.cat([at, at[-1:].expand(longest - len(at))]) for at in positions])


def same(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two tensors hold the same numbers, row by row of features."""
    if (
        first.numel() != second.numel()
        or first.shape[-1] != second.shape[-1]
        or first.dtype != second.dtype
    ):
        return False
    return torch.equal(first.reshape(second.shape), second)


def find_residuals(
    addends: Sequence[torch.Tensor], reads: Sequence[ModuleUse]
) -> list[torch.Tensor]:
    """Of what was added, that which modules had read before, as it is or times a number."""
    return [addend for addend in addends if _was_read(addend, reads)]


def find_reader(residuals: Sequence[torch.Tensor], reads: Sequence[ModuleUse]) -> nn.Module | None:
    """The first module that was given the residual; None for none, or several residuals."""
    if len(residuals) != 1:
        return None
    return next((read.module for read in reads if same(read.given, residuals[0])), None)


def _was_read(addend: torch.Tensor, reads: Sequence[ModuleUse]) -> bool:
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
    ours, theirs = (
        whole.reshape(-1, whole.shape[-1]).double(),
        tensor.reshape(-1, whole.shape[-1]).double(),
    )
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
