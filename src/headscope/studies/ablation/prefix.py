"""What lies below a change is computed once: modules that are given the same again return the same
again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from headscope.capturing.hooks import hook_after, hook_before
from headscope.capturing.seam import unseen
from headscope.interventions.plan import LayerPlace

SCALARS = (bool, int, float, str, torch.dtype, torch.device, type(None))


@dataclass(frozen=True, eq=False)
class _ModuleCall:
    """One call of a module: what it was given, what it returned, and how often these tensors had
    been written to.
    """

    given: Any
    returned: Any
    versions: tuple[int, ...]


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
        self._model = model
        self._blocks = blocks_of(model, places)
        self._inner = {place.module: projections_of(model, place) for place in places}
        self._kept: dict[str, list[_ModuleCall]] = {}
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

    @contextmanager
    def recording(self) -> Generator[None]:
        """Keep what every layer is given and returns, in place of what was kept before."""
        names = [*self._blocks, *(name for inner in self._inner.values() for name in inner)]
        self._kept = {name: [] for name in names}
        if not self.works:
            yield
            return
        with self._wrapped(names, self._recorded):
            yield
        # What was written to in place after its call is no longer what the module was given; an
        # empty call keeps its place, as later calls are known by their number.
        for calls in self._kept.values():
            calls[:] = [
                call if _versions(call) == call.versions else _ModuleCall(None, None, ())
                for call in calls
            ]

    @contextmanager
    def sharing(self, place: LayerPlace) -> Generator[None]:
        """Until a place is reached, pass over layers that are given what they were given in the
        recorded run.
        """
        if not self.works:
            yield
            return
        state = _State()
        # The changed layer itself runs, but for the projections of its attention.
        others = [name for name in self._blocks if not f"{place.module}.".startswith(f"{name}.")]
        handles = [
            hook_before(self._model, lambda *_: state.begin()),
            hook_before(self._model.get_submodule(place.module), lambda *_: state.reach()),
        ]
        try:
            with (
                self._wrapped(
                    others, lambda name, forward: self._passed_over(name, forward, state)
                ),
                self._wrapped(
                    self._inner[place.module],
                    lambda name, forward: self._passed_over(name, forward, None),
                ),
            ):
                yield
        finally:
            for handle in handles:
                handle.remove()

    def forget(self) -> None:
        """Free what was kept."""
        self._kept = {}

    def check(self, act: Callable[[], Any], places: Iterable[LayerPlace]) -> None:
        """Give up passing over where the model then gives anything else than a whole run, which is
        done and recorded.

        Args:
            act: runs the model, changing nothing.
            places: its attention layers.
        """
        with self.recording(), _outputs(self._model) as whole:
            act()
        for place in places:
            if not self.works:
                return
            with self.sharing(place), _outputs(self._model) as outputs:
                act()
            if not _same(whole, outputs):
                self.reason = (
                    f"passing over the layers below {place.name} changes what the model returns"
                )

    @contextmanager
    def _wrapped(
        self, names: Iterable[str], wrap: Callable[[str, Callable], Callable]
    ) -> Generator[None]:
        with ExitStack() as undo:
            for name in names:
                module = self._model.get_submodule(name)
                own = module.__dict__.get("forward")
                module.forward = wrap(name, module.forward)
                undo.callback(_restore, module, own)
            yield

    def _recorded(self, name: str, forward: Callable) -> Callable:
        def record(*args: Any, **options: Any) -> Any:
            returned = forward(*args, **options)
            call = _ModuleCall((args, options), returned, ())
            versions = _versions(call)
            self._kept[name].append(_ModuleCall(call.given, returned, versions))
            return returned

        return record

    def _passed_over(self, name: str, forward: Callable, state: _State | None) -> Callable:
        calls = iter(self._kept.get(name, ()))

        def run(*args: Any, **options: Any) -> Any:
            call = next(calls, None)
            below = state is None or not state.reached
            known = call is not None and call.given is not None
            if below and known and _versions(call) == call.versions:
                # Comparing runs torch functions, which the watch of attention must not see.
                with unseen():
                    if _same(call.given, (args, options)):
                        return call.returned
            return forward(*args, **options)

        return run


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
def _outputs(model: nn.Module) -> Generator[list[Any]]:
    """The tensors that the model returns, call by call, while the block is open."""
    outputs: list[Any] = []
    handle = hook_after(
        model, lambda module, args, options, returned: outputs.append(_plain(returned))
    )
    try:
        yield outputs
    finally:
        handle.remove()


def _plain(returned: Any) -> Any:
    """What a model returned as a list of tensors that stay as they are."""
    values = returned.values() if isinstance(returned, dict) else returned
    several = values if isinstance(returned, dict | list | tuple) else [returned]
    return [value.clone() for value in several if isinstance(value, torch.Tensor)]


def _restore(module: nn.Module, own: Any) -> None:
    # A module has no forward of its own but that of its class, unless somebody patched it before.
    if own is None:
        del module.forward
    else:
        module.forward = own


def _versions(call: _ModuleCall) -> tuple[int, ...]:
    """How often each tensor of a call was written to; -1 for those that are not counted."""
    # torch counts writes in _version, but not of tensors made in inference mode, where reading it
    # raises.
    return tuple(
        -1 if tensor.is_inference() else tensor._version
        for tensor in _tensors((call.given, call.returned))
    )


def _tensors(value: Any) -> Iterable[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _tensors(part)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _same(one: Any, two: Any) -> bool:
    """Whether two arguments are equal to the last bit; False for anything that keeps a state, such
    as a cache.
    """
    if isinstance(one, torch.Tensor):
        return _same_tensor(one, two)
    if type(one) is not type(two):
        return False
    if type(one) in (tuple, list):
        return len(one) == len(two) and all(map(_same, one, two))
    if type(one) is dict:
        return one.keys() == two.keys() and all(
            _same(value, two[name]) for name, value in one.items()
        )
    return isinstance(one, SCALARS) and one == two


def _same_tensor(one: torch.Tensor, two: Any) -> bool:
    if not isinstance(two, torch.Tensor) or one.is_inference() or two.is_inference():
        return False
    if one is two:
        return True
    alike = one.shape == two.shape and one.dtype == two.dtype and one.device == two.device
    return alike and torch.equal(one, two)
