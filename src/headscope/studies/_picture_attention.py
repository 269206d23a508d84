"""Attention on the patches of pictures, of each written token and of all text after them; and the
heads that it is the mean of.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from headscope.errors import RecordError, listed
from headscope.record import Generation, Stack

SINK_TIMES = 10.0
"""A patch is a sink where it gets this many times what each would get if all got the same ..."""
SINK_TOKENS = 0.75
"""... from this share of the tokens that follow the pictures. Both are ours."""
Cell = tuple[int, int]
"""Layer and head."""


@dataclass(frozen=True, eq=False)
class PatchAttention:
    """What the tokens of an answer, and all text after the pictures, give to patches.

    Args:
        written: weights ``[token patch]``, mean over the chosen heads, of the row that wrote each
            token.
        shares: ``[token layer head]``, sum over all patches; NaN where a layer has fewer heads.
        even: ``[token]``, what all patches would get if a row were even.
        times: ``[patch]``, see `sink_times`.
    """

    written: Float[np.ndarray, "token patch"]
    shares: Float[np.ndarray, "token layer head"]
    even: Float[np.ndarray, " token"]
    times: Float[np.ndarray, " patch"]


def patches_of(stack: Stack) -> Int[np.ndarray, " patch"]:
    """Positions of the patches of pictures among the keys."""
    places = stack.key.places or ()
    return np.array([at for at, place in enumerate(places) if place is not None], np.int64)


def patch_attention(
    stack: Stack, generation: Generation, chosen: Collection[tuple[int, int]]
) -> PatchAttention:
    """Read the rows of a record, head by head.

    Args:
        stack: of the model that wrote the answer.
        generation: how it was written.
        chosen: layer and head of those that the mean is over.
    """
    patches, rows = patches_of(stack), generation.chosen_by
    after = np.arange(patches[-1] + 1, len(stack.query))
    shares = np.full((len(rows), len(stack), max(layer.heads for layer in stack)), np.nan)
    written = np.zeros((len(rows), len(patches)))
    text = np.zeros((len(after), len(patches)))
    even = np.zeros(len(rows))
    for index, layer in enumerate(stack):
        for head in layer.head_numbers:
            weights = np.asarray(layer.weights_of(head), np.float64)[:, patches]
            shares[:, index, head] = weights[rows].sum(axis=-1)
            if (layer.layer, head) in chosen:
                written += weights[rows] / len(chosen)
                text += weights[after] / len(chosen)
        visible = layer.visible.dense()[rows]
        part = sum(head == layer.layer for head, _ in chosen) / len(chosen)
        even += part * visible[:, patches].sum(axis=-1) / visible.sum(axis=-1)
    return PatchAttention(written, shares, even, sink_times(text))


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
    wanted = None if layers is None else [_parsed(layer)[-1] for layer in _listed(layers)]
    given = None if heads is None else [_parsed(head) for head in _listed(heads)]
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
    there = [(layer.layer, head) for layer in stack for head in layer.head_numbers]
    asked: list[Cell] = [(head[0], head[1]) for head in heads or () if len(head) == 2]
    if not asked:
        for layer in layers or sorted({at for at, _ in there}):
            numbers = [head for head, *_ in heads or ()]
            # A layer that does not exist has one head that does not exist, so that this is told.
            numbers = numbers or sorted(head for at, head in there if at == layer) or [0]
            asked += [(layer, head) for head in numbers]
    missing = next((cell for cell in asked if cell not in there), None)
    if missing is not None:
        every, of = ([part[at] for part in there] for at in (0, 1))
        ends = f"layers {min(every)} to {max(every)} and heads {min(of)} to {max(of)}"
        raise RecordError(
            f"The model has no head {missing[0]}-{missing[1]} among those kept; stack "
            f"{stack.name!r} has {ends}"
        )
    return tuple(dict.fromkeys(asked))


def _listed(given: Any) -> list[Any]:
    several = (
        [given] if isinstance(given, int | str) else listed(given, "a list of heads or layers")
    )
    if not several:
        raise RecordError("layers or heads is an empty list; give numbers, or leave it out for all")
    return several


def _parsed(head: Any) -> Sequence[int]:
    """The number of a head, or layer and head."""
    parts = head
    if isinstance(head, str):
        parts = head.split("-")
    elif isinstance(head, int):
        parts = [head]
    try:
        numbers = [int(part) for part in parts]
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) in (1, 2):
        return numbers
    raise RecordError(f"Expected a head such as 7, (12, 7) or '12-7', got {head!r}")
