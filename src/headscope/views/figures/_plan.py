"""What a figure of a record draws, checked, and its words."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from headscope.patterns import KINDS, Heads, head_numbers, text_facts
from headscope.record import Generation, Layer, Record, Stack, Tokens
from headscope.views.figure_options import Neurons
from headscope.views.figures._numbers import DrawnQuantity
from headscope.views.figures._style import Style, head_greys
from headscope.views.figures.fonts import in_quotes, readable
from headscope.views.view_table import FigureView

OF_ALL_LAYERS = ("overview", "model", "pair")
"""Views that show more than the chosen layer."""
OF_ONE_LAYER = ("head", "matrix", "text")
"""Views of all queries of one layer, which show what the model wrote."""


@dataclass(frozen=True, eq=False)
class Panel:
    """A picture in a row of pictures, on a sheet that all of them share.

    Args:
        matplotlib: the figure of the row.
        letter: the letter of the picture.
        narrow: whether there is room for little more than the picture.
        titles: height of the highest title of the row, in millimetres.
        notes: takes the notes of the picture, which the row writes once for all pictures.
    """

    matplotlib: Any
    letter: str
    narrow: bool = False
    titles: float = 0.0
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, eq=False)
class FigurePlan:
    """A checked plan of what is drawn; the code that draws does not check again.

    Args:
        record: the record.
        view: the view.
        stack: a stack of the record.
        layer: a layer of the stack.
        layers: the layers of a grid.
        heads: numbers of the heads, ascending.
        chosen: True where layer or heads were chosen, so that a grid frames them.
        query: position of the chosen query token, if any.
        key: position of the chosen key token, if any.
        shown: the quantity that is drawn.
        from_: axes query; True for queries that take part.
        to: axes key; True for keys that take part.
        hiding: notes about tokens that take no part.
        without: positions of keys that are left out, the rest of each row renormalised.
        neurons: order of the features in view neuron.
        share: percent of each row's mass; None for as much as can be printed.
        evidence: evidence about the heads, for view scatter.
        axes: the axes of view scatter.
        title: the title; None for a description of what is shown, ``""`` for none.
        width: width in millimetres.
        style: colours and type.
        panel: the part of a row of pictures; None for a figure of its own.
    """

    record: Record
    view: FigureView
    stack: Stack
    layer: Layer
    layers: tuple[Layer, ...]
    heads: tuple[int, ...]
    chosen: bool
    query: int | None
    key: int | None
    shown: DrawnQuantity
    from_: Bool[np.ndarray, " query"]
    to: Bool[np.ndarray, " key"]
    hiding: tuple[str, ...]
    without: tuple[int, ...]
    neurons: Neurons
    share: int | None
    evidence: Heads | None
    axes: tuple[str, str]
    title: str | None
    width: float
    style: Style
    panel: Panel | None = None

    @cached_property
    def kinds(self) -> dict[int, str]:
        """What each head that is drawn one by one does on this text, told of tokens also where
        words are drawn; empty for a mean.
        """
        layer, stack = self.layer.layer, self.record[self.stack.name]
        if self.shown.whole or len(self.shown.combined.layers[layer]) > 1:
            return dict.fromkeys(self.maps, "")
        facts, of = text_facts(stack), stack.layer(layer)
        kinds = {}
        for head in self.heads:
            numbers = head_numbers(of.weights_of(head), of.visible, facts)
            kinds[head] = KINDS[int(numbers["kind"])]
        return kinds

    @property
    def colours(self) -> dict[int, str]:
        """Colour of each head that is drawn: the hue of what it does, in a shade of its own where
        several do it; grey for the mean of heads or layers, which has no kind.
        """
        kinds, style = self.kinds, self.style
        if len(kinds) > 1 and not style.colour:
            return dict(zip(kinds, head_greys(len(kinds), dark=style.dark), strict=True))
        colours = {}
        for kind in dict.fromkeys(kinds.values()):
            heads = [head for head, of in kinds.items() if of == kind]
            colours |= zip(heads, style.shades(kind, len(heads)), strict=True)
        return colours

    @property
    def kind(self) -> str:
        """The kind of the head that is drawn alone; empty for several, and for a mean."""
        return self.kinds[self.heads[0]] if len(self.heads) == 1 else ""

    @property
    def colour(self) -> str:
        """The colour of the head, or grey for the mean of several."""
        return self.colours[self.maps[0]] if len(self.heads) == 1 else self.style.muted

    @property
    def focused(self) -> bool:
        """Whether one query or one key is chosen."""
        return self.query is not None or self.key is not None

    @property
    def narrow(self) -> bool:
        """Whether there is room for little more than the picture."""
        return self.panel is not None and self.panel.narrow

    @property
    def maps(self) -> tuple[int, ...]:
        """The heads that are drawn one by one; the first head for a quantity of all together."""
        return self.heads[:1] if self.shown.whole else self.heads

    @property
    def where(self) -> str:
        """``"Layer 2 · head 0"``, ``"Cross · layer 2 · 12 heads"``; in view neuron the query
        too.
        """
        text = f"{self.stack_words}{self.layers_in_words} · {self.heads_in_words()}"
        if self.view == "neuron":
            text += f" · query {in_quotes(readable(self.label('query')))}"
        return text[0].upper() + text[1:]

    def label(self, side: str) -> str:
        """The chosen query or key."""
        return getattr(self.stack, side).labels[getattr(self, side) or 0]

    @property
    def stack_words(self) -> str:
        """``"Cross · "``; empty for self-attention."""
        return "" if self.stack.name == "self" else f"{self.stack.name.capitalize()} · "

    def heads_in_words(self, *, mean: bool = False) -> str:
        """``"head 0"``, ``"heads 0, 3"`` or ``"12 heads"``; with ``mean``, ``"mean of 12
        heads"``.
        """
        if self.shown.whole and not self.shown.combined.heads:
            return "all heads together"
        if len(self.heads) == 1:
            return f"head {self.heads[0]}"
        few = len(self.heads) < self.layer.heads and len(self.heads) <= 6
        words = f"heads {', '.join(map(str, self.heads))}" if few else f"{len(self.heads)} heads"
        return f"mean of {words}" if mean or self.shown.whole else words

    @property
    def of_heads(self) -> str:
        """The heads behind the word "of"."""
        words = self.heads_in_words()
        return f"the {words}" if words.startswith("mean") else words

    @property
    def layers_in_words(self) -> str:
        """``"layer 2"``, or ``"mean of layers 2, 3, 4"``."""
        numbers = sorted(each.layer for each in self.shown.combined.layers[self.layer.layer])
        several = f"mean of layers {', '.join(map(str, numbers))}"
        return several if len(numbers) > 1 else f"layer {numbers[0]}"

    @property
    def not_kept(self) -> Float[np.ndarray, " query"]:
        """The share of each query's weight that was cut before it came here, mean over heads."""
        sums = [self.layer.weights_of(head).sum(axis=-1, dtype=np.float64) for head in self.heads]
        return np.where(self.layer.dead, 0.0, np.clip(1 - np.mean(sums, axis=0), 0.0, 1.0))

    def first_written(self, tokens: Tokens) -> int | None:
        """Position of the first generated token among queries or keys; None where all were
        given.
        """
        generation = self.record.generation
        if generation is None:
            return None
        whole = self.record[generation.stack].query
        if generation.prompt >= len(whole):
            return None
        if self.shown.combined.words is None:
            return generation.prompt if tokens == whole else None
        words = whole.whole_words
        if tokens.labels != words.names:
            return None
        return next(at for at, run in enumerate(words.tokens) if generation.prompt in run)

    @property
    def generation(self) -> Generation | None:
        """The generation of the query tokens that are drawn; None where they were not generated,
        and for a picture in a row.
        """
        if self.panel is not None or self.view not in OF_ONE_LAYER:
            return None
        return None if self.first_written(self.stack.query) is None else self.record.generation
