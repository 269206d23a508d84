"""What a language model of 1, 8 and 70 billion parameters takes, by calculation: no GPU and no
download.

Parameters are counted on the real architecture without memory (PyTorch's meta device). What a
record holds is told by `headscope.budget` on a model with the real heads and one layer, times the
layers: neither the width of the model nor its vocabulary is in a record. Prints the tables of
docs/large_models.md:

    python benchmarks/large_models.py
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoModelForCausalLM, LlamaConfig

import headscope as hs
from headscope.testing import tiny_tokenizer

TOKENS = (512, 4096)
KEPT = {
    "queries and keys": "qk",
    "with values": ("qk", "values"),
    "weights": "weights",
    "statistics": "statistics",
}
BYTES = {"float32": 4.0, "bfloat16": 2.0, "4 bits": 0.5}
"""Of a parameter. 4-bit quantisation adds some percent for its scales, and leaves embeddings in
bfloat16.
"""


@dataclass(frozen=True)
class Size:
    """A published architecture: the configuration on the model's hub page.

    Args:
        name: hub name.
        shape: of its configuration.
    """

    name: str
    shape: dict

    def parameters(self) -> int:
        """How many weights it has, those shared by embedding and head counted once."""
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(LlamaConfig(**self.shape))
        return sum(weight.numel() for weight in model.parameters())

    def record(self, tokens: int, keep: str | tuple[str, ...]) -> int:
        """Bytes of a record of so many tokens."""
        return self._layer(tokens, keep=keep) * self.shape["num_hidden_layers"]

    def heads(self, tokens: int, count: int) -> int:
        """Bytes of a record of so many chosen heads, each of another layer."""
        return self._layer(tokens, keep=("weights", "qk", "values"), heads=[(0, 7)]) * count

    def _layer(self, tokens: int, **options: Any) -> int:
        narrow = {
            "hidden_size": 64,
            "intermediate_size": 8,
            "num_hidden_layers": 1,
            "vocab_size": 64,
        }
        model = AutoModelForCausalLM.from_config(
            LlamaConfig(**{**self.shape, **narrow, "head_dim": self.head_dim})
        )
        text = "a " * (tokens - 2)  # and [CLS], [SEP]
        return hs.budget(model.eval(), tiny_tokenizer(), text, **options).kept

    @property
    def head_dim(self) -> int:
        """Width of a head."""
        return self.shape.get(
            "head_dim", self.shape["hidden_size"] // self.shape["num_attention_heads"]
        )


def _llama(
    name: str, *, width: int, inner: int, layers: int, heads: int, tied: bool = False
) -> Size:
    shape = {
        "hidden_size": width,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": tied,
    }
    return Size(name, shape)


SIZES = (
    _llama("meta-llama/Llama-3.2-1B", width=2048, inner=8192, layers=16, heads=32, tied=True),
    _llama("meta-llama/Llama-3.1-8B", width=4096, inner=14336, layers=32, heads=32),
    _llama("meta-llama/Llama-3.1-70B", width=8192, inner=28672, layers=80, heads=64),
)


def weights_table() -> list[str]:
    """What the weights of each model take, as rows of Markdown."""
    rows = [
        "| model | layers x heads | parameters | " + " | ".join(BYTES) + " |",
        "| --- | --- |" + " ---: |" * 4,
    ]
    for size in SIZES:
        count = size.parameters()
        taken = " | ".join(_gigabytes(count * each) for each in BYTES.values())
        heads = f"{size.shape['num_hidden_layers']} x {size.shape['num_attention_heads']}"
        rows.append(f"| {size.name} | {heads} | {count / 1e9:.2f} billion | {taken} |")
    return rows


def record_table() -> list[str]:
    """What a record of each model takes, as rows of Markdown."""
    rows = [
        "| model | tokens | " + " | ".join(KEPT) + " |",
        "| --- |" + " ---: |" * (1 + len(KEPT)),
    ]
    for size in SIZES:
        for tokens in TOKENS:
            kept = " | ".join(_gigabytes(size.record(tokens, keep)) for keep in KEPT.values())
            rows.append(f"| {size.name.partition('/')[2]} | {tokens:,} | {kept} |")
    return rows


def _gigabytes(count: float) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


if __name__ == "__main__":
    print("\n".join([*weights_table(), "", *record_table()]))
    size, tokens = SIZES[1], TOKENS[-1]
    both = (
        _gigabytes(size.heads(tokens, 2)),
        _gigabytes(size.record(tokens, ("weights", "qk", "values"))),
    )
    print(
        f"\n{size.name}, {tokens} tokens, weights, queries, keys and values: two heads {both[0]}, "
        f"all {both[1]}"
    )
