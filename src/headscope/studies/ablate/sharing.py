"""What disabling many heads shares: layers below a change are computed once, and several heads of a
layer are disabled in one pass, each in its own copy of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from itertools import count
from math import ceil
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map_only

from headscope.capturing.observers import hook_after
from headscope.capturing.seam import Copies, intact, level, unseen
from headscope.interventions.plan import LayerPlace

MOST_TOKENS = 2048
"""Tokens of all copies of a batch together: enough for 12 copies of 152 tokens."""
MOST_NUMBERS = 2**27
"""Of what the model returns of all copies together: half a gigabyte."""
LARGE = 512
"""Tokens of a batch beyond which copies gain nothing: benchmarks/ablation.py."""
ROUNDING = 1e-5
"""How far a text may come out otherwise beside another one, relative to the largest number."""
SCALARS = (bool, int, float, str, torch.dtype, torch.device, type(None))
MODEL = ""
"""The name of the model among its own modules."""

Wrap = Callable[[str, Callable], Callable]
"""Makes of a module's name and forward what is called in its place."""


@dataclass(frozen=True, eq=False)
class ModuleCall:
    """A call of a module: what it was given and returned, and how many hooks the model had."""

    given: Any
    returned: Any
    hooks: int


@dataclass(eq=False)
class StackedPass:
    """Several copies of a batch, each changed in its own way, which the model is given together
    when it is asked for the first of them.

    Args:
        copies: that the changed layer is told of.
        numbers: of the changes.
    """

    copies: Copies
    numbers: Sequence[int]
    made: dict[int, Any] = field(default_factory=dict)
    times: int = 1

    def returned(self, at: int, given: Any, size: int, forward: Callable) -> Any:
        """What the model returns of the copy that is asked for, in a call of this number.

        Args:
            at: number of the call.
            given: to the model, as to the intact one.
            size: of the batch.
            forward: of the model.
        """
        asked, times = self.copies.numbers, len(self.numbers)
        if at not in self.made:
            with unseen():
                args, options = repeated(given, size, times)
            self.copies.numbers, self.times = self.numbers, times
            try:
                self.made[at] = forward(*args, **options)
            finally:
                self.copies.numbers, self.times = asked, 1
        first = self.numbers.index(asked[0]) * size

        def own(tensor: torch.Tensor) -> torch.Tensor:
            is_of_batch = tensor.ndim and len(tensor) == times * size
            return tensor[first : first + size] if is_of_batch else tensor

        return tree_map_only(torch.Tensor, own, self.made[at])


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
        self._names = (MODEL, *dict.fromkeys(name for name in self._layer_of.values() if name))
        self._calls: dict[tuple[str, int], ModuleCall] = {}
        self._tried: dict[Any, bool] = {}
        if any(place.visit for place in places):
            self.reason = "layers share one module"
        elif len(self._names) < 3:
            self.reason = "its layers are no list of modules that return tensors"

    @contextmanager
    def recording(self) -> Generator[None]:
        """Keep what every layer is given and returns, in place of what was kept before."""

        def recorded(name: str, forward: Callable) -> Callable:
            numbers = count()

            @wraps(forward)
            def run(*args: Any, **options: Any) -> Any:
                at, hooks = next(numbers), 0 if name else self._hooks()
                returned = kept = forward(*args, **options)
                if not name:  # a score may write to what the model returns
                    kept = tree_map_only(torch.Tensor, torch.clone, returned)
                self._calls[name, at] = ModuleCall((args, options), kept, hooks)
                return returned

            return run

        self.forget()
        with wrapped(self.model, () if self.reason else self._names, recorded):
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
        changed, own_level = place and self._layer_of[place.module], level()

        def passed_over(name: str, forward: Callable) -> Callable:
            numbers = count()

            @wraps(forward)
            def run(*args: Any, **options: Any) -> Any:
                if level() != own_level:  # a run within the run, which finds the layers
                    return forward(*args, **options)
                at = next(numbers)
                call = None if name == changed else self._calls.get((name, at))
                times = 1 if stack is None else stack.times
                # Comparing runs torch functions, which the watch of attention must not see.
                with unseen():
                    returned = known(call, (args, options), times)
                if returned is None:
                    return forward(*args, **options)
                if name or stack is None:
                    return returned
                return stack.returned(at, (args, options), batch_size(returned), forward)

            return run

        # Nobody asks for the whole model in one go but a stack of copies.
        names = self._names if stack is not None and len(stack.numbers) > 1 else self._names[1:]
        with wrapped(self.model, () if self.reason else names, passed_over):
            yield

    def check(self, act: Callable[[], Any], places: Iterable[LayerPlace]) -> Any:
        """Give up passing over where the model then gives anything else than a whole run, which is
        done and recorded.

        Args:
            act: runs the model, changing nothing.
            places: its attention layers.

        Returns:
            What the act gave in the whole run.
        """
        self.is_checked, self._hooks_before = True, self._hooks()
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
        layer, whole = map(self._calls_of, (self._layer_of[place.module], MODEL))
        states = next(iter(tensors_of([call.returned for call in layer])), None)
        size = 1
        if not self.reason and whole and states is not None and states.ndim == 3:
            tokens = max(1, states.shape[0] * states.shape[1])
            numbers = sum(map(torch.numel, tensors_of(whole[0].returned)))
            most = min(number, MOST_TOKENS // tokens, MOST_NUMBERS // max(1, numbers))
            if tokens <= LARGE and most > 1 and all(map(self._may_be_copied, whole)):
                size = most
        size = ceil(number / ceil(number / size))  # as even as it goes
        firsts = range(0, number, size)
        return [StackedPass(copies, range(at, min(at + size, number))) for at in firsts]

    def _calls_of(self, name: str) -> list[ModuleCall]:
        return [call for (own, _), call in self._calls.items() if own == name]

    def _may_be_copied(self, call: ModuleCall) -> bool:
        """Whether the model computes of a batch beside another one what it computes of it alone;
        that is tried once for each size of what it is given.
        """
        if call.hooks > self._hooks_before:
            return False  # the score looks at what happens inside of the model
        leaves, spec = tree_flatten(call.given)
        sizes = [(x.shape, x.dtype) if isinstance(x, torch.Tensor) else str(x) for x in leaves]
        key = str(spec), *sizes
        if key not in self._tried:
            with intact(), unseen():
                try:
                    self._tried[key] = _is_alone(self.model.forward, call)
                # Copies were taken of an axis that is not that of the batch, and sizes do not fit.
                except (RuntimeError, ValueError, IndexError):
                    self._tried[key] = False
        return self._tried[key]

    def _hooks(self) -> int:
        inner = [*self.model.modules()][1:]
        return sum(len(each._forward_hooks) + len(each._forward_pre_hooks) for each in inner)


def known(call: ModuleCall | None, given: Any, times: int) -> Any:
    """What a module returns that is given the same as in a call, the batch so many times over; None
    where that is not known.
    """
    if call is None:
        return None
    size = batch_size(call.returned)
    is_known = times == 1 or is_of_batch(call, size)
    if not is_known or not same(repeated(call.given, size, times), given):
        return None
    return repeated(call.returned, size, times)


def batch_size(returned: Any) -> int:
    """Of how many examples a module returned something."""
    return next((len(tensor) for tensor in tensors_of(returned) if tensor.ndim), 0)


def is_of_batch(call: ModuleCall, size: int) -> bool:
    """Whether everything that a module returns has an axis of examples."""
    return all(tensor.ndim > 1 and len(tensor) == size for tensor in tensors_of(call.returned))


def repeated(value: Any, size: int, times: int, other: Callable | None = None) -> Any:
    """A batch of this size several times over, in all tensors that have an axis of examples.

    Args:
        value: lists, tuples and dictionaries of tensors.
        size: of the batch.
        times: how often.
        other: makes of a tensor what stands in the place of the later ones.
    """

    def copied(tensor: torch.Tensor) -> torch.Tensor:
        # A single axis is that of tokens, as of positions.
        if tensor.ndim < 2 or len(tensor) != size:
            return tensor
        later = tensor if other is None else other(tensor)
        return torch.cat([tensor, *[later] * (times - 1)])

    return value if times == 1 else tree_map_only(torch.Tensor, copied, value)


def _is_alone(forward: Callable, call: ModuleCall) -> bool:
    """Whether a model computes the same of a batch beside another one, but for rounding."""
    if not same(call.given, call.given) or not same(call.returned, call.returned):
        return False  # it keeps a state, such as a cache
    # The same tokens in another order are another text, of another mask where that has zeros.
    args, options = repeated(
        call.given, batch_size(call.returned), 2, lambda tensor: tensor.roll(1, 1)
    )
    pairs = zip(tensors_of(forward(*args, **options)), tensors_of(call.returned), strict=True)
    return all(
        torch.allclose(ours[: len(own)], own, rtol=0, atol=ROUNDING * own.abs().max().item())
        for ours, own in pairs
        if own.ndim
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


def tensors_of(value: Any) -> list[torch.Tensor]:
    """The tensors in lists, tuples and dictionaries, in their order."""
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def same(one: Any, two: Any) -> bool:
    """Whether two arguments are equal to the last bit; False for anything that keeps a state, such
    as a cache.
    """
    (ours, spec), (theirs, other) = tree_flatten(one), tree_flatten(two)
    return spec == other and all(map(_is_same, ours, theirs))


def _is_same(one: Any, two: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(two, torch.Tensor):
        alike = (one.shape, one.dtype, one.device) == (two.shape, two.dtype, two.device)
        return one is two or (alike and torch.equal(one, two))
    return isinstance(one, SCALARS) and type(one) is type(two) and one == two
