"""Running a model once, watched."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import torch
from torch import nn

from headscope.capturing._build import Builder
from headscope.capturing._call import Call
from headscope.capturing._edit import Opens, sessions
from headscope.capturing._facts import facts_of
from headscope.capturing._inputs import Inputs
from headscope.capturing._keep import Keeping
from headscope.capturing._norms import NormsWatch
from headscope.capturing._origins import followed
from headscope.capturing._outputs import take_returned
from headscope.capturing._reads import needing
from headscope.capturing._routers import RouterWatch
from headscope.capturing._watch import Watch
from headscope.errors import CaptureError
from headscope.record import Record


def run(
    model: nn.Module,
    inputs: Inputs,
    keeping: Keeping,
    *,
    note: Callable[[Call], None] | None = None,
    interventions: Sequence[Opens] = (),
) -> list[Record]:
    """Run a model once and build one record for each example; see `capture` for what is raised.

    Args:
        model: what to run.
        inputs: what on.
        keeping: what to keep.
        note: is called with each call as the model made it.
        interventions: what is done to the model meanwhile.
    """
    with uncompiled(model), needing(model, inputs.arguments), ExitStack() as changed:
        for intervention in interventions:
            changed.enter_context(intervention.on(model))
        for session in sessions():
            session.prepare(model, inputs)
        return _run(model, inputs, keeping, note)


def _run(
    model: nn.Module, inputs: Inputs, keeping: Keeping, note: Callable[[Call], None] | None = None
) -> list[Record]:
    facts = facts_of(model)
    builder = Builder(inputs, keeping, model)
    routers = RouterWatch(model) if keeping.routers else nullcontext()
    norms, take, join = with_norms(builder, model, keeping)
    options = _without_cache(model) | ({"output_router_logits": True} if keeping.routers else {})

    def noted(call: Call) -> Call | None:
        if note is not None:
            note(call)
        return join(call)

    try:
        with (
            followed(model, inputs.arguments, inputs.origins) as (arguments, unfollowed),
            norms,
            Watch(model, inputs.count, unfollowed(take), unfollowed(noted)),
            routers,
        ):
            outputs = model(**arguments, **options)
    except CaptureError as error:
        has_more = inputs.origins is not None
        returned = None if has_more else take_returned(model, inputs, keeping, _without_cache(model))
        if returned is None:
            raise error from None
        return returned.records(facts)
    if isinstance(routers, RouterWatch):
        builder.routers = routers.found(outputs, inputs.count)
    del outputs  # logits may be large, and what was put off is written now
    if builder.seen:
        return builder.records(facts)
    raise CaptureError(
        f"{type(model).__name__} computed no softmax attention that could be seen: it has none (as state-space models "
        "do), or computes it in a form that headscope does not know"
    )


def with_norms(builder: Builder, model: nn.Module, keeping: Keeping) -> tuple[AbstractContextManager, Any, Any]:
    """A context that follows what becomes of attention's outputs, where wanted, and what to call with calls in it."""
    if "norms" not in keeping.what:
        return nullcontext(), builder.take, builder.join
    builder.norms = norms = NormsWatch(model)
    return norms, norms.unseen(builder.take), norms.unseen(builder.join)


@contextmanager
def at_rest(model: nn.Module) -> Generator[None]:
    """No gradients and evaluation mode inside; every module's training flag as it was afterwards."""
    training = [(module, module.training) for module in model.modules()]
    try:
        with torch.no_grad():
            model.eval()
            yield
    finally:
        for module, flag in training:
            module.training = flag


def unwrapped(model: Any) -> Any:
    """The model behind ``torch.compile``, which would run past any watching."""
    return getattr(model, "_orig_mod", model)


@contextmanager
def uncompiled(model: nn.Module) -> Generator[None]:
    """Run parts of a model that were compiled as they are written, so that they can be watched."""
    if "torch._dynamo" not in sys.modules:  # nothing can have been compiled
        yield
        return
    before = [(module, module._compiled_call_impl) for module in model.modules()]
    try:
        for module, call in before:
            if call is not None:
                module._compiled_call_impl = None
        with torch.compiler.set_stance("force_eager"):
            yield
    finally:
        for module, call in before:
            if call is not None:
                module._compiled_call_impl = call


def _without_cache(model: nn.Module) -> dict[str, bool]:
    return {"use_cache": False} if hasattr(getattr(model, "config", None), "use_cache") else {}
