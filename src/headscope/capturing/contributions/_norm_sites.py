"""Where the output of an attention goes, in modules of its model: found once, proved in every
pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from torch import nn

from headscope.capturing.watching.watch_plan import ModelModules, PlanMemory

if TYPE_CHECKING:
    from headscope.capturing.contributions._residual_path import ResidualPath


@dataclass(frozen=True, kw_only=True)
class NormSite:
    """The modules at which the output of one attention is followed; numbers are those of the
    model's modules, in their order.

    ``output + residual``, and in parallel layers the output of a matrix, is what the norm takes.
    What the layer goes on with (the norm's output or this sum) and the output of a matrix add up to
    what another module takes; in parallel layers that is the first sum of the next layer. All sums
    are checked number by number in every pass.

    Args:
        reader: takes the residual.
        value: the matrix that makes the values; None where none was found.
        columns: its columns that hold them.
        beside: the matrix whose output is added in the same place; None for none.
        beside_first: whether it is added before the residual.
        after: the norm that takes the sum.
        goes_on: what the layer continues with: ``"stream"`` or ``"normed"``; empty where nothing
            shows it.
        maker: the matrix whose output is added to that; None in parallel layers.
        taker: takes this second sum; None where there is none.
        second: the norm that takes it in post-norm models; None in others.
        missing: kinds of contributions that could not be proved.
    """

    reader: int
    value: int | None
    columns: tuple[int, ...]
    beside: int | None
    beside_first: bool
    after: int
    goes_on: str
    maker: int | None
    taker: int | None
    second: int | None
    missing: frozenset[str]


@dataclass(eq=False, kw_only=True)
class FoundModules:
    """What a `NormSite` is made of, as far as a pass has shown it; it holds no tensors."""

    is_plain: bool = False
    reader: nn.Module | None = None
    value: nn.Module | None = None
    columns: tuple[int, ...] = ()
    beside: nn.Module | None = None
    beside_first: bool = False
    after: nn.Module | None = None
    goes_on: str = ""
    maker: nn.Module | None = None
    taker: nn.Module | None = None
    second: nn.Module | None = None
    missing: frozenset[str] = frozenset()

    def note(self, path: ResidualPath, missing: frozenset[str]) -> None:
        """Take over what is known when a path has ended."""
        self.is_plain = path.is_plain
        for number, (addend, maker) in enumerate(zip(path.addends, path.makers, strict=True)):
            if self.is_plain and addend is not path.residuals[0]:
                self.is_plain = self.beside is None and maker is not None
                self.beside, self.beside_first = maker, number == 0
        self.missing, self.goes_on = missing, path.goes_on
        self.after, self.second = path.norm_modules
        self.reader = path.reader
        if path.value_columns is not None:
            self.value, self.columns = path.value_columns[0], tuple(path.value_columns[1])

    def site(self, modules: ModelModules) -> NormSite | None:
        """These modules by their numbers; None where a part of the path was not seen."""
        # What shows how a parallel layer goes on is a sum of the next one.
        needed = [self.reader, self.after]
        needed += [] if self.beside is not None else [self.maker, self.taker]
        if not self.is_plain or any(module is None for module in needed):
            return None
        known = {field.name: getattr(self, field.name) for field in fields(NormSite)}
        for name, what in known.items():
            if isinstance(what, nn.Module):
                known[name] = modules.numbers[id(what)]
        return NormSite(**known)


NORM_SITES: PlanMemory[tuple[NormSite, ...]] = PlanMemory()
"""Of models, in the order of their calls."""


def norm_sites_of_pass(
    modules: ModelModules, called: Mapping[int, FoundModules]
) -> tuple[NormSite, ...] | None:
    """The sites of a pass that was followed everywhere; None where some cannot be found again."""
    sites = [called[number].site(modules) for number in sorted(called)]
    known = tuple(site for site in sites if site is not None)
    return (
        known
        if len(known) == len(sites) and all(_is_shown(site, known) for site in known)
        else None
    )


def _is_shown(site: NormSite, sites: Sequence[NormSite]) -> bool:
    """Whether a pass that is followed at these sites shows what a layer goes on with."""
    if site.maker is not None or not site.goes_on:
        return True
    parallel = {other.after for other in sites if other.beside is not None}
    return site.goes_on == "stream" and site.taker in parallel
