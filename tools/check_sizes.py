"""Say where a file or a function is too long to be read in one go.

    python tools/check_sizes.py          # src; 1 where one is too long

A file has at most 500 lines. A function has at most 50 lines below its docstring; the parameters of
a command are its options and are not counted, as its head is not.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from source_statements import statements_of

PACKAGE = Path(__file__).parents[1] / "src" / "headscope"
MOST_OF_A_FILE = 500
MOST_OF_A_FUNCTION = 50


def long_functions(source: str, most: int = MOST_OF_A_FUNCTION) -> Iterator[tuple[int, str, int]]:
    """Line, name and lines of the body of each function that is too long."""
    for node in statements_of(source):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body
            has_docstring = ast.get_docstring(node) is not None
            first = body[1] if has_docstring and len(body) > 1 else body[0]
            lines = (node.end_lineno or first.lineno) - first.lineno + 1
            if lines > most:
                yield node.lineno, node.name, lines


def main() -> int:
    """Print every file and function that is too long; 1 where there is one."""
    told = []
    for path in sorted(PACKAGE.rglob("*.py")):
        place, source = path.relative_to(PACKAGE), path.read_text(encoding="utf-8")
        lines = source.count("\n")
        if lines > MOST_OF_A_FILE:
            told.append(f"{place} has {lines} lines; {MOST_OF_A_FILE} at most, split it")
        for line, name, count in long_functions(source):
            told.append(
                f"{place}:{line}: {name} has {count} lines; {MOST_OF_A_FUNCTION} at most, give "
                "its steps names"
            )
    for line in told:
        print(line)
    return int(bool(told))


if __name__ == "__main__":
    sys.exit(main())
