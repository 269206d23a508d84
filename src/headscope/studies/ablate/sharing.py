"""What disabling many heads shares: the layers below a change are computed once."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from functools import wraps
from itertools import count
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_leaves

from headscope.capturing.observers import hook_after
from headscope.capturing.seam import level, unseen
from headscope.interventions.plan import LayerPlace

SCALARS = (bool, int, float, str, torch.dtype, torch.device, type(None))

Wrap = Callable[[str, Callable], Callable]
"""Makes of a module's name and forward what is called in its place."""


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
        self._names = tuple(dict.fromkeys(name for name in self._layer_of.values() if name))
        # What each call of a layer was given and returned.
        self._calls: dict[tuple[str, int], tuple[Any, Any]] = {}
        if any(place.visit for place in places):
            self.reason = "layers share one module"
        elif len(self._names) < 2:
            self.reason = "its layers are no list of modules that return tensors"

    @contextmanager
    def recording(self) -> Generator[None]:
        """Keep what every layer is given and returns, in place of what was kept before."""

        def recorded(name: str, forward: Callable) -> Callable:
            numbers = count()

            @wraps(forward)
            def run(*args: Any, **options: Any) -> Any:
                at, returned = next(numbers), forward(*args, **options)
                self._calls[name, at] = (args, options), returned
                return returned

            return run

        self.forget()
        with wrapped(self.model, () if self.reason else self._names, recorded):
            yield

    def forget(self) -> None:
        """Free what was kept."""
        self._calls = {}

    @contextmanager
    def sharing(self, place: LayerPlace | None) -> Generator[None]:
        """Pass over layers that are given what they were given in the recorded run.

        Args:
            place: the changed one, whose layer is run; None for none.
        """
        changed, own_level = place and self._layer_of[place.module], level()

        def passed_over(name: str, forward: Callable) -> Callable:
            numbers = count()

            @wraps(forward)
            def run(*args: Any, **options: Any) -> Any:
                if level() != own_level:  # a run within the run, which finds the layers
                    return forward(*args, **options)
                at = next(numbers)
                given, returned = self._calls.get((name, at), (None, None))
                # Comparing runs torch functions, which the watch of attention must not see.
                with unseen():
                    is_known = name != changed and same(given, (args, options))
                return returned if is_known else forward(*args, **options)

            return run

        with wrapped(self.model, () if self.reason else self._names, passed_over):
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

    with hook_after(model, note):
        yield outputs


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
