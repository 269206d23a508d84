"""Further records of a page or a figure, which the tray shows next to those of the first record."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from headscope.errors import PageError
from headscope.record import Record

if TYPE_CHECKING:
    from headscope.views.options import PageOptions

LETTERS = "bcdef"
"""Names of records that come without one. The first record counts as ``a``, and a tray has six
pictures.
"""
# A name is written into a line of the tray, whose words are separated by blanks, and into the names
# of chunks, whose parts are separated by slashes: it may hold neither.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,19}")
PASSED_ON = ("include_layers", "include_heads")
"""Options that choose what a page holds, for each of its records alike."""
PREFIX = "beside"
FORM = (
    'give records, or records by name: beside=[other] for "2-0 record=b", '
    'or beside={"large": other}'
)


def records_beside(given: Any) -> dict[str, Record]:
    """Further records by their names in a tray: ``b``, ``c`` ... where they have none.

    Args:
        given: the option ``beside``, or None.

    Raises:
        PageError: something else than a list or mapping of records, more than five records, or a
            name that a tray cannot write.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping | Sequence) or isinstance(given, str):
        raise PageError(f"beside is a {type(given).__name__}; {FORM}")
    if len(given) > len(LETTERS):
        raise PageError(
            f"beside has {len(given)} records, and a tray has {len(LETTERS) + 1} pictures; leave "
            "some out"
        )
    # Not strict: there are usually fewer records than letters.
    named = dict(given if isinstance(given, Mapping) else zip(LETTERS, given, strict=False))
    for name, record in named.items():
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise PageError(
                f"beside has a record called {name!r}; a name has up to 20 letters, digits, dots, "
                "dashes and _"
            )
        if not isinstance(record, Record):
            raise PageError(f"beside has a {type(record).__name__} for {name!r}; {FORM}")
    return named


def options_beside(options: PageOptions) -> PageOptions:
    """Options of the page of a further record: the same layers and heads as of the first."""
    return cast(
        "PageOptions", {name: value for name, value in options.items() if name in PASSED_ON}
    )
