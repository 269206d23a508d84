"""A record from a cache of TransformerLens, which is not imported."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from headscope.errors import RecordError
from headscope.foreign._cached_layer import LayerArrays, layer_of
from headscope.foreign._foreign import BatchPart, Positions, stacks_of, tokens_of
from headscope.record import Layer, ModelFacts, Record
from headscope.record.bare_arrays import Pieces, is_half

# HookedTransformer and HookedEncoder: blocks.0.attn; HookedEncoderDecoder: encoder.0.attn,
# decoder.0.cross_attn; TransformerBridge: blocks.0.attn, encoder_blocks.0.attn,
# decoder_blocks.0.self_attn, decoder_blocks.0.cross_attn.
NAME = re.compile(
    r"(?P<side>blocks|encoder|decoder|encoder_blocks|decoder_blocks)\.(?P<layer>\d+)\."
    r"(?P<block>attn|self_attn|cross_attn)\.hook_(?P<hook>pattern|q|k|v|z|rot_q|rot_k|attn_scores)"
)
STACKS = {
    ("blocks", "attn"): "self",
    ("encoder", "attn"): "encoder",
    ("encoder", "self_attn"): "encoder",
    ("decoder", "attn"): "decoder",
    ("decoder", "self_attn"): "decoder",
    ("decoder", "cross_attn"): "cross",
}
AXES = {
    "pattern": "head query key",
    "attn_scores": "head query key",
    "q": "query head feature",
    "rot_q": "query head feature",
    "z": "query head feature",
    "k": "key kv_head feature",
    "rot_k": "key kv_head feature",
    "v": "key kv_head feature",
}
ENOUGH = ({"pattern"}, {"q", "k", "v", "z"}, {"rot_q", "rot_k", "v", "z"})
"""Any of these hooks makes a layer: its weights, or what they follow from with what proves them."""

Hooks = dict[str, Any]


def from_transformer_lens(
    cache: Any,
    tokens: Pieces,
    *,
    model: Any = None,
    text: str | None = None,
    decoder_tokens: Pieces | None = None,
    example: int | None = None,
    positions: Positions | None = None,
) -> Record:
    """A record from what ``model.run_with_cache`` of TransformerLens kept, every layer checked.

    Read are ``hook_pattern``, and where they are there the rotated or plain queries and keys,
    values and ``hook_z``: ``softmax(q . k)`` must give the pattern, and pattern times values
    ``hook_z`` (the largest difference is ``record.verified``). Scale, mask and a bias by position
    are those that the numbers themselves show. Where the model is rotary and the cache holds no
    rotated queries and keys (Pythia, GPT-J), they are left out.

    Args:
        cache: an ``ActivationCache``, with its batch axis or without, or any mapping with the same
            names.
        tokens: its tokens, ``model.to_str_tokens(text)``; those of the encoder where there are two.
        model: the model, or its ``cfg``; by default the cache's own.
        text: the text of the tokens.
        decoder_tokens: tokens of the decoder of an encoder-decoder model.
        example: which text of a batch.
        positions: where the tokens are in a padded batch, such as ``slice(2, None)`` after two of
            padding.

    Raises:
        RecordError: where there is nothing to read, tokens do not fit, or the parts of a layer do
            not agree.

    Example:
        >>> pattern = [[[1.0, 0.0], [0.25, 0.75]]]
        >>> record = from_transformer_lens(
        ...     {"blocks.3.attn.hook_pattern": pattern}, ["<|endoftext|>", "Once"]
        ... )
        >>> record["self"].weights(layer=3, head=0).tolist()
        [[1.0, 0.0], [0.25, 0.75]]
    """
    config, cut = _config(cache, model), BatchPart(example=example, positions=positions)
    hooks = _sorted(cache)
    cut.check_stacks(hooks)
    layers = {name: tuple(_layer(own, config, cut) for own in hooks[name]) for name in hooks}
    stacks = stacks_of(layers, tokens_of(tokens, text), decoder_tokens)
    return Record(stacks=stacks, model=_facts(config))


def _sorted(cache: Any) -> dict[str, list[Hooks]]:
    """The hooks of every layer of every stack, in order; ``module`` and ``layer`` say whose they
    are.
    """
    of_layers = _hooks_of_layers(cache)
    stacks: dict[str, list[Hooks]] = {}
    for stack, layer in sorted(of_layers):
        hooks = of_layers[stack, layer]
        if any(enough <= set(hooks) for enough in ENOUGH):
            stacks.setdefault(stack, []).append(hooks)
    if not stacks:
        raise RecordError(
            "The cache holds no attention: expected names such as "
            "'blocks.0.attn.hook_pattern', given were "
            f"{', '.join(list(map(str, cache.keys()))[:4]) or 'none'}; run_with_cache without "
            "names_filter keeps them"
        )
    order = ("self", "encoder", "decoder", "cross")
    return {name: stacks[name] for name in order if name in stacks}


def _hooks_of_layers(cache: Any) -> dict[tuple[str, int], Hooks]:
    """The hooks of attention in a cache, by stack and layer.

    Raises:
        RecordError: attention whose place is not known: left out in silence, a stack of the record
            would be missing.
    """
    of_layers: dict[tuple[str, int], Hooks] = {}
    strange = []
    if not hasattr(cache, "keys"):
        raise RecordError(f"Expected a cache of transformer-lens, got {repr(cache)[:60]}")
    for name in map(str, cache.keys()):  # an ActivationCache iterates otherwise
        match = NAME.fullmatch(name)
        if match is None:
            # Most of a cache is no attention; only a pattern that is not understood matters.
            strange += [name] if name.endswith("hook_pattern") else []
            continue
        block = match["side"].removesuffix("_blocks"), match["block"]
        if block not in STACKS:
            strange.append(name)
            continue
        hooks = of_layers.setdefault((STACKS[block], int(match["layer"])), {})
        hooks |= {
            match["hook"]: cache[name],
            "module": name.rpartition(".")[0],
            "layer": int(match["layer"]),
        }
    if strange:
        raise RecordError(
            "The cache holds attention that headscope does not know the place of: "
            f"{', '.join(strange[:4])}; pass a dictionary without it, such as {{name: cache[name] "
            "for name in cache.keys() if name.startswith('blocks.')}"
        )
    return of_layers


def _layer(hooks: Hooks, config: Any, cut: BatchPart) -> Layer:
    module = hooks["module"]

    def part(hook: str) -> np.ndarray | None:
        if hook not in hooks:
            return None
        take = cut.of_weights if hook == "pattern" else cut.of
        array = take(hooks[hook], AXES[hook], f"{module}.hook_{hook}")
        if AXES[hook].startswith("head"):
            return array
        return np.ascontiguousarray(array.swapaxes(0, 1))

    rotated = "rot_q" in hooks and "rot_k" in hooks
    # Queries and keys of a rotary model as they were before positions do not give the pattern.
    hidden = (
        not rotated
        and _fact(config, "positional_embedding_type") == "rotary"
        and "pattern" in hooks
    )
    queries, keys = None, None
    if not hidden:
        before = "rot_" if rotated else ""
        queries, keys = part(f"{before}q"), part(f"{before}k")
    return layer_of(
        LayerArrays(
            name=module,
            layer=hooks["layer"],
            route="TransformerLens",
            weights=part("pattern"),
            queries=queries,
            keys=keys,
            values=part("v"),
            output=part("z"),
            scores=part("attn_scores"),
            scales=() if queries is None else _scales(config, queries.shape[-1]),
            soft_cap=_soft_cap(config),
            half=any(is_half(hooks[hook]) for hook in AXES if hook in hooks),
        )
    )


def _scales(config: Any, features: int) -> tuple[float, ...]:
    """What scores may be multiplied by: the configuration's divisor, 1 / sqrt(d_head), or nothing
    (T5, GPT-Neo).

    The configuration alone does not decide: a TransformerBridge says ``attn_scale=-1`` and
    ``use_attn_scale=True`` for models that do not scale as well.
    """
    divisor = float(_fact(config, "attn_scale") or 0)
    named = (1 / divisor,) if divisor > 0 and _fact(config, "use_attn_scale") is not False else ()
    return (*named, features**-0.5, 1.0)


def _soft_cap(config: Any) -> float | None:
    cap = _fact(config, "attn_scores_soft_cap")
    return float(cap) if cap is not None and cap > 0 else None


def _config(cache: Any, model: Any) -> Any:
    model = getattr(cache, "model", None) if model is None else model
    return getattr(model, "cfg", model)


def _fact(config: Any, name: str) -> Any:
    return config.get(name) if isinstance(config, dict) else getattr(config, name, None)


def _facts(config: Any) -> ModelFacts:
    architecture = _fact(config, "architecture") or _fact(config, "original_architecture") or ""
    dtype = str(_fact(config, "dtype") or "").removeprefix("torch.")
    return ModelFacts(
        name=str(_fact(config, "model_name") or ""),
        class_name=str(architecture),
        implementation="TransformerLens",
        dtype=dtype,
    )
