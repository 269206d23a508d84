"""headscope support."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from headscope.cli._run import check_place, quiet, say, status
from headscope.errors import FileError

if TYPE_CHECKING:
    from headscope.testing import Support

INTRODUCTION = """\
# What can be captured

Found out by trying, with tiny random models{versions}: `headscope support --out support.md`; for your own model,
`headscope support MODEL`. Each model was given two made-up texts, one of them padded.

- **route**: how its attention was seen, through transformers' attention interface or through torch's own operators.
- **layer output**: largest difference between the layer outputs recomputed from what was captured and the model's own.
- **weights**: largest difference between the weights captured while the model ran its own attention and those that it
  returns itself under eager attention; `-` where it returns none, where asking for them changes its output (Falcon),
  or where it returns something else (SqueezeBERT: scores).

Large values (MobileBERT has no norm that holds them down) make both differences large.
"""

HEADER = """\
| architecture | class | stacks: layers x heads, kind | route | layer output | weights |
| --- | --- | --- | --- | ---: | ---: |"""


def support(
    model: str | None = None,
    /,
    *,
    out: Path | None = None,
    trust_remote_code: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Find out by trying what can be captured of a model, or of all architectures that are tested.

    Each is given two made-up texts, one of them padded. The columns: the largest difference between the layer outputs
    recomputed from what was captured and the model's own, and between the weights and those that the model returns
    itself under eager attention.

    Args:
        model: Hub name or folder; by default tiny random models of every architecture tested.
        out: Write the table to this file (.md or .json) instead of the terminal.
        trust_remote_code: Let the model bring code of its own, and run it.
    """
    if out is not None:
        check_place(out)
        if out.suffix not in (".md", ".json"):
            raise FileError(f"--out is {out}; the table can be written as .md or .json")
    with status("Trying"), quiet():
        found = list(_all() if model is None else _one(model, trust_remote_code))
    if out is None:
        say(_markdown(found))
        return
    from headscope.storage import written_whole

    text = (
        f"{_introduction()}\n{_markdown(found)}"
        if out.suffix == ".md"
        else json.dumps([dataclasses.asdict(row) for row in found], indent=1)
    )
    with written_whole(out) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def _introduction() -> str:
    versions = " and ".join(f"{name} {version(name)}" for name in ("transformers", "torch"))
    return INTRODUCTION.format(versions=f" ({versions})")


def _one(name: str, trust_remote_code: bool) -> Iterator[Support]:
    from headscope.capturing import load_bare_model
    from headscope.testing import examine

    yield examine(load_bare_model(name, trust_remote_code=trust_remote_code))


def _all() -> Iterator[Support]:
    import warnings

    from headscope.testing import ARCHITECTURES, examine, tiny_model

    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
        for name in ARCHITECTURES:
            yield examine(tiny_model(name), name)


def _markdown(found: Iterable[Support]) -> str:
    return "\n".join([HEADER, *map(_row, found)])


def _row(row: Support) -> str:
    if row.refused:
        return f"| {row.name} | {row.class_name} | refused: {row.refused} | | | |"
    numbers = ("-" if number is None else f"{number:.0e}" for number in (row.output_difference, row.weights_difference))
    cells = (row.name, row.class_name, "; ".join(row.stacks), ", ".join(row.routes), *numbers)
    return f"| {' | '.join(cells)} |"
