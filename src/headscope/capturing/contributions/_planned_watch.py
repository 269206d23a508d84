"""Following the output of each attention at the few modules where an earlier pass has shown it.

No function of torch is watched: the residual, its sum with the output, and what the layer goes on
with are inputs and outputs of modules, and the sums are checked number by number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from headscope.capturing.building._put_away import Put, put_away
from headscope.capturing.calls.call import Call
from headscope.capturing.contributions._build import write_contributions
from headscope.capturing.contributions._norm_sites import NormSite
from headscope.capturing.contributions._residual_path import (
    KnownOfCall,
    NormUse,
    ResidualPath,
)
from headscope.capturing.contributions._texts_of_path import TextsOfPath, texts_of
from headscope.capturing.contributions._watch import known_norm_of, missing_of
from headscope.capturing.seam import unwatched
from headscope.capturing.watching.tape import ModuleUse, PassReader, first_tensor
from headscope.capturing.watching.watch_plan import ModelModules, PlanFailedError

NUMBERS_TOGETHER = 2**18
"""How many numbers of several layers are worked on together: 2 MiB, which most caches hold."""


class NormSitesFailedError(PlanFailedError):
    """A pass added other things to the output of an attention than the pass before."""


class PlannedNormsWatch(PassReader):
    """Follows the output of each attention through the modules of its site while the block is open.

    Args:
        modules: of the model.
        sites: one for each call of attention, in their order.
        with_alti: whether ALTI is computed too.
        put: takes each array that is done, and gives what is kept in its place; None to keep all
            in memory.

    A `Watch` that is opened inside it tells it of the pass.

    Raises:
        NormSitesFailedError: inside and on leaving, where the model did something else than the
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
        self._modules, self._sites = modules, sites
        self._with_alti, self._put = with_alti, put
        self._given: dict[nn.Module, torch.Tensor] = {}
        self._made: dict[nn.Module, ModuleUse] = {}
        self._waiting: list[tuple[NormSite, ResidualPath]] = []
        self._ended: list[tuple[NormSite, ResidualPath]] = []
        self._unwritten: list[TextsOfPath] = []
        self._at_begin = self._table(reader=self._read, taker=self._taken)
        self._at_end = self._table(
            value=self._matrix, maker=self._matrix, after=self._normed, second=self._second
        )
        self.before: Sequence[nn.Module] = tuple(self._at_begin)
        self.after: Sequence[nn.Module] = tuple(self._at_end)

    def __enter__(self) -> PlannedNormsWatch:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        try:
            if error is None and self._waiting:
                raise NormSitesFailedError(
                    f"{len(self._waiting)} outputs of attention were not seen to the end"
                )
            if error is None:
                self._write()
                self._check()
        finally:
            for known in (self._waiting, self._ended, self._unwritten, self._given, self._made):
                known.clear()

    def expect(
        self,
        seen: Call,
        call: Call,
        known: KnownOfCall,
        layers: list[dict[str, Any]],
    ) -> None:
        """As `NormsWatch.expect`."""
        if seen.number >= len(self._sites) or seen.output is None or call.output is None:
            raise NormSitesFailedError(f"{call.name} was not expected")
        site = self._sites[seen.number]
        reader = self._modules.all[site.reader]
        residual = self._given.pop(reader, None)
        output = call.output.reshape(call.size[0], call.size[2], -1).detach().clone()
        if residual is None or residual.numel() != output.numel() != seen.output.numel():
            raise NormSitesFailedError(f"{call.name} has a residual of another size")
        value = None if site.value is None else self._made.pop(self._modules.all[site.value], None)
        # Copies, since models add into the very tensors that they read.
        residual = residual.detach().clone()
        path = ResidualPath(
            call=call,
            sides=known[0],
            visibility=known[1],
            weights=known[2],
            reads=(ModuleUse(reader, residual),),
            values=() if value is None else (value,),
            layers=layers,
            output=output,
            addends=[residual],
            columns=site.columns,
            goes_on=site.goes_on,
        )
        self._waiting.append((site, path))

    def begun(self, module: nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """A module of some site begins."""
        for act in self._at_begin[module]:
            act(module, args, options)

    def ended(
        self, module: nn.Module, args: tuple[Any, ...], options: dict[str, Any], output: Any
    ) -> None:
        """A module of some site gave something."""
        for act in self._at_end[module]:
            act(module, args, options, output)

    def _table(self, **acts: Callable) -> dict[nn.Module, list[Callable]]:
        """What is done at each module that is a part of some site, each act once."""
        table: dict[nn.Module, list[Callable]] = {}
        for part, act in acts.items():
            for number in dict.fromkeys(getattr(site, part) for site in self._sites):
                known = None if number is None else table.setdefault(self._modules.all[number], [])
                if known is not None and act not in known:
                    known.append(act)
        return table

    def _is(self, number: int | None, module: nn.Module) -> bool:
        """Whether a module is the one of a site."""
        return number is not None and self._modules.all[number] is module

    def _read(self, module: nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        given = first_tensor(args, options)
        if given is not None:
            self._given[module] = given

    def _matrix(
        self, module: nn.Module, args: tuple[Any, ...], options: dict[str, Any], output: Any
    ) -> None:
        given = first_tensor(args, options)
        if given is not None and isinstance(output, torch.Tensor):
            self._made[module] = ModuleUse(module, given, output)

    def _normed(
        self, module: nn.Module, args: tuple[Any, ...], options: dict[str, Any], output: Any
    ) -> None:
        """The norm took the sum of output and residual."""
        given = first_tensor(args, options)
        for site, path in self._waiting:
            if not self._is(site.after, module) or path.stream is not None:
                continue
            if given is None or not _is_sum(path.output, path.addends[0], given):
                raise NormSitesFailedError(f"{path.call.name}: its residual is another tensor")
            path.stream = given.detach().clone()
            path.after = self._use(path, module, path.stream, output)
            return

    def _taken(self, module: nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """A module takes what the layer goes on with."""
        given = first_tensor(args, options)
        for site, path in self._waiting:
            if not self._is(site.taker, module) or path.after is None or path.again is not None:
                continue
            kept = path.after.output if site.goes_on == "normed" else path.after.given
            made = self._made.pop(self._modules.all[site.maker], None)
            if given is None or made is None or not _is_sum(kept, made.output, given):
                raise NormSitesFailedError(f"{path.call.name}: the layer goes on differently")
            path.again = given.detach().clone()
            if site.second is None:
                self._finish(site, path)
            return

    def _second(
        self, module: nn.Module, args: tuple[Any, ...], options: dict[str, Any], output: Any
    ) -> None:
        given = first_tensor(args, options)
        for site, path in self._waiting:
            if not self._is(site.second, module) or path.again is None:
                continue
            if given is None or not torch.equal(given.reshape(path.again.shape), path.again):
                raise NormSitesFailedError(f"{path.call.name}: its second norm takes another sum")
            path.second = self._use(path, module, path.again, output)
            self._finish(site, path)
            return

    def _use(
        self, path: ResidualPath, module: nn.Module, given: torch.Tensor, output: Any
    ) -> NormUse:
        norm = known_norm_of(module, path.width)
        if norm is None or not isinstance(output, torch.Tensor) or not path.takes(output):
            raise NormSitesFailedError(f"{path.call.name}: what takes its sum is no norm any more")
        name = self._modules.names[id(module)]
        return NormUse(norm, module, name, given, output.detach().clone())

    def _finish(self, site: NormSite, path: ResidualPath) -> None:
        self._waiting.remove((site, path))
        if site.second is None:
            path.again = None
        with unwatched():
            for texts in texts_of(path, with_alti=self._with_alti):
                self._unwritten.append(texts)
                # Layers of a short text are worked on together, which takes a fraction of the
                # time; longer ones fill the processor's cache each by itself.
                if sum(known.size for known in self._unwritten) > NUMBERS_TOGETHER:
                    self._write()
        self._ended.append((site, path))
        if not self._unwritten:
            self._check()

    def _write(self) -> None:
        with unwatched():
            write_contributions(self._unwritten)
        self._unwritten.clear()

    def _check(self) -> None:
        """Look whether the same kinds could be proved as before, and let go of the paths.

        Raises:
            NormSitesFailedError: where other kinds are missing.
        """
        for site, path in self._ended:
            has_columns = path.value_columns is not None
            if missing_of(path) != site.missing or has_columns != (site.value is not None):
                raise NormSitesFailedError(f"{path.call.name}: other kinds are missing")
            put_away(path.layers, self._put)
        self._ended.clear()


def _is_sum(first: torch.Tensor, second: torch.Tensor, whole: torch.Tensor) -> bool:
    """Whether a tensor is the sum of two others, to the last bit: the model's own order of rows is
    theirs, and nothing else was added.
    """
    if first.numel() != whole.numel() or second.numel() != whole.numel():
        return False
    with unwatched():
        added = first.reshape(whole.shape) + second.reshape(whole.shape)
        return torch.equal(added.to(whole.dtype), whole)
