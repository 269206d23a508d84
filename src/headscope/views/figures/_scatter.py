"""View scatter: heads by two of their measures, or on the map of like heads."""

from __future__ import annotations

from headscope.errors import FigureError
from headscope.views.figures._frame import closing, heading
from headscope.views.figures._heads_plane import (
    MAP,
    draw_by_measures,
    draw_legend,
    draw_map,
    shows_candidates,
)
from headscope.views.figures._options import FigurePlan
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._words import counted


def draw_scatter(plan: FigurePlan) -> Sheet:
    """Draw a dot for each head in the colour of its label, with a ring around chosen heads."""
    evidence = plan.evidence
    if evidence is None:
        raise FigureError("View 'scatter' needs evidence=")
    sheet = Sheet(plan.width, plan.style)
    y = heading(
        sheet,
        plan,
        f"{counted(len(evidence.cells), 'head')} over {counted(evidence.texts, 'text')}",
    )
    chosen = {(plan.layer.layer, head) for head in plan.heads} if plan.chosen else set()
    if plan.axes[0] == MAP:
        y = draw_map(sheet, evidence, y, chosen=chosen)
    else:
        y = draw_by_measures(sheet, evidence, plan.axes, y, chosen=chosen)
    y = draw_legend(sheet, evidence, y, (), plain=plan.style.faint)
    notes = (
        ["seen on one text only, which is no evidence for others"] if evidence.texts == 1 else []
    )
    if shows_candidates(evidence):
        notes.append("candidates only: too few texts to tell")
    rings = ["rings: the chosen heads"] if chosen else []
    closing(sheet, plan, y, [*notes, *rings])
    return sheet
