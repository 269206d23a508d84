"""The options of a figure of a record, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headscope.errors import FigureError, PageError
from headscope.patterns import Heads
from headscope.record import Layer, Record, Stack, Tokens
from headscope.views._checked_options import listed_numbers
from headscope.views._token_words import token_positions
from headscope.views.figure_options import FigureOptions, Neurons, WrittenFigureOptions
from headscope.views.figures._numbers import Combined, find_sinks, mean_layer, shown_quantity
from headscope.views.figures._plan import FigurePlan
from headscope.views.figures._style import Style, percent, style_for
from headscope.views.figures.fonts import in_quotes, installed, readable
from headscope.views.options import declared
from headscope.views.view_table import VIEWS, FigureView

WIDTH = 85.0
"""Millimetres: one column of most journals."""


KNOWN = tuple(FigureOptions.__annotations__)
NEEDS = (
    ("shows one", "give its position with {name}= (--{name}), from 0"),
    ("shows a", 'give tray=["2-0", "7-3"] (--tray 2-0 7-3)'),
)
EVERY = ("view", "stack", "layer", "theme", "title", "width", "font_size", "font", "colour")


def plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The given options: without those that are None, and with NumPy's numbers as Python's."""
    given = {}
    for name, value in options.items():
        if value is not None or name not in KNOWN:
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
    number, heads, combined = _combined(stack, view, options)
    layers = combined.layers
    wanted, given = str(options.get("quantity", "weight")), options.get("quantities")
    shown = shown_quantity(record, stack, wanted, given, combined=combined)
    query = _position("query", options.get("query"), stack.query, combined)
    key = _position("key", options.get("key"), stack.key, combined)
    if combined.words:
        drawn = layers if "layers" in VIEWS[view].figure else ()
        stack = stack.words(sorted({*(layer.layer for layer in layers[number]), *drawn}))
    layer = mean_layer([stack.layer(each.layer) for each in layers[number]])
    from_, to, hiding = _parts(stack, options)
    without, told = _without(stack, layer, heads, options)
    to = to & ~np.isin(np.arange(len(to)), without)
    if not to.any():
        raise FigureError("All keys are left out; drop hide_special= and sinks=")
    share = options.get("top_percent")
    return FigurePlan(
        record=record,
        view=view,
        stack=stack,
        layer=layer,
        layers=_layers(stack, options.get("layers")),
        heads=heads,
        chosen=bool({"layer", "heads", "head"} & set(options)),
        query=query,
        key=key,
        shown=shown,
        from_=from_,
        to=to,
        hiding=(*hiding, *told),
        without=without,
        neurons=_neurons(layers[number][0], options),
        share=None if share is None else int(share),
        evidence=_evidence(view, stack, options),
        axes=(options.get("x", "distance"), options.get("y", "entropy")),
        title=options.get("title"),
        width=float(options.get("width", WIDTH)),
        style=parse_style(options),
    )


def _combined(
    stack: Stack, view: str, options: Mapping[str, Any]
) -> tuple[int, tuple[int, ...], Combined]:
    """The number of the layer, the heads, and what the numbers of each layer that may be drawn are
    put together from.
    """
    known = [layer.layer for layer in stack]
    means = listed_numbers(options.get("mean_layers"), known)
    _check_layers("mean_layers", means)
    number = options.get("layer", min(means, default=known[0]))
    heads, chosen = _heads(stack.layer(number), view, options), {"head", "heads"} & set(options)
    if means and not {*means} - {number} and len(known) > 1:
        raise FigureError(f"mean_layers={means} names no layer beside layer {number}; leave it out")
    together = heads if options.get("mean_heads") else ()
    if len(together) == 1 and chosen:
        raise FigureError(
            f"mean_heads=True takes the mean of several heads, not of head {heads[0]}"
        )
    grid = _layers(stack, options.get("layers"))
    layers: dict[int, tuple[Layer, ...]] = {each.layer: (each,) for each in grid}
    layers[number] = tuple(map(stack.layer, (number, *sorted({*means} - {number}))))
    words = (stack.query.whole_words, stack.key.whole_words) if options.get("words") else None
    return number, heads, Combined(layers=layers, words=words, heads=together)


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
        raise FigureError(
            f"font={font!r}: matplotlib finds no such font on this machine; install it or choose "
            "another"
        )


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
    for name in options:
        if name not in KNOWN:
            raise FigureError(f"figure has no option {name!r}; there are {', '.join(KNOWN)}")
        if name not in known:
            raise FigureError(f"View {view!r} has no option {name!r}; it has {', '.join(known)}")
    for name in VIEWS[view].needs:
        if name not in options:
            shows, give = NEEDS[name == "tray"]
            raise FigureError(f"View {view!r} {shows} {name}; {give.format(name=name)}")
    check_values(options)
    return view


def _evidence(view: str, stack: Stack, options: Mapping[str, Any]) -> Heads | None:
    if view != "scatter":
        return None
    evidence = options.get("evidence")
    if not isinstance(evidence, Heads):
        given = "nothing" if evidence is None else f"a {type(evidence).__name__}"
        raise FigureError(
            f"View 'scatter' shows what headscope.heads found, and {given} was given; give "
            "evidence=hs.heads(records) (--evidence, --evidence-of)"
        )
    there = set(stack.held_heads)
    if not set(evidence.cells) <= there:
        layer, head = next(cell for cell in evidence.cells if cell not in there)
        raise FigureError(
            f"The evidence has a head {layer}-{head}, and the record has none; give that of this "
            "model"
        )
    return evidence


def parse_style(options: Mapping[str, Any]) -> Style:
    """Colours and type."""
    return style_for(
        dark=options.get("theme") == "dark",
        colour=options.get("colour", True),
        size=float(options.get("font_size", 8)),
        font=options.get("font"),
    )


def _heads(layer: Layer, view: str, options: Mapping[str, Any]) -> tuple[int, ...]:
    if "head" in options and "heads" in options:
        raise FigureError(
            f"head={options['head']} and heads={list(options['heads'])} were both given; give one "
            "of them"
        )
    usual = layer.head_numbers[:1] if view == "neuron" else layer.head_numbers
    wanted = listed_numbers(options.get("heads", usual), layer.head_numbers)
    if "head" in options:
        wanted = listed_numbers(options["head"], layer.head_numbers)
    there = range(layer.heads)
    known = [isinstance(head, int | np.integer) and int(head) in there for head in wanted]
    if not known or not all(known):
        raise FigureError(
            f"heads={wanted}: layer {layer.layer} has heads 0 to {layer.heads - 1}; choose "
            "at least one"
        )
    if layer.held_heads is not None:
        layer.held_heads.indices(wanted, f"Layer {layer.layer}")
    return tuple(sorted(set(map(int, wanted))))


def _without(
    stack: Stack, layer: Layer, heads: tuple[int, ...], options: Mapping[str, Any]
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The keys that are left out because they take most of the attention, and a note about it."""
    if options.get("sinks", True):
        return (), ()
    sinks = find_sinks(layer, heads)
    if not sinks:
        return (), ("no key takes most of the attention, so none is left out",)
    part = percent(sum(sinks.values()))
    names = ", ".join(in_quotes(readable(stack.key.labels[key])) for key in sinks)
    told = f"without {names}: {part} of the attention removed, the rest renormalised"
    if options.get("quantity", "weight") != "weight":
        told = f"without {names}, which take {part} of the attention"
    return tuple(sinks), (told,)


def _neurons(layer: Layer, options: Mapping[str, Any]) -> Neurons:
    wanted = options.get("neurons", "model")
    if wanted == "pairs" and layer.rotary is None:
        raise FigureError(
            f"neurons='pairs': positions do not turn the queries and keys of layer {layer.layer}; "
            "choose 'ranked'"
        )
    return wanted


def _layers(stack: Stack, wanted: Sequence[int] | None) -> tuple[Layer, ...]:
    if wanted is None:
        return stack.layers
    wanted = listed_numbers(wanted, [layer.layer for layer in stack])
    if not wanted:
        raise FigureError("layers=[]: choose at least one layer, or leave layers= out for all")
    _check_layers("layers", wanted)
    return tuple(stack.layer(number) for number in sorted(set(wanted)))


def _check_layers(name: str, given: list[Any]) -> None:
    if not all(isinstance(number, int | np.integer) for number in given):
        raise FigureError(
            f"{name}={given}: give numbers of layers, such as {name}=[0, 1], or True for all"
        )


def _position(name: str, wanted: Any, tokens: Tokens, combined: Combined) -> int | None:
    """Where a token, given by its position or word, stands in what is drawn."""
    side = ("query", "key").index(name)
    if wanted is None:
        return None
    if isinstance(wanted, str):
        try:
            positions = token_positions(
                name, wanted, tokens.pieces, tokens.labels, words=tokens.whole_words
            )
        except PageError as error:
            raise FigureError(str(error)) from None
        if len({combined.position(side, each) for each in positions}) > 1:
            raise FigureError(
                f"{name}={wanted!r} is the tokens {positions}; give the position of one of them"
            )
        wanted = positions[0]
    is_number = isinstance(wanted, int | np.integer) and not isinstance(wanted, bool)
    if not is_number or not 0 <= wanted < len(tokens):
        which = "any token of the word" if combined.words else "a token"
        raise FigureError(
            f"{name}={wanted!r}: give the position of {which}, 0 to {len(tokens) - 1}"
        )
    return combined.position(side, int(wanted))


def _parts(
    stack: Stack, options: Mapping[str, Any]
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """The queries and keys that take part, and notes about the others."""
    wanted = options.get("filter", "all")
    from_, to = np.ones(len(stack.query), bool), np.ones(len(stack.key), bool)
    hiding = []
    if wanted != "all":
        if {*stack.query.segments} != {0, 1} or {*stack.key.segments} != {0, 1}:
            raise FigureError(
                f"filter={wanted!r}: stack {stack.name!r} is not of a pair of texts; leave "
                "filter= out"
            )
        from_ &= np.array(stack.query.segments) == "ab".index(wanted[0])
        to &= np.array(stack.key.segments) == "ab".index(wanted[1])
        hiding.append(f"only from text {wanted[0].upper()} to text {wanted[1].upper()}")
    if options.get("hide_special", False):
        from_ &= ~np.array(stack.query.special, bool)
        to &= ~np.array(stack.key.special, bool)
        hiding.append("without special tokens")
    if not from_.any() or not to.any():
        raise FigureError(
            "All tokens are special ones, and hide_special=True hides these; drop hide_special="
        )
    return from_, to, tuple(hiding)
