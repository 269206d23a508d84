"""Tiny models and records with random weights: made in milliseconds, no download."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.errors import ModelError
from headscope.record import Layer, ModelFacts, Record, Stack, Tokens
from headscope.testing._architectures_media import ARCHITECTURES
from headscope.testing._architectures_text import VOCABULARY

SHARPNESS = 1.6
UNSUITED = (
    AttributeError,
    IndexError,
    KeyError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What models raise when they are given what they cannot read, or a configuration that they do not
know.
"""


def tiny_model(name: str, *, seed: int = 0, writes: bool = False, **changes: Any) -> Any:
    """A transformers model in evaluation mode with random weights.

    Args:
        name: one of `ARCHITECTURES`, such as ``"bert"`` or ``"falcon (alibi)"``.
        seed: of the weights; the caller's random state is left as it was.
        writes: with the head that predicts tokens, which encoder-decoders have anyway.
        **changes: of its configuration.

    Raises:
        ModelError: where there is no such architecture, or the transformers that is installed is
            too old for it.
    """
    import torch
    import transformers
    from transformers import AutoConfig

    from headscope.capturing import loader_of

    if name not in ARCHITECTURES:
        raise ModelError(f"There is no tiny model {name!r}; there are {', '.join(ARCHITECTURES)}")
    model_type = name.partition(" (")[0]
    if model_type not in transformers.CONFIG_MAPPING:
        raise ModelError(
            f"transformers {transformers.__version__} has no {model_type!r}; a newer one has"
        )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        try:
            config = AutoConfig.for_model(
                model_type, **{"vocab_size": VOCABULARY} | ARCHITECTURES[name] | changes
            )
            model = loader_of(config, writes=writes).from_config(config).eval()
        except UNSUITED as error:
            raise ModelError(
                f"transformers {transformers.__version__} makes no tiny {name} model: {error}"
            ) from error
        sharpen(model)
    return model


def sharpen(model: Any) -> None:
    """Draw larger weights than those a training starts from, under which all attention is nearly
    even.
    """
    import torch

    # Many convolutions on top of each other, whose features would grow beyond all numbers.
    has_backbone = getattr(model.config, "backbone_config", None) is not None
    for name, parameter in model.named_parameters():
        with torch.no_grad():
            # By the width of the input, so that outputs are about as large whatever the layer.
            if parameter.ndim >= 2 and "embed" not in name.lower():
                inputs = parameter.shape[1:].numel() if has_backbone else parameter.shape[-1]
                parameter.normal_(std=SHARPNESS / max(1, inputs) ** 0.5)
            elif name.endswith(("bias", "sinks")):
                parameter.normal_(std=0.3)


def tiny_tokenizer() -> Any:
    """A word-piece tokenizer over the letters of English: each word becomes its first letter and
    ``##`` pieces.

    ``[CLS] a [SEP]`` and ``[CLS] a [SEP] b [SEP]`` around texts and pairs; offsets and word numbers
    as usual.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    letters = "abcdefghijklmnopqrstuvwxyz"
    marks = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", ".", ","]
    pieces = [*marks, *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    # Capitals are no pieces of their own, and would all be [UNK].
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(mark, vocabulary[mark]) for mark in ("[CLS]", "[SEP]")]
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
    )
    names = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}
    return PreTrainedTokenizerFast(tokenizer_object=backend, **names)


def random_weights(
    rng: np.random.Generator, shape: Sequence[int], sharpness: float = 2.0
) -> Float[np.ndarray, "..."]:
    """Softmax of normal scores along the last axis, float32."""
    raised = np.exp(sharpness * rng.standard_normal(tuple(shape)))
    return (raised / raised.sum(axis=-1, keepdims=True)).astype(np.float32)


def random_record(
    *, layers: int = 2, heads: int = 3, queries: int = 5, keys: int = 7, seed: int = 0
) -> Record:
    """A cross-attention record whose axes all have their own size, so that no mixed-up axis goes
    unseen.
    """
    rng = np.random.default_rng(seed)
    sides: dict[str, Any] = {}
    for side, count in (("query", queries), ("key", keys)):
        sides[side] = Tokens(pieces=tuple(f"{side[0]}{number}" for number in range(count)))
    weights = [random_weights(rng, (heads, queries, keys)) for _ in range(layers)]
    made = tuple(Layer(layer=number, weights=each) for number, each in enumerate(weights))
    stack = Stack(name="cross", layers=made, **sides)
    return Record(stacks={"cross": stack}, model=ModelFacts(name="random"))
