"""Say where a package reaches into another one: imports of modules or names that begin with an
underscore.

    python tools/check_borders.py

A module or a name with an underscore belongs to its own package; the others take what has a name
without one. Exit 1 where an import crosses that border.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "headscope"


def main() -> int:
    """Print every crossing and how many there are."""
    crossed = [line for path in sorted(PACKAGE.rglob("*.py")) for line in crossings(path)]
    for line in crossed:
        print(line)
    if crossed:
        print(
            f"{len(crossed)} private imports across packages: give what others need a public name"
        )
    return int(bool(crossed))


def crossings(path: Path, package: Path = PACKAGE) -> Iterator[str]:
    """The imports of one file that reach into another package below the root, each as a line."""
    own = path.relative_to(package).parts[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("headscope."):
            continue
        parts = str(node.module).split(".")[1:]
        # modules of the root itself (headscope._progress) belong to all packages
        if parts[0] == own or parts[0].startswith("_"):
            continue
        private = [part for part in parts if part.startswith("_")]
        private += [alias.name for alias in node.names if alias.name.startswith("_")]
        if private:
            names = ", ".join(alias.name for alias in node.names)
            yield f"{path.relative_to(package)}:{node.lineno}: from {node.module} import {names}"


if __name__ == "__main__":
    sys.exit(main())
