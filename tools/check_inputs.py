"""Fail where code behind the door asks what kind of input it was given.

`headscope.capturing.inputs.parse` makes one `ParsedInput` of whatever users give to read. A module
that tests a text for being a string, a pair or a mapping, or looks for "image" among its names,
parses it a second time, and may see another thing in it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src/headscope"
DOOR = {"capturing/inputs/parsed_input.py", "capturing/inputs/parse.py", "capturing/media/given.py"}
"""Where texts, pictures, videos and sounds are parsed."""
FILES = {
    "storage/rows.py": "cells of a table on disk, before any of them is an input",
    "tasks/_named.py": "cells of a table on disk, before any of them is an input",
    "tasks/_batches.py": "whether an example of a task is a pair of inputs",
}
"""What asks of something else that is called so, and of what."""
PACKAGES = ("capturing", "cli", "interventions", "patterns", "studies", "tasks")
INPUTS = {
    *(
        "text",
        "texts",
        "text_pair",
        "pair",
        "prompt",
        "prompts",
        "image",
        "images",
        "sound",
        "video",
        "series",
    ),
    *("picture", "pictures", "item", "each", "example", "first", "inputs"),
}
"""What inputs are called where they are tested."""
KINDS = {
    *("str", "bytes", "dict", "list", "tuple", "Mapping", "Sequence", "Iterable", "Path"),
    *("PathLike", "ndarray"),
}
"""What users give inputs as."""
NAMES = {"text", "text_pair", "text_b", "image", "sound", "video", "series"}
"""Names in a mapping that is an input."""


def asked(path: Path, root: Path = SOURCE) -> Iterator[str]:
    """The places in a file where the kind of an input is asked for."""
    if path.relative_to(root).as_posix() in DOOR | set(FILES):
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if _tests_kind(node) or _looks_for_name(node):
            yield f"{path}:{node.lineno}: {ast.unparse(node)}"  # ty: ignore[unresolved-attribute]


def _tests_kind(node: ast.AST) -> bool:
    """Whether this is ``isinstance(text, str)`` or its like."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        return False
    if node.func.id != "isinstance" or len(node.args) != 2:
        return False
    kinds = {name for part in ast.walk(node.args[1]) for name in _names(part)}
    return bool(INPUTS & _called(node.args[0])) and bool(KINDS & kinds)


def _called(tested: ast.expr) -> set[str]:
    """What is tested: a name, an attribute, or an element of either."""
    while isinstance(tested, ast.Subscript):
        tested = tested.value
    return set(_names(tested))


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    if isinstance(node, ast.Attribute):
        yield node.attr


def _looks_for_name(node: ast.AST) -> bool:
    """Whether this is ``"text_b" in given``, ``given.get("image")`` or ``{"image"} & names``."""
    if isinstance(node, ast.Compare):
        return any(_has_name(part) for part in (node.left, *node.comparators))
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.BitAnd) and (_has_name(node.left) or _has_name(node.right))
    is_get = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return is_get and node.func.attr == "get" and any(map(_has_name, node.args[:1]))


def _has_name(node: ast.AST) -> bool:
    parts = node.elts if isinstance(node, ast.Set) else [node]
    return any(isinstance(part, ast.Constant) and part.value in NAMES for part in parts)


def main(root: Path = SOURCE) -> None:
    """Say where inputs are asked for their kind, and exit with 1."""
    places: list[str] = []
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            places += asked(path, root)
    for place in places:
        print(place)
    if places:
        sys.exit("parse it in headscope.capturing.inputs.parse, and ask its ParsedInput")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE)
