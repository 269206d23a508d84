"""Count the ways through every function of src, which a reader has to keep in mind.

    python tools/check_complexity.py          # 1 where more than 3 % of functions have over 10

Cyclomatic complexity as radon counts it: one, and one more for every branch, loop, handler,
condition of a conditional expression or comprehension, and for every ``and`` and ``or``.

Source: McCabe 1976, "A Complexity Measure", section 2, which recommends 10 as the limit.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from radon.complexity import cc_visit
from radon.visitors import Function

ROOT = Path(__file__).parents[1]
MOST = 10
"""Ways through a function."""
SHARE = 0.03
"""Of all functions may have more: a few read worse when they are split."""


def functions_of(source: str) -> Iterator[Function]:
    """Every function and method of a module, functions inside of functions included."""
    waiting = [block for block in cc_visit(source) if isinstance(block, Function)]
    while waiting:
        function = waiting.pop()
        yield function
        waiting += function.closures


def main(folder: Path = ROOT / "src") -> int:
    """Print the functions over the limit; 1 where they are too many."""
    count, over = 0, []
    for path in sorted(folder.rglob("*.py")):
        for function in functions_of(path.read_text(encoding="utf-8")):
            count += 1
            if function.complexity > MOST:
                place = f"{path.relative_to(folder.parent)}:{function.lineno}"
                over.append((function.complexity, place, function.fullname))
    share = len(over) / count
    if share <= SHARE:
        return 0
    for complexity, place, name in sorted(over, reverse=True):
        print(f"{place}: {name} has {complexity} ways through it")
    print(f"{len(over)} of {count} functions ({share:.1%}) have more than {MOST}; {SHARE:.0%} may")
    return 1


if __name__ == "__main__":
    sys.exit(main())
