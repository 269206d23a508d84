"""Several heads of a layer disabled in one pass: each in its own copy of the batch, from that layer
on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from math import ceil
from operator import is_not
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from headscope.capturing.freed_memory import keep_freed_memory
from headscope.capturing.seam import Copies, intact, unseen
from headscope.interventions.plan import LayerPlace
from headscope.studies.ablation._copies import (
    Leaf,
    NotAlikeError,
    batch_shape,
    leaves_of,
    mapped,
    parts_of,
    picked,
    repeated,
)
from headscope.studies.ablation._module_calls import (
    NOT_KEPT,
    SCALARS,
    ModuleCall,
    same,
    tensors_of,
    versions_of,
    wrapped,
)
from headscope.studies.ablation.prefix import Prefix, is_within

MOST_TOKENS = 2048
"""Tokens of all copies together: enough for 12 copies of a batch of 152 tokens.
"""
LARGE = 512
"""Tokens of a batch beyond which copies gain nothing: benchmarks/ablation.py."""
ROUNDING = 1e-5
"""How far a text may come out otherwise beside other texts in a larger batch, relative to the
largest number.
"""
BY_CONTENT = ("histc", "sort", "argsort", "_grouped_mm")
"""Operators by which routers of experts group tokens."""
TAGS = (torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output)


@dataclass(frozen=True, eq=False)
class _Split:
    """A tensor that a layer returned of all copies, and how often both were written to then."""

    first: torch.Tensor
    leaf: Leaf
    versions: tuple[int, ...]


class Stacks:
    """Says how many changes may share a pass, with the same numbers but for rounding.

    Whether a layer computes of the batch beside another one what it computes of the batch alone is
    tried on the recorded run: for each kind of layer and size of its arguments. Layers in which a
    text depends on its company in the batch, or sizes depend on numbers, as where experts are given
    the tokens that were chosen for them, are never given copies.

    Args:
        prefix: of the model, with the recorded run of a batch.
    """

    def __init__(self, prefix: Prefix) -> None:
        keep_freed_memory()
        self.prefix = prefix
        self.is_given_up = False
        self._tried: dict[tuple, bool] = {}
        # Now, while nobody watches the layers: hooks make a layer one of its own kind.
        self._kinds = {
            name: _kind(prefix.model.get_submodule(name), name) for name in prefix.blocks
        }

    def size(self, place: LayerPlace, count: int) -> int:
        """Of so many changes of a place, how many are made in one pass; 1 where copies are of no
        use.
        """
        name = self.innermost(place)
        calls = self.prefix.kept(name)
        shape = batch_shape(calls[0]) if calls else None
        is_plain = not self.is_given_up and self.prefix.is_rest_alone
        if shape is None or not is_plain or shape[0] * shape[1] > LARGE:
            return 1
        forward = self.prefix.model.get_submodule(name).forward
        size = min(count, MOST_TOKENS // max(1, shape[0] * shape[1]))
        if size < 2 or not all(self.takes_copies(name, forward, call) for call in calls):
            return 1
        return ceil(count / ceil(count / size))  # as even as it goes

    def takes_copies(self, name: str, forward: Callable, call: ModuleCall) -> bool:
        """Whether a layer computes of copies of a batch what it computes of the batch alone, which
        is tried once.
        """
        if not call.is_known:
            return False
        key = self._kinds[name], _signature(call.given)
        if key not in self._tried:
            with intact(), unseen():
                try:
                    self._tried[key] = _is_alone(forward, call)
                # Copies were taken of an axis that is not that of the batch, and sizes do not fit.
                except (NotAlikeError, RuntimeError, ValueError, IndexError):
                    self._tried[key] = False
        return self._tried[key]

    def innermost(self, place: LayerPlace) -> str:
        """The layer that holds a place, and no other layer that does; empty where none does."""
        names = [name for name in self.prefix.blocks if is_within(place, name)]
        return max(names, key=len, default="")

    def stacked(self, place: LayerPlace, copies: Copies, numbers: Sequence[int]) -> StackedPass:
        """A pass in which a place is changed in the copies of these numbers."""
        return StackedPass(self, place, copies, numbers)


class StackedPass:
    """One run of a model from a changed layer on with several copies of the batch, and what the
    layers returned of each.

    The model itself goes on with the first copy. For every other one it is run again and its layers
    return what they computed of that copy: each where it is given exactly what that copy was.
    """

    def __init__(
        self, stacks: Stacks, place: LayerPlace, copies: Copies, numbers: Sequence[int]
    ) -> None:
        self.place, self.copies, self.count = place, copies, len(numbers)
        self._stacks, self._prefix = stacks, stacks.prefix
        self._changed, self._numbers = stacks.innermost(place), numbers
        self._kept: dict[int, dict[str, list[ModuleCall]]] = {number: {} for number in numbers}
        self._split: dict[int, _Split] = {}
        self._repeated: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._alike: tuple | None = None
        self._is_inside = False
        self._passes = 0
        self.is_missed = False
        """Whether the changed layer was given something else than in the recorded run, so that the
        other copies must be run by themselves.
        """

    def of_copy(self, number: int) -> AbstractContextManager[None]:
        """A block in which the model is run on one of the copies, the first of them first."""
        self.copies.numbers = (number,)
        return self._first() if number == self._numbers[0] else self._again(number)

    @contextmanager
    def _first(self) -> Generator[None]:
        """Run all copies, and the rest of the model on the first."""
        model = self._prefix.model
        outer = [name for name in self._prefix.blocks if is_within(self.place, name)]
        names = [name for name in self._prefix.blocks if name not in outer or name == self._changed]
        with (
            self._prefix.passing_over_embeddings(),
            wrapped(model, names, self._running),
            wrapped(model, self._prefix.projections(self.place), self._projecting),
        ):
            yield
        self.is_missed |= not self._passes
        # Written to by whoever was given them: they are no longer what the layers returned.
        self.is_missed |= any(
            versions_of(split.leaf.each[1:]) != split.versions[1:-1]
            for split in self._split.values()
        )

    @contextmanager
    def _again(self, number: int) -> Generator[None]:
        """Run the rest of the model on another copy."""
        kept, self._passes, passes = self._kept[number], 0, self._passes
        # The change is in what the layers returned; a session has nothing to do.
        with (
            intact(),
            self._prefix.passing_over_embeddings(),
            wrapped(
                self._prefix.model, kept, lambda *given: self._passed_over(kept[given[0]], *given)
            ),
        ):
            yield
        # A layer that was run by itself knows of no change: what came of it does not count.
        self.is_missed |= self._passes != passes
        self._passes = passes

    def _passed_over(self, kept: list[ModuleCall], name: str, forward: Callable) -> Callable:
        calls = iter(kept)

        def run(*args: Any, **options: Any) -> Any:
            call = next(calls, NOT_KEPT)
            if call.is_known and same(call.given, (args, options)):
                self._passes += name == self._changed
                return call.returned
            self.is_missed |= name == self._changed
            return forward(*args, **options)

        return run

    def _running(self, name: str, forward: Callable) -> Callable:
        calls = iter(self._prefix.kept(name))

        def run(*args: Any, **options: Any) -> Any:
            if self._is_inside:  # a layer in a layer that is given copies
                return forward(*args, **options)
            call, given = next(calls, NOT_KEPT), (args, options)
            if name != self._changed and self._is_as_recorded(call, given):
                self._keep(name, [call] * self.count)
                return call.returned
            returned = self._of_copies(name, forward, call, given)
            if returned is None:
                self._keep(name, [NOT_KEPT] * self.count)
                self.is_missed |= name == self._changed
                return forward(*args, **options)
            self._passes += name == self._changed
            return returned

        return run

    def _is_as_recorded(self, call: ModuleCall, given: Any) -> bool:
        """Whether a layer is given the same for every copy, and the same as in the recorded run."""
        # The first copy may be as it was where the others are not.
        if not call.is_known or any(id(tensor) in self._split for tensor in tensors_of(given)):
            return False
        with unseen():
            return same(call.given, given)

    def _of_copies(self, name: str, forward: Callable, call: ModuleCall, given: Any) -> Any:
        """What a layer returns of the first copy, run on all; None where it cannot be."""
        shape = batch_shape(call)
        if shape is None:
            return None
        with unseen():
            try:
                made = mapped(given, call.given, lambda *pair: self._argument(*pair, shape[0]))
            except NotAlikeError:
                return None
        args, options = picked(made, None)
        before = versions_of((args, options))
        self._is_inside = True
        try:
            if not self._stacks.takes_copies(name, forward, call):
                return None
            if name == self._changed:
                self.copies.numbers = self._numbers
            returned = forward(*args, **options)
        finally:
            self._is_inside = False
            self.copies.numbers = self._numbers[:1]
        with unseen():
            try:
                parts = parts_of(returned, self.count)
            except NotAlikeError:
                return None
        if versions_of((args, options)) != before:
            self.is_missed = True  # what the first copy is given was written to, too
            return None
        self._remember(parts)
        each = [
            ModuleCall.of(picked(made, number), picked(parts, number))
            for number in range(self.count)
        ]
        self._keep(name, each)
        return each[0].returned

    def _argument(self, given: Any, recorded: Any, size: int) -> Leaf:
        """What all copies are given in the place of what the first one is."""
        split = self._split.get(id(given))
        if split is not None:
            # The first is the model's: where that was written to, so would be those of the others.
            is_own = versions_of([split.first, *split.leaf.each[1:], split.leaf.together])
            if is_own != split.versions:
                raise NotAlikeError
            return split.leaf
        if not same(recorded, given):
            raise NotAlikeError
        if not isinstance(given, torch.Tensor):
            return Leaf(given, [given] * self.count)
        if id(given) not in self._repeated:
            # Kept beside what was made of it, so that no other tensor can take its id.
            self._repeated[id(given)] = given, repeated(given, size, self.count)
        return Leaf(self._repeated[id(given)][1], [given] * self.count)

    def _remember(self, parts: Any) -> None:
        for leaf in leaves_of(parts):
            if isinstance(leaf.together, torch.Tensor):
                versions = versions_of([*leaf.each, leaf.together])
                self._split[id(leaf.each[0])] = _Split(leaf.each[0], leaf, versions)

    def _keep(self, name: str, calls: list[ModuleCall]) -> None:
        for kept, call in zip(self._kept.values(), calls, strict=True):
            kept.setdefault(name, []).append(call)

    def _projecting(self, name: str, forward: Callable) -> Callable:
        """Projections of the changed layer that are given copies of what they were given."""
        calls = iter(self._prefix.kept(name))

        def run(*args: Any, **options: Any) -> Any:
            call = next(calls, NOT_KEPT)
            if call.is_known:
                with unseen():
                    count = len(self.copies.numbers)
                    if count == 1 and same(call.given, (args, options)):
                        return call.returned
                    if count > 1 and self._are_copies(call, (args, options)):
                        return call.returned.repeat(count, *[1] * (call.returned.ndim - 1))
            return forward(*args, **options)

        return run

    def _are_copies(self, call: ModuleCall, given: Any) -> bool:
        """Whether a module is given copies of the one tensor that it was given."""
        alone, together = _only_tensor(call.given), _only_tensor(given)
        if alone is None or together is None or not isinstance(call.returned, torch.Tensor):
            return False
        if together.shape != (self.count * len(alone), *alone.shape[1:]):
            return False
        # Queries, keys and values are mostly made of the same tensor.
        compared = alone, together, *versions_of([alone, together])
        if self._alike is None or any(map(is_not, self._alike, compared)):
            parts = together.view(self.count, *alone.shape)
            if not torch.equal(parts, alone.expand_as(parts)):
                return False
            self._alike = compared
        return True


def _only_tensor(given: Any) -> torch.Tensor | None:
    """The one tensor that a module was given; None where that is not all."""
    args, options = given
    is_all = len(args) == 1 and not options and isinstance(args[0], torch.Tensor)
    return args[0] if is_all else None


def _is_alone(forward: Callable, call: ModuleCall) -> bool:
    """Whether a layer computes the same of a batch beside another one, but for rounding, and no
    size or order within it depends on numbers.
    """
    args, options = _copied(call, 2)
    size, _ = batch_shape(call) or (0, 0)
    for states in tensors_of((args, options)):
        if states.is_floating_point() and states.ndim == 3 and len(states) == 2 * size:
            states[size:] = states[size:].flip(-1)
            with _Operators() as operators:
                returned = forward(*args, **options)
            first = picked(parts_of(returned, 2), 0)
            pairs = zip(tensors_of(first), tensors_of(call.returned), strict=True)
            return not operators.depend_on_content and all(
                torch.allclose(ours, own, rtol=0, atol=ROUNDING * own.abs().max().item())
                for ours, own in pairs
            )
    return False


def _copied(call: ModuleCall, count: int) -> tuple[tuple, dict[str, Any]]:
    """What a layer was given, so many times over.

    Raises:
        NotAlikeError: where that has no copies.
    """
    shape = batch_shape(call)
    if shape is None:
        raise NotAlikeError

    def copied(given: Any, _: Any) -> Leaf:
        is_tensor = isinstance(given, torch.Tensor)
        return Leaf(repeated(given, shape[0], count) if is_tensor else given, [])

    return picked(mapped(call.given, call.given, copied), None)


class _Operators(TorchDispatchMode):
    """Notes whether any operator's size or order of sums depends on numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.depend_on_content = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        self.depend_on_content |= name in BY_CONTENT or any(tag in func.tags for tag in TAGS)
        return func(*args, **(kwargs or {}))


def _kind(module: nn.Module, name: str) -> tuple:
    """What the computation of a layer depends on beside its numbers."""
    parts: list[Any] = []
    for own_name, own in module.named_modules():
        # Numbers of layers differ from layer to layer; words and switches change what is computed.
        words = tuple(
            sorted(
                (key, value) for key, value in vars(own).items() if isinstance(value, str | bool)
            )
        )
        parts.append((own_name, type(own), words))
        if own._forward_hooks or own._forward_pre_hooks:
            parts.append(name)  # hooks of one's own may do anything
    parts += [
        (own_name, tuple(own.shape), own.dtype, own.device)
        for own_name, own in module.named_parameters()
    ]
    return tuple(parts)


def _signature(given: Any) -> Any:
    """Sizes of tensors, and all other arguments."""
    if isinstance(given, torch.Tensor):
        return tuple(given.shape), tuple(given.stride()), given.dtype, given.device
    if isinstance(given, dict):
        return tuple((name, _signature(value)) for name, value in given.items())
    if isinstance(given, tuple | list):
        return tuple(_signature(value) for value in given)
    return given if isinstance(given, SCALARS) else type(given)
