"""Watching what a model does with the output of each attention: the residual and the norms, found
from the numbers.

Every sum of two tensors is compared with the outputs that wait for one, every input of a norm with
the sums, whatever modules are called. What is found is proved afterwards: the pieces must sum to
the model's own vectors.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from headscope.capturing.building._put_away import Put, put_away
from headscope.capturing.calls.call import Call
from headscope.capturing.contributions._build import refused, write_contributions
from headscope.capturing.contributions._modules import norm_of, remembered
from headscope.capturing.contributions._norm_sites import FoundModules
from headscope.capturing.contributions._residual_path import (
    KnownOfCall,
    NormUse,
    ResidualPath,
    order_of,
    same,
    scale_of,
)
from headscope.capturing.contributions._texts_of_path import texts_of
from headscope.capturing.observers import observers
from headscope.capturing.seam import unseen, unwatched
from headscope.capturing.walk import modules_of
from headscope.capturing.watching.tape import ModuleUse, PassReader, first_tensor
from headscope.capturing.watching.watch_plan import is_affine, names_of
from headscope.norms import Norm

SUMS = {torch.add, torch.Tensor.add, torch.Tensor.__add__, torch.Tensor.__radd__}
SUMS_IN_PLACE = {torch.Tensor.add_, torch.Tensor.__iadd__}
HARMLESS = {
    "dropout",
    "view",
    "reshape",
    "to",
    "contiguous",
    "clone",
    "detach",
    "dim",
    "size",
    "__get__",
    "type",
}
READS_REMEMBERED, MATRICES_REMEMBERED, WAITING = 12, 8, 4
NO_PROJECTION = (
    "no matrix takes the output of its heads unchanged (something stands between, or there is none)"
)


class NormsWatch(PassReader):
    """Follows the output of each attention while the block is open, and says of each layer what its
    tokens added.

    Args:
        model: whose attention it is.
        with_alti: whether ALTI is computed too.
        put: takes each array that is done, and gives what is kept in its place; None to keep all
            in memory.

    A `Watch` that is opened inside it tells it of the pass.
    """

    def __init__(
        self, model: nn.Module, *, with_alti: bool = False, put: Put | None = None
    ) -> None:
        self._with_alti, self._put = with_alti, put
        self._model, self._names = model, names_of(model)
        self._reads: deque[ModuleUse] = deque(maxlen=READS_REMEMBERED)
        self._applied: deque[ModuleUse] = deque(maxlen=MATRICES_REMEMBERED)
        self._waiting: list[ResidualPath] = []
        self._summed: list[tuple[FoundModules, torch.Tensor]] = []
        self.called: dict[int, FoundModules] = {}
        self._norms: dict[tuple[int, int], Norm | None] = {}
        modules = modules_of(model)
        self.before: Sequence[nn.Module] = [
            module for module in modules if next(module.parameters(), None) is not None
        ]
        self.after: Sequence[nn.Module] = [
            module for module in modules if next(module.children(), None) is None
        ]

    def __enter__(self) -> NormsWatch:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is None:
            self._finish(self._waiting)
        self._waiting.clear()
        self._summed.clear()
        self._reads.clear()
        self._applied.clear()

    def expect(
        self,
        seen: Call,
        call: Call,
        known: KnownOfCall,
        layers: list[dict[str, Any]],
    ) -> None:
        """From now on, follow the output of this call into the residual stream; what is learned
        goes into its layers.

        Args:
            seen: the call as it was made, with its projection.
            call: the same laid out anew, a row of the batch for each example.
            known: its tokens, what its queries may look at, and its weights ``[text head query
                key]``, if all of them were computed already.
            layers: arguments of `Layer` for each example, to which ``value_norms`` and
                ``contributions`` are added.
        """
        modules = self.called[call.number] = FoundModules()
        if call.projection is None or call.output is None:
            for layer in layers:
                layer["contributions"] = refused(f"{call.name}: {NO_PROJECTION}")
            return
        sides, visibility, weights = known
        # A copy, since models add the residual into this very tensor.
        output = call.output.reshape(call.size[0], call.size[2], -1).detach().clone()
        packed = seen.output is not None and seen.output.numel() != output.numel()
        if packed:  # the model has no padding where the layout has
            output = torch.cat(
                [output[example, at] for example, at in enumerate(sides[0].positions)]
            )
        self._waiting.append(
            ResidualPath(
                call=call,
                sides=sides,
                visibility=visibility,
                weights=weights,
                reads=tuple(self._reads),
                values=tuple(reversed(self._applied)),
                layers=layers,
                output=output,
                packed=packed,
                modules=modules,
            )
        )
        if len(self._waiting) > WAITING:
            self._finish(self._waiting[:1])

    def function(
        self, func: Callable, args: tuple[Any, ...], options: dict[str, Any], run: Callable
    ) -> Any:
        """Run one torch function as it is; note sums."""
        if not self._waiting:
            return run(func, args, options)
        if func not in SUMS and func not in SUMS_IN_PLACE:
            self._note_use(func, args)
            return run(func, args, options)
        parts = _two_tensors(args, options)
        if parts is None:
            return run(func, args, options)
        own_and_other = self._parts_of_paths(parts, in_place=func in SUMS_IN_PLACE)
        result = run(func, args, options)
        if own_and_other:
            with unwatched():
                for path, (own, other) in own_and_other:
                    self._added(path, own, other, result)
                self._finish([path for path in self._waiting if path.ended])
        return result

    def _parts_of_paths(
        self, parts: tuple[torch.Tensor, torch.Tensor], *, in_place: bool
    ) -> list[tuple[ResidualPath, tuple[torch.Tensor, torch.Tensor]]]:
        """The paths that one of two addends is of, each with its own addend and the other one."""
        own_and_other = []
        with unwatched():
            # The first addend will hold the sum when it is looked at.
            if in_place:
                parts = parts[0].clone(), parts[1]
            for path in self._waiting:
                part = self._part_in(path, parts)
                if part:
                    own_and_other.append((path, part))
        return own_and_other

    def _part_in(
        self, path: ResidualPath, parts: tuple[torch.Tensor, torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Which of two addends is the path's, and the other one."""
        if path.after is not None:
            known = [path.after.output, path.after.given]
        else:
            known = [path.branch if path.stream is None else path.stream]
        for own, other in (parts, parts[::-1]):
            if path.takes(own) and path.takes(other):
                if any(same(own, tensor) for tensor in known):
                    return own, other
                # By numbers, not by identity: dropout, a reshape or a scale makes another tensor of
                # it.
                if path.stream is None and self._is_branch(path, own):
                    return own, other
        return None

    def _is_branch(self, path: ResidualPath, tensor: torch.Tensor) -> bool:
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

    def _added(
        self, path: ResidualPath, own: torch.Tensor, other: torch.Tensor, result: torch.Tensor
    ) -> None:
        if not path.takes(result):
            return
        if path.after is not None:
            is_normed = same(own, path.after.output)
            path.modules.maker = self._maker_of(other)
            self._summed.append((path.modules, result))
            path.goes_on = "normed" if is_normed else "stream"
            if is_normed and not self._is_of_another(path, other):
                path.again = result.detach().clone()
                path.where = result.data_ptr()
            else:
                path.ended = True
            return
        if path.stream is None:
            self._lay_out(path, own)
        elif path.used or self._is_of_another(path, other):
            path.ended = True
            return
        path.addends.append(other.detach().clone())
        path.stream, path.where = result.detach().clone(), result.data_ptr()

    def _maker_of(self, tensor: torch.Tensor) -> nn.Module | None:
        """The matrix that gave a tensor; None where none did."""
        uses = reversed(self._applied)
        return next((use.module for use in uses if same(use.output, tensor)), None)

    def _lay_out(self, path: ResidualPath, own: torch.Tensor) -> None:
        """Find how the model's rows and numbers are to be read: their order, and what the output
        was multiplied by.
        """
        if same(own, path.branch):
            return
        batch, queries = path.output.shape[:2]
        if own.ndim == path.output.ndim == 3 and own.shape[:2] == (queries, batch):
            order = (
                torch.arange(batch * queries, device=own.device).reshape(queries, batch).T.flatten()
            )
            if scale_of(own.reshape(batch * queries, -1)[order], path.branch) is not None:
                path.order = order
        if path.order is None and scale_of(own, path.branch) is None:
            path.order = order_of(own, path.output)
            return
        scale = scale_of(path.ordered(own), path.branch)
        path.scale = None if scale is None or torch.equal(scale, torch.ones_like(scale)) else scale

    def _is_of_another(self, path: ResidualPath, tensor: torch.Tensor) -> bool:
        """Whether a tensor is the output of another attention that waits."""
        return any(
            other is not path
            and other.stream is None
            and other.takes(tensor)
            and self._matches(other, tensor)
            for other in self._waiting
        )

    def _matches(self, path: ResidualPath, tensor: torch.Tensor) -> bool:
        return same(tensor, path.branch) or self._is_branch(path, tensor)

    def _note_use(self, func: Callable, args: tuple) -> None:
        if getattr(func, "__name__", "") in HARMLESS:
            return
        for path in self._waiting:
            if path.stream is not None and path.after is None and not path.used:
                path.used = any(
                    isinstance(given, torch.Tensor)
                    and given.data_ptr() == path.where
                    and path.takes(given)
                    for given in args
                )

    def begun(self, module: nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """A module reads something."""
        if observers().away:
            return
        given = first_tensor(args, options)
        if given is None:
            return
        with unseen():
            if self._summed:
                self._note_taker(module, given)
            # The same stream is read by queries, keys and values: one copy of it is enough.
            if not any(_is_one(seen.given, given) for seen in self._reads):
                self._reads.append(ModuleUse(module, given.detach()))

    def _note_taker(self, module: nn.Module, given: torch.Tensor) -> None:
        """A module takes what some layers go on with."""
        for modules, result in self._summed:
            if _is_one(result, given):
                modules.taker = module
        self._summed = [summed for summed in self._summed if summed[0].taker is None]

    def ended(
        self, module: nn.Module, args: tuple[Any, ...], options: dict[str, Any], output: Any
    ) -> None:
        """A module without parts was used."""
        if observers().away or not isinstance(output, torch.Tensor):
            return
        with unseen():
            given = first_tensor(args, options)
            if given is None:
                return
            if is_affine(module):
                self._applied.append(ModuleUse(module, given.detach(), output.detach()))
            paths = [path for path in self._waiting if path.takes(given)]
        # A block in which nothing is seen costs more than most modules have to say.
        if paths:
            self._meet(paths, module, given, output)

    def _meet(
        self,
        paths: list[ResidualPath],
        module: nn.Module,
        given: torch.Tensor,
        output: torch.Tensor,
    ) -> None:
        with unwatched():
            for path in paths:
                self._met(path, module, given, output)
            self._finish([path for path in self._waiting if path.ended])

    def _met(
        self, path: ResidualPath, module: nn.Module, given: torch.Tensor, output: torch.Tensor
    ) -> None:
        """A module took something as large as the output: a norm of it, or the end of its way."""
        if path.again is not None:
            wanted = path.again
        elif path.after is not None:
            return
        else:
            wanted = path.branch if path.stream is None else path.stream
        if not same(given, wanted):
            return
        norm = self._norm(module, path.width) if path.takes(output) else None
        if norm is None:
            path.ended = is_affine(module) and path.stream is not None
            return
        taken = NormUse(
            norm, module, self._names[id(module)], given.detach().clone(), output.detach().clone()
        )
        if path.again is not None:
            path.second, path.ended = taken, True
        elif path.stream is None:
            path.before = taken if path.before is None else path.before
        else:
            path.after = taken

    def _norm(self, module: nn.Module, width: int) -> Norm | None:
        key = id(module), width
        if key not in self._norms:
            self._norms[key] = known_norm_of(module, width)
        return self._norms[key]

    def _finish(self, paths: list[ResidualPath]) -> None:
        with unwatched():
            for path in list(paths):
                self._waiting.remove(path)
                for texts in texts_of(path, with_alti=self._with_alti):
                    write_contributions([texts])
                path.modules.note(path, missing_of(path))
                put_away(path.layers, self._put)


def known_norm_of(module: nn.Module, width: int) -> Norm | None:
    """The norm that a module computes, found once for its weights; None where it is none."""
    if is_affine(module):
        return None
    return remembered([module], ("norm", width), lambda: norm_of(module, width))


def missing_of(path: ResidualPath) -> frozenset[str]:
    """The kinds that are missing in any of a path's examples, once its contributions are written;
    ALTI, which is an option, does not count.
    """
    missing: set[str] = set()
    for layer in path.layers:
        missing |= layer["contributions"].missing.keys() - {"alti"}
    return frozenset(missing)


def _is_one(first: torch.Tensor, second: torch.Tensor) -> bool:
    return first.data_ptr() == second.data_ptr() and first.shape == second.shape


def _two_tensors(
    args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor] | None:
    given = [*args, *(options[name] for name in ("input", "other") if name in options)]
    if len(given) != 2 or options.get("alpha", 1) != 1:
        return None
    first, second = given
    both = isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor)
    return (first, second) if both and first.shape == second.shape else None
