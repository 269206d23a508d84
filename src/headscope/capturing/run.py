"""Running a model once, watched."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from headscope.capturing.building._build import Builder
from headscope.capturing.building._inventory import lost_tokens, not_read, warn_of_gaps
from headscope.capturing.building._outputs import take_returned
from headscope.capturing.calls.call import Call
from headscope.capturing.contributions._watch import NormsWatch
from headscope.capturing.device import (
    evaluating,
    naming_memory,
    not_compiling,
    one_at_a_time,
    unscripted,
)
from headscope.capturing.facts import facts_of
from headscope.capturing.inputs.inputs import Inputs, needing
from headscope.capturing.keep import KeepChoice
from headscope.capturing.media.input_positions import UnnamedPositions, followed
from headscope.capturing.seam import InterventionLike, sessions
from headscope.capturing.walk import ModelModules, arguments_of, modules_of, parameters_of
from headscope.capturing.watching._watch import Watch
from headscope.capturing.watching._whole_attention import MODULE as FLEX
from headscope.capturing.watching.running import ModuleUses, check_routers, router_scores
from headscope.errors import CaptureError, ModelError
from headscope.parts import with_parts
from headscope.record import Record

Noting = Callable[[Call], None] | None


def run(
    model: nn.Module,
    inputs: Inputs,
    keeping: KeepChoice,
    *,
    note: Noting = None,
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
        modules = ModelModules.of(model)
        changed.enter_context(uncompiled(model))
        changed.enter_context(needing(model, inputs.arguments))
        for intervention in interventions:
            changed.enter_context(intervention.on(model))
        for session in sessions():
            session.prepare(model, inputs)
        if interventions or sessions():  # which may have put in modules of their own
            modules = ModelModules.of(model)
        return _run(modules, inputs, keeping, note, numbers=numbers)


def _run(
    modules: ModelModules, inputs: Inputs, keeping: KeepChoice, note: Noting, *, numbers: bool
) -> list[Record]:
    model = modules.model
    called_with = _differing(model, _without_cache(model, inputs))
    facts = facts_of(model)  # before the pass, while all modules are in the processor's cache
    try:
        builder = _passed(model, inputs, keeping, note)
    except CaptureError as error:
        builder = _returned(model, inputs, keeping, error)
        if builder is None:
            if not numbers or not isinstance(error, UnnamedPositions):
                raise error from None
            unnamed: Any = {"input_positions": None, "pictures": (), "numbered": str(error)}
            inputs = replace(inputs, **unnamed, examples=inputs.count)
            builder = _passed(model, inputs, keeping, note)
        else:
            called_with["output_attentions"] = True
    records = builder.records(replace(facts, called_with=called_with))
    unread = not_read(modules.all, model, inputs.arguments)
    lost = lost_tokens(records, inputs)
    # Of a model of any library interventions want the places of heads, and no names.
    asked = inputs.sides is None
    warn_of_gaps(records, unread, builder.unattended, lost, numbered=asked)
    for number, given in enumerate(inputs.given):
        known = {"known": given.known, "prompt": given.texts}
        records[number] = with_parts(records[number], given.parts, **known)
    return records


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


def _passed(model: nn.Module, inputs: Inputs, keeping: KeepChoice, note: Noting = None) -> Builder:
    """A builder that was given everything that was seen in one pass."""
    builder, options = Builder(inputs, keeping, model), _without_cache(model, inputs)
    routers = None
    if keeping.routers:
        check_routers(model)
        options["output_router_logits"] = True
        routers = ModuleUses(modules_of(model))
    norms = norms_for(builder, model, keeping)

    def noted(call: Call) -> Call | None:
        if note is not None:
            note(call)
        return builder.sides.joined(call)

    with (
        followed(model, inputs.arguments, inputs.input_positions) as (arguments, unfollowed),
        Watch(model, inputs.count, unfollowed(builder.take), unfollowed(noted)) as watch,
        norms or nullcontext(),
        routers or nullcontext(),
    ):
        outputs = model(**arguments | options)
    if routers is not None:
        builder.routers = router_scores(routers.uses, outputs, model, inputs.count)
    del outputs  # logits may be large, and layers that waited need memory
    builder.complete()
    builder.left_out = watch.left_out
    return builder


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
        CaptureError: if the model runs copies of itself, or as a graph, and cannot be watched, or
            its weights or tensors that are made have no numbers.
        ModelError: if it is no torch module.
    """
    if torch.get_default_device().type == "meta":
        raise CaptureError(
            "torch.set_default_device('meta') is in force, under which tensors have no numbers; "
            "call torch.set_default_device('cpu') before a model is run"
        )
    if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
        raise CaptureError(
            f"{type(model).__name__} runs copies of a model; give the model itself: model.module"
        )
    if not isinstance(model, nn.Module):
        raise ModelError(f"Expected a model (a torch.nn.Module), got {repr(model)[:60]}")
    modules = ModelModules.of(model)
    for module in modules.all:
        if isinstance(module, torch.jit.ScriptModule):
            own = modules.names[id(module)] or type(model).__name__
            raise CaptureError(
                f"{own} runs as a graph of TorchScript, in which nothing can be "
                "watched; give the model that it was made of"
            )
    # accelerate keeps weights elsewhere and puts them on the meta device until a module runs.
    if any(weight.is_meta for weight in parameters_of(model)) and not any(
        hasattr(module, "_hf_hook") for module in modules.all
    ):
        raise CaptureError(
            f"{type(model).__name__} has weights on the meta device, where there are no numbers; "
            "load it with from_pretrained, or fill them with model.to_empty and load_state_dict"
        )
    return getattr(model, "_orig_mod", model)


@contextmanager
def uncompiled(model: nn.Module) -> Generator[None]:
    """Run the compiled modules of a model, and functions of TorchScript, as they are written, so
    that they can be watched.
    """
    # Without these imports no module can be compiled, and none compiles itself when it is called.
    if "torch._dynamo" not in sys.modules and FLEX not in sys.modules:
        with unscripted():
            yield
        return
    modules = [each for each in modules_of(model) if each._compiled_call_impl is not None]
    compiled = [(each, each._compiled_call_impl) for each in modules]
    try:
        for module, _ in compiled:
            module._compiled_call_impl = None
        with not_compiling(), unscripted():
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
    return {name: flag for name, flag in added.items() if getattr(model.config, name, None) != flag}
