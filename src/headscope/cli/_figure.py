"""headscope figure."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from typing_extensions import TypedDict

from headscope.cli._declared import parameters
from headscope.cli._layers_and_heads import parse_layer_and_heads
from headscope.cli._page import Paths, position_or_word, read_quantities
from headscope.cli._run import ModelOptions, check_writable, say
from headscope.errors import FigureError
from headscope.views.figure_options import WrittenFigureOptions
from headscope.views.options import declared

if TYPE_CHECKING:
    from headscope.record import Record

if TYPE_CHECKING:
    Choices = dict[str, Any]
else:
    Choices = TypedDict(
        "Choices",
        parameters(
            declared(WrittenFigureOptions),
            tray='Pictures in a row, up to six: 2-0 7-3, or quoted "7-3 query=store view=matrix"; '
            "or kinds for the clearest head of each kind on this text.",
        ),
        total=False,
    )
FigureChoices = Annotated[Choices, Parameter(name="*", group="Figure")]
"""The options of `headscope.figure` that were given."""


@Parameter(name="*", group="Figure")
@dataclass(frozen=True)
class FigureFiles:
    """Files that a figure shows besides the record."""

    beside: Paths = ()
    """Further records (.safetensors), which the tray calls b, c ...: 2-0 "2-0 record=b"; view texts
    shows all of them below each other.
    """
    quantities: Path | None = None
    """Further quantities: a .npz with an array for each, axes layer, query, key, or layer, head,
    query, key.
    """
    evidence: Annotated[bool, Parameter(negative="")] = False
    """For view scatter: say what kinds of heads there are, seen on this one text."""
    evidence_of: Path | None = None
    """The same over texts (.txt, .jsonl, .csv, .tsv, .parquet), heads that were kept, or
    relations of a .conllu.
    """

    def given(self, record: Record, model: ModelOptions) -> dict[str, Any]:
        """The options of `headscope.figure` that these files give.

        Raises:
            HeadscopeError: errors of these files or the model.
        """
        from headscope.cli._evidence import evidence_of
        from headscope.storage import load

        options: dict[str, Any] = {}
        if self.beside:
            options["beside"] = [load(other) for other in self.beside]
        if self.quantities is not None:
            options["quantities"] = read_quantities(self.quantities)
        if self.evidence or self.evidence_of:
            options["evidence"] = evidence_of(record, self.evidence_of, model)
        return options


def figure(
    file: Path,
    /,
    *,
    out: Path,
    at: str | None = None,
    choices: FigureChoices | None = None,
    files: FigureFiles | None = None,
    dpi: float = 300.0,
    model: ModelOptions | None = None,
) -> None:
    """Draw a view of a record as a figure for print.

    Args:
        file: The record (.safetensors), as headscope capture keeps it.
        out: Where to write the figure; ends in .svg, .pdf or .png.
        at: Layer and heads, such as 2-0, 2-0,3,5, or 2 for all heads of layer 2; short for --layer
            and --heads.
        choices: What is drawn, and how.
        files: What is shown with the record.
        dpi: Dots in an inch of a PNG.
        model: Which model reads the texts of the evidence.
    """
    from headscope.storage import load
    from headscope.views.figures import figure as draw
    from headscope.views.figures.fonts import missing_words

    files = files or FigureFiles()
    options = _options(choices or {}, at)
    _check(out, options["view"], files.evidence, files.evidence_of)
    record = load(file)
    drawn = draw(record, **options, **files.given(record, model or ModelOptions()))
    path = drawn.save(out, dpi=dpi)
    if drawn.missing:
        sys.stderr.write(f"{missing_words(drawn.missing)}\n")
    say(f"Wrote {path.resolve()} ({path.stat().st_size / 1e3:.0f} kB)")


def _options(choices: Choices, at: str | None) -> dict[str, Any]:
    """The options of `headscope.figure` from the command line.

    Raises:
        FigureError: where layer and heads are given twice, or in another form.
    """
    options: dict[str, Any] = dict(choices)
    layer_and_heads = _layer_and_heads(at)
    twice = layer_and_heads.keys() & options.keys()
    if twice:
        name = sorted(twice)[0]
        raise FigureError(f"--at and --{name} both say where to look; give one of them")
    for side in ("query", "key"):
        if side in options:
            options[side] = position_or_word(options[side])
    if options.get("tray") == ["kinds"]:
        options["tray"] = "kinds"
    options.setdefault("view", "compare" if "tray" in options else "head")
    options |= layer_and_heads
    # In the order of the declaration, in which the figure's metadata has them.
    return {name: options[name] for name in declared(WrittenFigureOptions) if name in options}


def _check(out: Path, view: str, evidence: bool, evidence_of: Path | None) -> None:
    """Raise for errors that can be seen before the record is read.

    Raises:
        FileError: where the figure cannot be written, or the texts cannot be read.
        FigureError: where the suffix is unknown, or the view shows no evidence.
    """
    from headscope.cli._evidence import check_evidence
    from headscope.views.figures import FORMATS

    check_writable(out)
    if out.suffix.lower().removeprefix(".") not in FORMATS:
        raise FigureError(f"Expected .svg, .pdf or .png for --out, got {out}")
    check_evidence(evidence, evidence_of)
    if (evidence or evidence_of) and view != "scatter":
        raise FigureError(f"--evidence and --evidence-of need --view scatter, got --view {view}")


def _layer_and_heads(at: str | None) -> dict[str, Any]:
    """Layer and heads of ``2-0``, ``2-0,3,5`` or ``2``.

    Raises:
        RecordError: where it has another form.
    """
    if at is None:
        return {}
    layer, heads = parse_layer_and_heads(at, "--at")
    if len(heads) == 1:
        return {"layer": layer, "head": heads[0]}
    return {"layer": layer, "heads": heads or None}
