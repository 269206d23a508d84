"""Blocks of one shape, such as the layers of a short text, in one set of array operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.norms._block import OF_TEXT, Block
from headscope.norms._block_arrays import BlockArrays, Kinds
from headscope.norms._norm import Norm
from headscope.norms._products import ProjectionProducts

NORMS = ("before", "after", "second")


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockStack(BlockArrays):
    """Blocks of one shape, whose contributions are worked out together; an axis of blocks stands in
    front of all others.

    A short text's layers are small arrays, of which many cost as much as one. What is multiplied
    with matrices of a layer's own is still done block by block.

    Args:
        blocks: the blocks.
        norms: by each norm of the stack, those of the blocks.
    """

    blocks: tuple[Block, ...]
    norms: dict[Norm, tuple[Norm, ...]]

    @classmethod
    def of(cls, blocks: Sequence[Block]) -> BlockStack:
        """The stack of these blocks.

        Raises:
            RecordError: where their shapes or the kinds of their norms differ.
        """
        first = blocks[0]
        if len({shape_of(block) for block in blocks}) != 1:
            raise RecordError("Blocks of a stack must have the same shapes and kinds of norms")
        arrays = {}
        for name in (*OF_TEXT, "bias"):
            if getattr(first, name) is not None:
                arrays[name] = np.stack([getattr(block, name) for block in blocks])
        # Between the axis of blocks and the features are those of texts and of queries.
        axes = first.weights.ndim - 2
        if first.bias is not None:
            arrays["bias"] = arrays["bias"].reshape(len(blocks), *[1] * axes, -1)
        norms = {}
        for name in NORMS:
            if getattr(first, name) is not None:
                own = tuple(getattr(block, name) for block in blocks)
                arrays[name] = Norm.stacked(own, axes=axes)
                norms[arrays[name]] = own
        return cls(**arrays, same=first.same, blocks=tuple(blocks), norms=norms)

    @property
    def size(self) -> tuple[int, int, int, int]:
        """Numbers of heads, queries, keys and features of the model."""
        return self.blocks[0].size

    @property
    def dtype(self) -> np.dtype:
        """The precision of its blocks."""
        return self.blocks[0].dtype

    @cached_property
    def in_double(self) -> BlockStack:
        """The same in double precision, without products."""
        return BlockStack.of([block.in_double for block in self.blocks])

    @property
    def has_products(self) -> bool:
        """Whether scalar products follow from those of projections."""
        return all(block.has_products for block in self.blocks)

    @property
    def is_short(self) -> bool:
        """Whether the vectors of all pairs of tokens are held, and no Gram matrices."""
        return self.blocks[0].is_short

    def projected(
        self, contexts: Float[np.ndarray, "*text query head feature"]
    ) -> Float[np.ndarray, "*text query model"]:
        """The output projection of each block's heads, without b_O."""
        outputs = [block.projected(own) for block, own in zip(self.blocks, contexts, strict=True)]
        return np.stack(outputs)

    def products_of(self, index: tuple[int, ...], kinds: Kinds) -> tuple[ProjectionProducts, Kinds]:
        """Those of the block of a text."""
        own = tuple(self._norms_of(index[0], norms) for norms in kinds)
        return self.blocks[index[0]].products_of(index[1:], own)

    def gram(
        self, keys: slice, kinds: Kinds
    ) -> tuple[
        Float[np.ndarray, "*text key kind head head"], Float[np.ndarray, "*text key kind head"]
    ]:
        """Scalar products of the vectors of each key's heads, and a bound of their lengths."""
        grams, bounds = [], []
        for number, block in enumerate(self.blocks):
            own = tuple(self._norms_of(number, norms) for norms in kinds)
            gram, longest = block.gram(keys, own)
            grams.append(gram)
            bounds.append(longest)
        return np.stack(grams), np.stack(bounds)

    def one(
        self, index: tuple[int, ...], norms: tuple[Norm, ...]
    ) -> tuple[Block, tuple[Norm, ...]]:
        """The block of one text, and its norms among these."""
        number, *text = index
        return self.blocks[number].one(tuple(text), self._norms_of(number, norms))

    def _norms_of(self, number: int, norms: tuple[Norm, ...]) -> tuple[Norm, ...]:
        """A block's own norms among these of the stack."""
        return tuple(self.norms[norm][number] for norm in norms)


def shape_of(block: Block) -> tuple[object, ...]:
    """What blocks of a stack must have in common."""
    shapes = []
    for name in ("weights", "values", "projection", "bias", "residual", "beside", "stream_again"):
        array = getattr(block, name)
        shapes.append(None if array is None else array.shape)
    kinds = []
    for name in NORMS:
        norm = getattr(block, name)
        kinds.append(None if norm is None else (norm.centred, norm.divided))
    return (*shapes, *kinds, block.same, block.dtype)
