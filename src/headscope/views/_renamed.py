"""Options that had another name in the version before."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from headscope.views.options import OLD_NAMES


def renamed(options: Mapping[str, Any], stacklevel: int = 3) -> dict[str, Any]:
    """The options under the names that they have now.

    Args:
        options: the options as they were given.
        stacklevel: stack level of the warning, so that it names the line of the caller.

    Warns:
        DeprecationWarning: for each old name.
    """
    for old in OLD_NAMES.keys() & options.keys():
        warnings.warn(
            f"{old}= is called {OLD_NAMES[old]}= now; the old name goes with version 0.3",
            DeprecationWarning,
            stacklevel=stacklevel,
        )
    # Where both names are given, the new one counts.
    return {
        OLD_NAMES.get(name, name): value
        for name, value in options.items()
        if OLD_NAMES.get(name) not in options
    }
