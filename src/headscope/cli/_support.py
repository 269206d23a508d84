"""headscope support."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from headscope._progress import counted
from headscope.cli._run import MachineOptions, check_model, check_place, quiet, say, status
from headscope.errors import FileError, ModelError

if TYPE_CHECKING:
    from headscope.testing import Support

INTRODUCTION = """\
# What can be captured

Every architecture in these tables can be captured, but for the few that are marked *refused*, with
the reason. Yours is not here? `headscope support MODEL` tries it.

Found out by trying, with tiny random models{versions}: `headscope support --out support.md`. Each
model was given a batch of {size} made-up texts, pictures or sounds; every second text, and every
second sound where a model knows about padding, was shorter and padded.

- **stacks**: layers x heads of each, and what a query may look at. Models that work on ever coarser
  grids of patches have a stack for each, `stage1`, `stage2` ...; a learned query that collects a
  picture is a `probe`.
- **route**: how its attention was seen, through transformers' attention interface, through torch's
  own operators, or from what the model returns where its own matrices prove that
  (docs/capturing.md).
- **layer output**: largest difference between the layer outputs recomputed from what was captured
  and the model's own.
- **weights**: largest difference between the weights captured while the model ran its own attention
  and those that it returns itself under eager attention, with a remark where these are not all
  (LLaVA and its like return those of the text only) or not each head's (WavLM returns the mean over
  heads, which is compared with ours); `-` where it returns none, where asking for them changes its
  output (Falcon), or where it returns something else (SqueezeBERT: scores; Swin: windows of the
  last layer of each stage).

Large values (MobileBERT has no norm that holds them down) make both differences large.
"""

EXAMPLES = 2
"""How many made-up texts each model is given at once, unless told otherwise."""
HEADER = """\
| architecture | class | stacks: layers x heads, kind | route | layer output | weights |
| --- | --- | --- | --- | ---: | ---: |"""


def support(
    model: str | None = None,
    /,
    *,
    out: Path | None = None,
    machine: MachineOptions | None = None,
) -> None:
    """Check whether a model is supported, or every architecture that is tested.

    Each model is given a batch of made-up texts, pictures or sounds. The columns show the largest
    difference between the layer outputs recomputed from the capture and the model's own, and
    between the captured weights and those that the model returns itself under eager attention.

    Args:
        model: Hub name or folder; by default tiny random models of every tested architecture.
        out: Write the table to this file (.md or .json), besides printing it.
        machine: Where and how the model runs.
    """
    if out is not None:
        check_place(out)
        if out.suffix not in (".md", ".json"):
            raise FileError(f"Expected .md or .json for --out, got {out}")
    machine = machine or MachineOptions()
    size = machine.batch_size or EXAMPLES
    if model is not None:
        check_model(model, machine.revision)
    with status(f"Trying {model}") if model else nullcontext(), quiet():
        supported = _all(size) if model is None else {"": [_one(model, machine, size)]}
    say(_markdown(supported))
    if out is None:
        return
    from headscope.storage import written_whole

    text = (
        f"{_introduction(size)}\n{_markdown(supported)}"
        if out.suffix == ".md"
        else json.dumps(
            [dataclasses.asdict(row) for rows in supported.values() for row in rows], indent=1
        )
    )
    with written_whole(out) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")
    say(f"Wrote {out.resolve()}")


def _introduction(size: int) -> str:
    versions = " and ".join(f"{name} {version(name)}" for name in ("transformers", "torch"))
    return INTRODUCTION.format(versions=f" ({versions})", size=size)


def _one(name: str, machine: MachineOptions, size: int) -> Support:
    from headscope.capturing import load_bare_model
    from headscope.testing import examine

    return examine(load_bare_model(name, **machine.loading), batch_size=size)


def _all(size: int) -> dict[str, list[Support]]:
    import warnings

    from headscope.testing import KINDS, Support, examine, tiny_model

    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
        supported: dict[str, list[Support]] = {kind: [] for kind in KINDS}
        every = [(kind, name) for kind, names in KINDS.items() for name in names]
        for kind, name in counted(every, "Trying", "architecture", shows=True):
            try:
                model = tiny_model(name)
            except ModelError as error:  # of a transformers that is older than the architecture
                supported[kind].append(Support(name, "", refused=str(error)))
                continue
            supported[kind].append(examine(model, name, batch_size=size))
        return supported


def _markdown(supported: Mapping[str, Iterable[Support]]) -> str:
    return "\n\n".join(
        "\n".join([*([f"## {kind}", ""] if kind else []), HEADER, *map(_row, rows)])
        for kind, rows in supported.items()
    )


def _row(row: Support) -> str:
    if row.refused:
        return f"| {row.name} | {row.class_name} | refused: {row.refused} | | | |"
    numbers = [
        "-" if number is None else f"{number:.0e}"
        for number in (row.output_difference, row.weights_difference)
    ]
    numbers[1] += f" ({row.remark})" if row.remark else ""
    cells = (row.name, row.class_name, "; ".join(row.stacks), ", ".join(row.routes), *numbers)
    return f"| {' | '.join(cells)} |"
