"""A text that is too long for a page, as groups of neighbouring tokens.

A browser draws some thousands of rows; of 32,768 tokens the matrix of one head alone is a gigabyte
of bytes. A group of queries gives to a group of keys what its queries give on average to all of
these keys together, as words of several tokens do in a page.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property, lru_cache
from threading import Lock
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.errors import PageError
from headscope.patterns import TextFacts, text_facts
from headscope.record import Layer, Mask, Record, Stack, StoredArray, Tokens, held

MOST_TOKENS = 2**13
"""Tokens up to which a page shows each by itself: it draws 8,192 in some seconds."""
GROUPS = 2**12
"""Groups of a longer text at most."""
KEPT = 2
"""Heads whose groups are kept: 64 MiB each at most."""
OF_TOKENS = ("evidence", "links", "comparison", "quantities", "beside")
"""Options with numbers of single tokens, or of a record that has them."""


def in_groups(record: Record, options: Any) -> Record:
    """The record with the tokens of long texts in groups; unchanged where there are none.

    Raises:
        PageError: where an option is about single tokens.
    """
    if not is_long(record):
        return record
    given = [name for name in OF_TOKENS if options.get(name)]
    if given:
        raise PageError(
            f"{given[0]}= is about single tokens, and a page shows a text of more than "
            f"{MOST_TOKENS:,} tokens in groups; leave it out, or capture a shorter text"
        )
    stacks = {name: _grouped_stack(stack) for name, stack in record.stacks.items()}
    return Record(stacks=stacks, model=record.model)


def is_long(record: Record) -> bool:
    """Whether some text has more tokens than a page shows one by one."""
    sides = [side for stack in record.stacks.values() for side in (stack.query, stack.key)]
    return max(map(len, sides)) > MOST_TOKENS


def source_of(layer: Layer) -> GroupedWeights | None:
    """What the weights between groups are made of; None for a layer with single tokens."""
    weights = held(layer, "weights")
    return weights if isinstance(weights, GroupedWeights) else None


def group_words(record: Record) -> str:
    """That and how tokens are in groups, in one sentence; empty where none are."""
    for stack in record.stacks.values():
        source = source_of(stack.layers[0])
        if source is not None:
            count = source.layer.size[0]
            return (
                f"Each row and column stands for up to {max(source.sizes)} neighbouring tokens, "
                f"as a page shows no more than {MOST_TOKENS:,} of {count:,} one by one: weights "
                "are added up over the keys of a group, and averaged over its queries"
            )
    return ""


@dataclass(frozen=True, eq=False)
class _SingleTokens:
    """The stack that groups are made of, and what its tokens say."""

    stack: Stack

    @cached_property
    def facts(self) -> TextFacts:
        return text_facts(self.stack)


class GroupedWeights(StoredArray):
    """Weights between groups of tokens, worked out head by head when they are read.

    Args:
        layer: the layer with single tokens.
        source: its stack.
        sizes: number of queries and of keys in a group.
    """

    def __init__(self, layer: Layer, source: _SingleTokens, sizes: tuple[int, int]) -> None:
        groups = [-(-count // size) for count, size in zip(layer.size, sizes, strict=True)]
        super().__init__((len(layer.head_numbers), *groups), np.dtype(np.float32))
        self.layer, self.sizes = layer, sizes
        self._source = source
        self._kept: OrderedDict[int, np.ndarray] = OrderedDict()
        self._lock = Lock()

    @property
    def facts(self) -> TextFacts:
        """What the single tokens say, for the kinds of heads."""
        return self._source.facts

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
        of_query, of_key = self.sizes
        made = np.zeros(self.shape[1:], np.float32)
        alive = np.add.reduceat(~self.layer.dead, np.arange(self.shape[1]) * of_query, dtype=int)
        key_starts = np.arange(self.shape[2]) * of_key
        # Blocks of whole groups, 32 rows and more, as products of fewer are slow.
        for block in self.layer.weight_blocks(head, rows=of_query * -(-32 // of_query)):
            rows = np.zeros((-(-len(block.queries) // of_query), self.layer.size[1]), np.float32)
            for row, first in enumerate(range(0, len(block.queries), of_query)):
                rows[row, block.keys] = block.weights[first : first + of_query].sum(axis=0)
            group = int(block.queries[0]) // of_query
            made[group : group + len(rows)] = np.add.reduceat(rows, key_starts, axis=1)
        made /= np.maximum(1, alive)[:, None]
        made.flags.writeable = False
        return made


def _grouped_stack(stack: Stack) -> Stack:
    sizes = _size(len(stack.query)), _size(len(stack.key))
    query = _grouped_tokens(stack.query, sizes[0])
    key = query if stack.key == stack.query else _grouped_tokens(stack.key, sizes[1])
    source = _SingleTokens(stack)
    layers = tuple(_grouped_layer(layer, source, sizes) for layer in stack)
    return Stack(name=stack.name, query=query, key=key, layers=layers, others=stack.others)


def _size(count: int) -> int:
    """Tokens of a group of a side."""
    return 1 if count <= MOST_TOKENS else -(-count // GROUPS)


def _grouped_layer(layer: Layer, source: _SingleTokens, sizes: tuple[int, int]) -> Layer:
    # Any, as a field may be given an array that is worked out later, and always gives an array.
    weights: Any = GroupedWeights(layer, source, sizes)
    return Layer(
        layer=layer.layer,
        held_heads=layer.held_heads,
        weights=weights,
        visible=_grouped_mask(layer.visible, sizes),
        sinks=layer.part("sinks") if layer.has("sinks") else None,
        changes=layer.changes,
        partial=layer.partial,
        module=layer.module,
        route=layer.route,
        verified=layer.verified,
        verified_against=layer.verified_against,
        verified_limit=layer.verified_limit,
    )


@lru_cache(maxsize=8)  # most layers share their mask
def _grouped_mask(visible: Mask, sizes: tuple[int, int]) -> Mask:
    """A group sees another where one of its queries sees one of the keys."""
    queries, keys = (-(-count // size) for count, size in zip(visible.shape, sizes, strict=True))
    if visible.is_full:
        return Mask.full(queries, keys)
    owner = np.repeat(np.arange(visible.shape[0]), np.diff(visible.firsts)) // sizes[0]
    # One up where a run begins and one down behind it: where the sum is above 0, a run lies.
    steps = np.zeros((queries, keys + 1), np.int32)
    np.add.at(steps, (owner, visible.runs[:, 0] // sizes[1]), 1)
    np.add.at(steps, (owner, (visible.runs[:, 1] - 1) // sizes[1] + 1), -1)
    return Mask.of(np.cumsum(steps[:, :-1], axis=1) > 0)


def _grouped_tokens(tokens: Tokens, size: int) -> Tokens:
    """Each group as one token, whose text is that of its tokens."""
    if size == 1:
        return tokens
    parts = [slice(first, first + size) for first in range(0, len(tokens), size)]
    continues = tokens.continues
    texts = []
    for part in parts:
        pieces = zip(tokens.labels[part], continues[part], strict=True)
        texts.append("".join(label if after else f" {label}" for label, after in pieces).strip())
    return Tokens(
        pieces=tuple(texts),
        labels=tuple(texts),
        special=tuple(all(tokens.special[part]) for part in parts),
        segments=tuple(tokens.segments[part][0] for part in parts),
        texts=tokens.texts,
        numbered=tokens.numbered,
    )
