"""Names and arguments that were called otherwise in the version before."""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def renamed_argument(old: str, new: str) -> Callable[[Function], Function]:
    """Decorate a function one of whose arguments had another name in headscope 0.1, which is taken
    with a warning until 0.3.

    Args:
        old: its name then.
        new: its name now.
    """

    def decorated(function: Function) -> Function:
        name = getattr(function, "__name__", "this")

        @functools.wraps(function)
        def called(*args: Any, **options: Any) -> Any:
            if old in options and new not in options:
                warnings.warn(
                    f"{old}= of {name} is called {new}= now; the old name goes with version 0.3",
                    DeprecationWarning,
                    stacklevel=2,
                )
                options[new] = options.pop(old)
            return function(*args, **options)

        return cast(Function, called)

    return decorated


def renamed_name(package: str, name: str, now: Mapping[str, str], stacklevel: int = 3) -> Any:
    """What a public name of headscope 0.1 stands for, with a warning; for a module's
    ``__getattr__``.

    Args:
        package: that has the name.
        name: as it was asked for.
        now: the names of today by those of 0.1.
        stacklevel: of the warning, so that it names the line of the caller.

    Raises:
        AttributeError: for a name that the package never had; it lists those of today.
    """
    module = importlib.import_module(package)
    if name not in now:
        raise AttributeError(f"{package} has no {name!r}; it has {', '.join(module.__all__)}")
    warnings.warn(
        f"{package}.{name} goes away in 0.3; it is called {now[name]} now",
        DeprecationWarning,
        stacklevel=stacklevel,
    )
    return getattr(module, now[name])


class RenamedAttribute:
    """An attribute or method that had another name in headscope 0.1; read by it, it warns.

    Example:
        >>> class Text:
        ...     words = ("a", "b")
        ...     pieces = RenamedAttribute("words")
    """

    def __init__(self, now: str) -> None:
        self._now = now
        self._old = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._old = f"{owner.__name__}.{name}"

    def __get__(self, instance: Any, owner: type) -> Any:
        # dataclasses read the default of each annotated name of a class while they make it.
        if instance is None:
            return self
        warnings.warn(
            f"{self._old} goes away in 0.3; it is called {self._now} now",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(instance, self._now)
