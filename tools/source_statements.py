"""The statements of a module, without the expressions in them: a tenth of all that a tree holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

PARTS = ("body", "orelse", "finalbody", "handlers", "cases")
"""Where a statement holds others."""


def statements_of(source: str) -> Iterator[ast.AST]:
    """The module and all its statements, those of functions and classes included."""
    ahead: list[ast.AST] = [ast.parse(source)]
    for node in ahead:
        yield node
        for part in PARTS:
            ahead += getattr(node, part, ())
