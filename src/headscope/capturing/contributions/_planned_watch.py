"""Following attention's outputs at the few modules where an earlier pass has shown them.

No function of torch is watched: the residual, its sum with the output, and what the layer goes on
with are inputs and outputs of modules, and the sums are checked number by number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from headscope.capturing.building._call_tokens import SideTokens
from headscope.capturing.building._put_away import Put
from headscope.capturing.calls.call import Call
from headscope.capturing.contributions._follow import Sum
from headscope.capturing.contributions._norm_sites import NormSite
from headscope.capturing.contributions._reader import NormsReader, missing_of
from headscope.capturing.contributions._residual_path import ResidualPath
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

    def __init__(
        self,
        modules: ModelModules,
        sites: Sequence[NormSite],
        *,
        with_alti: bool = False,
        put: Put | None = None,
    ) -> None:
        super().__init__(modules, with_alti=with_alti, put=put)
        self._sites = sites
        self._given: dict[nn.Module, torch.Tensor] = {}
        self._made: dict[nn.Module, ModuleUse] = {}
        self._readers, self._takers = set(self._at("reader")), set(self._at("after", "second"))
        self._matrices = set(self._at("value", "beside", "maker"))
        self.before: Sequence[nn.Module] = self._at("reader", "taker")
        self.after: Sequence[nn.Module] = self._at("value", "beside", "maker", "after", "second")

    def mark(self, seen: Call, call: Call, sides: tuple[SideTokens, SideTokens]) -> None:
        """As `NormsReader.mark`, of a call that has a site."""
        if call.number >= len(self._sites) or call.projection is None or call.output is None:
            raise NormSitesFailedError(f"{call.name} was not expected")
        super().mark(seen, call, sides)

    def begun(self, module: nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """A module begins that takes a residual, or what a layer goes on with."""
        given = first_tensor(args, options)
        if given is None:
            return
        if module in self._readers:
            self._given[module] = given
        for path in self._waiting:
            site = self._sites[path.call.number]
            if site.maker is None or not self._is(site.taker, module):
                continue
            if path.after is not None and not path.goes_on:
                self._go_on(path, site, given)
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
        if module not in self._takers:
            return
        for path in self._waiting:
            if path.stream is None and self._is(self._sites[path.call.number].after, module):
                self._sum_up(path, self._sites[path.call.number], given)
                break
        with unwatched():
            self.record(use)

    def _sum_up(self, path: ResidualPath, site: NormSite, given: torch.Tensor) -> None:
        """Note the sum that a norm takes: of the output, the residual, and what is added beside."""
        parts = [path.reads[0].given]
        if site.beside is not None:
            parts.insert(0 if site.beside_first else 1, self._made_by(site.beside, path))
        with unwatched():
            whole = path.output
            for part in parts[:-1]:
                first, whole = whole, whole + part.reshape(whole.shape)
                self.record(Sum(first, part, whole))
            if not _is_sum(whole, parts[-1], given):
                raise NormSitesFailedError(f"{path.call.name}: its residual is another tensor")
            self.record(Sum(whole, parts[-1], given))

    def _go_on(self, path: ResidualPath, site: NormSite, given: torch.Tensor) -> None:
        """Note the sum that a layer goes on with."""
        kept, made = _kept(path, site), self._made_by(site.maker, path)
        with unwatched():
            if kept is None or not _is_sum(kept, made, given):
                raise NormSitesFailedError(f"{path.call.name}: the layer goes on differently")
            self.record(Sum(kept, made, given))
            if site.second is None and path in self._waiting:
                self._end([path])

    def _made_by(self, number: int | None, path: ResidualPath) -> torch.Tensor:
        """What a matrix of a site gave last."""
        use = None if number is None else self._made.pop(self._modules.all[number], None)
        if use is None or not path.takes(use.output):
            raise NormSitesFailedError(f"{path.call.name}: nothing of its size was made")
        return use.output

    def _path(self, **known: Any) -> ResidualPath:
        call, output = known["call"], known["output"]
        site = self._sites[call.number]
        reader = self._modules.all[site.reader]
        residual = self._given.pop(reader, None)
        if residual is None or residual.numel() != output.numel() or known["packed"]:
            raise NormSitesFailedError(f"{call.name} has a residual of another size")
        value = None if site.value is None else self._made.pop(self._modules.all[site.value], None)
        return ResidualPath(
            # Copies, since models add into the very tensors that they read.
            reads=(ModuleUse(reader, residual.detach().clone()),),
            values=() if value is None else (value,),
            columns=site.columns,
            **known,
        )

    def _written(self, path: ResidualPath) -> None:
        """Look whether the same was seen as before."""
        site = self._sites[path.call.number]
        now = (missing_of(path), path.value_columns is not None, path.goes_on)
        before = (site.missing, site.value is not None, site.goes_on)
        if now != before or self._modules.numbered(path.norm_modules) != (site.after, site.second):
            raise NormSitesFailedError(f"{path.call.name}: other kinds are missing")

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


def _kept(path: ResidualPath, site: NormSite) -> torch.Tensor | None:
    """What a layer goes on with; None where no norm has taken its sum."""
    if path.after is None:
        return None
    return path.after.output if site.goes_on == "normed" else path.after.given


def _is_sum(first: torch.Tensor, second: torch.Tensor, whole: torch.Tensor) -> bool:
    """Whether a tensor is the sum of two others, to the last bit: the model's own order of rows is
    theirs, and nothing else was added.
    """
    if first.numel() != whole.numel() or second.numel() != whole.numel():
        return False
    added = first.reshape(whole.shape) + second.reshape(whole.shape)
    return torch.equal(added.to(whole.dtype), whole)
