"""Where attention is in a model: found by watching all modules once, and checked in every pass.

The first pass over a model is watched at all of its modules. What was seen, which modules computed
attention, in which order and on which route, which matrices made their queries and keys and which
took their outputs, is remembered as a plan; later passes are watched at these modules alone. A plan
is never trusted: each call is identified and checked by its numbers as in the first pass. A pass
that differs from the plan is discarded, and all modules are watched again.
"""

from __future__ import annotations

import operator
import re
import weakref
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import nn

from headscope.capturing.calls.call import Call
from headscope.capturing.walk import named_modules_of

ATTENTION_NAME = re.compile(r"attention|attn", re.IGNORECASE)
Plan = TypeVar("Plan")
InputForm = tuple[tuple[str, tuple[int, ...]], ...]
"""Names and sizes of what a model is given for each text."""
FAILURES = 3
"""How many plans of a model may fail before it is looked at everywhere, in every pass."""


class PlanFailedError(Exception):
    """A pass differed from the plan of its model."""


@dataclass(frozen=True, eq=False)
class ModelModules:
    """The modules of a model, found in one walk, and the names that they have as if nothing had
    been compiled.

    Args:
        model: whose they are.
        all: each once, in the order of ``model.modules()``.
        names: by id, the first name of each.
    """

    model: nn.Module
    all: tuple[nn.Module, ...]
    names: dict[int, str]

    @cached_property
    def numbers(self) -> dict[int, int]:
        """By id, where each stands among all."""
        return {id(module): number for number, module in enumerate(self.all)}

    def numbered(self, modules: Iterable[nn.Module | None]) -> tuple[int | None, ...]:
        """Where modules stand among all; None for none."""
        numbers = self.numbers
        return tuple([None if module is None else numbers[id(module)] for module in modules])

    @classmethod
    def of(cls, model: nn.Module) -> ModelModules:
        """Those of a model as it is now."""
        walked = named_modules_of(model)
        names = {id(module): name for name, module in walked}
        for number, name in names.items():
            if "_orig_mod" in name:
                parts = (part for part in name.split(".") if part != "_orig_mod")
                names[number] = ".".join(parts)
        return cls(model, tuple([module for _, module in walked]), names)


@dataclass(frozen=True, eq=False)
class WatchedModules:
    """The modules at which a pass is watched.

    Args:
        modules: all of the model.
        running: modules of which it is recorded when they run.
        makers: matrices and norms that may make queries and keys.
        matrices: which may be output projections.
        operators: while one of these runs, torch's functions are watched; None for the whole pass.
        given: further modules, of which it is only recorded what they are given.
        operator_calls: how many calls are expected of each of ``operators``, by its id.
        late: ids of those of ``operators`` that need be watched only from their first product of
            matrices or softmax on.
        routers: may give router scores, where these are wanted.
        last: how many calls of attention end the pass; None for one that runs to its end.
    """

    modules: ModelModules
    running: Sequence[nn.Module]
    makers: Sequence[nn.Module]
    matrices: Sequence[nn.Module]
    operators: Sequence[nn.Module] | None = None
    given: Sequence[nn.Module] = ()
    operator_calls: Mapping[int, int] = field(default_factory=dict)
    late: frozenset[int] = frozenset()
    routers: Sequence[nn.Module] = ()
    last: int | None = None

    @property
    def is_planned(self) -> bool:
        """Whether a plan named them, and they are not all that there may be."""
        return self.operators is not None

    @classmethod
    def of(cls, modules: ModelModules) -> WatchedModules:
        """All modules of a model that may have to do with attention."""
        with_weight = [module for module in modules.all if _has_weight(module)]
        return cls(
            modules=modules,
            running=modules.all,
            makers=with_weight,
            matrices=[module for module in with_weight if is_affine(module)],
            routers=modules.all,
        )

    @classmethod
    def running_of(cls, modules: ModelModules) -> WatchedModules:
        """All modules of a model, of which nothing is to be known but that they run."""
        return cls(modules=modules, running=modules.all, makers=(), matrices=())


def names_of(model: nn.Module) -> dict[int, str]:
    """First name of each module by its id, as if nothing had been compiled."""
    return ModelModules.of(model).names


def is_affine(module: nn.Module) -> bool:
    """Whether a module multiplies with a matrix."""
    return _has_weight(module) and getattr(module.weight, "ndim", 0) == 2


def _chosen(modules: ModelModules, numbers: Iterable[int | None]) -> list[nn.Module]:
    """The modules of these numbers, each once."""
    return [modules.all[number] for number in dict.fromkeys(numbers) if number is not None]


def _candidates(modules: ModelModules) -> list[nn.Module]:
    """What may make queries and keys: all with weights in modules that call themselves attention,
    as where all modules are watched.
    """
    holders = [module for module in modules.all if ATTENTION_NAME.search(type(module).__name__)]
    inside = {id(part) for holder in holders for part in holder.modules()}
    return [module for module in modules.all if id(module) in inside and _has_weight(module)]


def _has_weight(module: nn.Module) -> bool:
    weight = getattr(module, "weight", None)
    if not isinstance(weight, torch.Tensor) or isinstance(module, nn.Embedding):
        return False
    return weight.ndim in (1, 2)


class AttentionSite(NamedTuple):
    """One call of attention in a pass; modules are numbers in the order of the model's modules.

    Args:
        module: that computes attention.
        route: on which it was seen.
        cross: whether keys come from other tokens than queries.
        projection: takes the outputs of the heads; None if none was observed.
        makers: of the queries and of the keys before positions; None among them where one was not
            found, and empty where there are neither.
        is_late: whether torch's operators need be watched only from the first product of matrices
            or softmax in the module on: one was seen there before the call was complete.
    """

    module: int
    route: str
    cross: bool
    projection: int | None
    makers: tuple[int | None, ...]
    is_late: bool = False


@dataclass(eq=False)
class WatchPlan:
    """What one pass over a model showed.

    Args:
        modules: references to the model's modules: a plan does not keep its model alive.
        sites: its calls of attention, in their order.
        softmaxes: how many there were outside of the calls.
        routers: the modules that gave the router scores that the model returned, None for one that
            was not seen; empty as long as nobody has asked for them.
        forms: those of the inputs of passes that ran to the end.
    """

    modules: tuple[weakref.ref[nn.Module], ...]
    sites: tuple[AttentionSite, ...]
    softmaxes: int
    routers: tuple[int | None, ...] = ()
    forms: set[InputForm] = field(default_factory=set)

    def fits(self, modules: ModelModules) -> bool:
        """Whether the model still has the same modules, one by one."""
        known = [module() for module in self.modules]
        return len(known) == len(modules.all) and all(map(operator.is_, known, modules.all))

    def watched(self, modules: ModelModules, *, ends: bool = False) -> WatchedModules:
        """Where to watch the next pass, which may end with the last call of attention."""
        sites = [site.module for site in self.sites]
        makers = [number for site in self.sites for number in site.makers]
        by_operators = [site for site in self.sites if site.route == "operators"]
        operators = Counter(site.module for site in by_operators)
        at_once = {site.module for site in by_operators if not site.is_late}
        # Which module is running is asked by those who watch torch's functions alone.
        running, given = (sites, []) if operators else ([], sites)
        known = _candidates(modules) if None in makers else _chosen(modules, makers)
        operator_calls = {}
        for number, count in operators.items():
            operator_calls[id(modules.all[number])] = count
        late = frozenset(id(modules.all[number]) for number in operators.keys() - at_once)
        return WatchedModules(
            modules=modules,
            running=_chosen(modules, running),
            given=_chosen(modules, given),
            makers=known,
            matrices=_chosen(modules, [site.projection for site in self.sites]),
            operators=_chosen(modules, operators),
            operator_calls=operator_calls,
            late=late,
            routers=_chosen(modules, self.routers) or modules.all,
            last=len(self.sites) if ends else None,
        )

    def check(
        self, sites: tuple[AttentionSite, ...], softmaxes: int, routers: tuple[int | None, ...]
    ) -> None:
        """Raise where a pass differed from the plan; routers that nobody had asked for are noted.

        Raises:
            PlanFailedError: all modules of the model have to be watched again.
        """
        if sites != self.sites or softmaxes != self.softmaxes:
            raise PlanFailedError(f"{len(sites)} calls, of which the plan names {len(self.sites)}")
        if self.routers and routers and routers != self.routers:
            raise PlanFailedError("other modules are routers")
        self.routers = self.routers or routers


@dataclass(eq=False)
class RememberedPlan(Generic[Plan]):
    """What is remembered about a model.

    Args:
        plan: the last one; None where nothing that was seen makes one.
        failures: how many plans have failed in a row.
    """

    plan: Plan | None = None
    failures: int = 0


class PlanMemory(WeakKeyDictionary[nn.Module, RememberedPlan[Plan]]):
    """Plans of models, which are not kept alive by them."""

    def plan_of(self, model: nn.Module) -> Plan | None:
        """The plan of a model; None where there is none, or several have failed in a row."""
        memory = self.get(model)
        return None if memory is None or memory.failures >= FAILURES else memory.plan

    def remember(self, model: nn.Module, plan: Plan | None) -> None:
        """Remember what a pass that was watched everywhere showed."""
        self.setdefault(model, RememberedPlan()).plan = plan

    def held(self, model: nn.Module) -> None:
        """A pass agreed with the plan of its model."""
        self[model].failures = 0

    def failed(self, model: nn.Module) -> None:
        """A pass differed from the plan of its model."""
        self[model].plan = None
        self[model].failures += 1


PLANS: PlanMemory[WatchPlan] = PlanMemory()
"""Where attention is in models."""


def plan_of(modules: ModelModules) -> WatchPlan | None:
    """The plan of a model, where there is one that fits the modules it has now."""
    plan = PLANS.plan_of(modules.model)
    return plan if plan is not None and plan.fits(modules) else None


def site_of(modules: ModelModules, call: Call, *, is_late: bool) -> AttentionSite:
    """The site of a call whose projection was looked for."""
    projection, *makers = modules.numbered((call.projection, *call.makers))
    number = modules.numbers[id(call.module)]
    return AttentionSite(number, call.route, call.cross, projection, tuple(makers), is_late)
