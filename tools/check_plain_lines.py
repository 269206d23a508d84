"""Find statements that do too much at once, which take a second reading.

    python tools/check_plain_lines.py          # src, tools and benchmarks; 1 where one is found

Of each expression: at most one conditional expression and two loops, no conditional inside a
conditional, no assignment (``:=``) inside either. The arguments of a call, and the entries of a
display, that stand on several lines count each by itself.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tools", "benchmarks", "examples")
MOST_CONDITIONALS = 1
MOST_LOOPS = 2


@dataclass(frozen=True)
class Dense:
    """An expression that does too much.

    Args:
        line: it begins on.
        why: what there is too much of.
    """

    line: int
    why: str


def dense_lines(source: str) -> list[Dense]:
    """The expressions of a module that do too much at once."""
    dense = []
    for statement in ast.walk(ast.parse(source)):
        if isinstance(statement, ast.stmt) and not isinstance(
            statement, ast.FunctionDef | ast.ClassDef
        ):
            for expression in _expressions(statement):
                why = _why(expression)
                if why:
                    dense.append(Dense(expression.lineno, why))
    return dense


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement itself, in parts that stand on lines of their own."""
    for value in ast.iter_child_nodes(statement):
        if isinstance(value, ast.expr):
            yield from _parts(value)


def _parts(expression: ast.expr) -> Iterator[ast.expr]:
    """An expression, or the arguments of a call or entries of a display of several lines."""
    if isinstance(expression, ast.Call) and expression.end_lineno != expression.lineno:
        yield from (part for keyword in expression.keywords for part in _parts(keyword.value))
        yield from (part for given in expression.args for part in _parts(given))
        yield from _parts(expression.func)
    elif isinstance(expression, ast.Attribute):
        yield from _parts(expression.value)
    elif isinstance(expression, ast.Dict) and expression.end_lineno != expression.lineno:
        yield from (part for value in expression.values for part in _parts(value))
    elif isinstance(expression, ast.List | ast.Tuple | ast.Set) and _has_lines(expression):
        yield from (part for entry in expression.elts for part in _parts(entry))
    else:
        yield expression


def _has_lines(display: ast.List | ast.Tuple | ast.Set) -> bool:
    return len({entry.lineno for entry in display.elts}) == len(display.elts) > 1


def _why(expression: ast.expr) -> str:
    inside = list(ast.walk(expression))
    conditionals = [each for each in inside if isinstance(each, ast.IfExp)]
    loops = [each for each in inside if isinstance(each, ast.comprehension)]
    if any(isinstance(each, ast.IfExp) for outer in conditionals for each in _below(outer)):
        return "a conditional inside a conditional"
    if len(conditionals) > MOST_CONDITIONALS:
        return f"{len(conditionals)} conditionals"
    if len(loops) > MOST_LOOPS:
        return f"{len(loops)} loops"
    walrus = any(
        isinstance(each, ast.NamedExpr) for outer in conditionals for each in _below(outer)
    )
    return "an assignment inside a conditional" if walrus else ""


def _below(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        yield from ast.walk(child)


def main() -> int:
    """Print every dense expression; 1 where there is one."""
    count = 0
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        for dense in dense_lines(path.read_text(encoding="utf-8")):
            count += 1
            print(
                f"{path.relative_to(ROOT)}:{dense.line}: {dense.why} in one expression; take "
                "several statements"
            )
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
