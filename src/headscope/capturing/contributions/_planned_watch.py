"""Following attention's outputs at the few modules where an earlier pass has shown them.

No function of torch is watched: the residual, its sum with the output, and what the layer goes on
with are inputs and outputs of modules, and the sums are checked number by number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from headscope.capturing.calls.call import Call
from headscope.capturing.contributions._modules import state_of
from headscope.capturing.contributions._norm_sites import NormSite
from headscope.capturing.contributions._reader import NormsReader
from headscope.capturing.contributions._residual_path import ResidualPath, same
from headscope.capturing.seam import unwatched
from headscope.capturing.watching.tape import ModuleUse, first_tensor
from headscope.capturing.watching.watch_plan import ModelModules, PlanFailedError


class NormSitesFailedError(PlanFailedError):
    """A pass added other things to the output of an attention than the pass before."""


class PlannedNormsWatch(NormsReader):
    """Follows outputs through the modules of their sites.

    Args:
        modules: of the model.
        sites: one for each call of attention, in their order.
        **options: as of `NormsReader`.

    Raises:
        NormSitesFailedError: inside and in `complete`, where the model did something else than the
            sites say; what was built is then to be discarded.
    """

    def __init__(self, modules: ModelModules, sites: Sequence[NormSite], **options: Any) -> None:
        super().__init__(modules, **options)
        self._sites = sites
        self._given: dict[nn.Module, torch.Tensor] = {}
        self._made: dict[nn.Module, ModuleUse] = {}
        self._readers = set(self._at("reader"))
        self._values = set(self._at("value"))
        self._matrices = set(self._at("value", "beside", "maker"))
        self.before: Sequence[nn.Module] = self._at("reader", "taker")
        self.after: Sequence[nn.Module] = self._at("value", "beside", "maker", "after", "second")

    def begun(self, module: nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """A module begins that takes a residual, or what a layer goes on with."""
        given = first_tensor(args, options)
        if given is None:
            return
        if module in self._readers:
            self._given[module] = given
        for path in self._waiting:
            waits = path.after is not None and not path.goes_on and path.site.maker is not None
            if waits and self._is(path.site.taker, module):
                with unwatched():
                    self._go_on(path, given)
                return

    def ended(
        self, module: nn.Module, args: tuple[Any, ...], options: dict[str, Any], output: Any
    ) -> None:
        """A matrix or a norm of some site gave something."""
        given = first_tensor(args, options)
        if given is None or not isinstance(output, torch.Tensor):
            return
        use = ModuleUse(module, given, output)
        if module in self._matrices:
            self._made[module] = use
            if module in self._values:
                state_of(module)
            return
        with unwatched():
            for path in list(self._waiting):
                if path.stream is None and self._is(path.site.after, module):
                    self._sum_up(path, use)
                elif path.again is not None and self._is(path.site.second, module):
                    self._end_with(path, use)

    def _sum_up(self, path: ResidualPath, use: ModuleUse) -> None:
        """Note what a norm takes: the sum of the output, the residual, and what is added beside."""
        site, residual = path.site, path.reads[0].given
        parts = [residual]
        if site.beside is not None:
            parts.insert(0 if site.beside_first else 1, self._made_by(site.beside, path))
        whole = path.output
        for part in parts[:-1]:
            whole = whole + part.reshape(whole.shape)
        path.after = self._norm_of(use, path)
        if path.after is None or not _is_sum(whole, parts[-1], use.given):
            raise NormSitesFailedError(f"{path.call.name}: its residual is another tensor")
        path.residual, path.stream = residual, path.after.given
        path.addends = [part if part is residual else path.hold(part) for part in parts]
        # The residual of a parallel layer is what the one before goes on with.
        for other in list(self._waiting):
            is_before = other.stream is not None and other.site.next == path.call.number
            if is_before and not other.goes_on and same(residual, other.stream):
                other.goes_on = "stream"
                self._end([other])

    def _go_on(self, path: ResidualPath, given: torch.Tensor) -> None:
        """Note the sum that a layer goes on with."""
        site, norm = path.site, path.after
        if norm is None:
            return
        kept = norm.output if site.goes_on == "normed" else norm.given
        if not _is_sum(kept, self._made_by(site.maker, path), given):
            raise NormSitesFailedError(f"{path.call.name}: the layer goes on differently")
        path.goes_on = site.goes_on
        if site.second is None:
            self._end([path])
        else:
            path.again = path.hold(given)

    def _end_with(self, path: ResidualPath, use: ModuleUse) -> None:
        """Note the second norm, which takes this sum."""
        if path.again is not None and same(use.given, path.again):
            path.second = self._norm_of(use, path)
            self._end([path])

    def _made_by(self, number: int | None, path: ResidualPath) -> torch.Tensor:
        """What a matrix of a site gave last."""
        use = None if number is None else self._made.pop(self._modules.all[number], None)
        if use is None or not path.takes(use.output):
            raise NormSitesFailedError(f"{path.call.name}: nothing of its size was made")
        return use.output

    def _site_of(self, call: Call) -> NormSite:
        if call.number >= len(self._sites) or call.projection is None or call.output is None:
            raise NormSitesFailedError(f"{call.name} was not expected")
        state_of(call.projection)
        return self._sites[call.number]

    def _path(self, **known: Any) -> ResidualPath:
        call, output, site = known["call"], known["output"], known["site"]
        reader = self._modules.all[site.reader]
        residual = self._given.pop(reader, None)
        if residual is None or residual.numel() != output.numel() or known["packed"]:
            raise NormSitesFailedError(f"{call.name} has a residual of another size")
        value = None if site.value is None else self._made.pop(self._modules.all[site.value], None)
        path = ResidualPath(
            values=() if value is None else (value,), reads=(), is_known=True, **known
        )
        path.reads = (ModuleUse(reader, path.hold(residual)),)
        return path

    def _written(self, path: ResidualPath) -> None:
        """Look whether the same was seen as before."""
        site = path.site
        now = (path.missing, path.value_columns is not None, path.goes_on)
        before = (site.missing, site.value is not None, site.goes_on)
        if now != before or self._modules.numbered(path.norm_modules) != (site.after, site.second):
            raise NormSitesFailedError(f"{path.call.name}: other kinds are missing")
        if path.is_overwritten and not site.writes:
            raise NormSitesFailedError(f"{path.call.name}: the model has written into its tensors")

    def _is(self, number: int | None, module: nn.Module) -> bool:
        """Whether a module is the one of a site."""
        return number is not None and self._modules.all[number] is module

    def _at(self, *parts: str) -> tuple[nn.Module, ...]:
        """The modules that are these parts of some site, each once."""
        numbers = dict.fromkeys(getattr(site, part) for site in self._sites for part in parts)
        return tuple(self._modules.all[number] for number in numbers if number is not None)

    def _clear(self) -> None:
        super()._clear()
        for known in (self._given, self._made):
            known.clear()


def _is_sum(first: torch.Tensor, second: torch.Tensor, whole: torch.Tensor) -> bool:
    """Whether a tensor is the sum of two others, to the last bit: the model's own order of rows is
    theirs, and nothing else was added.
    """
    if first.numel() != whole.numel() or second.numel() != whole.numel():
        return False
    added = first.reshape(whole.shape) + second.reshape(whole.shape)
    return torch.equal(added if added.dtype == whole.dtype else added.to(whole.dtype), whole)
