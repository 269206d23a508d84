"""The views, each declared once: its parts and options, in the browser and in print.

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
    """Facts about a view.

    Args:
        mask: whether it shows one layer, of which some tokens may be left out (``filter``,
            ``hide_special``, ``sinks``) and which may be the mean of several.
        picture: whether it is one picture of some heads, which a tray can hold.
        wide: whether it takes the whole width, because its numbers are in it.
        alone: whether nothing is shown next to it, not even the map of all heads.
        tokens: whether it shows tokens, so that generated text and gold links are shown next to it.
        figure: options of its figure, besides those that every figure has.
        needs: options without which it has no figure.
    """

    mask: bool = False
    picture: bool = False
    wide: bool = False
    alone: bool = False
    tokens: bool = False
    figure: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


HEADS = ("heads", "head")
TOKENS = ("query", "key")
QUANTITIES = ("quantity", "quantities")
MASK = ("filter", "hide_special")
WORDS, MEANS = ("words",), ("words", "mean_layers", "mean_heads")

DRAWN = (*HEADS, *TOKENS, *MEANS, *QUANTITIES, *MASK, "sinks")

PrintedView = Literal["model", "pair", "scatter", "texts", "input"]
"""Views that exist only in print."""
FigureView = ViewName | PrintedView
VIEWS: Mapping[FigureView, ViewFacts] = {
    "overview": ViewFacts(figure=(*HEADS, "layers", *WORDS, *MASK)),
    "head": ViewFacts(mask=True, picture=True, tokens=True, figure=(*DRAWN, "top_percent")),
    "matrix": ViewFacts(
        mask=True, picture=True, tokens=True, figure=(*HEADS, *MEANS, *QUANTITIES, *MASK, "sinks")
    ),
    "text": ViewFacts(mask=True, picture=True, tokens=True, figure=DRAWN),
    "neuron": ViewFacts(
        picture=True,
        wide=True,
        tokens=True,
        figure=("head", "query", *WORDS, "neurons"),
        needs=("query",),
    ),
    "compare": ViewFacts(
        wide=True, alone=True, figure=("tray", "beside", "words", "quantities"), needs=("tray",)
    ),
    "model": ViewFacts(figure=(*HEADS, "layers", *WORDS, "mean_heads", *QUANTITIES, *MASK)),
    "pair": ViewFacts(
        figure=(*HEADS, "layers", *TOKENS, *WORDS, "mean_heads", *QUANTITIES),
        needs=("query", "key"),
    ),
    "scatter": ViewFacts(figure=(*HEADS, "evidence", "x", "y")),
    "texts": ViewFacts(figure=(*DRAWN, "beside", "labels", "predictions")),
    "input": ViewFacts(),
}
# A view declared in one of the two places only would have no facts, or no name.
assert tuple(VIEWS) == (*get_args(ViewName), *get_args(PrintedView)), "one list of views"


def views_with(fact: str) -> tuple[FigureView, ...]:
    """The views with a fact, such as ``"mask"``."""
    return tuple(name for name, facts in VIEWS.items() if getattr(facts, fact))
