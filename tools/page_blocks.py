"""The blocks of code of README and docs, and how they are run: as they stand, page by page, one
after another.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shlex
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from headscope.cli import run

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = {
    "README": ROOT / "README.md",
    **{
        page.relative_to(DOCS).with_suffix("").as_posix(): page
        for page in sorted(DOCS.rglob("*.md"))
    },
}
"""Every page by its name: where it is under docs/, without the suffix."""
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARKED = "<!-- commands in this table are run -->"
"""Before a table whose rows hold one command or call each."""
CELL = re.compile(r"^\|.*? `((?:headscope|hs\.)[^`]+)` ")
EXTRAS = re.compile(r"^headscope\[([\w,]+)\]")
INSTALL = 'pip install "headscope[all,demo] @ file://$PWD/$(ls dist/headscope-*.whl)"'
"""What the first pages tell a reader to install: the wheel of this checkout. Once there is a
release it is ``pip install "headscope[all,demo]"``, here, on the pages and in the notebooks.
"""
THERE = {
    "make": re.findall(
        r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    ),
    "pip": [
        *tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
            "optional-dependencies"
        ]
    ],
}
"""What the commands that build and install may name: targets and extras."""


@dataclass(frozen=True)
class Block:
    """One block.

    Args:
        page: name of the page.
        line: line of its first line of code, from 1.
        language: as written behind the fence.
        text: what is between the fences.
    """

    page: str
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        """File and line."""
        return f"{PAGES[self.page].relative_to(ROOT)}:{self.line}"


def blocks_of(page: str) -> list[Block]:
    """All blocks of a page, output included."""
    text = PAGES[page].read_text(encoding="utf-8")
    blocks = []
    for fence in FENCE.finditer(text):
        line = text.count("\n", 0, fence.start()) + 2
        blocks.append(Block(page, line, fence[1], fence[2]))
    return sorted([*blocks, *_cells_of(page, text)], key=lambda block: block.line)


def _cells_of(page: str, text: str) -> list[Block]:
    """The commands in tables that are marked; these are run as blocks are."""
    cells, within = [], False
    for line, row in enumerate(text.splitlines(), 1):
        within = row == MARKED or (within and (row.startswith("|") or not row))
        cell = CELL.match(row)
        if within and cell:
            cells.append(
                Block(page, line, "python" if cell[1].startswith("hs.") else "sh", cell[1])
            )
    return cells


def commands_of(block: Block) -> list[tuple[int, list[str]]]:
    """The commands of a block with the lines they begin on, comments left out."""
    commands, begun, line_of = [], "", 0
    for number, line in enumerate(block.text.splitlines()):
        line_of = line_of if begun else block.line + number
        begun += line.removesuffix("\\")
        if line.endswith("\\"):
            continue
        words = shlex.split(begun, comments=True)
        if words:
            commands.append((line_of, words))
        begun = ""
    return commands


def gone(words: list[str]) -> list[str]:
    """What a command that builds or installs names and this project does not have: targets of make,
    extras of pip.

    These commands are not run, since they change the machine.
    """
    if words[0] == "make":
        named = [word for word in words[1:] if "=" not in word]
    else:
        listed = [extras for word in words for extras in EXTRAS.findall(word)]
        named = [extra for extras in listed for extra in extras.split(",")]
    return [name for name in named if name not in THERE[words[0]]]


class Reader:
    """Somebody who types the blocks of one page, in order, into one session."""

    def __init__(self, page: str) -> None:
        self.names: dict[str, object] = {"__name__": "__main__"}
        self.printed = ""
        self.blocks = blocks_of(page)

    def read(self) -> None:
        """Run every block.

        Raises:
            AssertionError: where one fails, with its place.
        """
        for block in self.blocks:
            if block.language == "python":
                self._run_python(block)
            elif block.language == "sh":
                self._run_commands(block)
            elif block.language == "text":
                assert block.text.strip() in self.printed, (
                    f"{block.place}: what is printed is\n{self.printed}"
                )

    def _run_python(self, block: Block) -> None:
        # line numbers of the page stand in a traceback
        code = compile("\n" * (block.line - 1) + block.text, str(PAGES[block.page]), "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, self.names)
        self.printed = printed.getvalue()

    def _run_commands(self, block: Block) -> None:
        for line, words in commands_of(block):
            place = f"{PAGES[block.page].relative_to(ROOT)}:{line}"
            if words[0] in THERE:
                assert not gone(words), f"{place}: there is no {words[0]} {', '.join(gone(words))}"
                continue
            assert words[0] in ("headscope", "python"), f"{place}: {words[0]} is not run here"
            printed, complained = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(complained):
                code = run(words[1:]) if words[0] == "headscope" else _run_script(words[1:])
            assert code == 0, f"{place}: {shlex.join(words)}\n{complained.getvalue()}"
            self.printed = printed.getvalue()


def _run_script(arguments: list[str]) -> str | int | None:
    """Run a module (``-m NAME``) or a script of this project as a command would; gives what it
    exits with.
    """
    before = sys.argv
    try:
        if arguments[0] == "-m":
            sys.argv = arguments[1:]
            # another test may have imported it, and a module that is run is run anew
            sys.modules.pop(f"{arguments[1]}.__main__", None)
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = arguments
            runpy.run_path(str(ROOT / arguments[0]), run_name="__main__")
    except SystemExit as error:
        return error.code or 0
    finally:
        sys.argv = before
    return 0
