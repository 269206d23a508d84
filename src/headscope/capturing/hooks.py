"""Hooks on a model's modules that hear of the passes of one thread, and of no other.

Hooks belong to the model: whoever runs it calls them, in every thread. What one thread watches or
changes must not reach another, so a hook here does nothing outside the thread that put it there.

torch notes next to the table of hooks which of them want keyword arguments. A pass that is under
way while a hook comes or goes reads the two at different moments and may call it in the other form;
a hook here takes both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import get_ident
from typing import Any

from torch import nn
from torch.utils.hooks import RemovableHandle

Before = Callable[[nn.Module, tuple, dict], Any]
After = Callable[[nn.Module, tuple, dict, Any], Any]


def hook_before(module: nn.Module, act: Before) -> RemovableHandle:
    """Call ``act(module, args, options)`` before every pass of a module that this thread runs."""
    return module.register_forward_pre_hook(partial(_before, act, get_ident()), with_kwargs=True)


def hook_after(
    module: nn.Module, act: After, *, always: bool = False, first: bool = False
) -> RemovableHandle:
    """Call ``act(module, args, options, output)`` after every pass of a module that this thread
    runs.

    Args:
        module: which.
        act: what to call; what it returns, if anything, takes the place of the output.
        always: also where the pass ended with an error.
        first: before all other hooks, which may change the output: with what ``forward`` itself
            returned.
    """
    hook = partial(_after, act, get_ident())
    return module.register_forward_hook(hook, with_kwargs=True, always_call=always, prepend=first)


def swapped(
    args: tuple[Any, ...], options: dict[str, Any], one: Any, other: Any
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of a module with one of them in the place of another; for `hook_before`."""
    named = {name: other if each is one else each for name, each in options.items()}
    return tuple(other if each is one else each for each in args), named


# Not functions within functions: there is a hook for every module of a model and every capture, and
# under test each function is prepared anew for the checks of its types, which took nine tenths of
# the time.
def _before(  # noqa: PLR0917
    act: Before, thread: int, /, module: nn.Module, args: tuple, options: dict | None = None
) -> Any:
    if get_ident() != thread:
        return None
    return act(module, args, {} if options is None else options)


def _after(act: After, thread: int, module: nn.Module, args: tuple, *more: Any) -> Any:
    if get_ident() != thread:
        return None
    # Without keyword arguments where the hook is called in the shorter form.
    *options, output = more
    return act(module, args, options[0] if options else {}, output)
