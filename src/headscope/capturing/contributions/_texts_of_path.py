"""Texts of a call that are worked on together, and the block of all that they follow from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from headscope.capturing.building._real_tokens import RealTokens
from headscope.capturing.calls.attention import QueryRows, weights_of
from headscope.capturing.calls.call import Call, some_of
from headscope.capturing.calls.visibility import Visibility
from headscope.capturing.contributions._residual_path import ResidualPath, filled_up
from headscope.norms import Block, Norm
from headscope.record import ContributionKind as Kind

ALL: tuple[Kind, ...] = ("attention", "residual", "output", "alti", "globenc")
OF_STREAM: tuple[Kind, ...] = ALL[1:]
ALTI_NOT_KEPT = 'it was not kept; capture with keep="alti"'
Missing = dict[str, str]
BYTES_AT_ONCE = 2**26
"""How much the weights of the texts of one call may take that are worked on together."""
FILLED_UP_TO = 2
"""To how many times its own pairs of tokens a text is filled up to share a block with longer ones.
"""
FEW_PAIRS = 2**10
"""Up to so many, 32 x 32, any text is: they take less time than operations of its own."""


@dataclass(eq=False, kw_only=True)
class TextsOfPath:
    """Texts of one call that share a block, and what is known of them.

    Shorter texts are filled up to the longest one with copies of their last token, which no query
    looks at: all numbers stay those of tokens, and none of a text depends on another text.

    Args:
        path: where the call's output went.
        texts: these texts; one after the other they are the axis in front of the block's arrays.
        block: what the contributions follow from; None where it has no projection that is affine.
        missing: the kinds that no text has, with the reason.
    """

    path: ResidualPath
    texts: list[RealTokens]
    block: Block | None
    missing: Missing

    @property
    def size(self) -> int:
        """How many numbers the block's arrays hold."""
        if self.block is None:
            return 0
        heads, queries, keys, model = self.block.size
        return len(self.texts) * (heads * queries * keys + 6 * queries * model)


def texts_of(path: ResidualPath, *, with_alti: bool) -> Iterator[TextsOfPath]:
    """The texts of a call, those of about one length together, as many at once as may be held."""
    for texts in _together(path):
        queries, keys = _size_of(texts)
        # Of a longer text alone the weights are held as well.
        most = max(1, BYTES_AT_ONCE // (8 * path.call.size[1] * queries * keys or 1))
        for first in range(0, len(texts), most):
            yield _texts_of(path, texts[first : first + most], with_alti=with_alti)


def _together(path: ResidualPath) -> list[list[RealTokens]]:
    """Texts that may share a block, in the order of the batch."""
    texts = [path.unpadded(example) for example in range(len(path.layers))]
    groups: dict[bool, list[list[RealTokens]]] = {True: [], False: []}
    for text in sorted(texts, key=lambda text: _size_of([text]), reverse=True):
        known = groups[_has_same_tokens(path, text.example)]
        if known and _may_join(known[-1], text):
            known[-1].append(text)
        else:
            known.append([text])
    return [
        sorted(group, key=lambda text: text.example) for group in (*groups[True], *groups[False])
    ]


def _may_join(longer: list[RealTokens], text: RealTokens) -> bool:
    """Whether a text may be filled up to these."""
    own, filled = math.prod(_size_of([text])), math.prod(_size_of([*longer, text]))
    # What is filled up with is a copy of the last token, so that there has to be one.
    return filled == own or (own > 0 and filled <= max(FEW_PAIRS, FILLED_UP_TO * own))


def _size_of(texts: Sequence[RealTokens]) -> tuple[int, int]:
    """Numbers of queries and of keys of the longest texts."""
    return max(len(text.queries) for text in texts), max(len(text.keys) for text in texts)


def _texts_of(path: ResidualPath, texts: list[RealTokens], *, with_alti: bool) -> TextsOfPath:
    missing: Missing = {} if with_alti else {"alti": ALTI_NOT_KEPT}
    try:
        block = _block(path, texts, missing)
    except ValueError as error:
        block = None
        reason = f"{path.call.name}: its output projection is not affine: {error}"
        missing |= dict.fromkeys(ALL, reason)
    return TextsOfPath(path=path, texts=texts, block=block, missing=missing)


def _block(path: ResidualPath, texts: list[RealTokens], missing: Missing) -> Block:
    call = path.call
    numbers = [text.example for text in texts]
    if path.visibility is None:
        raise ValueError(f"{call.name} has no layers yet")
    of_texts, visibility = call.of_texts(numbers), path.visibility.of_texts(numbers)
    matrix, bias = path.projection
    weights, values = _weights_and_values(of_texts, visibility, texts, path)
    heads, features = weights.shape[1], values.shape[-1]
    if len(matrix) != heads * features:
        raise ValueError(f"it has {len(matrix)} inputs for {heads} heads of {features} features")
    residual, beside = _residual(path, texts, missing)
    after = second = again = None
    if residual is not None and path.after is not None:
        after = path.after.norm
    if path.second is not None:
        second = path.second.norm
    if path.again is not None:
        again = path.rows(path.again, texts)
    return Block(
        weights=weights,
        values=values,
        projection=matrix.reshape(heads, features, -1),
        bias=bias,
        residual=residual,
        same=_has_same_tokens(path, numbers[0]),
        before=_before(path),
        beside=beside,
        after=after,
        second=second,
        stream_again=again,
        products=path.products,
    )


def _weights_and_values(
    call: Call,
    visibility: Visibility,
    texts: list[RealTokens],
    path: ResidualPath,
) -> tuple[np.ndarray, np.ndarray]:
    """Weights ``[text head query key]`` and values ``[text kv_head key feature]`` of the real
    tokens: copies, since the model may write into its own, in the precision of the block.
    """
    known, dtype = path.weights, torch.float32 if path.is_single else torch.float64
    if known is not None:
        known = some_of(known, [text.example for text in texts])
    if all((len(text.queries), len(text.keys)) == call.size[2:] for text in texts):
        weights = weights_of(call, visibility) if known is None else known
        return _by_key(weights, dtype), _copied(call.value, dtype)
    queries = QueryRows(filled_up([text.queries for text in texts]))
    keys = QueryRows(filled_up([text.keys for text in texts]))
    weights = weights_of(call, visibility, queries) if known is None else queries.of(known)
    by_key = _by_key(keys.of(weights, axis=3), dtype)
    for index, text in enumerate(texts):
        by_key[index, :, :, len(text.keys) :] = 0
    return by_key, _copied(keys.of(call.value, axis=2), dtype)


def _by_key(weights: torch.Tensor, dtype: torch.dtype) -> np.ndarray:
    """A copy of ``[text head query key]`` that lies in memory as lengths are worked out of: key by
    key.
    """
    return np.moveaxis(_copied(weights.permute(0, 3, 1, 2), dtype), 1, -1)


def _copied(tensor: torch.Tensor, dtype: torch.dtype) -> np.ndarray:
    """A copy whose axes lie in memory in their order."""
    copied = tensor.detach().to("cpu", dtype, copy=True, memory_format=torch.contiguous_format)
    return copied.numpy()


def _residual(
    path: ResidualPath, texts: list[RealTokens], missing: Missing
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """What the block's input adds, and the sum of all else that was added."""
    name = path.call.name
    if path.stream is None:
        missing |= dict.fromkeys(
            OF_STREAM,
            f"{name}: nothing is added to its output, be it after a norm or a scale, row by row; "
            "there is no residual",
        )
        return None, None
    known = path.residuals
    if len(known) != 1:
        count = "nothing" if not known else f"{len(known)} tensors"
        missing |= dict.fromkeys(
            OF_STREAM,
            f"{name}: of what is added to its output, {count} had been read by a part of the model "
            "before; the residual is unknown",
        )
        return None, None
    others = [addend for addend in path.addends if addend is not known[0]]
    beside = path.rows(torch.stack(others).sum(dim=0), texts) if others else None
    return path.rows(known[0], texts), beside


def _has_same_tokens(path: ResidualPath, example: int) -> bool:
    query, key = path.sides
    if path.call.cross:
        return False
    # Most layers have one object for both sides.
    if query is key:
        return True
    same_places = torch.equal(query.positions[example], key.positions[example])
    return same_places and query.tokens[example] == key.tokens[example]


def _before(path: ResidualPath) -> Norm | None:
    if path.scale is None:
        return None if path.before is None else path.before.norm
    scale = path.scale.cpu().numpy()
    if path.before is not None:
        norm = path.before.norm
        return Norm(
            gain=norm.gain * scale,
            shift=norm.shift * scale,
            eps=norm.eps,
            centred=norm.centred,
            divided=norm.divided,
        )
    return Norm(gain=scale, shift=np.zeros_like(scale), centred=False, divided=False)
