"""The attention of several texts of one length, side by side: what a record holds, with an axis of
texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.record._facts import ModelFacts
from headscope.record._mask import Mask
from headscope.record._record import Record
from headscope.record._stack import Stack
from headscope.record._tokens import Tokens


@dataclass(frozen=True, kw_only=True, eq=False)
class BatchLayer:
    """The weights of one layer on each text of a batch.

    Args:
        layer: number of the layer in the model, from 0.
        heads: numbers of its heads in the model.
        visible: what the queries may look at, the same in all texts.
        weights: rows sum to 1, or to less where there are sinks.
    """

    layer: int
    heads: tuple[int, ...]
    visible: Mask
    weights: Float[np.ndarray, "text head query key"]


@dataclass(frozen=True, kw_only=True, eq=False)
class BatchStack:
    """The layers that share their tokens, on each text of a batch.

    Args:
        name: as of `Stack`.
        query: the tokens that look, of each text.
        key: the tokens that are looked at; the same ones but in cross-attention.
        layers: in order.

    Raises:
        RecordError: where texts differ in length, or weights do not fit them.
    """

    name: str
    query: tuple[Tokens, ...]
    key: tuple[Tokens, ...]
    layers: tuple[BatchLayer, ...]

    def __post_init__(self) -> None:
        sizes = {(len(query), len(key)) for query, key in zip(self.query, self.key, strict=True)}
        if len(sizes) != 1:
            raise RecordError(
                f"Texts of a batch have one length, and these have {sorted(sizes)} queries and "
                "keys; give those of each length by themselves"
            )
        size = sizes.pop()
        for layer in self.layers:
            wanted = (len(self.query), len(layer.heads), *size)
            if layer.weights.shape != wanted or layer.visible.shape != size:
                raise RecordError(
                    f"Stack {self.name!r}, layer {layer.layer}: weights have shape "
                    f"{layer.weights.shape} and a mask of {layer.visible.shape}, but [text head "
                    f"query key] is {wanted}"
                )

    @property
    def cells(self) -> tuple[tuple[int, int], ...]:
        """Numbers of layer and head of every head, layer after layer."""
        return tuple((layer.layer, head) for layer in self.layers for head in layer.heads)

    @classmethod
    def of(cls, stacks: Sequence[Stack]) -> BatchStack:
        """The stacks of records side by side; see `TextBatch.of`.

        Raises:
            RecordError: where they differ in layers, heads, length or masks.
        """
        first = stacks[0]
        layers = []
        for index, layer in enumerate(first.layers):
            alike = [stack.layers[index] for stack in stacks if len(stack) == len(first)]
            heads = [(each.layer, each.head_numbers, each.visible) for each in alike]
            if len(alike) < len(stacks) or any(each != heads[0] for each in heads):
                raise RecordError(
                    f"Stack {first.name!r}, layer {layer.layer}: the records differ in their "
                    "heads, length or mask; give those alike by themselves"
                )
            weights = [each.held_weights() for each in alike]
            layers.append(
                BatchLayer(
                    layer=layer.layer,
                    heads=layer.head_numbers,
                    visible=layer.visible,
                    weights=weights[0][None] if len(weights) == 1 else np.stack(weights),
                )
            )
        return cls(
            name=first.name,
            query=tuple(stack.query for stack in stacks),
            key=tuple(stack.key for stack in stacks),
            layers=tuple(layers),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class TextBatch:
    """The attention of one model on several texts of one length, without padding.

    Where many short texts are measured this takes the place of a `Record` of each: nothing is held
    but the weights.

    Args:
        stacks: by name, as of `Record`.
        model: what is known about the model.
    """

    stacks: Mapping[str, BatchStack]
    model: ModelFacts = field(default_factory=ModelFacts)

    def __len__(self) -> int:
        return len(next(iter(self.stacks.values())).query)

    def __getitem__(self, name: str) -> BatchStack:
        if name not in tuple(self.stacks):
            raise RecordError(
                f"The texts have the stacks {', '.join(map(repr, self.stacks))}, not {name!r}"
            )
        return self.stacks[name]

    @classmethod
    def of(cls, records: Sequence[Record]) -> TextBatch:
        """The batch of records of one model whose texts have one length and see alike.

        Raises:
            RecordError: where they differ in stacks, layers, heads, length or masks.
        """
        if not records:
            raise RecordError("A batch was made of no record; give one at least")
        names = list(records[0].stacks)
        if any(list(record.stacks) != names for record in records):
            raise RecordError("Records of a batch have the same stacks; give those of one model")
        stacks = {name: BatchStack.of([record[name] for record in records]) for name in names}
        return cls(stacks=stacks, model=records[0].model)
