"""Where the output of an attention goes, in modules of its model: found once, proved in every
pass.
"""

from __future__ import annotations

from collections.abc import Mapping
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

    ``output + residual`` is what the norm takes, and what the layer goes on with (the norm's output
    or this sum) and the output of a matrix add up to what another module takes. Both are checked
    number by number in every pass.

    Args:
        reader: takes the residual.
        value: the matrix that makes the values; None where none was found.
        columns: its columns that hold them.
        after: the norm that takes the sum.
        goes_on: what the layer continues with: ``"stream"`` or ``"normed"``.
        maker: the matrix whose output is added to that.
        taker: takes this second sum.
        second: the norm that takes it in post-norm models; None in others.
        missing: kinds of contributions that could not be proved.
    """

    reader: int
    value: int | None
    columns: tuple[int, ...]
    after: int
    goes_on: str
    maker: int
    taker: int
    second: int | None
    missing: frozenset[str]


@dataclass(eq=False, kw_only=True)
class FoundModules:
    """What a `NormSite` is made of, as far as a pass has shown it; it holds no tensors."""

    is_plain: bool = False
    reader: nn.Module | None = None
    value: nn.Module | None = None
    columns: tuple[int, ...] = ()
    after: nn.Module | None = None
    goes_on: str = ""
    maker: nn.Module | None = None
    taker: nn.Module | None = None
    second: nn.Module | None = None
    missing: frozenset[str] = frozenset()

    def note(self, path: ResidualPath, missing: frozenset[str]) -> None:
        """Take over what is known when a path has ended."""
        odd = path.before is not None or path.scale is not None or path.order is not None
        self.is_plain = not odd and not path.packed and len(path.addends) == 1
        self.missing, self.goes_on = missing, path.goes_on
        self.after = None if path.after is None else path.after.module
        self.second = None if path.second is None else path.second.module
        self.reader = path.reader
        if path.value_columns is not None:
            self.value, self.columns = path.value_columns[0], tuple(path.value_columns[1])

    def site(self, modules: ModelModules) -> NormSite | None:
        """These modules by their numbers; None where a part of the path was not seen."""
        needed = (self.reader, self.after, self.maker, self.taker)
        if not self.is_plain or not self.goes_on or any(module is None for module in needed):
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
    return known if len(known) == len(sites) else None
