"""The models and inputs whose capture is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import transformers
from torch import nn

from headscope.capturing import load_model

SEPARATOR_EVERY = 16
FIRST_ORDINARY = 999


@dataclass(frozen=True)
class Shape:
    """A model and how much text it is given."""

    family: str
    batch: int
    tokens: int

    @property
    def name(self) -> str:
        return f"{self.family} {self.batch} x {self.tokens}"

    @property
    def is_short(self) -> bool:
        """Whether a pass takes fractions of a second, so that more rounds are run."""
        return self.batch * self.tokens <= 1024 and self.family != "GPT-2 small"


SMALL = "6 layers"
SHAPES = {
    "minilm-16": Shape("MiniLM", 1, 16),
    "minilm-128": Shape("MiniLM", 8, 128),
    "gpt2-16": Shape(f"GPT-2, {SMALL}", 1, 16),
    "gpt2-128": Shape(f"GPT-2, {SMALL}", 8, 128),
    "llama-16": Shape(f"LLaMA, {SMALL}", 1, 16),
    "llama-128": Shape(f"LLaMA, {SMALL}", 8, 128),
    "bloom-16": Shape(f"BLOOM, {SMALL}", 1, 16),
    "bloom-128": Shape(f"BLOOM, {SMALL}", 8, 128),
    "gptj-16": Shape(f"GPT-J, {SMALL}", 1, 16),
    "gptj-128": Shape(f"GPT-J, {SMALL}", 8, 128),
    "minilm": Shape("MiniLM", 8, 512),
    "gpt2": Shape("GPT-2 small", 1, 1024),
    "llama-2048": Shape("LLaMA", 1, 2048),
    "llama-4096": Shape("LLaMA", 1, 4096),
}


def model_of(shape: Shape, implementation: str) -> nn.Module:
    """The demo model itself, or random weights in the shape of the others; without a cache, which a
    pass over a whole text has no use for.
    """
    model = _model_of(shape, implementation)
    if hasattr(model.config, "use_cache"):
        model.config.use_cache = False
    return model


def _model_of(shape: Shape, implementation: str) -> nn.Module:
    torch.manual_seed(0)
    if shape.family == "MiniLM":
        model, _ = load_model(None)
        model.set_attn_implementation(implementation)
        return model
    if shape.family.endswith(SMALL):
        return small_model(shape.family.split(",")[0], implementation)
    positions = {"attn_implementation": implementation}
    if shape.family == "GPT-2 small":
        return transformers.GPT2Model(
            transformers.GPT2Config(n_positions=shape.tokens, **positions)
        ).eval()
    config = transformers.LlamaConfig(
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        num_key_value_heads=4,
        intermediate_size=2048,
        max_position_embeddings=shape.tokens,
        **positions,
    )
    return transformers.LlamaModel(config).eval()


def small_model(family: str, implementation: str) -> nn.Module:
    """Six layers of 12 heads, width 384, as MiniLM has; GPT-2 with the head that predicts words."""
    sizes = {"hidden_size": 384, "vocab_size": 32000}
    way = {"attn_implementation": implementation}
    if family == "GPT-2":
        config = transformers.GPT2Config(
            vocab_size=2048,
            n_positions=512,
            n_layer=6,
            n_embd=384,
            n_head=12,
            architectures=["GPT2LMHeadModel"],
        )
        config._attn_implementation = implementation
        return transformers.GPT2LMHeadModel(config).eval()
    if family == "LLaMA":
        config = transformers.LlamaConfig(
            **sizes,
            **way,
            num_hidden_layers=6,
            num_attention_heads=12,
            num_key_value_heads=4,
            intermediate_size=1024,
            max_position_embeddings=512,
        )
        return transformers.LlamaModel(config).eval()
    if family == "BLOOM":
        return transformers.BloomModel(
            transformers.BloomConfig(**sizes, n_layer=6, n_head=12)
        ).eval()
    config = transformers.GPTJConfig(
        n_embd=384, n_layer=6, n_head=12, rotary_dim=16, vocab_size=32000, n_positions=512
    )
    return transformers.GPTJModel(config).eval()


def inputs_of(shape: Shape, model: nn.Module) -> Mapping[str, torch.Tensor]:
    """Token numbers with the frequencies of text (about 2 % of the pairs are equal), and separators
    among them.
    """
    generator = torch.Generator().manual_seed(1)
    frequencies = torch.arange(1, model.config.vocab_size - FIRST_ORDINARY).float() ** -1.05
    drawn = torch.multinomial(
        frequencies, shape.batch * shape.tokens, replacement=True, generator=generator
    )
    ids = drawn.view(shape.batch, shape.tokens) + FIRST_ORDINARY
    ids[:, 0] = 101
    ids[:, SEPARATOR_EVERY - 1 :: SEPARATOR_EVERY] = 102
    arguments = {"input_ids": ids}
    if shape.family == "MiniLM":
        arguments["attention_mask"] = torch.ones_like(ids)
    return arguments
