"""Options that were called otherwise in the version before."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

NOW = {"mute": "hide_special", "share": "top_percent", "least": "min_score"}
"""Names of views and figures until 0.1, and what they are called now; they go with 0.3."""


def renamed(options: Mapping[str, Any], stacklevel: int = 3) -> dict[str, Any]:
    """The options under the names that they have now.

    Args:
        options: as they were given.
        stacklevel: of the warning, so that it names the line of the caller.

    Warns:
        DeprecationWarning: for each old name.
    """
    for old in NOW.keys() & options.keys():
        warnings.warn(
            f"{old}= is called {NOW[old]}= now; the old name goes with version 0.3",
            DeprecationWarning,
            stacklevel=stacklevel,
        )
    # Where both names are given the new one counts.
    return {
        NOW.get(name, name): value
        for name, value in options.items()
        if NOW.get(name) not in options
    }
