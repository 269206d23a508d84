"""Running a model once, watched."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import _has_any_global_hook

from headscope.capturing.building._build import Builder
from headscope.capturing.building._inventory import lost_tokens, not_read, warn_of_gaps
from headscope.capturing.building._order import check_order
from headscope.capturing.building._outputs import take_returned
from headscope.capturing.building._together import KEEPING, BatchBuilder
from headscope.capturing.calls.call import Call
from headscope.capturing.contributions._watch import NormsWatch
from headscope.capturing.facts import facts_of
from headscope.capturing.freed_memory import naming_memory
from headscope.capturing.inputs._modalities import needing
from headscope.capturing.inputs.inputs import Inputs
from headscope.capturing.keep import KeepChoice
from headscope.capturing.media.input_positions import UnnamedPositions, followed
from headscope.capturing.seam import InterventionLike, sessions
from headscope.capturing.threads import evaluating, not_compiling, one_at_a_time
from headscope.capturing.walk import arguments_of, modules_of, one_pass
from headscope.capturing.watching._flex import MODULE as FLEX
from headscope.capturing.watching._routers import check_routers, find_routers, scores_of
from headscope.capturing.watching._watch import Watch
from headscope.capturing.watching.tape import ModuleOutputs
from headscope.capturing.watching.watch_plan import (
    PLANS,
    InputForm,
    ModelModules,
    PlanFailedError,
    WatchedModules,
    WatchPlan,
    plan_of,
)
from headscope.errors import CaptureError
from headscope.record import Record, TextBatch

Make = Callable[[Inputs, KeepChoice, nn.Module], Builder]
"""Function that makes the builder that receives the attention calls of a pass."""


def run(
    model: nn.Module,
    inputs: Inputs,
    keeping: KeepChoice,
    *,
    note: Callable[[Call], None] | None = None,
    interventions: Sequence[InterventionLike] = (),
    numbers: bool = True,
) -> list[Record]:
    """Run a model once and build one record for each example; for errors see `capture`.

    Args:
        model: the model to run.
        inputs: its inputs.
        keeping: what to keep.
        note: is called with each attention call as the model made it; counting begins again at
            call 0 if the model has to run again.
        interventions: changes to the model during the run.
        numbers: whether positions that have no names may be numbered, with a warning.
    """
    with one_at_a_time(model), ExitStack() as changed:
        is_changed = bool(interventions or sessions())
        if not is_changed:
            changed.enter_context(one_pass())
        modules = ModelModules.of(model)
        changed.enter_context(uncompiled(model, modules.all))
        changed.enter_context(needing(model, inputs.arguments))
        for intervention in interventions:
            changed.enter_context(intervention.on(model))
        for session in sessions():
            session.prepare(model, inputs)
        if is_changed:
            # Interventions may have put in modules of their own: from here on all of them stay.
            changed.enter_context(one_pass(anew=True))
            modules = ModelModules.of(model)
        return _run(modules, inputs, keeping, note, numbers=numbers)


def run_together(
    model: nn.Module, inputs: Inputs, count: int, *, to_the_end: bool = True
) -> TextBatch:
    """Run a model once on texts of equal length, and keep their weights in common arrays.

    Args:
        model: the model to run.
        inputs: texts without padding.
        count: how many of them to keep, from the first; the others only make the batch larger.
        to_the_end: False to end the pass with the last attention that the plan of the model names,
            where a pass on texts of this length ran to the end. Attention that comes after it is
            then missed: see `equal_lengths`, which lets passes run to the end again and again.

    Raises:
        CaptureError: if these texts cannot share arrays; `run` may still capture each of them.
    """

    def make(inputs: Inputs, _: KeepChoice, model: nn.Module) -> BatchBuilder:
        return BatchBuilder(inputs, model, count)

    with one_pass(), one_at_a_time(model), needing(model, inputs.arguments), ExitStack() as undo:
        modules = ModelModules.of(model)
        undo.enter_context(uncompiled(model, modules.all))
        form = tuple((name, tuple(of.shape[1:])) for name, of in inputs.arguments.items())
        may_end = not to_the_end and _may_end_early(modules, form)
        builder = _watched(modules, inputs, KEEPING, None, make=make, may_end=may_end)
        plan = plan_of(modules)
        if plan is not None and not may_end:
            plan.forms.add(form)
        if not isinstance(builder, BatchBuilder) or not builder.seen:
            raise CaptureError(f"{type(model).__name__} computed no attention that could be seen")
        return builder.batch(facts_of(model))


def _run(
    modules: ModelModules,
    inputs: Inputs,
    keeping: KeepChoice,
    note: Callable[[Call], None] | None,
    *,
    numbers: bool,
) -> list[Record]:
    model = modules.model
    called_with = _differing(model, _without_cache(model, inputs))
    facts = facts_of(model)  # before the pass, while all modules are in the processor's cache
    try:
        builder = _watched(modules, inputs, keeping, note)
    except CaptureError as error:
        builder = _returned(model, inputs, keeping, error)
        if builder is None:
            if not numbers or not isinstance(error, UnnamedPositions):
                raise error from None
            inputs = inputs.with_numbers(str(error))
            builder = _watched(modules, inputs, keeping, note)
        else:
            called_with["output_attentions"] = True
    records = builder.records(replace(facts, called_with=called_with))
    unread = not_read(modules.all, model, inputs.arguments)
    # Where sides are given, nobody asked for names.
    is_named = inputs.sides is None
    lost = lost_tokens(records, inputs)
    warn_of_gaps(records[0], unread, builder.unattended, lost, numbered=is_named)
    return records


def _may_end_early(modules: ModelModules, form: InputForm) -> bool:
    """Whether nothing that matters comes after the last attention of the plan, on texts of a form
    that a pass has read to its end.
    """
    plan = plan_of(modules)
    if plan is None or form not in plan.forms:
        return False
    # A softmax that is none of attention's, as a router takes, may come after it.
    own = sum(site.route == "operators" for site in plan.sites)
    return plan.softmaxes <= own and not _is_observed(modules)


def _is_observed(modules: ModelModules) -> bool:
    """Whether somebody else is told when modules of a model run: a pass that ends early would keep
    it from them, and accelerate moves weights back after a module has run.
    """
    if _has_any_global_hook():
        return True
    for module in modules.all:
        if module._forward_hooks or module._forward_pre_hooks or "_hf_hook" in vars(module):
            return True
    return False


def _returned(
    model: nn.Module, inputs: Inputs, keeping: KeepChoice, error: CaptureError
) -> Builder | None:
    """A builder with the weights that the model itself returns, where these can be verified."""
    # A model that returns its weights does not return its router scores with them.
    if inputs.input_positions is not None or not inputs.source or keeping.routers:
        return None
    try:
        return take_returned(model, inputs, keeping, _without_cache(model, inputs))
    except CaptureError:
        if isinstance(error, UnnamedPositions):
            return None
        raise


def _watched(
    modules: ModelModules,
    inputs: Inputs,
    keeping: KeepChoice,
    note: Callable[[Call], None] | None,
    *,
    make: Make = Builder,
    may_end: bool = False,
) -> Builder:
    """What was seen while the model ran once, watched at the modules of its plan or everywhere; a
    pass with a plan may end with the last attention.
    """
    model = modules.model
    if note is not None or inputs.input_positions is not None or sessions():
        return _passed(model, inputs, keeping, note, make=make)[0]
    plan = plan_of(modules)
    if plan is not None:
        try:
            builder = _planned(modules, plan, inputs, keeping, make=make, may_end=may_end)
        except (CaptureError, PlanFailedError):
            # The pass that watches everywhere either succeeds or raises the true reason.
            PLANS.failed(model)
        else:
            PLANS.held(model)
            return builder
    builder, watch = _passed(model, inputs, keeping, watched=WatchedModules.of(modules), make=make)
    known = tuple(map(weakref.ref, modules.all))
    plan = WatchPlan(known, watch.sites, watch.softmaxes, builder.router_sites)
    PLANS.remember(model, plan if watch.sites else None)
    return builder


def _planned(
    modules: ModelModules,
    plan: WatchPlan,
    inputs: Inputs,
    keeping: KeepChoice,
    *,
    make: Make,
    may_end: bool,
) -> Builder:
    """What was seen in a pass that was watched at the modules of a plan.

    Raises:
        PlanFailedError: if the pass differed from the plan.
    """
    watched = plan.watched(modules, ends=may_end)
    builder, watch = _passed(modules.model, inputs, keeping, watched=watched, make=make)
    plan.check(watch.sites, watch.softmaxes, builder.router_sites)
    return builder


def _passed(
    model: nn.Module,
    inputs: Inputs,
    keeping: KeepChoice,
    note: Callable[[Call], None] | None = None,
    *,
    watched: WatchedModules | None = None,
    make: Make = Builder,
) -> tuple[Builder, Watch]:
    """Everything that was seen in one pass."""
    builder = make(inputs, keeping, model)
    running = _RunningModel(builder, None if watched is None else watched.last)
    options = _without_cache(model, inputs)
    routers = None
    if keeping.routers:
        check_routers(model)
        options["output_router_logits"] = True
        routers = ModuleOutputs(modules_of(model) if watched is None else watched.routers)
    norms = norms_for(builder, model, keeping)
    readers = [each for each in (routers, norms) if each is not None]

    def noted(call: Call) -> Call | None:
        if note is not None:
            note(call)
        return builder.join(call)

    with (
        followed(model, inputs.arguments, inputs.input_positions) as (arguments, unfollowed),
        norms or nullcontext(),
        Watch(
            model,
            inputs.count,
            unfollowed(running.take),
            unfollowed(noted),
            watched=watched,
            readers=readers,
        ) as watch,
    ):
        outputs = running.outputs_of(model, arguments | options)
    _check_order(model, inputs, builder, options)
    if routers is not None:
        modules = ModelModules.of(model) if watched is None else watched.modules
        seen = find_routers(routers.uses, outputs, model)
        builder.routers = scores_of(seen, modules.names, inputs.count)
        builder.router_sites = modules.numbered([router and router[0] for router in seen])
    del outputs  # logits may be large, and layers that waited need memory
    builder.complete()
    builder.left_out = watch.left_out
    return builder, watch


class _SeenAllError(Exception):
    """Ends a pass whose attention was all seen."""


class _RunningModel:
    """A pass, which may end with the last call of attention.

    Args:
        builder: takes the calls.
        last: how many calls there are; None for a pass that runs to its end.
    """

    def __init__(self, builder: Builder, last: int | None) -> None:
        self._builder, self._last, self._runs = builder, last, False

    def take(self, call: Call) -> None:
        """Hand on a call, and end the pass with the last one."""
        self._builder.take(call)
        # Calls that nothing takes further come when the model has run.
        if self._runs and len(self._builder.seen) == self._last:
            raise _SeenAllError

    def outputs_of(self, model: nn.Module, given: dict[str, Any]) -> Any:
        """What the model makes of its inputs; None where the pass ended before."""
        self._runs = True
        try:
            return model(**given)
        except _SeenAllError:
            return None
        finally:
            self._runs = False


def _check_order(
    model: nn.Module, inputs: Inputs, builder: Builder, options: dict[str, Any]
) -> None:
    """Raise if nothing shows in which order tensors hold texts and heads.

    Not checked inside a session: it changes the model, and the pass that found the session's
    modules has checked the order before.
    """
    if not builder.samples or sessions():
        return
    given = inputs.arguments
    is_alike = all(tensor.ndim > 0 and len(tensor) == inputs.count for tensor in given.values())

    def act() -> None:
        model(**{name: tensor[:1] for name, tensor in given.items()}, **options)

    check_order(model, builder.samples, inputs.count, act if is_alike else None)


def norms_for(builder: Builder, model: nn.Module, keeping: KeepChoice) -> NormsWatch | None:
    """A block and reader of a pass that follows attention's outputs through the layer, if norms are
    wanted; the builder tells it of each call.
    """
    if "norms" in keeping.what:
        builder.norms = NormsWatch(
            ModelModules.of(model), with_alti="alti" in keeping.what, put=keeping.put
        )
    return builder.norms


@contextmanager
def at_rest(model: nn.Module) -> Generator[None]:
    """Run without gradients and in evaluation mode; restore every module's training flag after."""
    with torch.no_grad(), evaluating(model), naming_memory():
        yield


def unwrapped(model: Any) -> Any:
    """The model inside the wrapper of ``torch.compile``, whose compiled code cannot be watched.

    Raises:
        CaptureError: if the model runs copies of itself, or as a graph, and cannot be watched.
    """
    if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
        raise CaptureError(
            f"{type(model).__name__} runs copies of a model; give the model itself: model.module"
        )
    if isinstance(model, torch.jit.ScriptModule):
        raise CaptureError(
            f"{type(model).__name__} runs as a graph of TorchScript, in which nothing can be "
            "watched; give the model that it was made of"
        )
    return getattr(model, "_orig_mod", model)


@contextmanager
def uncompiled(model: nn.Module, modules: Sequence[nn.Module] | None = None) -> Generator[None]:
    """Run the compiled modules of a model uncompiled, so that they can be watched.

    Args:
        model: the model.
        modules: all its modules, if they are known.
    """
    # Without these imports no module can be compiled, and none compiles itself when it is called.
    if "torch._dynamo" not in sys.modules and FLEX not in sys.modules:
        yield
        return
    compiled = [
        (module, module._compiled_call_impl)
        for module in (modules_of(model) if modules is None else modules)
        if module._compiled_call_impl is not None
    ]
    try:
        for module, _ in compiled:
            module._compiled_call_impl = None
        with not_compiling():
            yield
    finally:
        for module, call in compiled:
            module._compiled_call_impl = call


def _without_cache(model: nn.Module, inputs: Inputs) -> dict[str, bool]:
    """Arguments that switch the cache off for one pass, unless the user's own call sets it.

    Without a cache a few models compute other masks: only then transformers looks for packed texts,
    and only then the decoder of FSMT has a causal mask. Models whose forward does not name
    ``use_cache`` may set it themselves (Mimi).
    """
    named = "use_cache" in arguments_of(model)
    if inputs.as_given or "use_cache" in inputs.arguments or not named:
        return {}
    return {"use_cache": False} if hasattr(getattr(model, "config", None), "use_cache") else {}


def _differing(model: nn.Module, added: dict[str, bool]) -> dict[str, bool]:
    """The added arguments whose values differ from the model's own defaults."""
    return {
        name: value for name, value in added.items() if getattr(model.config, name, None) != value
    }
