"""How often a picture is shown of models in which there is nothing to explain.

    python benchmarks/why_nulls.py [TEXTS]

Random models of three shapes, and a trained one with every matrix shuffled, all with larger logits,
so that they are sure of their answers: shares of a lead do not change with that. Texts of random
tokens. Of each answer with a lead above 1 logit it is asked why. Printed: how many were asked, how
many were shown, and the reasons of the others.
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

TOKENS, LARGER = 14, 10.0
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
    asked, shown, reasons = Counter(), Counter(), Counter()
    for seed in range(texts):
        for name, model in models(seed):
            head = model.get_output_embeddings()
            head.weight = torch.nn.Parameter(LARGER * head.weight.detach())
            draw = torch.Generator().manual_seed(seed)
            ids = torch.randint(2, model.config.vocab_size, (TOKENS,), generator=draw).tolist()
            with torch.no_grad():
                first, second = model.eval()(torch.tensor([ids])).logits[0, -1].topk(2).values
            if first - second <= 1:
                continue
            result = hs.why(model, None, ids)
            asked[name] += 1
            shown[name] += not result.refusal
            reasons[re.sub(r"[\d.]+", "N", result.refusal) or "shown"] += 1
            if not result.refusal:
                print(f"shown: {name}, text {seed}: {result.summary}", flush=True)
        print(f"{asked.total()} asked, {shown.total()} shown", flush=True)
    for name, count in asked.items():
        print(f"{name}: {count} asked, {shown[name]} shown")
    for reason, count in reasons.most_common():
        print(f"  {count:4} {reason}")
    print(f"shown: {shown.total()} of {asked.total()} ({shown.total() / asked.total():.1%})")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
