"""What disabling many heads shares: layers below a change are computed once, and several heads of a
layer are disabled in one pass, each in its own copy of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from math import ceil
from typing import Any

import torch
from torch import nn

from headscope.capturing.observers import hook_after
from headscope.capturing.seam import Copies, intact, level, unseen
from headscope.interventions.plan import LayerPlace

MOST_TOKENS = 2048
"""Tokens of all copies of a batch together: enough for 12 copies of 152 tokens."""
LARGE = 512
"""Tokens of a batch beyond which copies gain nothing: benchmarks/ablation.py."""
ROUNDING = 1e-5
"""How far a text may come out otherwise beside another one, relative to the largest number."""
SCALARS = (bool, int, float, str, torch.dtype, torch.device, type(None))

Wrap = Callable[[str, Callable], Callable]
"""Makes of a module's name and forward what is called in its place."""


@dataclass(frozen=True, eq=False)
class LayerCall:
    """A call of a layer: its name, the number of the call, what it was given and returned."""

    name: str
    at: int
    given: Any
    returned: Any


class Sharing:
    """The layers of a model, which are run once as they are and then passed over below a change.

    A layer is the innermost child of a module list that holds attention. It is passed over where
    everything that it is given equals what it was given in the recorded run, to the last bit.
    `check` finds out whether the model then returns the same.

    Args:
        model: in evaluation mode.
        places: its attention layers.
    """

    def __init__(self, model: nn.Module, places: Iterable[LayerPlace]) -> None:
        places = tuple(places)
        self.model = model
        self.is_checked: bool = False
        self.reason: str = ""
        """Why the model is run as a whole every time; empty where layers are passed over."""
        self._layer_of = {place.module: layer_of(model, place) for place in places}
        self._layers = tuple(dict.fromkeys(name for name in self._layer_of.values() if name))
        self._calls: dict[tuple[str, int], LayerCall] = {}
        self._tried: dict[tuple, bool] = {}
        # Now, while nobody watches the layers: hooks of one's own may do anything in a layer.
        self._kinds = {name: _kind(model.get_submodule(name), name) for name in self._layers}
        if any(place.visit for place in places):
            self.reason = "layers share one module"
        elif len(self._layers) < 2:
            self.reason = "its layers are no list of modules that return tensors"

    @contextmanager
    def recording(self) -> Generator[None]:
        """Keep what every layer is given and returns, in place of what was kept before."""

        def recorded(name: str, forward: Callable) -> Callable:
            numbers = count()

            def run(*args: Any, **options: Any) -> Any:
                at, returned = next(numbers), forward(*args, **options)
                self._calls[name, at] = LayerCall(name, at, (args, options), returned)
                return returned

            return run

        self.forget()
        with self._wrapped(recorded):
            yield

    def forget(self) -> None:
        """Free what was kept."""
        self._calls = {}

    @contextmanager
    def sharing(
        self, place: LayerPlace | None, stack: StackedPass | None = None
    ) -> Generator[None]:
        """Pass over layers that are given what they were given in the recorded run.

        Args:
            place: the changed one, whose layer is run; None for none.
            stack: copies of the batch, of which one is run now.
        """
        changed, own_level = "" if place is None else self._layer_of[place.module], level()
        forwards: dict[str, Callable] = {}

        def passed_over(name: str, forward: Callable) -> Callable:
            forwards[name], numbers = forward, count()

            def run(*args: Any, **options: Any) -> Any:
                if level() != own_level:  # a run within the run, which finds the layers
                    return forward(*args, **options)
                at, given = next(numbers), (args, options)
                if stack is not None and name == changed:
                    stack.begin(at, given, forwards)
                calls = [None if name == changed else self._calls.get((name, at))]
                calls += [None if stack is None else stack.call(name, at)]
                # Comparing runs torch functions, which the watch of attention must not see.
                with unseen():
                    for call in calls:
                        if call is not None and same(call.given, given):
                            return call.returned
                return forward(*args, **options)

            return run

        with self._wrapped(passed_over):
            yield

    def _wrapped(self, wrap: Wrap) -> AbstractContextManager[None]:
        return wrapped(self.model, () if self.reason else self._layers, wrap)

    def check(self, act: Callable[[], Any], places: Iterable[LayerPlace]) -> Any:
        """Give up passing over where the model then gives anything else than a whole run, which is
        done and recorded.

        Args:
            act: runs the model, changing nothing.
            places: its attention layers.

        Returns:
            What the act gave in the whole run.
        """
        self.is_checked = True
        with self.recording(), outputs_of(self.model) as whole:
            given = act()
        # One layer runs and all others are passed over. The last comes first: what a layer below
        # leaves by the side was used up in the whole run, and is not made anew by an earlier trial.
        for place in (*reversed(tuple(places)), None):
            if self.reason:
                break
            with self.sharing(place), outputs_of(self.model) as outputs:
                act()
            if not same(whole, outputs):
                below = "its layers" if place is None else f"the layers below {place.name}"
                self.reason = f"passing over {below} changes what the model returns"
        return given

    def passes(self, place: LayerPlace, number: int, copies: Copies) -> list[StackedPass]:
        """So many changes of a place in as few passes as is worth it: copies of large batches gain
        nothing.
        """
        name = self._layer_of[place.module]
        own = [call for call in self._calls.values() if call.name == name]
        states = next(tensors_of(own[0].returned), None) if own else None
        size = 1
        if not self.reason and states is not None and states.ndim == 3:
            tokens = states.shape[0] * states.shape[1]
            most = min(number, MOST_TOKENS // max(1, tokens)) if tokens <= LARGE else 1
            if most > 1 and all(self._may_be_copied(call) for call in own):
                size = most
        size = ceil(number / ceil(number / size))  # as even as it goes
        chains = [self._from(call) for call in own] if size > 1 else []
        return [
            StackedPass(copies, range(first, min(first + size, number)), chains)
            for first in range(0, number, size)
        ]

    def _from(self, first: LayerCall) -> list[LayerCall]:
        """The recorded calls from one on, as far as layers take copies of a batch."""
        calls = list(self._calls.values())
        chain = [first]
        for call in calls[calls.index(first) + 1 :]:
            if call.name == first.name or not self._may_be_copied(call):
                break
            chain.append(call)
        return chain

    def _may_be_copied(self, call: LayerCall) -> bool:
        """Whether a layer computes of a batch beside another one what it computes of it alone; that
        is tried once for each class of layers and size of what they are given.
        """
        module = self.model.get_submodule(call.name)
        key = self._kinds[call.name], _sizes(call.given)
        if key not in self._tried:
            with intact(), unseen():
                try:
                    self._tried[key] = _is_alone(module.forward, call)
                # Copies were taken of an axis that is not that of the batch, and sizes do not fit.
                except (RuntimeError, ValueError, IndexError):
                    self._tried[key] = False
        return self._tried[key]


class StackedPass:
    """The layers from a changed one on, run with several copies of a batch, each changed in its own
    way. The model is then run for every copy, and its layers return what they computed of it.

    Args:
        copies: that the changed layer is told of.
        numbers: of the changes.
        chains: for each recorded call of the changed layer it and those after it.
    """

    def __init__(
        self, copies: Copies, numbers: Sequence[int], chains: Sequence[list[LayerCall]]
    ) -> None:
        self.numbers = numbers
        self._copies, self._chains, self._own = copies, chains, 0
        self._made: dict[tuple[str, int], list[LayerCall]] = {}

    def of_copy(self, own: int) -> StackedPass:
        """The same, of one of the copies from now on."""
        self._own, self._copies.numbers = own, self.numbers[own : own + 1]
        return self

    def call(self, name: str, at: int) -> LayerCall | None:
        """What a layer is given and returns of the copy; None where it was not run with copies."""
        calls = self._made.get((name, at))
        return calls[self._own] if calls else None

    def begin(self, at: int, given: Any, forwards: Mapping[str, Callable[..., Any]]) -> None:
        """The changed layer is called: run all copies, unless that was done."""
        if at >= len(self._chains) or (self._chains[at][0].name, at) in self._made:
            return
        with unseen():
            if not same(self._chains[at][0].given, given):
                return
        self._copies.numbers = self.numbers
        try:
            self._run(self._chains[at], forwards)
        finally:
            self._copies.numbers = self.numbers[self._own : self._own + 1]

    def _run(self, calls: Sequence[LayerCall], forwards: Mapping[str, Callable]) -> None:
        """Run layers with all copies, as far as each is given what one before it returned."""
        times, twins = len(self.numbers), {}
        for call in calls:
            if twins and not any(id(tensor) in twins for tensor in tensors_of(call.given)):
                break
            size = len(next(tensors_of(call.returned)))
            args, options = mapped(call.given, partial(_together, twins, size, times))
            returned = forwards[call.name](*args, **options)
            self._made[call.name, call.at] = [
                LayerCall(
                    call.name,
                    call.at,
                    mapped(call.given, partial(_given_of, twins, size, number)),
                    mapped(returned, partial(_chunk, size, times, number)),
                )
                for number in range(times)
            ]
            pairs = zip(tensors_of(call.returned), tensors_of(returned), strict=True)
            twins |= {id(own): made for own, made in pairs if len(made) == times * size}


def _together(
    twins: Mapping[int, torch.Tensor], size: int, times: int, tensor: torch.Tensor
) -> torch.Tensor:
    """What all copies are given in the place of a tensor."""
    return twins[id(tensor)] if id(tensor) in twins else _repeated(tensor, size, times)


def _given_of(
    twins: Mapping[int, torch.Tensor], size: int, number: int, tensor: torch.Tensor
) -> torch.Tensor:
    """What one copy is given in the place of a tensor."""
    twin = twins.get(id(tensor))
    return tensor if twin is None else twin[number * size : (number + 1) * size]


def _chunk(size: int, times: int, number: int, tensor: torch.Tensor) -> torch.Tensor:
    """The part of one copy; the tensor itself where it has no batch axis."""
    is_of_batch = tensor.ndim and len(tensor) == times * size
    return tensor[number * size : (number + 1) * size] if is_of_batch else tensor


def _repeated(tensor: torch.Tensor, size: int, times: int) -> torch.Tensor:
    """Copies behind each other in the batch axis, where a tensor has one."""
    # A single axis is that of tokens, as of positions.
    if tensor.ndim < 2 or len(tensor) != size:
        return tensor
    return tensor.repeat(times, *[1] * (tensor.ndim - 1))


def _beside(size: int, tensor: torch.Tensor) -> torch.Tensor:
    """A batch and another one beside it."""
    both = _repeated(tensor, size, 2)
    if both is not tensor and both.ndim == 3 and both.is_floating_point():
        both[size:] = both[size:].flip(-1)
    return both


def _is_alone(forward: Callable, call: LayerCall) -> bool:
    """Whether a layer computes the same of a batch beside another one, but for rounding."""
    if not same(call.given, call.given) or not same(call.returned, call.returned):
        return False  # it keeps a state, such as a cache
    args, options = mapped(call.given, partial(_beside, len(next(tensors_of(call.returned)))))
    pairs = zip(tensors_of(forward(*args, **options)), tensors_of(call.returned), strict=True)
    return all(
        torch.allclose(ours[: len(own)], own, rtol=0, atol=ROUNDING * own.abs().max().item())
        for ours, own in pairs
    )


def layer_of(model: nn.Module, place: LayerPlace) -> str:
    """Name of the innermost child of a module list that holds a place; empty where none does."""
    parts = place.module.split(".")
    for end in range(len(parts), 0, -1):
        if isinstance(
            model.get_submodule(".".join(parts[: end - 1])), nn.ModuleList | nn.Sequential
        ):
            return ".".join(parts[:end])
    return ""


@contextmanager
def wrapped(model: nn.Module, names: Iterable[str], wrap: Wrap) -> Generator[None]:
    """Call something else in place of the forward of these modules while the block is open."""
    with ExitStack() as undo:
        for name in names:
            module = model.get_submodule(name)
            own = module.__dict__.get("forward")
            module.forward = wrap(name, module.forward)
            undo.callback(_restore, module, own)
        yield


def _restore(module: nn.Module, own: Any) -> None:
    # A module has no forward of its own but that of its class, unless somebody patched it before.
    if own is None:
        del module.forward
    else:
        module.forward = own


@contextmanager
def outputs_of(model: nn.Module) -> Generator[list[Any]]:
    """The tensors that the model returns, call by call, while the block is open."""
    outputs: list[Any] = []

    def note(module: nn.Module, args: Any, options: Any, returned: Any) -> None:
        outputs.append([tensor.clone() for tensor in tensors_of(returned)])

    handle = hook_after(model, note)
    try:
        yield outputs
    finally:
        handle.remove()


def tensors_of(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in lists, tuples and dictionaries, in their order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple | list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from tensors_of(part)


def mapped(value: Any, leaf: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The same lists, tuples and dictionaries with other tensors."""
    if isinstance(value, torch.Tensor):
        return leaf(value)
    if type(value) is dict:
        return {name: mapped(own, leaf) for name, own in value.items()}
    if type(value) in (tuple, list):
        return type(value)(mapped(own, leaf) for own in value)
    return value


def _kind(module: nn.Module, name: str) -> tuple[type, str]:
    """What the computation of a layer depends on beside its numbers."""
    is_hooked = any(own._forward_hooks or own._forward_pre_hooks for own in module.modules())
    return type(module), name if is_hooked else ""


def _sizes(given: Any) -> Any:
    """Sizes of tensors, and all other arguments."""
    if isinstance(given, torch.Tensor):
        return tuple(given.shape), given.dtype
    if isinstance(given, dict):
        return (*given, _sizes(list(given.values())))
    if isinstance(given, tuple | list):
        return tuple(map(_sizes, given))
    return given if isinstance(given, SCALARS) else type(given)


def same(one: Any, two: Any) -> bool:
    """Whether two arguments are equal to the last bit; False for anything that keeps a state, such
    as a cache.
    """
    if type(one) is not type(two):
        return False
    if isinstance(one, torch.Tensor):
        alike = (one.shape, one.dtype, one.device) == (two.shape, two.dtype, two.device)
        return one is two or (alike and torch.equal(one, two))
    if type(one) is dict:
        return same(list(one.items()), list(two.items()))
    if type(one) in (tuple, list):
        return len(one) == len(two) and all(map(same, one, two))
    return isinstance(one, SCALARS) and one == two
