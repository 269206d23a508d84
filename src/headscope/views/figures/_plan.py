"""What a figure of a record draws: its options, checked, and its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from headscope.errors import FigureError, check_option_names
from headscope.patterns import KINDS, Heads, head_numbers, text_facts
from headscope.record import Generation, Layer, Record, Stack, Tokens
from headscope.views._checked_options import check_head, check_numbers, listed_numbers
from headscope.views._token_words import token_positions
from headscope.views.figure_options import FigureOptions, WrittenFigureOptions
from headscope.views.figures import _numbers
from headscope.views.figures._style import Style, head_greys, percent, style_of
from headscope.views.figures.fonts import in_quotes, installed, readable
from headscope.views.options import declared
from headscope.views.view_table import VIEWS, FigureView

WIDTH, WIDTHS = 85.0, {"texts": 174.0, "compare": 174.0}
"""Millimetres: one column of most journals, or two."""
NEEDS = (
    ("shows one", "give its position with {name}= (--{name}), from 0"),
    ("shows a", 'give tray=["2-0", "7-3"] (--tray 2-0 7-3)'),
)
EVERY = ("view", "stack", "layer", "theme", "title", "width", "font_size", "font", "colour")
OF_ALL_LAYERS = ("overview", "model", "pair")
"""Views that show more than the chosen layer."""
OF_ONE_LAYER = ("head", "matrix", "text")
"""Views of all queries of one layer, which show what the model wrote."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FigurePlan:
    """A checked plan of what is drawn; the code that draws does not check again.

    Args:
        record: the record.
        view: the view.
        options: of the view, as they were given.
        stack: a stack of the record.
        layer: a layer of the stack.
        layers: the layers of a grid.
        heads: numbers of the heads, ascending.
        query: position of the chosen query token, if any.
        key: position of the chosen key token, if any.
        shown: the quantity that is drawn.
        from_: axes query; True for queries that take part.
        to: axes key; True for keys that take part.
        hiding: notes about tokens that take no part.
        without: positions of keys that are left out, the rest of each row renormalised.
        style: colours and type.
        width: width in millimetres.
    """

    record: Record
    view: FigureView
    options: Mapping[str, Any]
    stack: Stack
    layer: Layer
    layers: tuple[Layer, ...]
    heads: tuple[int, ...]
    query: int | None
    key: int | None
    shown: _numbers.DrawnQuantity
    from_: Bool[np.ndarray, " query"]
    to: Bool[np.ndarray, " key"]
    hiding: tuple[str, ...]
    without: tuple[int, ...]
    style: Style
    width: float

    @property
    def sides(self) -> tuple[tuple[Tokens, list[int]], ...]:
        """Queries and keys, and the positions of those that take part."""
        both = ((self.stack.query, self.from_), (self.stack.key, self.to))
        return tuple((tokens, np.flatnonzero(part).tolist()) for tokens, part in both)

    @property
    def chosen(self) -> bool:
        """Whether layer or heads were chosen, so that a grid frames them."""
        return bool({"layer", "heads", "head"} & set(self.options))

    @cached_property
    def kinds(self) -> dict[int, str]:
        """What each head that is drawn one by one does on this text, told of tokens also where
        words are drawn; empty for a mean.
        """
        layer, stack = self.layer.layer, self.record[self.stack.name]
        if self.shown.whole or len(self.shown.layers[layer]) > 1:
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
        kinds, style, colours = self.kinds, self.style, {}
        if len(kinds) > 1 and not style.colour:
            return dict(zip(kinds, head_greys(len(kinds), dark=style.dark), strict=True))
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
        if self.shown.whole and not self.shown.heads:
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
        numbers = sorted(each.layer for each in self.shown.layers[self.layer.layer])
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
        if self.shown.units is None:
            return generation.prompt if tokens == whole else None
        words = whole.whole_words
        if tokens.labels != words.names:
            return None
        return next(at for at, run in enumerate(words.tokens) if generation.prompt in run)

    @property
    def generation(self) -> Generation | None:
        """The generation of the query tokens that are drawn; None where they were not generated."""
        if self.view not in OF_ONE_LAYER or self.first_written(self.stack.query) is None:
            return None
        return self.record.generation


def plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The given options: without those that are None, and with NumPy's numbers as Python's."""
    given = {}
    for name, value in options.items():
        if value is not None or name not in FigureOptions.__annotations__:
            given[name] = value.tolist() if hasattr(value, "tolist") else value
    return given


def parse_options(record: Record, options: Mapping[str, Any]) -> FigurePlan:
    """The plan of a figure.

    Raises:
        FigureError: an unknown option or value, or that the view does not have.
        RecordError: a stack, layer or head that the record does not have.
    """
    view = check_names(options)
    stack = record[options["stack"]] if "stack" in options else next(iter(record.stacks.values()))
    number, heads, grid, layers = _chosen(stack, view, options)
    together = heads * bool(options.get("mean_heads"))
    shown = _numbers.shown_quantity(record, stack, options, layers=layers, heads=together)
    query = _position("query", options.get("query"), stack.query, shown)
    key = _position("key", options.get("key"), stack.key, shown)
    _check_evidence(view, stack, options.get("evidence"))
    _check_pairs(layers[number][0], options.get("neurons"))
    if shown.units:
        drawn = layers if "layers" in VIEWS[view].figure else ()
        stack = stack.words(sorted({*(layer.layer for layer in layers[number]), *drawn}))
    layer = _numbers.mean_layer([stack.layer(each.layer) for each in layers[number]])
    from_, to, hiding = _parts(stack, options)
    without = ()
    if not options.get("sinks", True):
        sinks = _numbers.find_sinks(layer, heads)
        without, hiding = tuple(sinks), [*hiding, _without_words(stack, sinks, shown.name)]
        to &= ~np.isin(np.arange(len(to)), without)
    if not to.any():
        raise FigureError("All keys are left out; drop hide_special= and sinks=")
    return FigurePlan(
        record=record,
        view=view,
        options=options,
        stack=stack,
        layer=layer,
        layers=tuple(each for each in stack.layers if each.layer in grid),
        heads=heads,
        query=query,
        key=key,
        shown=shown,
        from_=from_,
        to=to,
        hiding=tuple(hiding),
        without=without,
        style=style_of(options),
        width=float(options.get("width", WIDTHS.get(view, WIDTH))),
    )


def _chosen(
    stack: Stack, view: str, options: Mapping[str, Any]
) -> tuple[int, tuple[int, ...], list[int], dict[int, tuple[Layer, ...]]]:
    """The number of the layer, the heads, the layers of a grid, and for each layer that may be
    drawn those whose mean it is.
    """
    known = [layer.layer for layer in stack]
    means = _layers("mean_layers", options.get("mean_layers"), known)
    number = options.get("layer", min(means, default=known[0]))
    heads = _heads(stack.layer(number), view, options)
    if means and not {*means} - {number} and len(known) > 1:
        raise FigureError(f"mean_layers={means} names no layer beside layer {number}; leave it out")
    if options.get("mean_heads") and len(heads) == 1 and {"head", "heads"} & set(options):
        raise FigureError(f"mean_heads=True is the mean of several heads, not of head {heads[0]}")
    grid = sorted(set(_layers("layers", options.get("layers", True), known)))
    if not grid:
        raise FigureError("layers=[]: choose at least one layer, or leave layers= out for all")
    layers: dict[int, tuple[Layer, ...]] = {each: (stack.layer(each),) for each in grid}
    layers[number] = tuple(map(stack.layer, (number, *sorted({*means} - {number}))))
    return number, heads, grid, layers


def check_values(options: Mapping[str, Any]) -> None:
    """Check the type, the choices and the limits of each value, and the font.

    Raises:
        FigureError: naming what is wanted.
    """
    for name, option in declared(WrittenFigureOptions).items():
        if name in options:
            option.check(options[name], FigureError)
    font = options.get("font")
    if font is not None and installed(font) is None:
        raise FigureError(f"font={font!r}: matplotlib finds no such font here; install it")


def check_names(options: Mapping[str, Any]) -> FigureView:
    """The view, where its options are those that it has.

    Raises:
        FigureError: a view or an unknown option, or that the view does not have.
    """
    view = options.get("view", "compare" if "tray" in options else "head")
    check_values({"view": view})
    # Each picture of a row has a stack and a layer of its own.
    everywhere = [name for name in EVERY if view != "compare" or name not in ("stack", "layer")]
    known = (*everywhere, *VIEWS[view].figure)
    check_option_names("figure", options, FigureOptions.__annotations__, FigureError)
    check_option_names(f"View {view!r}", options, known, FigureError)
    for name in VIEWS[view].needs:
        if name not in options:
            shows, give = NEEDS[name == "tray"]
            raise FigureError(f"View {view!r} {shows} {name}; {give.format(name=name)}")
    check_values(options)
    return view


def _check_pairs(layer: Layer, neurons: Any) -> None:
    if neurons == "pairs" and layer.rotary is None:
        raise FigureError(f"neurons='pairs': layer {layer.layer} is not rotary; choose 'ranked'")


def _check_evidence(view: str, stack: Stack, evidence: Any) -> None:
    if view != "scatter":
        return
    if not isinstance(evidence, Heads):
        given = "nothing" if evidence is None else f"a {type(evidence).__name__}"
        raise FigureError(
            f"View 'scatter' shows what headscope.heads found, and {given} was given; give "
            "evidence=hs.heads(records) (--evidence, --evidence-of)"
        )
    for layer, head in sorted({*evidence.cells} - {*stack.held_heads}):
        raise FigureError(f"The evidence has a head {layer}-{head}, which the record has not")


def _heads(layer: Layer, view: str, options: Mapping[str, Any]) -> tuple[int, ...]:
    check_head(options)
    usual = layer.head_numbers[:1] if view == "neuron" else layer.head_numbers
    wanted = listed_numbers(options.get("head", options.get("heads", usual)), layer.head_numbers)
    check_numbers("heads", wanted, range(layer.heads), f"layer {layer.layer} has heads")
    if layer.held_heads is not None:
        layer.held_heads.indices(wanted, f"Layer {layer.layer}")
    return tuple(sorted(set(map(int, wanted))))


def _without_words(stack: Stack, sinks: Mapping[int, float], quantity: str) -> str:
    """A note about the keys that are left out because they take most of the attention."""
    if not sinks:
        return "no key takes most of the attention, so none is left out"
    part = percent(sum(sinks.values()))
    names = ", ".join(in_quotes(readable(stack.key.labels[key])) for key in sinks)
    if quantity != "weight":
        return f"without {names}, which take {part} of the attention"
    return f"without {names}: {part} of the attention removed, the rest renormalised"


def _layers(name: str, given: Any, known: Sequence[int]) -> list[int]:
    """Numbers of layers, as they were given."""
    numbers = listed_numbers(given, known)
    if not all(isinstance(number, int | np.integer) for number in numbers):
        raise FigureError(f"{name}={numbers}: give numbers, such as {name}=[0, 1], or True")
    return numbers


def _position(name: str, wanted: Any, tokens: Tokens, shown: _numbers.DrawnQuantity) -> int | None:
    """Where a token, given by its position or word, stands in what is drawn."""
    side = ("query", "key").index(name)
    if wanted is None:
        return None
    if isinstance(wanted, str):
        words = tokens.whole_words
        positions = token_positions(name, wanted, tokens.pieces, tokens.labels, words=words)
        if len({shown.position(side, each) for each in positions}) > 1:
            raise FigureError(
                f"{name}={wanted!r} is the tokens {positions}; give the position of one of them"
            )
        wanted = positions[0]
    is_number = isinstance(wanted, int | np.integer) and not isinstance(wanted, bool)
    if not is_number or not 0 <= wanted < len(tokens):
        which = "any token of the word" if shown.units else "a token"
        most = len(tokens) - 1
        raise FigureError(f"{name}={wanted!r}: give the position of {which}, 0 to {most}")
    return shown.position(side, int(wanted))


def _parts(stack: Stack, options: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """The queries and keys that take part, and notes about the others."""
    wanted = options.get("filter", "all")
    from_, to = np.ones(len(stack.query), bool), np.ones(len(stack.key), bool)
    hiding = []
    if wanted != "all":
        if {*stack.query.segments} != {0, 1} or {*stack.key.segments} != {0, 1}:
            raise FigureError(
                f"filter={wanted!r}: {stack.name!r} is not of a pair of texts; drop it"
            )
        from_ &= np.array(stack.query.segments) == "ab".index(wanted[0])
        to &= np.array(stack.key.segments) == "ab".index(wanted[1])
        hiding.append(f"only from text {wanted[0].upper()} to text {wanted[1].upper()}")
    if options.get("hide_special", False):
        from_ &= ~np.array(stack.query.special, bool)
        to &= ~np.array(stack.key.special, bool)
        hiding.append("without special tokens")
    if not from_.any() or not to.any():
        raise FigureError("All tokens are special ones; drop hide_special=")
    return from_, to, hiding
