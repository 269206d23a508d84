"""Say where a name says nothing, or says two things.

    python tools/check_names.py          # src; of empty names also benchmarks, tools, examples

A variable, parameter or attribute called `found` says nothing of what it is. A class name stands
for one thing in the whole package: two classes of one name send a reader to the wrong one.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from source_statements import statements_of

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "headscope"
SCRIPTS = ("benchmarks", "tools", "examples")
"""Folders of scripts next to the package, whose classes may be called as they like."""
EMPTY = ("found",)
"""Names that say nothing."""
PRIVATE_WORDS = {
    "Copied": "RebuiltWhenCopied",
    "Draws": "WordShuffles",
    "Given": "SetWeights",
    "LeftBehind": "MissingFunction",
    "Maps": "AttentionMaps",
    "Sides": "QueryKeyTokens",
    "Standing": "RunStatus",
    "Strand": "LayerSteps",
    "Tampering": "CounterfactualAttention",
    "Telling": "EvidenceOptions",
    "Trail": "ModuleStack",
    "Tried": "ModelTrial",
}
"""Class names that nobody outside understood, and what they are called now."""
ON_PURPOSE: dict[str, str] = {}
"""Class names that are there twice, and why."""


def empty_names(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of each variable, parameter or attribute of a class that says nothing."""
    # Most modules have none even in their prose.
    if not any(name in source for name in EMPTY):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.arg) and node.arg in EMPTY:
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in EMPTY:
            yield node.lineno, node.id


def classes_of(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of each class of a module, also of those inside others."""
    for node in statements_of(source):
        if isinstance(node, ast.ClassDef):
            yield node.lineno, node.name


def repeated(classes: dict[str, list[str]]) -> dict[str, list[str]]:
    """The class names that stand in several places, with the places."""
    return {
        name: places
        for name, places in sorted(classes.items())
        if len(places) > 1 and name not in ON_PURPOSE
    }


def empty_in_scripts(root: Path) -> Iterator[str]:
    """A line for each name in the scripts next to the package that says nothing."""
    for folder in SCRIPTS:
        for path in sorted((root / folder).rglob("*.py")):
            for line, name in empty_names(path.read_text(encoding="utf-8")):
                yield f"{path.relative_to(root)}:{line}: {name!r} says nothing; call it what it is"


def main(package: Path = PACKAGE, root: Path = ROOT) -> int:
    """Print every name that says nothing or two things; 1 where there is one."""
    lines, classes = list(empty_in_scripts(root)), defaultdict(list)
    for path in sorted(package.rglob("*.py")):
        place, source = path.relative_to(package), path.read_text(encoding="utf-8")
        for line, name in empty_names(source):
            lines.append(f"{place}:{line}: {name!r} says nothing; call it what it is")
        for line, name in classes_of(source):
            classes[name.removeprefix("_")].append(f"{place}:{line}")
            if name.removeprefix("_") in PRIVATE_WORDS:
                instead = PRIVATE_WORDS[name.removeprefix("_")]
                lines.append(f"{place}:{line}: class {name} is called {instead}")
    for name, places in repeated(classes).items():
        lines.append(f"class {name} is several things: {', '.join(places)}")
    for line in lines:
        print(line)
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
