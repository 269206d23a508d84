"""headscope support."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headscope._progress import counted
from headscope.cli import _run as run
from headscope.cli._files import check_suffix
from headscope.cli._run import Count, MachineOptions

if TYPE_CHECKING:
    from headscope.testing import Support

UNTRIED = """\
## Not tried

No tiny model of these could be made, or nothing made up could be read by it. That says nothing of
the real model: `headscope support MODEL` tries it.

| family | model type | why |
| --- | --- | --- |"""
REFUSED = """\
## Refused

| family | model type | class | reason |
| --- | --- | --- | --- |"""
EXAMPLES = 2
"""Default for how many made-up texts each model is given at once."""
HEADER = """\
| family | model type | class | stacks: layers x heads, kind | route | layer output | weights |
| --- | --- | --- | --- | --- | ---: | ---: |"""
MOST_OF_A_REASON = 200
"""Characters of a reason: some libraries explain at length how a missing package is installed."""


def support(
    model: str | None = None,
    /,
    *,
    out: Path | None = None,
    workers: Count = None,
    machine: MachineOptions = MachineOptions(),
) -> None:
    """Check whether a model is supported, or every model type that transformers knows.

    headscope support path/to/a/model

    headscope support --out support.md

    Args:
        model: Hub name or folder; by default tiny random models of every model type.
        out: Write the table to this file (.md or .json), besides printing it.
        workers: Number of processes that run at once.
        machine: Where and how the model runs.
    """
    check_suffix("--out", out, (".md", ".json"))
    size = machine.batch_size or EXAMPLES
    if model is None:
        rows = try_every_type(size, workers or os.cpu_count() or 1)
    else:
        run.check_model(model, machine.revision)
        loaded = run.load("load_bare_model", model, **machine.loading)
        with run.status(f"Trying {model}"), run.quiet():
            from headscope.testing import examine

            rows = [examine(loaded, batch_size=size)]
    text = tables_of(rows)
    run.say(text)
    if out is not None:
        from headscope.storage import written_whole

        if out.suffix == ".json":
            text = json.dumps([dataclasses.asdict(row) for row in rows], indent=1)
        with written_whole(out) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")
        run.say(f"Wrote {out.resolve()}")


def try_every_type(size: int, workers: int) -> list[Support]:
    from headscope.testing import every_type, examine_types

    names = every_type()
    tried = examine_types(names, batch_size=size, workers=workers)
    shown = counted(tried, "Trying", "model type", total=len(names), shows=True)
    return sorted(shown, key=lambda row: names.index(row.name))


def tables_of(rows: Sequence[Support]) -> str:
    """The tables of what is captured by what it reads, then what is refused, then what could not be
    tried; a single model has one row without a heading.
    """
    from headscope.testing import KINDS, family_of

    if len(rows) == 1 and not rows[0].refused:
        return f"{HEADER}\n{_row(rows[0])}"
    by_head: dict[str, list[Support]] = {f"## {kind}\n\n{HEADER}": [] for kind in KINDS}
    by_head |= {REFUSED: [], UNTRIED: []}
    for row in sorted(rows, key=lambda row: (family_of(row.name).lower(), row.name.lower())):
        failed = REFUSED if row.refused else ""
        head = UNTRIED if row.unbuilt else failed
        by_head.setdefault(head or f"## {row.reads}\n\n{HEADER}", []).append(row)
    return "\n\n".join("\n".join([head, *map(_row, own)]) for head, own in by_head.items() if own)


def _row(row: Support) -> str:
    from headscope.testing import family_of

    cells = [family_of(row.name), row.name]
    if row.unbuilt or row.refused:
        # A bar would end the cell of the table.
        why = " ".join((row.unbuilt or row.refused).replace("|", "/").split())
        short = why if len(why) <= MOST_OF_A_REASON else f"{why[:MOST_OF_A_REASON]} ..."
        cells += [short] if row.unbuilt else [row.class_name, short]
    else:
        cells += [row.class_name, "; ".join(row.stacks), ", ".join(row.routes)]
        for number in (row.output_difference, row.weights_difference):
            cells.append("-" if number is None else f"{number:.0e}")
        cells[-1] += f" ({row.remark})" if row.remark else ""
    return f"| {' | '.join(cells)} |"
