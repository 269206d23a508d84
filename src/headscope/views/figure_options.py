"""The options of figures, each declared once; those that a page has too are in
`headscope.views.options`.

`headscope.figure` and ``headscope figure`` take them from here. This module imports nothing that
takes time: the command line reads it for its help.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from headscope.views.options import Default, DrawnOptions, MeanOptions
from headscope.views.view_table import FigureView

if TYPE_CHECKING:
    from headscope.patterns import Heads
    from headscope.record import Record

FigureTheme = Literal["light", "dark"]
Neurons = Literal["model", "ranked", "pairs"]


class FigurePlaces(TypedDict, total=False):
    """What part of a record is drawn."""

    view: FigureView
    """``"head"`` (default), ``"overview"``, ``"model"``, ``"matrix"``, ``"neuron"``, ``"text"``,
    ``"texts"``, ``"input"``, ``"pair"``, ``"scatter"`` or ``"compare"``, which needs ``tray``.
    """
    stack: str
    """Stack that is drawn; by default the first one."""
    layer: int
    """Layer that is drawn; by default the first one. Views ``overview``, ``model`` and ``pair``
    draw a frame around it, and ``scatter`` rings around its heads.
    """
    heads: Sequence[int]
    """Heads that are drawn; by default all. Where a view shows one number for several heads it is
    their mean.
    """
    head: int
    """One head, the same as ``heads`` with one number; in view ``neuron`` by default head 0."""
    layers: Sequence[int]
    """Layers in the grid of views ``overview``, ``model`` and ``pair``; by default all."""
    query: int | str
    """Query token: its position from 0, or its word; views ``neuron`` and ``pair`` need it."""
    key: int | str
    """Key token, likewise; view ``pair`` needs it."""
    mean_layers: Sequence[int]
    """Layers of which the mean is drawn, together with ``layer`` where it is given; by default
    one layer alone."""
    mean_heads: Annotated[bool, Default(False)]
    """Whether the mean of the chosen heads is drawn, and not each of them."""


class FigureLook(TypedDict, total=False):
    """What single views have."""

    top_percent: Annotated[int | None, Default(None, between=(1, 100))]
    """View ``head``: percent of each row's attention that is drawn, the strongest first, 1 to 100;
    by default as much as can be printed.
    """
    neurons: Neurons
    """View ``neuron``: ``"model"`` (default) as the model has them, ``"ranked"`` by what they add
    to the score margin of the attended keys, or ``"pairs"`` as rotary positions turn them, fastest
    first.
    """
    x: str
    """View ``scatter``: what heads stand apart by from left to right: a measure such as
    ``"distance"`` (default), a pattern, ``"class vertical"`` and so on, ``"layer"``; or ``"map"``
    for the map of like heads.
    """
    y: str
    """The same from bottom to top; ``"entropy"`` by default."""
    tray: Sequence[str | Mapping[str, Any]] | Literal["kinds"]
    """Up to six pictures in a row: lines such as ``"2-0"`` or ``"7-3 query=store view=matrix"``, or
    dicts of options, of which ``"record"`` may be another `Record` or the name of one; or
    ``"kinds"`` for the clearest head of each kind on this text, with the name and colour of its
    kind.
    """
    labels: Sequence[Any]
    """View ``texts``: what each text is, the first of the record itself; a column next to them."""
    predictions: Sequence[Any]
    """View ``texts``: the prediction of the model for each; in bold with ≠ where it is not the
    label."""


class ResultOptions(TypedDict, total=False):
    """Options of figures of results, which those of records have too."""

    theme: FigureTheme
    """``"light"`` (default) or ``"dark"``."""
    title: str
    """Title over the figure; by default what is shown. ``""`` for none, as where a caption stands
    below it.
    """
    width: Annotated[float, Default(None, between=(40, 1000))]
    """Width in millimetres, 40 to 1000; by default 85, one column of most journals; 174, two,
    for a tray, and 180 for a result.
    """
    font_size: Annotated[float, Default(8, between=(4, 24))]
    """Size of text in points, 4 to 24; by default 8. Tokens are smaller where many stand close,
    down to 4.
    """
    font: str
    """Font family that is tried first; by default Arial, or what the machine has like it."""
    colour: Annotated[bool, Default(True, off="--grey")]
    """Whether there are colours (default), or greys only."""


class WrittenFigureOptions(
    FigurePlaces, MeanOptions, DrawnOptions, FigureLook, ResultOptions, total=False
):
    """All options of a figure that can be written in a line: those of a command."""


class FigureOptions(WrittenFigureOptions, total=False):
    """Options of `figure`; those that the page has too mean the same there."""

    quantities: Mapping[str, Any]
    """More numbers to show in place of weights, as for a view: by name a list of one array for each
    layer, or ``{(layer, head): number}``.
    """
    evidence: Heads
    """View ``scatter`` needs it: what `headscope.heads` found."""
    beside: Sequence[Record] | Mapping[str, Record]
    """Further records, which a tray calls ``b``, ``c`` ..., or as a mapping names them: ``"2-0
    record=b"``. View ``texts`` shows all of them below each other.
    """
