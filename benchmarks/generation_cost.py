"""Measure what `hs.generate` costs, as a ratio to the model's own ``generate``, in the same run.

    python benchmarks/generation_cost.py

Random weights in the shapes of GPT-2 (124M) and SmolLM2 (135M), one thread, a prompt of some 30
tokens, 32 written, the two taking turns: the least processor time of each.
"""

from __future__ import annotations

import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

import headscope as hs
from headscope.testing import tiny_tokenizer

PROMPT = "the cat sat there and the dog ran"
ROUNDS = 6
ENDS = {"bos_token_id": 1, "eos_token_id": 2, "vocab_size": 64}
OPTIONS = {"max_new_tokens": 32, "do_sample": False, "eos_token_id": 63}


def models() -> dict[str, torch.nn.Module]:
    """Two models that write; their vocabulary is that of the tiny tokenizer."""
    torch.manual_seed(0)
    smol = {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30}
    heads = {"num_attention_heads": 9, "num_key_value_heads": 3}
    return {
        "GPT-2 (12 x 768)": GPT2LMHeadModel(GPT2Config(**ENDS)).eval(),
        "SmolLM2-135M (30 x 576)": LlamaForCausalLM(LlamaConfig(**ENDS, **smol, **heads)).eval(),
    }


def main() -> None:
    """Print a line for each model."""
    torch.set_num_threads(1)
    tokenizer = tiny_tokenizer()
    ids = torch.tensor([tokenizer(PROMPT)["input_ids"]])
    for name, model in models().items():

        def plain(model: torch.nn.Module = model) -> None:
            model.generate(ids, attention_mask=torch.ones_like(ids), pad_token_id=0, **OPTIONS)

        def ours(model: torch.nn.Module = model) -> None:
            hs.generate(model, tokenizer, PROMPT, keep="qk", **OPTIONS)

        least = dict.fromkeys((plain, ours), float("inf"))
        for _ in range(ROUNDS):
            for act, so_far in least.items():
                start = time.process_time()
                act()
                least[act] = min(so_far, time.process_time() - start)
        ratio = least[ours] / least[plain]
        print(f"{name}: {1000 * least[plain]:.0f} ms alone, {ratio:.2f} times that recorded")


if __name__ == "__main__":
    main()
