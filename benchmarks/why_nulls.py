"""How often a picture is shown of models in which there is nothing to explain.

    python benchmarks/why_nulls.py [TEXTS]

Random models of three shapes, large enough at their start to be sure of their answers, and a
trained one with every matrix shuffled; texts of random tokens. Of each answer with a lead above 1
logit it is asked why. Printed: how many were asked, how many shown, and the reasons of the others.
"""

from __future__ import annotations

import re
import sys
from collections import Counter

import torch
import transformers

import headscope as hs
from headscope.answering import DEMO
from headscope.capturing import load_model

TOKENS = 14
SIZES = {"num_hidden_layers": 5, "num_attention_heads": 8, "hidden_size": 64}
MORE = {"vocab_size": 512, "initializer_range": 0.15, "tie_word_embeddings": False}
GROUPED = {**SIZES, **MORE, "num_key_value_heads": 4, "intermediate_size": 172}


def models(seed):
    """A model of each kind, by name."""
    torch.manual_seed(seed)
    own = {"n_embd": 64, "n_layer": 5, "n_head": 8, "bos_token_id": 1, "eos_token_id": 1}
    yield "GPT-2", transformers.GPT2LMHeadModel(transformers.GPT2Config(**own, **MORE))
    yield "LLaMA", transformers.LlamaForCausalLM(transformers.LlamaConfig(**GROUPED))
    config = transformers.Gemma2Config(**GROUPED, head_dim=8, final_logit_softcapping=None)
    yield "Gemma 2", transformers.Gemma2ForCausalLM(config)
    shuffled, _ = load_model(str(DEMO), writes=True)
    with torch.no_grad():
        for weight in shuffled.parameters():
            if weight.ndim == 2:
                order = torch.randperm(weight.numel())
                weight.copy_(weight.flatten()[order].view_as(weight))
    yield "shuffled", shuffled


def main(texts):
    asked, shown, reasons, small = Counter(), Counter(), Counter(), Counter()
    for seed in range(texts):
        for name, model in models(seed):
            draw = torch.Generator().manual_seed(seed)
            ids = torch.randint(2, model.config.vocab_size, (TOKENS,), generator=draw).tolist()
            result = hs.why(model.eval(), None, ids)
            if result.lead <= 1:
                small[name] += 1
                continue
            asked[name] += 1
            shown[name] += not result.refusal
            if not result.refusal:
                print(name, seed, result.summary, flush=True)
            reasons[re.sub(r"[\d.]+", "N", result.refusal) or "shown"] += 1
    for name in asked | small:
        print(f"{name}: {asked[name]} asked, {shown[name]} shown; {small[name]} below 1 logit")
    for reason, count in reasons.most_common():
        print(f"  {count:4} {reason}")
    print(f"shown: {shown.total()} of {asked.total()} ({shown.total() / asked.total():.1%})")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
