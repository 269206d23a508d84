"""Following attention's outputs through all modules of a model, and through every sum that torch
computes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from headscope.capturing.building._side_tokens import SideTokens
from headscope.capturing.calls.call import Call
from headscope.capturing.contributions._follow import FunctionUse, Record, Sum, follow
from headscope.capturing.contributions._norm_sites import NormSite
from headscope.capturing.contributions._reader import NormsReader
from headscope.capturing.contributions._residual_path import ResidualPath
from headscope.capturing.observers import observers
from headscope.capturing.seam import unseen, unwatched
from headscope.capturing.watching.tape import ModuleUse, first_tensor
from headscope.capturing.watching.watch_plan import ModelModules, is_affine

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


class NormsWatch(NormsReader):
    """Follows outputs through all that a model does, as in a first pass over it.

    Args:
        modules: of the model.
        **options: as of `NormsReader`.
    """

    def __init__(self, modules: ModelModules, **options: Any) -> None:
        super().__init__(modules, **options)
        self._reads: deque[ModuleUse] = deque(maxlen=READS_REMEMBERED)
        self._applied: deque[ModuleUse] = deque(maxlen=MATRICES_REMEMBERED)
        self._summed: list[tuple[NormSite, torch.Tensor]] = []
        self.function = self._function
        self.before: Sequence[nn.Module] = [
            module for module in modules.all if next(module.parameters(), None) is not None
        ]
        self.after: Sequence[nn.Module] = [
            module for module in modules.all if next(module.children(), None) is None
        ]

    def mark(self, seen: Call, call: Call, sides: tuple[SideTokens, SideTokens]) -> None:
        """As `NormsReader.mark`; few calls may wait at once."""
        super().mark(seen, call, sides)
        if len(self._waiting) > WAITING:
            self._end(self._waiting[:1])

    def begun(self, module: nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """A module reads something."""
        if observers().away:
            return
        given = first_tensor(args, options)
        if given is None:
            return
        with unseen():
            for site, whole in self._summed:
                if _is_one(whole, given):
                    site.taker = self._modules.numbers[id(module)]
            self._summed = [summed for summed in self._summed if summed[0].taker is None]
            # The same stream is read by queries, keys and values: one copy of it is enough.
            if not any(_is_one(seen.given, given) for seen in self._reads):
                self._reads.append(ModuleUse(module, given.detach()))

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
            use = ModuleUse(module, given.detach(), output.detach())
            if is_affine(module):
                self._applied.append(use)
            is_taken = self._are_taken(given)
        # A block in which nothing is seen costs more than most modules have to say.
        if is_taken:
            with unwatched():
                self.record(use)

    def _function(
        self, func: Callable, args: tuple[Any, ...], options: dict[str, Any], run: Callable
    ) -> Any:
        """Run one torch function as it is; note sums."""
        if not self._waiting:
            return run(func, args, options)
        if func not in SUMS and func not in SUMS_IN_PLACE:
            self._note_use(func, args)
            return run(func, args, options)
        parts = _two_tensors(args, options)
        if parts is None or not self._are_taken(*parts):
            return run(func, args, options)
        if func in SUMS_IN_PLACE:  # the first addend will hold the sum
            with unwatched():
                parts = parts[0].clone(), parts[1]
        whole, paths = run(func, args, options), list(self._waiting)
        with unwatched():
            self.record(Sum(*parts, whole), tuple(reversed(self._applied)))
            self._summed += [(path.site, whole) for path in paths if path.total is whole]
        return whole

    def record(self, record: Record, matrices: Sequence[ModuleUse] = ()) -> None:
        """Follow the outputs that wait one step further; see `follow`."""
        follow(self._waiting, record, self._norm_of, matrices)
        self._end([path for path in self._waiting if path.ended])

    def _note_use(self, func: Callable, args: tuple[Any, ...]) -> None:
        if getattr(func, "__name__", "") not in HARMLESS:
            self.record(FunctionUse([one for one in args if isinstance(one, torch.Tensor)]))

    def _are_taken(self, *tensors: torch.Tensor) -> bool:
        """Whether some path may go on with tensors of this size."""
        with unseen():
            return any(all(map(path.takes, tensors)) for path in self._waiting)

    def _path(self, **known: Any) -> ResidualPath:
        return ResidualPath(
            reads=tuple(self._reads), values=tuple(reversed(self._applied)), **known
        )

    def _written(self, path: ResidualPath) -> None:
        path.site.note(path, self._modules)

    def _clear(self) -> None:
        super()._clear()
        for known in (self._summed, self._reads, self._applied):
            known.clear()


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
