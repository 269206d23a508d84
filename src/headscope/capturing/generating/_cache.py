"""A key/value cache for models that transformers makes a wrong one for."""

from __future__ import annotations

from typing import Any

from headscope.errors import CaptureError


def deep_cache(model: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """The cache of an encoder-decoder whose decoder has more layers than its encoder; nothing for
    other models.

    transformers (5.23) takes ``num_hidden_layers`` for the size of a cache, which is that of the
    encoder in the T5 family, and runs out of layers. A cache that grows as it is filled has as many
    as there are.

    Args:
        model: that is to write.
        arguments: of its ``generate``.

    Raises:
        CaptureError: where another kind of cache was asked for.
    """
    from transformers import DynamicCache, EncoderDecoderCache

    config = model.config
    deep = getattr(config, "num_decoder_layers", None) or 0
    if (
        not getattr(config, "is_encoder_decoder", False)
        or deep <= config.get_text_config(decoder=True).num_hidden_layers
    ):
        return {}
    wanted = arguments.get("cache_implementation", model.generation_config.cache_implementation)
    if wanted not in (None, "dynamic"):
        raise CaptureError(
            f"{type(model).__name__} has {deep} layers in its decoder and fewer in its encoder, "
            f"and transformers makes its {wanted} cache too short; leave cache_implementation out"
        )
    return {"past_key_values": EncoderDecoderCache(DynamicCache(), DynamicCache())}
