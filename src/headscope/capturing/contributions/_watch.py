"""Following attention's outputs through all modules of a model, and through every sum that torch
computes, and writing of each layer what its tokens added.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from headscope.capturing.building.layers import Put, put_away
from headscope.capturing.calls.call import Call
from headscope.capturing.contributions._build import NO_PROJECTION, refused, write_contributions
from headscope.capturing.contributions._modules import norm_of, remembered, value_columns_of
from headscope.capturing.contributions._path import NormUse, ResidualPath, Sum, follow
from headscope.capturing.observers import (
    WatchMode,
    hook_after,
    hook_before,
    looking_away,
    observers,
)
from headscope.capturing.seam import level, unseen
from headscope.capturing.walk import ModelModules, is_affine
from headscope.capturing.watching.running import ModuleUse, first_tensor
from headscope.norms import Norm
from headscope.record import CONTRIBUTIONS

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


class NormsWatch(WatchMode):
    """Follows the output of each attention while its block is open, and records what tokens added.

    A builder tells it of each call, with its layers, when it was made. It is opened inside a
    `Watch`, whose hooks come first.

    Args:
        modules: of the model.
        with_alti: whether ALTI is computed too.
        put: takes each array that is done, and gives what is kept in its place; None to keep all
            in memory.
    """

    def __init__(
        self, modules: ModelModules, *, with_alti: bool = False, put: Put | None = None
    ) -> None:
        super().__init__()
        self._names, self._with_alti, self._put = modules.names, with_alti, put
        self._reads: deque[ModuleUse] = deque(maxlen=READS_REMEMBERED)
        self._applied: deque[ModuleUse] = deque(maxlen=MATRICES_REMEMBERED)
        self._waiting: list[ResidualPath] = []
        self._norms: dict[tuple[int, int], Norm | None] = {}
        self._modules, self._handles, self._level = modules.all, list[RemovableHandle](), 0

    def __enter__(self) -> NormsWatch:
        self._level = level()
        for module in self._modules:
            if next(module.parameters(), None) is not None:
                self._handles.append(hook_before(module, self._begun))
            if not module._modules:
                self._handles.append(hook_after(module, self._ended))
        return super().__enter__()

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        super().__exit__(exc_type, exc_val, exc_tb)
        while self._handles:
            self._handles.pop().remove()
        if exc_type is not None:
            self._clear()

    def take(self, seen: Call, **known: Any) -> None:
        """From now on, follow the output of a call into the residual stream; what is learned goes
        into its layers, as ``value_norms`` and ``contributions``.

        Args:
            seen: the call as it was made, with its projection.
            **known: ``call``, the same laid out anew, a row of the batch for each example, and its
                ``sides``, ``visibility``, ``weights`` and ``layers``, as of `ResidualPath`.
        """
        call, sides = known["call"], known["sides"]
        if call.projection is None or call.output is None:
            for layer in known["layers"]:
                layer["contributions"] = refused(f"{call.name}: {NO_PROJECTION}")
            return
        output = call.output.detach().reshape(call.size[0], call.size[2], -1)
        packed = seen.output is not None and seen.output.numel() != output.numel()
        if packed:  # the model has no padding where the layout has
            output = torch.cat([output[text, at] for text, at in enumerate(sides[0].positions)])
        path = ResidualPath(
            **known,
            reads=tuple(self._reads),
            value=value_columns_of(call.value, reversed(self._applied)),
            output=output.clone(),  # models add the residual into this very tensor
            packed=packed,
        )
        self._waiting.append(path)
        if len(self._waiting) > WAITING:
            self._end(self._waiting[0])

    def complete(self) -> None:
        """The pass is over: write what is not yet written."""
        with looking_away(), unseen():
            for path in list(self._waiting):
                self._end(path)
        self._clear()

    def _begun(self, module: nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """A module reads something."""
        if observers().away:
            return
        given = first_tensor(args, options)
        if given is None:
            return
        with unseen():
            # The same stream is read by queries, keys and values: one copy of it is enough.
            if not any(_is_one(seen.given, given) for seen in self._reads):
                self._reads.append(ModuleUse(module, given.detach()))

    def _ended(
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
            self._record(use)

    def __torch_function__(
        self,
        func: Callable,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run one torch function as it is; note sums."""
        options, parts = kwargs or {}, None
        if not self._waiting or observers().away or level() != self._level:
            return func(*args, **options)
        if func in SUMS or func in SUMS_IN_PLACE:
            parts = _two_tensors(args, options)
        elif getattr(func, "__name__", "") not in HARMLESS:
            self._record([one for one in args if isinstance(one, torch.Tensor)])
        if parts is None or not self._are_taken(*parts):
            return func(*args, **options)
        if func in SUMS_IN_PLACE:  # the first addend will hold the sum
            with looking_away(), unseen():
                parts = parts[0].clone(), parts[1]
        whole = func(*args, **options)
        self._record(Sum(*parts, whole))
        return whole

    def _record(self, record: Sum | list[torch.Tensor] | ModuleUse) -> None:
        """Follow the outputs that wait one step further."""
        with looking_away(), unseen():
            follow(self._waiting, record, self._norm_of)
            for path in [path for path in self._waiting if path.ended]:
                self._end(path)

    def _are_taken(self, *tensors: torch.Tensor) -> bool:
        """Whether some path may go on with tensors of this size."""
        with unseen():
            return any(all(map(path.takes, tensors)) for path in self._waiting)

    def _norm_of(self, use: ModuleUse, width: int) -> NormUse | None:
        module, key = use.module, (id(use.module), width)
        if key not in self._norms:
            self._norms[key] = known_norm_of(module, width)
        norm = self._norms[key]
        if norm is None:
            return None
        return NormUse(norm, self._names[id(module)], use.output.detach().clone())

    def _end(self, path: ResidualPath) -> None:
        """A path has ended: write what is known of it."""
        self._waiting.remove(path)
        path.reads = ()
        write_contributions(path, with_alti=self._with_alti)
        for layer in path.layers if self._put is not None else ():
            layer["contributions"] = put_away(layer["contributions"], CONTRIBUTIONS, self._put)
            if self._put is not None and layer["value_norms"] is not None:
                layer["value_norms"] = self._put(layer["value_norms"])

    def _clear(self) -> None:
        for known in (self._waiting, self._reads, self._applied):
            known.clear()


def known_norm_of(module: nn.Module, width: int) -> Norm | None:
    """The norm that a module computes, found once for its weights; None where it is none."""
    if is_affine(module):
        return None
    return remembered([module], ("norm", width), lambda: norm_of(module, width))


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
