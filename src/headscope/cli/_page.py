"""What commands that show a record can choose to show first."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from headscope.cli._evidence import check_evidence, evidence_of
from headscope.cli._run import ModelOptions
from headscope.record import Record
from headscope.views._contract import Quantity, Theme, ViewName

Numbers = Annotated[tuple[int, ...], Parameter(consume_multiple=True, negative="")]
CALLED = {"view_": "view"}
OURS = ("evidence", "evidence_of")


@Parameter(name="*")
@dataclass(frozen=True)
class PageChoices:
    """What the page holds and shows first."""

    view_: Annotated[ViewName, Parameter(name="--view")] = "head"
    """View that is shown first."""
    stack: str | None = None
    """Stack that is shown first, such as cross."""
    layer: int | None = None
    """Layer that is shown first."""
    heads: Numbers = ()
    """Heads that are shown first; all by default."""
    query: Numbers = ()
    """Query tokens that are pinned, counted from 0."""
    key: Numbers = ()
    """Key tokens that are pinned, counted from 0."""
    quantity: Quantity = "weight"
    """What is shown: weight, score, or another that the record has."""
    include_layers: Annotated[Numbers, Parameter(name=("--include-layers", "--layers"))] = ()
    """Layers that the page holds; all by default."""
    include_heads: Numbers = ()
    """Heads that the page holds; all by default."""
    evidence: Annotated[bool, Parameter(negative="")] = False
    """Say what kinds of heads there are; seen on this one text, which the page says."""
    evidence_of: Path | None = None
    """The same over texts (.txt, .jsonl, .csv, .parquet), a .npz tally that was kept, or relations of a .conllu."""
    label: str | None = None
    """Pattern whose heads stand out, such as next."""
    least: int | None = None
    """Percent that the score of a label must reach for its head to stand out."""
    sort: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None
    """Measure by which the model view sorts heads, such as entropy; -entropy for the lowest first."""
    x: str | None = None
    """Measure of the scatter from left to right, or map for the map of heads."""
    y: str | None = None
    """Measure of the scatter from bottom to top."""
    theme: Theme = "auto"
    """Colours; auto follows the reader's system."""

    def check(self) -> None:
        """Raise where evidence is asked for that cannot be had, before any work.

        Raises:
            HeadscopeError: saying why.
        """
        check_evidence(self.evidence, self.evidence_of)

    def options(self, record: Record, model: ModelOptions) -> dict[str, Any]:
        """The options of `headscope.view` that were chosen.

        Args:
            record: what is shown.
            model: which model reads the texts of the evidence.

        Raises:
            HeadscopeError: whatever is wrong with these texts or the model.
        """
        chosen = {CALLED.get(field.name, field.name): getattr(self, field.name) for field in fields(self)}
        chosen = {name: value for name, value in chosen.items() if value not in (None, ()) and name not in OURS}
        if self.evidence or self.evidence_of:
            chosen["evidence"] = evidence_of(record, self.evidence_of, model)
        return chosen
