"""headscope figure."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from headscope.cli._page import Paths, Words, position_or_word
from headscope.cli._places import parse_place
from headscope.cli._run import ModelOptions, check_place, say
from headscope.errors import FigureError


@Parameter(name="*")
@dataclass(frozen=True)
class Look:
    """How a figure is printed."""

    theme: Literal["light", "dark"] | None = None
    """Paper; light by default."""
    title: str | None = None
    """Title over the figure; what is shown by default, "" for none."""
    width: float | None = None
    """Width in millimetres; 85 by default."""
    font_size: float | None = None
    """Size of text in points; 8 by default."""
    font: str | None = None
    """Font family that is tried first."""
    grey: Annotated[bool, Parameter(negative="")] = False
    """Greys only."""
    dpi: float = 300.0
    """Dots in an inch of a PNG."""

    @property
    def options(self) -> dict[str, Any]:
        """Options of `headscope.figure`."""
        named = {
            name: getattr(self, name) for name in ("theme", "title", "width", "font_size", "font")
        }
        return named | {"colour": False if self.grey else None}


def figure(
    file: Path,
    /,
    *,
    out: Path,
    view: Literal[
        "overview",
        "head",
        "model",
        "matrix",
        "neuron",
        "text",
        "texts",
        "input",
        "pair",
        "scatter",
        "compare",
    ]
    | None = None,
    at: str | None = None,
    stack: str | None = None,
    layers: Annotated[tuple[int, ...], Parameter(consume_multiple=True, negative="")] = (),
    query: str | None = None,
    key: str | None = None,
    quantity: str | None = None,
    filter_: Annotated[
        Literal["all", "aa", "ab", "ba", "bb"] | None, Parameter(name="--filter")
    ] = None,
    hide_special: Annotated[bool, Parameter(negative="")] = False,
    exclude_sinks: Annotated[bool, Parameter(negative="")] = False,
    neurons: Literal["model", "ranked", "pairs"] | None = None,
    top_percent: int | None = None,
    tray: Words = (),
    beside: Paths = (),
    labels: Words = (),
    predictions: Words = (),
    evidence: Annotated[bool, Parameter(negative="")] = False,
    evidence_of: Path | None = None,
    model: ModelOptions | None = None,
    x: str | None = None,
    y: str | None = None,
    look: Look | None = None,
) -> None:
    """Draw a view of a record as a figure for print.

    Args:
        file: The record (.safetensors), as headscope capture keeps it.
        out: Where to write the figure; ends in .svg, .pdf or .png.
        view: Which view; head by default, and compare where there is a tray.
        at: Layer and heads, such as 2-0, 2-0,3,5, or 2 for all heads of layer 2; in view scatter
            they have rings.
        stack: Stack that is drawn, such as cross; the first one by default.
        layers: Layers in the grid of views model and pair; all by default.
        query: Token that looks, by position from 0 or by its word; views neuron and pair need it.
        key: Token that is looked at, likewise; view pair needs it.
        quantity: weight (default), score, which goes into the softmax, contribution, or another
            that the record has.
        filter_: Queries and keys of one text of a pair; ab is from the first to the second.
        hide_special: Hide special tokens such as [CLS] and [SEP].
        exclude_sinks: Exclude sinks, keys that take most of the attention, and renormalise the
            rest.
        neurons: Order of the neurons in view neuron: as in the model (default), ranked, or in
            frequency pairs.
        top_percent: Percent of each row's attention that view head draws, strongest first; by
            default what prints well.
        tray: Pictures in a row, up to six: 2-0 7-3, or quoted "7-3 query=store view=matrix"; or
            kinds for the clearest head of each kind on this text.
        beside: Further records (.safetensors), which the tray calls b, c ...: 2-0 "2-0 record=b";
            view texts shows all of them below each other.
        labels: What each of these texts is, in their order, for a column beside them.
        predictions: What the model said of each; bold with ≠ where it is not the label.
        evidence: For view scatter: say what kinds of heads there are, seen on this one text.
        evidence_of: The same over texts (.txt, .jsonl, .csv, .tsv, .parquet), a .npz tally that was
            kept, or relations of a .conllu.
        model: Which model reads these texts.
        x: What heads stand apart by in view scatter, from left to right: distance (default),
            another measure, a pattern, or map for the map of like heads.
        y: The same from bottom to top; entropy by default.
        look: How it is printed.
    """
    from headscope.cli._evidence import evidence_of as known
    from headscope.storage import load
    from headscope.views.figures import figure as draw
    from headscope.views.figures.fonts import missing_words

    view = view or ("compare" if tray else "head")
    _check(out, view, evidence, evidence_of)
    look = look or Look()
    given: dict[str, Any] = {
        **_place(at),
        "stack": stack,
        "layers": layers or None,
        "query": None if query is None else position_or_word(query),
        "key": None if key is None else position_or_word(key),
        "quantity": quantity,
        "filter": filter_,
        "hide_special": hide_special or None,
        "sinks": False if exclude_sinks else None,
        "neurons": neurons,
        "top_percent": top_percent,
        "tray": "kinds" if tray == ("kinds",) else list(tray) or None,
        "labels": labels or None,
        "predictions": predictions or None,
        "x": x,
        "y": y,
        **look.options,
    }
    record = load(file)
    if beside:
        given["beside"] = [load(other) for other in beside]
    if evidence or evidence_of:
        given["evidence"] = known(record, evidence_of, model or ModelOptions())
    drawn = draw(
        record, view=view, **{name: value for name, value in given.items() if value is not None}
    )
    path = drawn.save(out, dpi=look.dpi)
    if drawn.missing:
        sys.stderr.write(f"{missing_words(drawn.missing)}\n")
    say(f"Wrote {path.resolve()} ({path.stat().st_size / 1e3:.0f} kB)")


def _check(out: Path, view: str, evidence: bool, evidence_of: Path | None) -> None:
    """Raise for what can be wrong before the record is read.

    Raises:
        FileError: where the figure, or the texts, are no files.
        FigureError: where it cannot be saved as wanted, or shows no evidence.
    """
    from headscope.cli._evidence import check_evidence
    from headscope.views.figures import FORMATS

    check_place(out)
    if out.suffix.lower().removeprefix(".") not in FORMATS:
        raise FigureError(f"Expected .svg, .pdf or .png for --out, got {out}")
    check_evidence(evidence, evidence_of)
    if (evidence or evidence_of) and view != "scatter":
        raise FigureError(f"--evidence and --evidence-of need --view scatter, got --view {view}")


def _place(at: str | None) -> dict[str, Any]:
    """Layer and heads of ``2-0``, ``2-0,3,5`` or ``2``.

    Raises:
        FigureError: where it is written otherwise.
    """
    if at is None:
        return {}
    parsed = parse_place(at)
    if parsed is None:
        raise FigureError(
            f"Expected layer and heads for --at, such as 2-0, 2-0,3,5 or 2, got {at!r}"
        )
    layer, heads = parsed
    if len(heads) == 1:
        return {"layer": layer, "head": heads[0]}
    return {"layer": layer, "heads": heads or None}
