"""A text that is too long for a page, sentence by sentence, or part by part.

A browser draws some thousands of rows; of 32,768 tokens the matrix of one head alone is a gigabyte
of bytes. A group is a sentence, or a few short ones: a group of queries gives to a group of keys
what its queries give on average to all of these keys together, as words of several tokens do in a
page.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache, partial
from math import isqrt
from threading import Lock
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from headscope.errors import PageError
from headscope.patterns import TextFacts, text_facts
from headscope.record import Layer, Mask, Record, Stack, StoredArray, Tokens, held, sampled_in_rows
from headscope.views._thumbs import MOST, SENTENCE, Blocks, sentence_starts, starts_of

MOST_TOKENS = 2**13
"""Tokens up to which a page shows each by itself: it draws 8,192 in some seconds."""
GROUPS = 2**12
"""Groups of a longer text at most."""
MOST_WEIGHTS = 2**30
"""Weights of a head up to which groups are sentences, made of all queries; of more they are parts.
"""
QUERIES_OF_A_ROW = 64
"""Queries of a longer text that each row of a thumbnail, or part, is made of."""
LONG = 1000
"""Tokens from which on a text is shown sentence by sentence."""
MOST_SENTENCES = 200
"""Number of rows and columns of a thumbnail of a long text at most,"""
MOST_BYTES = 2**23
"""and bytes of the thumbnails of all its heads."""
KEPT = 2
"""Heads whose groups are kept: 64 MiB each at most."""
KEPT_OF_LAYER = ["layer", "held_heads", "changes", "partial", "module", "route", "verified"]
KEPT_OF_LAYER += ["verified_against", "verified_limit"]
"""What a layer in groups has of the one with single tokens."""
Starts = tuple[Int[np.ndarray, " query_group"], Int[np.ndarray, " key_group"]]
"""First query and first key of each group."""
OF_TOKENS = ("evidence", "links", "comparison", "quantities", "beside")
"""Options with numbers of single tokens, or of a record that has them."""


def in_groups(record: Record, options: Any) -> Record:
    """The record with the tokens of long texts in groups; unchanged where there are none.

    Raises:
        PageError: where an option is about single tokens.
    """
    sides = [side for stack in record.stacks.values() for side in (stack.query, stack.key)]
    if max(map(len, sides)) <= MOST_TOKENS:
        return record
    _check_lengths(record)
    given = [name for name in OF_TOKENS if options.get(name)]
    if given:
        raise PageError(
            f"{given[0]}= is about single tokens, and a page shows a text of more than "
            f"{MOST_TOKENS:,} tokens in groups; leave it out, or capture a shorter text"
        )
    stacks = {name: _grouped_stack(stack) for name, stack in record.stacks.items()}
    return Record(stacks=stacks, model=record.model)


def _check_lengths(record: Record) -> None:
    """Raise where a head has more weights than a page can draw.

    Raises:
        PageError: with the number of tokens, before anything is made.
    """
    for stack in record.stacks.values():
        queries, keys = size = len(stack.query), len(stack.key)
        most, sides = isqrt(MOST_WEIGHTS), (stack.query, stack.key) if is_by_part(size) else ()
        if not all(1 < len(_starts(side, parts=True)) <= MOST_TOKENS for side in sides):
            raise PageError(
                f"Each head of stack {stack.name!r} has {queries:,} x {keys:,} weights, and a page "
                f"draws at most {most:,} x {most:,}, of more their parts; name these "
                "(headscope.parts.with_parts), capture a shorter text, or read rows with "
                "layer.weight_blocks(head)"
            )


def source_of(layer: Layer) -> GroupedWeights | None:
    """What the weights between groups are made of; None for a layer with single tokens."""
    weights = held(layer, "weights")
    return weights if isinstance(weights, GroupedWeights) else None


def group_words(record: Record) -> str:
    """That and how tokens are in groups, in one sentence; empty where none are."""
    for stack in record.stacks.values():
        source = source_of(stack.layers[0])
        if source is not None:
            parts = is_by_part(source.layer.size)
            what = "a part or what is between two" if parts else "a sentence or some short ones"
            some = f"{QUERIES_OF_A_ROW} of its queries" if parts else "its queries"
            return (
                f"Each row and column stands for {what}, as a page shows no more than "
                f"{MOST_TOKENS:,} of {source.layer.size[0]:,} tokens one by one: weights are added "
                f"up over its keys, and averaged over {some}"
            )
    return ""


def blocks_of(stack: Stack) -> Blocks:
    """First token of each row and column of a thumbnail: sentences of a long text, else parts that
    are as even as they can be.
    """
    source = source_of(stack.layers[0])
    if not by_sentence(stack) or (source is not None and is_by_part(source.layer.size)):
        most = MOST if source is None else MOST_SENTENCES
        return starts_of(len(stack.query), most), starts_of(len(stack.key), most)
    heads = sum(len(layer.head_numbers) for layer in stack)
    most = min(MOST_SENTENCES, max(MOST, isqrt(MOST_BYTES // max(1, heads))))
    least = SENTENCE if source is None else 1  # groups are sentences
    query = sentence_starts(stack.query, most, least)
    return query, query if stack.key == stack.query else sentence_starts(stack.key, most, least)


def by_sentence(stack: Stack) -> bool:
    """Whether a text is shown sentence by sentence; a picture has none."""
    if stack.query.places is not None or stack.key.places is not None:
        return False
    return max(len(stack.query), len(stack.key)) >= LONG or source_of(stack.layers[0]) is not None


class GroupedWeights(StoredArray):
    """Weights between groups of tokens, worked out head by head when they are read.

    Args:
        layer: the layer with single tokens.
        facts: gives what the single tokens of its stack say, for the kinds of heads.
        starts: first query and first key of each group.
    """

    def __init__(self, layer: Layer, facts: Callable[[], TextFacts], starts: Starts) -> None:
        super().__init__((len(layer.head_numbers), *map(len, starts)), np.dtype(np.float32))
        self.layer, self.facts, self.starts = layer, facts, starts
        self._kept: OrderedDict[int, np.ndarray] = OrderedDict()
        self._lock = Lock()

    def read(self, *index: Any) -> np.ndarray:
        """The whole array, or the part at an index for each axis."""
        heads = np.arange(self.shape[0])[index[0] if index else slice(None)]
        if heads.ndim == 0:
            return self._head(int(heads))[index[1:] or ...]
        parts = [self._head(int(head))[index[1:] or ...] for head in heads]
        return np.stack(parts) if parts else np.empty((0, *self.shape[1:]), self.dtype)

    def _head(self, index: int) -> Float[np.ndarray, "query_group key_group"]:
        # Thumbnails, bytes and rows of one head are read one after the other.
        with self._lock:
            if index not in self._kept:
                self._kept[index] = self._made(self.layer.head_numbers[index])
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(index)
            return self._kept[index]

    def _made(self, head: int) -> Float[np.ndarray, "query_group key_group"]:
        queries, keys = self.starts
        made = np.zeros(self.shape[1:], np.float32)
        alive, chosen = ~self.layer.dead, None
        if is_by_part(self.layer.size):
            chosen = sampled_in_rows(queries, len(alive), QUERIES_OF_A_ROW)
            alive &= np.isin(np.arange(len(alive)), chosen)
        alive = np.add.reduceat(alive, queries, dtype=int)
        for block in self.layer.weight_blocks(head, queries=chosen, rows=64):
            rows = np.zeros((len(block.queries), self.layer.size[1]), np.float32)
            rows[:, block.keys] = block.weights
            groups = np.searchsorted(queries, block.queries, side="right") - 1
            np.add.at(made, groups, np.add.reduceat(rows, keys, axis=1))
        made /= np.maximum(1, alive)[:, None]
        made.flags.writeable = False
        return made


def is_by_part(size: tuple[int, int]) -> bool:
    """Whether so many queries and keys are shown part by part."""
    return size[0] * size[1] > MOST_WEIGHTS


def _grouped_stack(stack: Stack) -> Stack:
    parts = is_by_part((len(stack.query), len(stack.key)))
    starts = _starts(stack.query, parts=parts), _starts(stack.key, parts=parts)
    query = _grouped_tokens(stack.query, starts[0], parts=parts)
    key = query if stack.key == stack.query else _grouped_tokens(stack.key, starts[1], parts=parts)
    facts = lru_cache(maxsize=1)(partial(text_facts, stack))
    grouped_mask = lru_cache(maxsize=8)(partial(_grouped_mask, starts))  # most layers share it
    layers = tuple(
        _grouped_layer(layer, GroupedWeights(layer, facts, starts), grouped_mask(layer.visible))
        for layer in stack
    )
    return Stack(name=stack.name, query=query, key=key, layers=layers, others=stack.others)


def _starts(tokens: Tokens, *, parts: bool) -> Int[np.ndarray, " group"]:
    """First token of each group of a side: each outer part, and what stands between two."""
    if len(tokens) <= MOST_TOKENS:
        return np.arange(len(tokens))
    if not parts:
        return sentence_starts(tokens, GROUPS)
    return np.flatnonzero(np.diff(tokens.outer_parts, prepend=-2))


# Any, as a field may be given an array that is worked out later, and always gives an array.
def _grouped_layer(layer: Layer, weights: Any, visible: Mask) -> Layer:
    kept: dict[str, Any] = {name: getattr(layer, name) for name in KEPT_OF_LAYER}
    kept["sinks"] = layer.part("sinks") if layer.has("sinks") else None
    return Layer(weights=weights, visible=visible, **kept)


def _grouped_mask(starts: Starts, visible: Mask) -> Mask:
    """A group sees another where one of its queries sees one of the keys."""
    queries, keys = map(len, starts)
    if visible.is_full:
        return Mask.full(queries, keys)
    query_of, key_of = (partial(np.searchsorted, side, side="right") for side in starts)
    owner = np.repeat(np.arange(visible.shape[0]), np.diff(visible.firsts))
    # One up where a run begins and one down behind it: where the sum is above 0, a run lies.
    steps = np.zeros((queries, keys + 1), np.int32)
    np.add.at(steps, (query_of(owner) - 1, key_of(visible.runs[:, 0]) - 1), 1)
    np.add.at(steps, (query_of(owner) - 1, key_of(visible.runs[:, 1] - 1)), -1)
    return Mask.of(np.cumsum(steps[:, :-1], axis=1) > 0)


def _grouped_tokens(tokens: Tokens, starts: Int[np.ndarray, " group"], *, parts: bool) -> Tokens:
    """Each group as one token, whose text is that of its tokens, or the name of the part."""
    if len(starts) == len(tokens):
        return tokens
    ends = [*starts[1:].tolist(), len(tokens)]
    groups = [slice(first, end) for first, end in zip(starts.tolist(), ends, strict=True)]
    texts = _part_names(tokens, starts) if parts else [_text_of(tokens, group) for group in groups]
    return Tokens(
        pieces=tuple(texts),
        labels=tuple(texts),
        special=tuple(all(tokens.special[group]) for group in groups),
        segments=tuple(tokens.segments[group][0] for group in groups),
        texts=tokens.texts,
        numbered=tokens.numbered,
    )


def _part_names(tokens: Tokens, starts: Int[np.ndarray, " group"]) -> list[str]:
    names = ("…", *(part.name for part in tokens.parts))
    return [names[own + 1] for own in np.array(tokens.outer_parts)[starts]]


def _text_of(tokens: Tokens, group: slice) -> str:
    pieces = zip(tokens.labels[group], tokens.continues[group], strict=True)
    return "".join(label if after else f" {label}" for label, after in pieces).strip()
