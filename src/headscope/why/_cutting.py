"""What the lead is once links are cut: each link alone, or all but those of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from headscope._progress import Progress
from headscope.capturing.device import full_precision
from headscope.capturing.observers import hook_before, swapped
from headscope.capturing.walk import reads_target
from headscope.capturing.watching.running import first_tensor
from headscope.interventions import intervene
from headscope.why._held import Cell, Change, Question

ROOM = 2**20, 2**21
"""Numbers of a stream, and of a layer's weights, in one batch."""
MOST_AT_ONCE = 64


class Link(NamedTuple):
    """What a head takes from a key to a query."""

    stack: str
    layer: int
    head: int
    query: int
    key: int

    @property
    def cell(self) -> Cell:
        """Its layer."""
        return self.stack, self.layer


def cut_alone(
    question: Question, links: Sequence[Link], progress: Progress, *, later: bool = True
) -> Float[np.ndarray, " link"]:
    """The lead with each link cut alone, its weight set to 0 and the rest of the row as it was.

    The head then hands on ``a v`` less, which is the same as `headscope.Cut` without renormalising:
    nothing below the link changes, so that a batch of cuts of one layer is one text up to there.

    Args:
        question: what is asked.
        links: that are cut.
        progress: is stepped for each.
        later: whether later heads attend anew; else all weights stay as they were.
    """
    leads = np.zeros(len(links))
    order = sorted(range(len(links)), key=lambda at: links[at].cell)
    held, most = [] if later else _weights_held(question), _at_once(question, pairs=not later)
    for cell, numbers in groupby(order, key=lambda at: links[at].cell):
        for some in _several(list(numbers), most):
            cut = _less([links[at] for at in some], question)
            own = Change(stack=cell[0], layer=cell[1], at="output", act=cut)
            leads[some] = _leads(question, [own, *held], len(some), cell)
            progress.step(len(some))
    return leads


def keep_only(
    question: Question, graphs: Sequence[Sequence[Link]], progress: Progress
) -> Float[np.ndarray, " graph"]:
    """The lead with all links cut at once but those of a graph; streams and feed-forward parts
    stay.
    """
    leads: list[np.ndarray] = []
    for some in _several(list(graphs), _at_once(question, pairs=True)):
        own = _only(some)
        changes = [Change(stack=name, at="weights", act=own) for name in question.record.stacks]
        leads.append(_leads(question, changes, len(some), None))
        progress.step(len(some))
    return np.concatenate(leads)


def _several(items: list[Any], most: int) -> Iterator[list[Any]]:
    for first in range(0, len(items), most):
        yield items[first : first + most]


def _less(links: Sequence[Link], question: Question) -> Callable:
    layer = question.layers[links[0].cell]
    shared, values = layer.kv_head_of, layer.values
    rows = [
        layer.weights_of(link.head, queries=[link.query])[0, link.key]
        * np.asarray(values[shared[link.head], link.key])
        for link in links
    ]
    text, query, head = (
        torch.tensor(each)
        for each in (range(len(links)), [one.query for one in links], [one.head for one in links])
    )

    def less(_: Cell, old: torch.Tensor) -> torch.Tensor:
        new = old.clone()
        new[text, query, head] -= torch.from_numpy(np.array(rows)).to(old)
        return new

    return less


def _only(graphs: Sequence[Sequence[Link]]) -> Callable:
    places: dict[Cell, list[tuple[int, int, int, int]]] = {}
    for number, graph in enumerate(graphs):
        for link in graph:
            places.setdefault(link.cell, []).append((number, *link[2:]))

    def only(cell: Cell, old: torch.Tensor) -> torch.Tensor:
        kept = torch.zeros_like(old)
        if cell in places:
            at = tuple(torch.tensor(places[cell]).T)
            kept[at] = old[at]
        return kept

    return only


def _weights_held(question: Question) -> list[Change]:
    weights = {cell: torch.tensor(layer.weights_of()) for cell, layer in question.layers.items()}

    def same(cell: Cell, old: torch.Tensor) -> torch.Tensor:
        return weights[cell].to(old).expand_as(old)

    return [Change(stack=name, at="weights", act=same) for name in question.record.stacks]


def _at_once(question: Question, *, pairs: bool) -> int:
    """How many copies of the text are run at once."""
    layers = question.layers.values()
    tokens = max(max(layer.size) for layer in layers)
    width = getattr(question.model.config.get_text_config(), "hidden_size", 1024)
    most = [MOST_AT_ONCE, ROOM[0] // (tokens * width)]
    if pairs:
        most.append(ROOM[1] // max(layer.heads * layer.size[0] * layer.size[1] for layer in layers))
    return max(1, min(most))


def _leads(
    question: Question, changes: Sequence[Change], count: int, cell: Cell | None
) -> np.ndarray:
    """The leads of so many copies of the text, which are one up to a layer."""
    model, arguments = question.model, dict(question.arguments)
    with ExitStack() as undo:
        undo.enter_context(torch.no_grad())
        undo.enter_context(full_precision())
        layer = None if cell is None else question.layers[cell]
        # A decoder would read one copy of what its encoder gives for several.
        if layer is not None and layer.route == "interface" and not reads_target(model):
            block = question.block(layer)[1]
            undo.callback(hook_before(block, _copies(count)).remove)
        else:
            for name, given in arguments.items():
                if isinstance(given, torch.Tensor) and len(given) == 1:
                    arguments[name] = given.expand(count, *given.shape[1:])
        undo.enter_context(intervene(model, *changes))
        leads = undo.enter_context(question.read())
        model(**arguments)
        return leads[-1].double().cpu().numpy()


def _copies(count: int) -> Callable:
    def copied(_: nn.Module, args: tuple, options: dict) -> Any:
        given = first_tensor(args, options)
        if given is None:
            return None
        return swapped(args, options, given, given.expand(count, *given.shape[1:]))

    return copied


def read_down(links: Sequence[Link], at: int, height: dict[Cell, int], last: str) -> list[Link]:
    """Those of some links whose upper end is read on a way from the answer.

    Args:
        links: any.
        at: position of the answer.
        height: of each layer, rising in the order in which they are run.
        last: the stack that writes the answer.
    """
    # Which side a stack's queries and keys are on: an encoder has one of its own.
    reads = {"cross": ("decoder", "encoder")}
    seen, kept = {(last, at)}, []
    for cell, some in groupby(
        sorted(links, key=lambda link: -height[link.cell]), key=lambda link: link.cell
    ):
        of_query, of_key = reads.get(cell[0], (cell[0], cell[0]))
        new = [link for link in some if (of_query, link.query) in seen]
        kept += new
        seen |= {(of_key, link.key) for link in new}
    return kept


def drawn_by_weight(
    question: Question, last: str, count: int, seed: int = 0
) -> Iterator[list[Link]]:
    """So many links drawn with odds in proportion to their weights, again and again; of the last
    layer those of the answer alone.
    """
    rng, cells = np.random.default_rng(seed), list(question.layers.items())
    top = max(cell[1] for cell, _ in cells if cell[0] in (last, "cross"))
    is_top = [cell[0] in (last, "cross") and cell[1] == top for cell, _ in cells]
    # A row of weights sums to 1 whatever it is of, so that rows are drawn first.
    rows = [
        layer.heads * (1 if own else layer.size[0])
        for own, (_, layer) in zip(is_top, cells, strict=True)
    ]
    while True:
        links: dict[Link, None] = {}
        for _ in range(20 * count):
            number = int(rng.choice(len(cells), p=np.divide(rows, sum(rows))))
            cell, layer = cells[number]
            head, query = int(rng.integers(layer.heads)), int(rng.integers(layer.size[0]))
            query = question.at if is_top[number] else query
            odds = np.cumsum(layer.weights_of(head, queries=[query])[0], dtype=np.float64)
            if odds[-1] > 0:
                key = int(np.searchsorted(odds, rng.random() * odds[-1], side="right"))
                links[Link(*cell, head, query, min(key, len(odds) - 1))] = None
            if len(links) == count:
                break
        yield list(links)
