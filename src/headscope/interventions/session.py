"""A model that is changed while a block is open."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from headscope.capturing.calls.call import Call, visibility_of
from headscope.capturing.device import device_of
from headscope.capturing.inputs.inputs import Inputs
from headscope.capturing.media.input_positions import (
    ARGUMENTS,
    AUDIO,
    VISION,
    has_more_than_text,
    origins_of,
)
from headscope.capturing.observers import hook_after, hook_before, looking_away, mode_off, observing
from headscope.capturing.run import uncompiled, unwrapped
from headscope.capturing.seam import CallPositions, LayerChange, changing, read_before, sessions
from headscope.capturing.walk import ModelModules, reads_target
from headscope.capturing.watching.interface import InterfaceWatch
from headscope.capturing.watching.operators import OperatorWatch
from headscope.capturing.watching.running import RunningModules
from headscope.errors import InterventionError
from headscope.interventions._intervention import Intervention
from headscope.interventions.plan import LayerPlace, ModelPlan, plan_of
from headscope.record import Tokens

MASKS = {"source": "attention_mask", "target": "decoder_attention_mask"}
IDS = {
    "source": ("input_ids", "inputs_embeds"),
    "target": ("decoder_input_ids", "decoder_inputs_embeds"),
}
ENCODED = ("encoder_outputs", "mm_encoder_outputs")
"""Arguments that hold what an encoder made before, of a text, or of a picture beside one, as
``generate`` of transformers 5 does.
"""

_plans: WeakKeyDictionary[nn.Module, dict[tuple, ModelPlan]] = WeakKeyDictionary()


@contextmanager
def intervene(model: nn.Module, *interventions: Intervention) -> Generator[ModelSession]:
    """Change a model's attention while the block is open, however the model is called.

    The first call within the block runs the model once more beforehand, as it is: to find its
    layers and to check that their attention is understood (once for each model and kind of input).
    What cannot be changed is refused then, before anything is run changed. Blocks nest: those
    further out come first. Within a layer queries, keys and values are changed first, then weights,
    then outputs. The model comes back as it was, also after an error. Gradients flow as usual.

    Args:
        model: a transformers model, or any other torch model with one batch axis, the first.
        *interventions: what is done; see `Intervention`.

    Yields:
        What is known of the block; its ``plan`` names the layers of the model once this was called.

    Raises:
        InterventionError: in the first call, where a layer, head or token does not exist or a
            change cannot be made.
        CaptureError: in the first call, where the model's attention cannot be captured exactly.

    Example:
        >>> with intervene(model, Zero(layer=2, heads=[0, 3]), Uniform(layer=4)):
        ...     model(**inputs)
    """
    model = unwrapped(model)
    modules = ModelModules.of(model)
    session = ModelSession(modules, interventions)
    with ExitStack() as undo:
        undo.enter_context(uncompiled(model))
        # Blocks that nest share the watch of the outermost, so that each call is seen once.
        models = [other.model for other in sessions() if isinstance(other, ModelSession)]
        if not any(other is model for other in models):
            running = RunningModules(modules)
            session.operators = operators = OperatorWatch(running, None, 1)
            operators.idle = True  # until there is something to change on this route
            undo.enter_context(InterfaceWatch(running, None, inside=looking_away))
            undo.enter_context(operators)
            undo.enter_context(observing(operators=operators))
        undo.enter_context(session.hooked())
        undo.enter_context(changing(session))
        yield session


def plan_on(model: nn.Module, act: Callable[[], Any]) -> ModelPlan:
    """The places of a model on the inputs that it is given in an act.

    Raises:
        InterventionError: where the act does not run the model.
    """
    with intervene(model) as session, torch.no_grad():
        act()
    if session.plan is None:
        raise InterventionError(
            f"The score does not run {type(model).__name__}; give the model that it runs"
        )
    return session.plan


class ModelSession:
    """What is done to one model.

    Args:
        modules: which, with its modules.
        interventions: what.
    """

    def __init__(self, modules: ModelModules, interventions: Sequence[Intervention]) -> None:
        for intervention in interventions:
            if not isinstance(intervention, Intervention):
                raise InterventionError(
                    "intervene takes interventions such as headscope.Zero(layer=0, heads=[1]), "
                    f"not {intervention!r}"
                )
        self.model: nn.Module = modules.model
        self.done: set[Any] = set()
        self.operators: OperatorWatch | None = None
        self.interventions: Sequence[Intervention] = interventions
        self._hooks, self._modules = ExitStack(), modules
        self._parts: dict[tuple[str, int], list[LayerChange]] = {}
        self._places: dict[str, LayerPlace] = {}
        self._bound: ModelPlan | None = None
        self._visits: Counter[str] = Counter()
        self._uses: Counter[str] = Counter()
        self._arguments: Mapping[str, Any] = {}
        self._read: list[int] = []
        self._running = 0
        self._away = ExitStack()

    @contextmanager
    def hooked(self) -> Generator[None]:
        """Know while the block is open when the model and its modules begin."""
        roots = [self.model, *_encoders(self.model)]
        with ExitStack() as undo:
            for root in roots:
                undo.callback(hook_before(root, self._begin).remove)
                undo.callback(hook_after(root, self._end, always=True).remove)
            undo.callback(self._hooks.close)
            undo.callback(self._away.close)
            yield

    @property
    def plan(self) -> ModelPlan | None:
        """The layers of the model; None as long as it was not run."""
        return self._bound

    def prepare(self, model: nn.Module, inputs: Inputs) -> None:
        """See `headscope.capturing.seam.ChangeSession`."""
        if model is not self.model:
            return
        # An encoder that runs by itself, as at the start of a generation, does not show the layers
        # of the decoder.
        if reads_target(model) and not inputs.target:
            self._learn(_inputs_of(model, inputs.arguments, whole=False))
        else:
            self._learn(inputs)

    def parts(self, module: nn.Module) -> Sequence[LayerChange]:
        """See `headscope.capturing.seam.ChangeSession`."""
        name = self._modules.names.get(id(module))
        if name is None or not self._parts:
            return ()
        # Layers may share one module, as ALBERT's do: the count of its visits says which it is.
        visit = (self._visits[name] - 1) % self._uses[name] if self._uses[name] else 0
        return self._parts.get((name, visit), ())

    def positions(self, module: nn.Module, call: Call) -> CallPositions:
        """See `headscope.capturing.seam.ChangeSession`."""
        batch, _, queries, keys = call.size
        roles = self._places[self._modules.names[id(module)]].roles
        seen, device = _looked_at(call), call.context.device
        own = real = self._real(roles[1], (batch, keys), seen, device)
        if queries != keys or roles[0] != roles[1]:
            # What is hidden from all is known of keys; queries are the same tokens if as many.
            of_queries = seen if queries == keys else None
            own = self._real(roles[0], (batch, queries), of_queries, device)
        return CallPositions.after(self._read, own, real, cross=roles[0] != roles[1])

    def _real(
        self, role: str, shape: tuple[int, int], seen: torch.Tensor | None, device: torch.device
    ) -> list[torch.Tensor]:
        """By the mask that the model was given, else by what its attention hides from all."""
        mask = self._arguments.get(MASKS.get(role, ""))
        real = torch.ones(shape) if seen is None else seen.expand(shape)
        if isinstance(mask, torch.Tensor) and mask.ndim == 2 and len(mask) == shape[0]:
            # In a step of a generation the mask is of all tokens so far, the queries the last ones.
            is_step = self._read and mask.shape[1] > shape[1]
            if mask.shape[1] == shape[1] or is_step:
                real = mask[:, -shape[1] :]
        counts = real.count_nonzero(1).tolist()
        return list(real.nonzero()[:, 1].to(device).split(counts))

    def _begin(self, module: nn.Module, args: tuple, options: dict) -> None:
        self._running += 1
        # The encoder begins inside the whole model; only the outermost of them is a new run.
        if self._running > 1 or self not in sessions():
            return
        self.done.clear()
        self._arguments = arguments = _named(module, args, options)
        if self.operators is not None:
            self.operators.batch = _count(arguments)
        mask = arguments.get(MASKS["target" if reads_target(self.model) else "source"])
        self._read = read_before(arguments.get("past_key_values"), mask, _count(arguments))
        whole = module is self.model
        self._learn(None if self._read else _inputs_of(self.model, arguments, whole=whole))
        self._visits.clear()
        if self.operators is not None and self.operators.idle:
            # Even a watch that sees nothing is asked about each of torch's functions: a fifth of
            # the time of a short text.
            self._away.enter_context(mode_off(self.operators))

    def _end(self, *_: Any) -> None:
        self._running -= 1
        if not self._running:
            self._away.close()

    def _visit(self, module: nn.Module, *_: Any) -> None:
        self._visits[self._modules.names[id(module)]] += 1

    def _learn(self, inputs: Inputs | None) -> None:
        """Find the places of the model, once for each kind of input, and what is to be done in
        each.
        """
        plans = _plans.setdefault(self.model, {})
        if inputs is None:
            if self._bound is None:
                raise InterventionError(
                    f"{type(self.model).__name__} was run on less than its own inputs; run it "
                    "once as a whole inside the block before its parts"
                )
            return
        plan = self._planned(plans, inputs)
        if plan is not self._bound:
            self._bind(plan)

    def _planned(self, plans: dict[tuple, ModelPlan], inputs: Inputs) -> ModelPlan:
        """What is known of the model for such inputs.

        One text does not show where torch's operators are given several texts: that is found out
        with several.
        """
        kind, several = _kind(self.model, inputs.arguments), inputs.count > 1
        if (kind, several) in plans:
            return plans[kind, several]
        other = plans.get((kind, not several))
        if other is not None and not other.depends_on_batch:
            return other
        plans[kind, several] = plan_of(self.model, inputs)
        return plans[kind, several]

    def _bind(self, plan: ModelPlan) -> None:
        # First, so that what cannot be changed is refused in every call, and not in one alone.
        parts = [each for intervention in self.interventions for each in intervention.parts(plan)]
        self._bound, self._parts = plan, {}
        self._places = {place.module: place for place in plan.places}
        self._uses = Counter(place.module for place in plan.places)
        # Visits are counted where there is something to change, and nowhere else: a hook on each
        # module takes as long as the attention of a short text.
        self._hooks.close()
        for module in self._modules.all:
            if self._modules.names[id(module)] in self._places:
                self._hooks.callback(hook_before(module, self._visit).remove)
        for place, part in parts:
            self._parts.setdefault((place.module, place.visit), []).append(part)
            if part.route == "operators":
                self._wake()

    def _wake(self) -> None:
        for other in sessions():
            is_ours = isinstance(other, ModelSession) and other.model is self.model
            if is_ours and other.operators is not None:
                other.operators.idle = False
                other._away.close()


def _looked_at(call: Call) -> torch.Tensor | None:
    """``[batch key]``, True for keys that some query may look at; batch may be 1."""
    visible = visibility_of(call).visible if call.mask is not None else None
    return None if visible is None else visible.any(dim=2).any(dim=1)


def _encoders(model: Any) -> list[nn.Module]:
    """The encoder that generation runs by itself."""
    if not reads_target(model) or not hasattr(model, "get_encoder"):
        return []
    encoder = model.get_encoder()
    return [encoder] if isinstance(encoder, nn.Module) and encoder is not model else []


def _named(module: nn.Module, args: tuple, options: dict) -> dict[str, Any]:
    """Arguments of a forward by name."""
    try:
        bound = inspect.signature(module.forward).bind_partial(*args, **options).arguments
    except TypeError:
        return dict(options)
    named = bound | bound.get("kwargs", {})  # what the signature takes as **kwargs
    return {name: value for name, value in named.items() if value is not None}


def _count(arguments: Mapping[str, Any]) -> int:
    """Number of examples: the length of the first argument that is text, else of the first
    tensor.
    """
    tensors = {name: each for name, each in _tensors(arguments).items() if each.ndim}
    named = [tensors[name] for names in IDS.values() for name in names if name in tensors]
    return len(next(iter((*named, *tensors.values())), ())) or 1


def _kind(model: Any, arguments: Mapping[str, Any]) -> tuple:
    """What the places of a model may depend on."""
    more = tuple(sorted(name for name in arguments if ARGUMENTS.get(name) in (VISION, AUDIO)))
    return more, getattr(getattr(model, "config", None), "_attn_implementation", None)


def _inputs_of(model: Any, arguments: Mapping[str, Any], *, whole: bool) -> Inputs | None:
    """What a model can be run on to find its places; None for a part of the model."""
    if any(arguments.get(name) is not None for name in ENCODED):
        return None
    tensors = _tensors(arguments)
    if not hasattr(model, "config"):
        count = _count(tensors)
        return Inputs(tensors, (Tokens(pieces=()),) * count, sides=())
    if not whole:
        tensors["decoder_input_ids"] = _decoder_start(model, _count(tensors))
    more = has_more_than_text(tensors)
    source, target = (_tokens(tensors, role) for role in ("source", "target"))
    if not (source or more):
        return None
    return Inputs(tensors, source, target, origins_of(model, tensors) if more else None)


def _tensors(arguments: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    # Without labels, of which a model would compute a loss that nobody needs here.
    tensors = {name: each for name, each in arguments.items() if isinstance(each, torch.Tensor)}
    tensors.pop("labels", None)
    return tensors


def _decoder_start(model: Any, count: int) -> torch.Tensor:
    """Something for a decoder to read, whose layers are to be found beside the encoder's."""
    start = getattr(model.config, "decoder_start_token_id", None) or 0
    return torch.full((count, 2), start, device=device_of(model))


def _tokens(tensors: Mapping[str, torch.Tensor], role: str) -> tuple[Tokens, ...]:
    given = next((tensors[name] for name in IDS[role] if name in tensors), None)
    if given is None:
        return ()
    # Ids have no words without a tokenizer, so their numbers stand for them.
    numbered = Tokens(pieces=tuple(map(str, range(given.shape[1]))))
    return (numbered,) * len(given)
