"""Arguments that were called otherwise in the version before."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
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
