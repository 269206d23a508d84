"""A record from what a trace of nnsight saved; nnsight is not imported."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from headscope.errors import RecordError, listed
from headscope.foreign._cached_layer import LayerArrays, layer_of
from headscope.foreign._foreign import BatchPart, Positions, stacks_of, tokens_of
from headscope.record import ROW_SUM_TOLERANCE, Layer, ModelFacts, Record
from headscope.record.bare_arrays import Pieces, is_half, plain, resolved

STACKS = ("encoder", "decoder", "cross")
AXES = {
    "weights": "head query key",
    "queries": "head query feature",
    "keys": "kv_head key feature",
    "values": "kv_head key feature",
    "output": "query head feature",
    "mask": "head query key",
    "scale": "",
    "soft_cap": "",
}
MASKED = -1e4
"""What is added to a score that is masked is at most this; a bias never comes near it."""


def from_nnsight(
    saved: Any,
    tokens: Pieces,
    *,
    text: str | None = None,
    decoder_tokens: Pieces | None = None,
    example: int | None = None,
    positions: Positions | None = None,
    model: str = "",
) -> Record:
    """A record from values that an nnsight trace saved, one for each layer.

    ``saved`` is a list (None for a layer without), a dictionary from layer number or module path,
    or what ``tracer.cache(modules=[...])`` gave. The value of a layer is one of

    - the weights ``[batch head query key]``;
    - the output of an attention module, ``(output, weights)``;
    - a dictionary of ``weights``, ``queries [batch head query feature]``, ``keys``, ``values``,
      ``output [batch query head feature]`` before the output projection, ``scale``, ``soft_cap``
      and ``sinks``, or some of them;
    - a dictionary of the ``inputs`` and the ``output`` of the call of transformers' attention
      interface. It holds all of these, and needs no eager attention: weights that sdpa does not
      give are recomputed.

    Queries and keys must give the weights, and weights times values the output.

    Args:
        saved: the values; for an encoder-decoder model a dictionary with ``encoder``, ``decoder``
            and ``cross``.
        tokens: the tokens, such as ``model.tokenizer.convert_ids_to_tokens(ids)``; of the encoder
            where there are two.
        text: the text of the tokens.
        decoder_tokens: tokens of the decoder of an encoder-decoder model.
        example: which text of a batch.
        positions: where the tokens are in a padded batch, such as ``slice(2, None)`` after two of
            padding.
        model: what to call the model.

    Raises:
        RecordError: where there is nothing to read, tokens do not fit, or the parts of a layer do
            not agree.

    Example:
        In a trace, ``model`` being a ``LanguageModel("gpt2", attn_implementation="eager")``::

            with model.trace(text):
                saved = nnsight.save([block.attn.output[1] for block in model.transformer.h])
            record = headscope.foreign.from_nnsight(saved, model.tokenizer.tokenize(text))

        >>> record = from_nnsight([[[[1.0, 0.0], [0.25, 0.75]]]], ["Once", "upon"])
        >>> record["self"].weights(layer=0, head=0).tolist()
        [[1.0, 0.0], [0.25, 0.75]]
    """
    saved = resolved(saved)
    # A dictionary of layers has other keys.
    has_stacks = isinstance(saved, Mapping) and saved and set(saved) <= set(STACKS)
    given: Mapping[str, Any] = saved if has_stacks else {"self": saved}
    cut = BatchPart(example=example, positions=positions)
    cut.check_stacks(given)
    layers = {name: _layers(values, name, cut) for name, values in given.items()}
    stacks = stacks_of(layers, tokens_of(tokens, text), decoder_tokens)
    return Record(stacks=stacks, model=ModelFacts(name=model, implementation="nnsight"))


def _layers(values: Any, name: str, cut: BatchPart) -> tuple[Layer, ...]:
    layers = [_layer(at, where, _parts(own, where), cut) for at, where, own in _numbered(values)]
    if not layers:
        raise RecordError(
            f"{name} attention is empty: every value is None. Under sdpa modules return no "
            "weights; load the model with attn_implementation='eager', or save the inputs "
            "and the output of the attention interface's call"
        )
    return tuple(layers)


def _numbered(saved: Any) -> Iterator[tuple[int, str, Any]]:
    """Layer number, what to call it, and the value, of every layer that has one; in order."""
    if not hasattr(saved, "keys"):
        several = listed(saved, "what nnsight saved of each layer")
        values = [(number, f"layer {number}", value) for number, value in enumerate(several)]
    else:
        values = [(_number(name), str(name), saved[name]) for name in saved.keys()]  # noqa: SIM118 - not only mappings
    seen: dict[int, str] = {}
    for number, name, value in sorted(values, key=lambda entry: entry[0]):
        if number in seen:
            raise RecordError(
                f"{seen[number]!r} and {name!r} are both layer {number}; give one attention "
                "module for each layer, and those of an encoder-decoder model as {'encoder': "
                "..., 'decoder': ..., 'cross': ...}"
            )
        seen[number] = name
        if resolved(value) is not None:
            yield number, name, value


def _number(name: Any) -> int:
    """The layer number, or the one in a module path such as ``model.transformer.h.3.attn``."""
    numbers = re.findall(r"(?:^|\.)(\d+)(?=\.|$)", str(name))
    if not numbers:
        raise RecordError(
            f"{name!r} names no layer; expected layer numbers or paths of attention modules "
            "such as 'h.3.attn', as of tracer.cache(modules=[block.attn for block in "
            "model.transformer.h])"
        )
    # Of several numbers the first is the layer's; T5 counts the parts of a block as well, as in
    # decoder.block.3.layer.1.
    return int(numbers[0])


def _parts(value: Any, name: str) -> dict[str, Any]:
    """The parts of one layer by the names of `AXES`, and ``sinks``."""
    value = resolved(value)
    if isinstance(value, Mapping):
        if "inputs" in value:
            return _parts_of_call(value["inputs"], value.get("output"), name)
        return _named_parts(value, name)
    # An entry of tracer.cache has the output of its module in .output.
    if not hasattr(value, "shape") and hasattr(value, "output"):
        value = resolved(value.output)
    return {"weights": _weights_among(value, name) if isinstance(value, tuple) else value}


def _named_parts(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    # A mask alone says too little; it is read only of a call, which comes with its scores.
    known = [part for part in (*AXES, "sinks") if part != "mask"]
    strange = set(value) - set(known)
    if strange:
        raise RecordError(
            f"{name} holds {sorted(map(str, strange))}; known are {', '.join(known)}, or inputs "
            "and output"
        )
    return {key: part for key, part in value.items() if resolved(part) is not None}


def _weights_among(values: tuple, name: str) -> Any:
    """The weights in what an attention module returned: after the output, and rows that sum to
    1.
    """
    for value in map(resolved, values[1:]):
        if hasattr(value, "shape") and len(value.shape) in (3, 4):
            sums = plain(value, name).sum(axis=-1)
            if (np.abs(sums - 1) < ROW_SUM_TOLERANCE).all():
                return value
    given = ", ".join(
        str(tuple(value.shape)) if hasattr(value, "shape") else type(value).__name__
        for value in values
    )
    raise RecordError(
        f"{name} returned no attention weights, but {given}: under sdpa modules return None in "
        "their place. Load the model with attn_implementation='eager', or save the inputs and "
        "the output of the attention interface's call"
    )


def _parts_of_call(inputs: Any, output: Any, name: str) -> dict[str, Any]:
    """The parts of a call of transformers' attention interface: module, query, key, value, mask,
    and options.
    """
    try:
        (_, queries, keys, values, *rest), named = resolved(inputs)
        options = dict(named)
        made, weights = (None, None) if output is None else tuple(resolved(output))[:2]
    except (TypeError, ValueError):
        raise RecordError(
            f"{name}: inputs and output are not those of a call attention_interface(module, "
            "query, key, value, mask, scaling=...) -> (output, weights); print(attention.source) "
            "names the call, for GPT-2 attention.source.attention_interface_1"
        ) from None
    parts = {"queries": queries, "keys": keys, "values": values, "weights": weights, "output": made}
    parts["mask"] = rest[0] if rest else options.get("attention_mask")
    parts |= {"scale": options.get("scaling"), "soft_cap": options.get("softcap")}
    parts["sinks"] = options.get("s_aux")
    return {key: part for key, part in parts.items() if resolved(part) is not None}


def _layer(number: int, name: str, parts: dict[str, Any], cut: BatchPart) -> Layer:
    def array(part: str) -> np.ndarray | None:
        if part not in parts:
            return None
        take = cut.of_weights if part == "weights" else cut.of
        return take(parts[part], AXES[part], f"{part} of {name}")

    queries, output, sinks = array("queries"), array("output"), parts.get("sinks")
    scales: tuple[float, ...] = ()
    if queries is not None:
        # what models take that say nothing; the weights, where there are any, hold it to that
        scales = (queries.shape[-1] ** -0.5 if array("scale") is None else float(parts["scale"]),)
    if output is not None:
        output = np.ascontiguousarray(output.swapaxes(0, 1))
    if sinks is not None:
        sinks = plain(sinks, f"sinks of {name}").reshape(-1)
    visible, bias = _mask(parts, name, cut)
    return layer_of(
        LayerArrays(
            name=name,
            layer=number,
            route="nnsight",
            weights=array("weights"),
            queries=queries,
            keys=array("keys"),
            values=array("values"),
            output=output,
            scales=scales,
            soft_cap=None if array("soft_cap") is None else float(parts["soft_cap"]),
            bias=bias,
            sinks=sinks,
            visible=visible,
            half=any(is_half(part) for part in parts.values()),
        )
    )


def _mask(
    parts: dict[str, Any], name: str, cut: BatchPart
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Where queries may look and what is added to their scores, of the mask that a call was
    given.
    """
    if "mask" not in parts:
        return None, None
    given = resolved(parts["mask"])
    is_bool = str(getattr(given, "dtype", "")).endswith("bool")
    if len(given.shape) == 4 and given.shape[0] == 1:
        # One mask may serve all texts of a batch, and is the first whichever text is wanted.
        cut = replace(cut, example=0)
    added = cut.of(given, AXES["mask"], f"mask of {name}")
    # A mask of booleans became one of 0.0 and 1.0 on the way, as all arrays here are floats.
    least = 0.5 if is_bool else MASKED
    visible = np.any(added > least, axis=0)
    bias = np.where(visible, added, np.float32(0))
    added_to = bias if bias.any() and not is_bool else None
    return None if visible.all() else visible, added_to
