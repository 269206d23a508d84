"""Measure how often heads with random weights get a label, by shape of the model and length of the
texts.

    python benchmarks/false_labels.py            # all of it, some two minutes on one core
    python benchmarks/false_labels.py --seeds 2  # a short look

Nothing is to be found here, so every label is a false one. Writes results/false_labels.json and,
with --docs, the table of benchmarks/tables.md.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from scipy.stats import binomtest
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)

from headscope.patterns import heads
from headscope.record import Layer, ModelFacts, Record, Stack, Tokens

HERE = Path(__file__).parent
DOCS = HERE / "tables.md"
LENGTHS = (4, 5, 8, 12, 32, 128)
VOCABULARY, LAYERS, HEADS, WIDTH = 5000, 3, 16, 256
SPECIAL = {"BERT": ("[CLS]", "[SEP]"), "GPT-2": (), "LLaMA": ("<s>",)}
"""What the tokenizers of these models put around a text."""


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--seeds", type=int, default=8, help="models of each shape")
    options.add_argument("--texts", type=int, default=24, help="texts of each model")
    options.add_argument(
        "--docs", action="store_true", help="write the table into benchmarks/tables.md"
    )
    chosen = options.parse_args()
    torch.set_num_threads(1)
    counts = {}
    for shape in SPECIAL:
        for length in LENGTHS:
            counts[f"{shape}, {length}"] = cell(shape, length, chosen.seeds, chosen.texts)
            print(shape, length, counts[f"{shape}, {length}"], flush=True)
    result = {"seeds": chosen.seeds, "texts": chosen.texts, "cells": counts}
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / "false_labels.json").write_text(
        json.dumps(result, indent=1) + "\n", encoding="utf-8"
    )
    table = report(result)
    print(table)
    if chosen.docs:
        page = DOCS.read_text(encoding="utf-8")
        page = re.sub(
            r"(<!-- lengths -->\n).*?(<!-- end -->)",
            lambda m: m[1] + table + m[2],
            page,
            flags=re.DOTALL,
        )
        DOCS.write_text(page, encoding="utf-8")


def cell(shape, length, seeds, texts):
    """False labels of some models of one shape on texts of one length, and the largest excess over
    a baseline.
    """
    labels, candidates, tried, most = Counter(), 0, 0, 0.0
    for seed in range(seeds):
        result = heads(records(shape, length, seed, texts))
        tried += len(result.cells)
        labels.update(label.pattern for label in result.labels)
        candidates += len(result.candidates)
        most = max(most, *(label.excess for label in result.all_labels), 0.0)
    return {
        "heads": tried,
        "labels": dict(labels),
        "candidates": candidates,
        "largest_excess": round(most, 4),
    }


def records(shape, length, seed, texts):
    """What a model with random weights does with words drawn as they come in prose (Zipf)."""
    model = model_of(shape, seed)
    rng = np.random.default_rng([seed, length])
    chances = 1 / np.arange(1, VOCABULARY - 9)
    before, after = (*SPECIAL[shape], "")[:1], SPECIAL[shape][1:]
    before = tuple(piece for piece in before if piece)
    for _ in range(texts):
        ids = 10 + rng.choice(
            len(chances), length - len(before) - len(after), p=chances / chances.sum()
        )
        pieces = (*before, *(f"w{number}" for number in ids), *after)
        numbers = torch.tensor([[*range(len(before)), *ids, *range(5, 5 + len(after))]])
        with torch.no_grad():
            weights = model(numbers, output_attentions=True).attentions
        yield record(shape, Tokens(pieces=pieces), [layer[0].numpy() for layer in weights])


def model_of(shape, seed):
    """A model as its library would start to train it."""
    torch.manual_seed(seed)
    shared = {"vocab_size": VOCABULARY, "attn_implementation": "eager"}
    if shape == "GPT-2":
        sizes = {"n_layer": LAYERS, "n_head": HEADS, "n_embd": WIDTH, "n_positions": 256}
        config = GPT2Config(bos_token_id=0, eos_token_id=0, **sizes, **shared)
        return GPT2LMHeadModel(config).eval()
    sizes = {
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "hidden_size": WIDTH,
        "intermediate_size": 4 * WIDTH,
        "max_position_embeddings": 256,
    }
    if shape == "BERT":
        return BertModel(BertConfig(**sizes, **shared)).eval()
    return LlamaForCausalLM(LlamaConfig(num_key_value_heads=HEADS // 2, **sizes, **shared)).eval()


def record(shape, tokens, weights):
    size = len(tokens)
    visible = None if shape == "BERT" else np.tril(np.ones((size, size), bool))
    layers = tuple(
        Layer(layer=number, weights=each, visible=visible) for number, each in enumerate(weights)
    )
    stack = Stack(name="self", query=tokens, key=tokens, layers=layers)
    return Record(stacks={"self": stack}, model=ModelFacts(name=f"{shape}, random weights"))


def report(result):
    cells = result["cells"]
    heads_tried = next(iter(cells.values()))["heads"]
    lines = [
        f"\n{result['seeds']} models of each shape with random weights ({LAYERS} layers of "
        f"{HEADS} heads), {result['texts']} texts each",
        "(`python benchmarks/false_labels.py --docs`). Heads labelled by the pattern that errs "
        f"most, of {heads_tried}; in brackets",
        "the upper end of the 95 % interval.\n",
        f"| tokens of a text | {' | '.join(map(str, LENGTHS))} |",
        f"| --- | {'---: | ' * len(LENGTHS)}".rstrip(),
    ]
    for shape in SPECIAL:
        row = [cells[f"{shape}, {length}"] for length in LENGTHS]
        lines.append(f"| {shape} | {' | '.join(rate(each) for each in row)} |")
    lines.append("")
    return "\n".join(lines) + "\n"


def rate(cell):
    worst, count = max(cell["labels"].items(), key=lambda entry: entry[1], default=("", 0))
    name = f"{worst} " if count else ""
    return (
        f"{name}{count} ({binomtest(count, cell['heads']).proportion_ci(method='exact').high:.2%})"
    )


if __name__ == "__main__":
    main()
