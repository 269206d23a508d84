"""A record from bare arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from headscope.errors import RecordError
from headscope.record._facts import ModelFacts
from headscope.record._layer import Layer
from headscope.record._mask import Mask
from headscope.record._record import Record
from headscope.record._stack import Stack
from headscope.record._tokens import Tokens

Pieces = Sequence[str] | Tokens
NEEDED = {
    "self": "tokens",
    "encoder": "encoder_tokens",
    "decoder": "decoder_tokens",
    "cross": "decoder_tokens and encoder_tokens",
}
"""Which tokens the attention of each stack needs."""


def from_weights(  # noqa: PLR0913 - the names that users of BertViz know
    weights: Any = None,
    tokens: Pieces | None = None,
    *,
    sentence_b_start: int | None = None,
    encoder: Any = None,
    decoder: Any = None,
    cross: Any = None,
    encoder_tokens: Pieces | None = None,
    decoder_tokens: Pieces | None = None,
    model: str = "",
    partial: bool = False,
) -> Record:
    """A record from attention weights that any library computed.

    Weights are one array ``[layer head query key]``, or one array ``[head query key]`` for each
    layer (a batch axis of 1 is dropped), as NumPy arrays, torch tensors or nested lists. A layer
    given as None keeps its number and is left out, as in hybrid models.

    What ``model.generate(..., output_attentions=True)`` returns, a tuple of layers for each step,
    is joined: one row for each token that was read. The token that was written last was never read;
    it may stand at the end of ``tokens``.

    Where no head of any layer looks ahead, not even a little, the mask is taken to be causal, so
    that even attention is that over the tokens so far.

    Args:
        weights: attention of a model with one stack.
        tokens: its tokens.
        sentence_b_start: position of the first token of the second text of a pair.
        encoder: attention ``[layer head query key]`` of an encoder over ``encoder_tokens``.
        decoder: the same of a decoder over ``decoder_tokens``.
        cross: attention from ``decoder_tokens`` to ``encoder_tokens``.
        encoder_tokens: tokens of the source.
        decoder_tokens: tokens of the target.
        model: what to call the model.
        partial: whether rows were cut (the largest weights of each, a sparse form) and may sum to
            less than 1: views and figures say how much was not kept.

    Raises:
        RecordError: where something is missing, or arrays and tokens do not fit.

    Example:
        >>> record = from_weights([[[[0.25, 0.75], [1.0, 0.0]]]], ["a", "b"])
        >>> record["self"].weights(layer=0, head=0).tolist()
        [[0.25, 0.75], [1.0, 0.0]]
    """
    given = {
        "self": (weights, tokens, tokens),
        "encoder": (encoder, encoder_tokens, encoder_tokens),
        "decoder": (decoder, decoder_tokens, decoder_tokens),
        "cross": (cross, decoder_tokens, encoder_tokens),
    }
    stacks = {}
    for name, (arrays, query, key) in given.items():
        if arrays is None:
            continue
        if query is None or key is None:
            needed = NEEDED[name]
            raise RecordError(f"from_weights: {name} attention was given without {needed}")
        start = sentence_b_start if name == "self" else None
        asking, asked = parse_tokens(query, start), parse_tokens(key, start)
        layers = parse_layers(arrays, name, partial=partial)
        if name in ("self", "decoder"):
            layers = _causal_where_nothing_is_ahead(layers)
        if is_ragged(arrays):
            queries, keys = layers[0].size
            asking, asked = _read(asking, queries), _read(asked, keys)
        stacks[name] = Stack(name=name, query=asking, key=asked, layers=layers)
    if not stacks:
        raise RecordError(
            "from_weights: give weights and tokens, or encoder, decoder and cross with their tokens"
        )
    return Record(stacks=stacks, model=ModelFacts(name=model))


def parse_tokens(tokens: Pieces, sentence_b_start: int | None = None) -> Tokens:
    """Tokens from pieces, the second text of a pair beginning at ``sentence_b_start``."""
    if isinstance(tokens, Tokens):
        return tokens
    if isinstance(tokens, str) or not isinstance(tokens, Iterable):
        raise RecordError(
            f"Tokens must be a list of strings, not {tokens!r}; split a text into tokens first"
        )
    pieces = tuple(tokens)
    if sentence_b_start is None:
        return Tokens(pieces=pieces)
    if not isinstance(sentence_b_start, Integral) or not 0 < sentence_b_start < len(pieces):
        raise RecordError(
            f"sentence_b_start is {sentence_b_start!r}; it must lie between 1 and {len(pieces) - 1}"
        )
    segments = (0,) * sentence_b_start + (1,) * (len(pieces) - sentence_b_start)
    return Tokens(pieces=pieces, segments=segments)


def _causal_where_nothing_is_ahead(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """The layers with a causal mask, where every weight to a later key is exactly 0 in all."""
    for layer in layers:
        queries, keys = layer.size
        if queries > keys or np.triu(layer.held_weights(), 1 + keys - queries).any():
            return layers
    return tuple(replace(layer, visible=Mask.causal(*layer.size)) for layer in layers)


def _read(tokens: Tokens, count: int) -> Tokens:
    """The tokens that were read: of a generation all but the one written last."""
    return tokens.take(range(count)) if len(tokens) == count + 1 else tokens


def parse_layers(arrays: Any, name: str, *, partial: bool = False) -> tuple[Layer, ...]:
    """One `Layer` for each array that is not None, numbered by its place."""
    if is_ragged(arrays):
        return parse_layers(joined_steps(arrays, name), name, partial=partial)
    if not isinstance(arrays, Sized) or getattr(arrays, "shape", None) == ():
        raise RecordError(
            f"{name} attention is {arrays!r:.60}; give one array [head query key] for each layer"
        )
    if not hasattr(arrays, "shape") and not len(arrays):
        raise RecordError(
            f"{name} attention is empty: the model returned none. Under sdpa transformers returns "
            "nothing for output_attentions=True; use headscope.capture(model, tokenizer, text)"
        )
    return tuple(
        Layer(
            layer=number,
            weights=parse_array(array, f"{name} attention of layer {number}"),
            partial=partial,
        )
        for number, array in enumerate(arrays)
        if array is not None
    )


def parse_array(array: Any, name: str) -> np.ndarray:
    """A float array ``[head query key]`` of our own from a NumPy array, a torch tensor or nested
    lists.
    """
    _check_plain(array, name)
    own = plain(array, name)
    if own.ndim == 4 and own.shape[0] == 1:
        own = own[0]
    if own.ndim == 4:
        raise RecordError(
            f"{name} holds a batch of {own.shape[0]} texts; give one of them, such as attention[0]"
        )
    if own.ndim != 3:
        raise RecordError(f"{name} has shape {own.shape}; expected three axes [head query key]")
    return own


def plain(value: Any, name: str) -> np.ndarray:
    """A float array of our own from a tensor, an array, nested lists or a resolved proxy, float32
    unless it was float64: a record is frozen, and the caller's array is not.
    """
    value = resolved(value)
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        # NumPy has no bfloat16.
        value = (value.float() if is_half(value) else value).numpy()
    dtype = None if getattr(value, "dtype", None) == np.float64 else np.float32
    try:
        return np.array(value, dtype=dtype, order="C")
    except (TypeError, ValueError):
        raise RecordError(
            f"{name} is not an array of numbers with equally long rows but {type(value).__name__}"
        ) from None


def resolved(value: Any) -> Any:
    """What a saved proxy stands for: its ``.value``, or itself."""
    # Older releases of nnsight save a proxy; what has a shape is a tensor already.
    return value.value if hasattr(value, "value") and not hasattr(value, "shape") else value


def is_half(value: Any) -> bool:
    """Whether a tensor or array is of half precision."""
    return str(getattr(resolved(value), "dtype", "")).endswith("float16")


def _check_plain(array: Any, name: str) -> None:
    """Raise where something would be dropped in silence, or there are no numbers.

    Raises:
        RecordError: a sparse or meta tensor, complex numbers, a masked array.
    """
    if getattr(array, "is_meta", False):
        raise RecordError(
            f"{name} is on the meta device, where there are no numbers; give one that was computed"
        )
    if "sparse" in str(getattr(array, "layout", "")):
        raise RecordError(
            f"{name} is a sparse tensor; give {name.partition(' ')[0]} attention as .to_dense()"
        )
    if "complex" in str(getattr(array, "dtype", "")):
        raise RecordError(f"{name} holds complex numbers; give real ones, such as .real")
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise RecordError(
            f"{name} is a masked array; give .filled(0) if masked entries have no attention"
        )


def is_ragged(arrays: Any) -> bool:
    """Whether these are steps with layers ``[1 head query key]`` in each, as ``model.generate``
    returns them.
    """
    if hasattr(arrays, "shape") or not isinstance(arrays, Sequence) or not arrays:
        return False
    first = arrays[0]
    if hasattr(first, "shape") or not isinstance(first, Sequence):
        return False
    return len(first) > 0 and all(
        array is None or len(getattr(array, "shape", ())) == 4 for array in first
    )


def joined_steps(steps: Any, name: str) -> list[Any]:
    """An array ``[head query key]`` for each layer: the rows of all steps below each other.

    A step that wrote one token has its row alone, over the keys until then; those that came later
    it could not see.

    Args:
        steps: for each step the layers, ``[1 head query key]`` or None.
        name: of the attention, for messages.

    Raises:
        RecordError: steps with different layers, several texts or beams, or keys that do not go on
            from each other.
    """
    counts = {len(step) for step in steps}
    if len(counts) > 1:
        raise RecordError(
            f"{name} attention: the steps have {sorted(counts)} layers; give what one generate "
            "returned"
        )
    return [
        _joined([step[number] for step in steps], f"{name} attention of layer {number}")
        for number in range(counts.pop())
    ]


def _joined(steps: list[Any], name: str) -> np.ndarray | None:
    if all(step is None for step in steps):
        return None
    known = _alike(steps, name)
    rows, keys = sum(step.shape[2] for step in known), known[-1].shape[3]
    square = np.zeros((known[0].shape[1], rows, keys), np.float32)
    first = 0
    for number, step in enumerate(known):
        stop = first + step.shape[2]
        # Self-attention looks at all tokens read so far; cross-attention at the whole source in
        # every step.
        if step.shape[3] not in (stop, keys):
            raise RecordError(
                f"{name}: step {number} has {step.shape[3]} keys, and {stop} tokens were read by "
                "then; a cache that forgets (a sliding window) or was filled before cannot be "
                "joined: use headscope.generate"
            )
        square[:, first:stop, : step.shape[3]] = step[0]
        first = stop
    return square


def _alike(steps: list[Any], name: str) -> list[np.ndarray]:
    """The steps, all of which must be there, of one text and with the same heads."""
    known = [plain(step, name) for step in steps if step is not None]
    shapes = {step.shape[:2] for step in known}
    if len(known) < len(steps) or len(shapes) > 1 or known[0].shape[0] != 1:
        raise RecordError(
            f"{name}: steps must be arrays [1 head query key] of as many heads; give one text, "
            "one beam"
        )
    return known
