"""Why a head attended there: the score of one pair as a sum over what wrote its key and query."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from headscope.capturing.device import one_at_a_time
from headscope.capturing.facts import display_name
from headscope.capturing.run import at_rest
from headscope.composition._result import Attended
from headscope.errors import TextError
from headscope.interventions import intervene
from headscope.record import Layer
from headscope.why.held import Change, WhyQuestion, place_in, pulled_back, read_text, through

SIDES: Any = ("key", "query")


def attended(
    model: Any,
    tokenizer: Any = None,
    text: Any = None,
    *,
    head: tuple[int, int],
    query: int = -1,
    key: int | None = None,
    stack: str | None = None,
    **options: Any,
) -> Attended:
    """Why a head attended from one token to another: what wrote the key, and what wrote the query.

    The score is ``q . k * scale``, and both sides are sums over what was written into the residual
    below: the embedding, each head, each feed-forward part, and biases, where norms keep the
    denominators of this run. From the score the mean over all keys that the query may see is taken
    off, which no softmax sees.

    Source: Elhage et al. 2021 (K- and Q-composition, taken apart on one text).

    Args:
        model: a loaded model, a hub name or a folder; of any kind that `headscope.why` reads, with
            or without a head that predicts tokens.
        tokenizer: its tokenizer; may be left out where the model is named.
        text: as of `headscope.why`.
        head: its layer and number.
        query: position of the token that attends; by default the last.
        key: position of the one that is attended to; by default that with the largest weight.
        stack: ``self``, ``encoder``, ``decoder`` or ``cross``; by default the first of the record.
        **options: as of `headscope.why`.

    Raises:
        RecordError: a stack, layer or head that there is not.
        TextError: a position that there is not, or a key that the query cannot see.
        CaptureError: a score that is not the sum of its parts (routers, unknown gates).

    Example:
        >>> print(attended(model, tokenizer, "The rabbit hopped.", head=(1, 0)))
    """
    model, _, record, arguments = read_text(model, tokenizer, text, options)
    sides = record[stack or next(iter(record.stacks))]
    layer, query = sides.layer(head[0]), place_in(query, range(len(sides.query)))
    weights = layer.weights_of(head[1], queries=[query])[0]
    key = int(weights.argmax()) if key is None else place_in(key, range(len(weights)))
    seen = np.isfinite(layer.scores_of(head[1])[query])
    if not seen[key]:
        raise TextError(f"token {query} cannot see token {key}; name one that it can")
    pair, cell = (head[1], int(layer.kv_head_of[head[1]]), query, key), (sides.name, head[0])
    question = _PairScore(model, arguments, record, 0, (0, 0), cell, pair, seen, "key")
    with one_at_a_time(model), at_rest(model):
        parts, margin = _taken_apart(question)
    return Attended(
        model=display_name(model),
        head=_name(question, cell, head[1]),
        query=(sides.query.labels[query], query),
        key=(sides.key.labels[key], key),
        weight=float(weights[key]),
        margin=margin,
        parts=tuple(parts),
        **dict(zip(("by_key", "by_query"), np.array([*parts.values()]).T, strict=True)),
    )


@dataclass(frozen=True, eq=False)
class _PairScore(WhyQuestion):
    """The score of a pair over the mean score, in place of the lead of a token.

    Args:
        cell: stack and layer of the head.
        pair: head, its head of keys, query and key.
        seen: which keys the query may see.
        side: ``key`` or ``query``, whose way back is followed; the other is held.
    """

    cell: tuple[str, int]
    pair: tuple[int, int, int, int]
    seen: np.ndarray
    side: str

    @property
    def layer(self) -> Layer:
        """Of the head."""
        return self.record[self.cell[0]].layer(self.cell[1])

    @contextmanager
    def read(self) -> Generator[list[torch.Tensor]]:
        """The margins ``[text]``, one for each pass inside."""
        (head, kv_head, query, key), noted, margins = self.pair, {}, []

        def note(side: str, _: Any, old: torch.Tensor) -> torch.Tensor:
            noted[side] = old if side == self.side else old.detach()
            if len(noted) == 2:
                keys = noted["key"][0, kv_head]
                over = keys[key] - keys[torch.from_numpy(self.seen)].mean(0)
                margins.append((noted["query"][0, head, query] @ over * self.layer.scale)[None])
            return old

        place: Any = {"stack": self.cell[0], "layer": self.cell[1]}
        with intervene(self.model, *(Change(**place, at=s, act=partial(note, s)) for s in SIDES)):
            yield margins


def _taken_apart(question: _PairScore) -> tuple[dict[str, tuple[float, float]], float]:
    """What each part adds to the margin by the key and by the query, and the margin."""
    (head, kv_head, query, key), seen, layer = question.pair, question.seen, question.layer
    keys, queries = (_written(replace(question, side=side)) for side in SIDES)
    # Parts that were written later, or in other stacks, are 0 on both sides.
    parts = {name: (own, queries[name]) for name, own in keys.items() if own or queries[name]}
    product = layer.scale * layer.part("keys", kv_head) @ layer.part("queries", head, query)
    margin = float(product[key] - product[seen].mean())
    sums, sizes = np.sum([*parts.values()], axis=0), np.abs([*parts.values()]).sum(axis=0)
    # Of large parts that cancel each other little is left, but not of their rounding.
    scale = max(1.0, *sizes, *np.abs(product))
    question.check_sums("the score over the mean key", sums, margin, scale)
    if layer.has("bias") and layer.soft_cap is None:
        scores = layer.scores_of(head)[query]
        added = float(scores[key] - scores[seen].mean()) - margin
        parts["position"], margin = (added, added), margin + added
    return parts, margin


def _written(question: _PairScore) -> dict[str, float]:
    """What each part wrote into one side, by its name."""
    back, paths = pulled_back(question, "own place"), {}
    parts = {"embedding": sum(float(each.sum()) for each in back.words.values())}
    for cell, layer in zip(question.cells, question.layers, strict=True):
        paths[question.block(layer)[0]] = cell[0].replace("cross", "decoder")
        wrote = through(layer, back.contexts[cell]).sum(axis=(1, 2)).tolist()
        parts |= {_name(question, cell, head): own for head, own in enumerate(wrote)}
    for (path, number), own in back.mlps.items():
        parts[f"{paths[path]} " * (len(paths) > 1) + f"feed-forward {number}"] = own
    return parts | {"biases": back.biases}


def _name(question: WhyQuestion, cell: tuple[str, int], head: int) -> str:
    """Layer and head, with the stack where there are several."""
    return f"{cell[0]} " * (len(question.record.stacks) > 1) + f"{cell[1]}-{head}"
