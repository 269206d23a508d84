"""Where an answer looked: the attention of the rows that wrote it, by part of the prompt."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from headscope.errors import RecordError, listed
from headscope.record import Generation, Layer, Part, Stack

REST = ("first token", "template", "answer")
"""What is looked at besides parts: the first token, where sinks are, marks of the template, and the
answer itself."""
QUANTITIES = {"weight": "weights", "norm": "norms", "alti": "alti"}
"""Quantities of attention, and what a record keeps for each."""
SINK_TOKENS = 0.75
"""A sink gets outsized attention from this share of the tokens behind the pictures; ours."""
Cell = tuple[int, int]
"""Layer and head."""


def members_of(
    parts: Sequence[Part], candidates: Sequence[int], prompt: int, keys: int
) -> Bool[np.ndarray, "part_or_rest key"]:
    """Which keys each part has; behind the parts a row for each of `REST`. The first token is told
    apart, and is of no part, unless it is of a candidate, with which it is cut.

    Args:
        parts: of the prompt; of several levels.
        candidates: numbers of those that are compared and cut.
        prompt: how many tokens it has.
        keys: how many there are with the answer.
    """
    members = np.zeros((len(parts) + len(REST), keys), bool)
    apart = not any(0 in parts[number].tokens for number in candidates)
    for row, part in zip(members, parts, strict=False):
        row[[at for at in part.tokens if at or not apart]] = True
    outer = [row for row, part in zip(members, parts, strict=False) if not part.level]
    members[-3, 0] = apart
    members[-1, prompt:] = True
    members[-2] = ~np.any([*outer, members[-3], members[-1]], axis=0)
    return members


def looked(
    stack: Stack,
    generation: Generation,
    members: Bool[np.ndarray, "part key"],
    *,
    chosen: Collection[Cell],
    quantity: str,
    candidates: Sequence[int],
) -> dict[str, np.ndarray]:
    """What the rows that wrote an answer give to parts and keys, by the names of `Answer`.

    Args:
        stack: of the model that wrote the answer.
        generation: how it was written.
        members: see `members_of`.
        chosen: layer and head of those that attention to single keys is the mean of.
        quantity: one of `QUANTITIES`.
        candidates: numbers of the parts that are compared.
    """
    ids, written = (np.array(each.ids or ()) for each in (stack.key, generation.tokens))
    of_any = members[list(candidates)].sum(axis=0) > 0
    rows, count = generation.chosen_by, members.astype(np.float64).T
    heads = 1 if quantity == "alti" else stack.heads
    shares = np.full((len(rows), len(stack), heads, len(members)), np.nan)
    even = np.zeros((len(rows), len(stack), len(members)))
    attention, copies = np.zeros((len(rows), len(stack.key))), np.zeros(shares.shape[:3])
    for index, layer in enumerate(stack):
        for head, row in _rows(layer, rows, quantity):
            shares[:, index, head] = row @ count
            most = row.argmax(axis=-1)
            copies[:, index, head] = of_any[most] & (ids[most] == written)
            if (layer.layer, head) in chosen:
                attention += row / len(chosen)
        visible = layer.visible.rows(rows)
        even[:, index] = visible @ count / visible.sum(axis=-1, keepdims=True)
    return {"attention": attention, "shares": shares, "even": even, "copies": copies}


def _rows(layer: Layer, rows: np.ndarray, quantity: str) -> Iterator[tuple[int, np.ndarray]]:
    """Number of each head, and its rows; contributions as parts of a whole."""
    if quantity == "weight":
        for head in layer.head_numbers:
            yield head, np.asarray(layer.weights_of(head, queries=rows), np.float64)
        return
    for head in (0,) if quantity == "alti" else layer.head_numbers:
        whole = layer.contributions_of("alti") if quantity == "alti" else None
        whole = layer.head_contributions_of(head) if whole is None else whole
        row = np.asarray(whole, np.float64)[rows]
        yield head, row / np.maximum(row.sum(axis=-1, keepdims=True), 1e-12)


def sinks(
    stack: Stack, patches: Sequence[int], chosen: Collection[Cell]
) -> Float[np.ndarray, " patch"]:
    """`sink_times` of the patches of pictures, mean over the chosen heads.

    Args:
        stack: of the model that wrote the answer.
        patches: their positions.
        chosen: layer and head of each.
    """
    after = np.arange(patches[-1] + 1, len(stack.query))
    text = np.zeros((len(after), len(patches)))
    for number, head in chosen:
        weights = stack.layer(number).weights_of(head, queries=after)
        text += np.asarray(weights, np.float64)[:, list(patches)] / len(chosen)
    return sink_times(text)


def sink_times(text: Float[np.ndarray, "token patch"]) -> Float[np.ndarray, " patch"]:
    """How many times an even part of the attention on the pictures each patch gets from at least
    three quarters of the tokens.

    ``times[j] = n min_i(a[i, j] / sum_k a[i, k])`` with n patches, over those three quarters of the
    tokens i that give patch j most. Source: the phenomenon Xiao et al. 2023, Darcet et al. 2023 and
    Kang et al. 2025; the rule is ours: Kang et al. find sinks by activations of hidden states.

    Args:
        text: attention of the tokens after the pictures on patches.
    """
    totals = text.sum(axis=-1, keepdims=True)
    parts = np.divide(text, totals, out=np.zeros_like(text), where=totals > 0)
    # In rising order, so that this one and those after it are three quarters of the tokens.
    least = len(text) - math.ceil(SINK_TOKENS * len(text))
    return text.shape[1] * np.sort(parts, axis=0)[least]


def parse_choice(layers: Any, heads: Any) -> tuple[list[int] | None, list[Sequence[int]] | None]:
    """Layers, and heads as their number, or layer and head, such as ``"12-7"``; None for all.

    Raises:
        RecordError: where they are none of these, a list is empty, or pairs stand among layers.
    """
    wanted = None if layers is None else [each[0] for each in _numbers_in(layers, 1)]
    given = None if heads is None else _numbers_in(heads, 2)
    sizes = {len(head) for head in given or ()}
    if 2 in sizes and (wanted is not None or len(sizes) > 1):
        raise RecordError(
            "heads holds pairs of layer and head; leave out layers and heads without a layer"
        )
    return wanted, given


def cells_of(
    stack: Stack, layers: Sequence[int] | None, heads: Sequence[Sequence[int]] | None
) -> tuple[Cell, ...]:
    """Layer and head of those that were asked for, see `parse_choice`.

    Raises:
        RecordError: where the model does not have one of them.
    """
    there = list(stack.held_heads)
    asked: list[Cell] = [(head[0], head[1]) for head in heads or () if len(head) == 2]
    if not asked:
        numbers = [head[0] for head in heads or ()]
        for layer in layers or dict.fromkeys(layer for layer, _ in there):
            # A layer that does not exist has one head that does not exist, so that this is told.
            own = numbers or [head for at, head in there if at == layer] or [0]
            asked += [(layer, head) for head in own]
    missing = next((cell for cell in asked if cell not in there), None)
    if missing is not None:
        every, of = ([part[at] for part in there] for at in (0, 1))
        ends = f"layers {min(every)} to {max(every)} and heads {min(of)} to {max(of)}"
        raise RecordError(
            f"The model has no head {missing[0]}-{missing[1]} among those kept; stack "
            f"{stack.name!r} has {ends}"
        )
    return tuple(dict.fromkeys(asked))


def _numbers_in(given: Any, most: int) -> list[Sequence[int]]:
    """Numbers of layers or heads, or pairs of them."""
    what, wanted = ("layer", "7") if most == 1 else ("head", "7, (12, 7) or '12-7'")
    several = [given] if isinstance(given, int | str) else listed(given, f"a list of {what}s")
    if not several:
        raise RecordError(f"{what}s is an empty list; give numbers, or leave it out for all")
    numbers: list[Sequence[int]] = []
    for each in several:
        parts = each if isinstance(each, list | tuple) else str(each).split("-")
        if len(parts) not in range(1, most + 1) or not all(str(part).isdecimal() for part in parts):
            raise RecordError(f"Expected a {what} such as {wanted}, got {each!r}")
        numbers.append([int(part) for part in parts])
    return numbers
