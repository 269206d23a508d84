"""What lies below a change is computed once: modules that are given the same again return the same
again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from headscope.capturing.hooks import hook_after, hook_before
from headscope.capturing.seam import unseen
from headscope.interventions.plan import LayerPlace
from headscope.studies.ablation._module_calls import (
    NOT_KEPT,
    ModuleCall,
    same,
    tensors_of,
    wrapped,
)


@dataclass
class _State:
    """Whether the changed place was reached in the run of the model that is under way."""

    reached: bool = False

    def begin(self) -> None:
        """A run of the model begins."""
        self.reached = False

    def reach(self) -> None:
        """The place begins."""
        self.reached = True


class Prefix:
    """The layers of a model, which can be run once as they are and then passed over below a change.

    A layer is a child of a module list that holds attention; in the changed one the projections in
    its attention are passed over. That happens only where every argument equals that of the
    recorded run to the last bit, so the result is that of a whole run wherever a layer is a
    function of its arguments; `check` finds out whether it is.

    Args:
        model: in evaluation mode.
        places: its attention layers.
    """

    def __init__(self, model: nn.Module, places: Iterable[LayerPlace]) -> None:
        places = tuple(places)
        self.model = model
        self.is_checked: bool = False
        self.is_rest_alone: bool = False
        self._blocks = blocks_of(model, places)
        self._outside = outside_of(model, self._blocks)
        self._inner = {place.module: projections_of(model, place) for place in places}
        self._kept: dict[str, list[ModuleCall]] = {}
        shared = any(place.visit for place in places)
        self.reason: str = ""
        if shared:
            self.reason = "layers share one module"
        elif len(self._blocks) < 2:
            self.reason = "its layers are no list of modules that return tensors"

    @property
    def works(self) -> bool:
        """Whether anything can be passed over."""
        return not self.reason

    @property
    def blocks(self) -> list[str]:
        """Names of the layers."""
        return self._blocks

    def projections(self, place: LayerPlace) -> list[str]:
        """Names of the projections in the attention of a place."""
        return self._inner[place.module]

    def kept(self, name: str) -> list[ModuleCall]:
        """The calls of a layer or projection in the recorded run."""
        return self._kept.get(name, [])

    @contextmanager
    def recording(self) -> Generator[None]:
        """Keep what every layer is given and returns, in place of what was kept before."""
        names = [*self._blocks, *(name for inner in self._inner.values() for name in inner)]
        self._kept = {name: [] for name in (*names, *self._outside)}
        if not self.works:
            yield
            return
        with (
            wrapped(self.model, names, self._recorded),
            wrapped(self.model, self._outside, self._recorded_before_layers),
        ):
            yield
        # What was written to in place after its call is no longer what the module was given; an
        # empty call keeps its place, as later calls are known by their number.
        for calls in self._kept.values():
            calls[:] = [call if call.is_known else NOT_KEPT for call in calls]

    @contextmanager
    def sharing(self, place: LayerPlace, *, only: bool = False) -> Generator[None]:
        """Until a place is reached, pass over layers that are given what they were given in the
        recorded run.

        Args:
            place: the changed one.
            only: whether later layers are passed over, too, where they are given the same.
        """
        if not self.works:
            yield
            return
        state = _State()
        # The changed layer itself runs, but for the projections of its attention.
        others = [name for name in self._blocks if not is_within(place, name)]
        handles = [
            hook_before(self.model, lambda *_: state.begin()),
            hook_before(self.model.get_submodule(place.module), lambda *_: state.reach()),
        ]
        until = None if only else state
        try:
            with (
                self.passing_over_embeddings(),
                wrapped(self.model, others, lambda *given: self._passed_over(*given, until)),
                wrapped(
                    self.model,
                    self.projections(place),
                    lambda *given: self._passed_over(*given, None),
                ),
            ):
                yield
        finally:
            for handle in handles:
                handle.remove()

    @contextmanager
    def passing_over_all(self) -> Generator[None]:
        """Pass over every layer that is given what it was given in the recorded run."""
        with (
            self.passing_over_embeddings(),
            wrapped(self.model, self._blocks, lambda *given: self._passed_over(*given, None)),
        ):
            yield

    def passing_over_embeddings(self) -> AbstractContextManager[None]:
        """Pass over what ran before the first layer, where it is given the same."""
        return wrapped(self.model, self._outside, lambda *given: self._passed_over(*given, None))

    def forget(self) -> None:
        """Free what was kept."""
        self._kept = {}

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
        for place in reversed(tuple(places)):
            if not self.works:
                return given
            with self.sharing(place, only=True), outputs_of(self.model) as outputs:
                act()
            if not same(whole, outputs):
                self.reason = (
                    f"passing over the layers below {place.name} changes what the model returns"
                )
        if self.works:
            with self.passing_over_all(), outputs_of(self.model) as outputs:
                act()
            self.is_rest_alone = same(whole, outputs)
        return given

    def _recorded(self, name: str, forward: Callable) -> Callable:
        def record(*args: Any, **options: Any) -> Any:
            returned = forward(*args, **options)
            self._kept[name].append(ModuleCall.of((args, options), returned))
            return returned

        return record

    def _recorded_before_layers(self, name: str, forward: Callable) -> Callable:
        record = self._recorded(name, forward)

        def run(*args: Any, **options: Any) -> Any:
            # What comes after layers is given something else with every change, and may be large,
            # as logits of all words are.
            if any(self._kept[block] for block in self._blocks):
                return forward(*args, **options)
            return record(*args, **options)

        return run

    def _passed_over(self, name: str, forward: Callable, state: _State | None) -> Callable:
        calls = iter(self.kept(name))

        def run(*args: Any, **options: Any) -> Any:
            call = next(calls, None)
            below = state is None or not state.reached
            if below and call is not None and call.is_known:
                # Comparing runs torch functions, which the watch of attention must not see.
                with unseen():
                    if same(call.given, (args, options)):
                        return call.returned
            return forward(*args, **options)

        return run


def is_within(place: LayerPlace, block: str) -> bool:
    """Whether a place is in the layer of this name."""
    return f"{place.module}.".startswith(f"{block}.")


def blocks_of(model: nn.Module, places: Iterable[LayerPlace]) -> list[str]:
    """Names of the modules that are children of a list of modules and hold attention."""
    names: dict[str, None] = {}
    for place in places:
        parts = place.module.split(".")
        for end in range(1, len(parts) + 1):
            parent = model.get_submodule(".".join(parts[: end - 1]))
            if isinstance(parent, nn.ModuleList | nn.Sequential):
                names[".".join(parts[:end])] = None
    return list(names)


def outside_of(model: nn.Module, blocks: Iterable[str]) -> list[str]:
    """Names of the outermost modules that hold no layer and are in none, such as embeddings."""
    blocks = set(blocks)
    above = {""}
    for name in blocks:
        parts = name.split(".")
        above |= {".".join(parts[:end]) for end in range(len(parts))}
    # Each module once, though it may have several names, as embeddings of two stacks.
    return [
        name
        for name, _ in model.named_modules()
        if name not in above and name not in blocks and name.rpartition(".")[0] in above
    ]


def projections_of(model: nn.Module, place: LayerPlace) -> list[str]:
    """Names of the innermost modules with weights in the module that computes an attention."""
    inside = model.get_submodule(place.module).named_modules(prefix=place.module)
    leaves = [
        (name, module)
        for name, module in inside
        if name != place.module and not list(module.children())
    ]
    return [name for name, module in leaves if next(module.parameters(), None) is not None]


@contextmanager
def outputs_of(model: nn.Module) -> Generator[list[Any]]:
    """The tensors that the model returns, call by call, while the block is open."""
    outputs: list[Any] = []
    handle = hook_after(
        model, lambda module, args, options, returned: outputs.append(_plain(returned))
    )
    try:
        yield outputs
    finally:
        handle.remove()


def _plain(returned: Any) -> list[torch.Tensor]:
    """The tensors in what a model returned, as they are now."""
    return [tensor.clone() for tensor in tensors_of(returned)]
