"""Find modules of the package that import the package's root.

    python tools/check_root_imports.py          # 1 where one is found

The root (``headscope/__init__.py``) names what is public and so reaches every module. A module
below that imports it, as ``import headscope`` or ``from headscope import ...``, closes a circle
through all of them, which the layers of import-linter do not see: the root is on none of them. What
is wanted is in a subpackage: import it from there. A result that is drawn or shown by what stands
above it is entered in `headscope.results` instead.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

PACKAGE = "headscope"
SOURCE = Path(__file__).parents[1] / "src" / PACKAGE


def root_imports(source: str) -> list[int]:
    """The lines of a module that import the root package, functions and blocks for type checkers
    included.
    """
    lines = []
    # Imports of subpackages, which most modules have alone, put a point behind the name.
    if not re.search(rf"\b{PACKAGE}\b(?!\.)", source):
        return lines
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module]
        elif isinstance(node, ast.Call) and _name(node.func) in ("import_module", "__import__"):
            names = [given.value for given in node.args if isinstance(given, ast.Constant)]
        if PACKAGE in names:
            lines.append(node.lineno)
    return lines


def _name(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))


def main() -> int:
    """Print the places that import the root; 1 where there is one."""
    places = []
    for path in sorted(SOURCE.rglob("*.py")):
        for line in root_imports(path.read_text(encoding="utf-8")):
            places.append(f"{path.relative_to(SOURCE.parents[1])}:{line}")
    for place in places:
        print(f"{place}: imports {PACKAGE} itself; import from its subpackage")
    return 1 if places else 0


if __name__ == "__main__":
    sys.exit(main())
