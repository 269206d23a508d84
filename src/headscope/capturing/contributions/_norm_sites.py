"""Where the output of an attention goes, in modules of its model: found once, proved in every
pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headscope.capturing.watching.watch_plan import ModelModules, PlanMemory

if TYPE_CHECKING:
    from headscope.capturing.contributions._residual_path import ResidualPath


@dataclass(eq=False, kw_only=True)
class NormSite:
    """The modules at which the output of one attention is followed, as far as a pass has shown
    them; numbers are those of the model's modules, in their order.

    ``output + residual``, and in parallel layers the output of a matrix, is what the norm takes.
    What the layer goes on with (the norm's output or this sum) and the output of a matrix add up to
    what another module takes, or this sum is the residual of the next call, as in parallel layers.
    All sums are checked number by number in every pass.

    Args:
        is_plain: whether the output itself and one residual are added, and beside them at most the
            output of a matrix.
        reader: takes the residual.
        value: the matrix that makes the values; None where none was found.
        columns: its columns that hold them.
        beside: the matrix whose output is added in the same place; None for none.
        beside_first: whether it is added before the residual.
        after: the norm that takes the sum.
        goes_on: what the layer continues with: ``"stream"`` or ``"normed"``; empty where nothing
            shows it.
        maker: the matrix whose output is added to that; None where it is more than that.
        taker: takes this second sum; None where nothing does.
        next: the number of the call that the layer goes on to with its sum as the residual; None
            where the feed-forward part stands between.
        second: the norm that takes it in post-norm models; None in others.
        missing: kinds of contributions that could not be proved.
        writes: whether the model writes into what the path is made of before all is worked out.
    """

    is_plain: bool = False
    reader: int | None = None
    value: int | None = None
    columns: tuple[int, ...] = ()
    beside: int | None = None
    beside_first: bool = False
    after: int | None = None
    goes_on: str = ""
    maker: int | None = None
    taker: int | None = None
    next: int | None = None
    second: int | None = None
    missing: frozenset[str] = frozenset()
    writes: bool = False

    def note(self, path: ResidualPath, modules: ModelModules) -> None:
        """Take over what is known when a path has ended."""
        self.is_plain = path.is_plain
        for number, (addend, maker) in enumerate(zip(path.addends, path.makers, strict=True)):
            if self.is_plain and addend is not path.residuals[0]:
                self.is_plain = self.beside is None and maker is not None
                self.beside, self.beside_first = modules.numbered([maker])[0], number == 0
        self.missing, self.goes_on, self.next = path.missing, path.goes_on, path.next
        self.writes = path.is_overwritten
        self.reader, self.maker = modules.numbered([path.reader, path.maker])
        self.after, self.second = modules.numbered(path.norm_modules)
        if path.value_columns is not None:
            value, self.columns = path.value_columns
            self.value = modules.numbers[id(value)]

    @property
    def is_whole(self) -> bool:
        """Whether a pass that is followed at such sites shows all of the path again."""
        if not self.is_plain or self.reader is None or self.after is None:
            return False
        if not self.goes_on:
            return self.beside is not None
        is_next_shown = self.goes_on == "stream" and self.next is not None
        return is_next_shown or (self.maker is not None and self.taker is not None)


NORM_SITES: PlanMemory[tuple[NormSite, ...]] = PlanMemory()
"""Of models, in the order of their calls."""


def norm_sites_of_pass(called: Mapping[int, NormSite]) -> tuple[NormSite, ...] | None:
    """The sites of a pass that was followed everywhere; None where some cannot be found again."""
    sites = tuple(called[number] for number in sorted(called))
    return sites if all(site.is_whole for site in sites) else None
