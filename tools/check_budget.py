"""Say where a package has more lines of code than its budget, or where a budget was raised.

    python tools/check_budget.py            # 1 where there is more
    python tools/check_budget.py --lower    # first lower each limit to what there is

`tools/lines_of_code.json` holds the most lines of code of each folder, without blank lines,
comments and docstrings. A change may lower a limit and never raise one; a new folder takes its
lines from others, because the limit of `src/headscope` is that of all of them together.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

from source_statements import statements_of

ROOT = Path(__file__).parents[1]
BUDGET = Path("tools/lines_of_code.json")
COMMENTS = re.compile(r"/\*.*?\*/|^\s*//.*?$", re.DOTALL | re.MULTILINE)


def code_lines(path: Path) -> int:
    """Lines of a source file that are neither blank nor of comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    docstrings: set[int] = set()
    if path.suffix != ".py":
        text = COMMENTS.sub("", text)
    else:
        text = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
        for node in statements_of(text):
            if isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str):
                docstrings.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(at not in docstrings and not line.isspace() and line != "" for at, line in lines)


def measured(root: Path, folder: str) -> int:
    """Lines of code of a folder."""
    files = [path for path in (root / folder).rglob("*") if path.suffix in (".py", ".ts", ".tsx")]
    return sum(map(code_lines, files))


def lowest_before(root: Path) -> dict[str, int]:
    """The lowest limit of each folder in any commit."""
    git = ["git", "-C", str(root)]
    log = [*git, "log", "--format=%H", "--", str(BUDGET)]
    lowest: dict[str, int] = {}
    for commit in subprocess.run(log, capture_output=True, text=True, check=True).stdout.split():
        show = [*git, "show", f"{commit}:{BUDGET.as_posix()}"]
        done = subprocess.run(show, capture_output=True, text=True, check=False)
        for folder, limit in json.loads(done.stdout or "{}").items():
            lowest[folder] = min(limit, lowest.get(folder, limit))
    return lowest


def main(root: Path = ROOT) -> int:
    """Print what is above its limit, and every limit that was raised; 1 where there is one."""
    limits = json.loads((root / BUDGET).read_text(encoding="utf-8"))
    counts = {folder: measured(root, folder) for folder in limits}
    if "--lower" in sys.argv:
        limits = {folder: min(limit, counts[folder]) for folder, limit in limits.items()}
        (root / BUDGET).write_text(json.dumps(limits, indent=2) + "\n", encoding="utf-8")
    before, told = lowest_before(root), []
    for folder, limit in limits.items():
        if limit > before.get(folder, limit):
            told.append(f"the limit of {folder} was {before[folder]}, and is {limit}; lower it")
        if counts[folder] > limit:
            told.append(f"{folder} has {counts[folder]} lines of code, and may have {limit}")
    for line in told:
        print(line)
    return int(bool(told))


if __name__ == "__main__":
    sys.exit(main())
