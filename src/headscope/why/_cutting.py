"""What the lead is once links are cut: each link alone, or all but those of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import nn

from headscope._progress import Progress
from headscope.capturing.device import full_precision
from headscope.capturing.observers import hook_before, swapped
from headscope.capturing.walk import reads_target
from headscope.capturing.watching.running import first_tensor
from headscope.interventions import intervene
from headscope.why.held import Cell, Change, WhyQuestion

ROOM = 2**20, 2**21
"""Numbers of a stream, and of a layer's weights, in one batch."""
MOST_AT_ONCE = 64
Links = Int[np.ndarray, "link 4"]
"""Number of the layer, head, column of the query, column of the key."""


def cut_alone(
    question: WhyQuestion, links: Links, bar: Progress, *, later: bool = True
) -> Float[np.ndarray, " link"]:
    """The lead with each link cut alone, its weight set to 0 and the rest of the row as it was.

    The head then hands on ``a v`` less, which is the same as `headscope.Cut` without renormalising:
    nothing below the link changes, so that a batch of cuts of one layer is one text up to there.

    Args:
        question: what is asked.
        links: that are cut.
        bar: is stepped for each.
        later: whether later heads attend anew; else all weights stay as they were.
    """
    leads, held = np.zeros(len(links)), [] if later else _weights_held(question)
    for index, cell in enumerate(question.cells):
        own = np.flatnonzero(links[:, 0] == index)
        for some in _several(own, _at_once(question, pairs=not later)):
            less = _less(question.layers[index], links[some, 1:] - (0, *question.begins(index)))
            change = Change(stack=cell[0], layer=cell[1], at="output", act=less)
            leads[some] = _leads(question, [change, *held], len(some), index)
            bar.step(len(some))
    return leads


def keep_only(
    question: WhyQuestion, graphs: Sequence[Links], bar: Progress
) -> Float[np.ndarray, " graph"]:
    """The lead with all links cut at once but those of a graph; streams and feed-forward parts
    stay.
    """
    leads: list[np.ndarray] = []
    for some in _several(graphs, _at_once(question, pairs=True)):
        only = _only(question, some)
        changes = [Change(stack=name, at="weights", act=only) for name in question.record.stacks]
        leads.append(_leads(question, changes, len(some), None))
        bar.step(len(some))
    return np.concatenate(leads)


def _several(items: Any, most: int) -> Iterator[Any]:
    for first in range(0, len(items), most):
        yield items[first : first + most]


def _less(layer: Any, links: np.ndarray) -> Callable:
    """A part ``a v`` taken off the output of a head in each text: of head, query and key."""
    head, query, key = links.T
    weights = layer.weights_of()[head, query, key]
    rows = torch.from_numpy(weights[:, None] * layer.values[layer.kv_head_of[head], key])
    text = torch.arange(len(links))

    def less(_: Cell, old: torch.Tensor) -> torch.Tensor:
        new = old.clone()
        new[text, query, head] -= rows.to(old)
        return new

    return less


def _only(question: WhyQuestion, graphs: Sequence[Links]) -> Callable:
    texts = np.repeat(np.arange(len(graphs)), list(map(len, graphs)))
    links = np.concatenate([np.zeros((0, 4), int), *graphs])

    def only(cell: Cell, old: torch.Tensor) -> torch.Tensor:
        index = question.cells.index(cell)
        own = links[:, 0] == index
        at = (texts[own], *(links[own, 1:] - (0, *question.begins(index))).T)
        kept = torch.zeros_like(old)
        kept[at] = old[at]
        return kept

    return only


def _weights_held(question: WhyQuestion) -> list[Change]:
    weights = [torch.tensor(layer.weights_of()) for layer in question.layers]

    def same(cell: Cell, old: torch.Tensor) -> torch.Tensor:
        return weights[question.cells.index(cell)].to(old).expand_as(old)

    return [Change(stack=name, at="weights", act=same) for name in question.record.stacks]


def _at_once(question: WhyQuestion, *, pairs: bool) -> int:
    """How many copies of the text are run at once."""
    config: Any = question.model.config
    width = getattr(config.get_text_config(), "hidden_size", 1024)
    most = ROOM[0] // (width * max(max(layer.size) for layer in question.layers))
    if pairs:
        most = min(most, ROOM[1] // max(one.heads * np.prod(one.size) for one in question.layers))
    return max(1, min(MOST_AT_ONCE, int(most)))


def _leads(
    question: WhyQuestion, changes: Sequence[Change], count: int, index: int | None
) -> np.ndarray:
    """The leads of so many copies of the text, which are one up to a layer."""
    model, arguments = question.model, dict(question.arguments)
    layer = None if index is None else question.layers[index]
    with ExitStack() as undo:
        undo.enter_context(torch.no_grad())
        undo.enter_context(full_precision())
        # A decoder would read one copy of what its encoder gives for several.
        if layer is not None and layer.route == "interface" and not reads_target(model):
            undo.callback(hook_before(question.block(layer)[1], _copies(count)).remove)
        else:
            for name, given in arguments.items():
                if isinstance(given, torch.Tensor) and len(given) == 1:
                    arguments[name] = given.expand(count, *given.shape[1:])
        undo.enter_context(intervene(model, *changes))
        leads = undo.enter_context(question.read())
        model(**arguments)
        return leads[-1].cpu().numpy()


def _copies(count: int) -> Callable:
    def copied(_: nn.Module, args: tuple, options: dict) -> Any:
        given: Any = first_tensor(args, options)
        return swapped(args, options, given, given.expand(count, *given.shape[1:]))

    return copied


def read_down(links: Links, position: int) -> Int[np.ndarray, " link"]:
    """Which of some links are read on a way from the answer's column, by their places."""
    columns, read = {position}, []
    for index in sorted(set(links[:, 0].tolist()), reverse=True):
        own = [at for at in np.flatnonzero(links[:, 0] == index) if links[at, 2] in columns]
        columns |= set(links[own, 3].tolist())
        read += own
    return np.array(read, int)


def drawn_by_weight(question: WhyQuestion, count: int) -> Iterator[Links]:
    """So many links drawn with odds in proportion to their weights, again and again; of the last
    layer those of the answer alone.
    """
    rng, layers, last = np.random.default_rng(0), question.layers, len(question.layers) - 1
    # A row of weights sums to 1 whatever it is of, so that rows are drawn first.
    rows = np.array([layer.heads * layer.size[0] for layer in layers[:-1]] + [layers[-1].heads])
    while True:
        links: dict[tuple[int, ...], None] = {}
        for index in rng.choice(len(layers), 20 * count, p=rows / rows.sum()).tolist():
            layer, (of_query, of_key) = layers[index], question.begins(index)
            head, query = int(rng.integers(layer.heads)), int(rng.integers(layer.size[0]))
            query = question.at if index == last else query
            odds = layer.weights_of(head, queries=[query])[0].astype(np.float64)
            if odds.any():
                key = int(rng.choice(len(odds), p=odds / odds.sum()))
                links[index, head, query + of_query, key + of_key] = None
            if len(links) == count:
                break
        yield np.array(list(links), int).reshape(-1, 4)
