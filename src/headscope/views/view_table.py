"""The views, each declared once: what it has, in the browser and in print.

The toolbar and the frame of the browser (through the generated contract), the pictures that a tray
may hold and the options of `headscope.figure` follow this table. The name itself is one of
`headscope.views.options.ViewName`. What draws a view is in ``frontend/src/views`` and, for print,
in ``views/figures``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from headscope.views.options import ViewName


@dataclass(frozen=True, kw_only=True)
class ViewFacts:
    """What a view has.

    Args:
        mask: one layer, of which some tokens may be left out (``filter``, ``hide_special``,
            ``sinks``) and which may be the mean of several.
        picture: one picture of some heads, as a tray holds them.
        wide: the whole width: its numbers are in it.
        alone: nothing beside it, not even the map of all heads.
        tokens: tokens of the text, so that what was written and gold links stand beside it.
        evidence: nothing to show without evidence.
        figure: the options of a figure of it, beside those that every figure has.
        needs: those without which there is no figure of it.
    """

    mask: bool = False
    picture: bool = False
    wide: bool = False
    alone: bool = False
    tokens: bool = False
    evidence: bool = False
    figure: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


HEADS = ("heads", "head")
TOKENS = ("query", "key")
QUANTITIES = ("quantity", "quantities")
MASK = ("filter", "hide_special")

PrintedView = Literal["texts", "input"]
"""Views that are drawn for print alone."""
FigureView = ViewName | PrintedView
VIEWS: Mapping[FigureView, ViewFacts] = {
    "overview": ViewFacts(figure=(*HEADS, "layers", *MASK)),
    "head": ViewFacts(
        mask=True,
        picture=True,
        tokens=True,
        figure=(*HEADS, *TOKENS, *QUANTITIES, *MASK, "sinks", "top_percent"),
    ),
    "model": ViewFacts(wide=True, alone=True, figure=(*HEADS, "layers", *QUANTITIES, *MASK)),
    "matrix": ViewFacts(
        mask=True, picture=True, tokens=True, figure=(*HEADS, *QUANTITIES, *MASK, "sinks")
    ),
    "text": ViewFacts(
        mask=True, picture=True, tokens=True, figure=(*HEADS, *TOKENS, *QUANTITIES, *MASK, "sinks")
    ),
    "neuron": ViewFacts(
        picture=True,
        wide=True,
        tokens=True,
        figure=("head", "query", "neurons"),
        needs=("query",),
    ),
    "pair": ViewFacts(
        tokens=True, figure=(*HEADS, "layers", *TOKENS, *QUANTITIES), needs=("query", "key")
    ),
    "scatter": ViewFacts(wide=True, evidence=True, figure=(*HEADS, "evidence", "x", "y")),
    "compare": ViewFacts(
        wide=True, alone=True, figure=("tray", "beside", "quantities"), needs=("tray",)
    ),
    "texts": ViewFacts(
        figure=(
            *HEADS,
            *TOKENS,
            *QUANTITIES,
            *MASK,
            "sinks",
            "beside",
            "labels",
            "predictions",
        )
    ),
    "input": ViewFacts(),
}
assert tuple(VIEWS) == (*get_args(ViewName), *get_args(PrintedView)), "one list of views"


def views_with(fact: str) -> tuple[FigureView, ...]:
    """The views that have something, such as ``"mask"``."""
    return tuple(name for name, facts in VIEWS.items() if getattr(facts, fact))
