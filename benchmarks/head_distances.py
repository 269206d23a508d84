"""Measure what the distances of all heads of a text cost beside the forward pass of that text.

    python benchmarks/head_distances.py            # MiniLM: 6 layers of 12 heads
    python benchmarks/head_distances.py bert gpt2  # random weights in the shapes of these: 12 of 12
    python benchmarks/head_distances.py --rounds 9

Processor time of one thread, the least of the rounds, both by turns in one process. Texts are made
up of random token ids. Distances are those of `headscope.measures.head_distances`, in single
precision; their error is against `headscope.measures.jensen_shannon`, of 12 heads.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
import transformers
from torch import nn

import headscope as hs
from headscope.capturing import load_model
from headscope.measures import head_distances, jensen_shannon

TOKENS = (16, 64, 128, 256)
SOME = 12
"""Heads whose distances are compared with the definition, which takes seconds."""


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("models", nargs="*", default=["minilm"], choices=tuple(MODELS))
    asked.add_argument("--rounds", type=int, default=5)
    options = asked.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    print(
        "| model | tokens | forward pass | distances | of the pass | largest error, of a distance |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name in options.models:
        model = MODELS[name]()
        for tokens in TOKENS:
            print(f"| {name} | {row_of(model, tokens, options.rounds)} |", flush=True)


def bert() -> nn.Module:
    torch.manual_seed(0)
    return transformers.BertModel(transformers.BertConfig()).eval()


def gpt2() -> nn.Module:
    torch.manual_seed(0)
    config = transformers.GPT2Config(use_cache=False)
    return transformers.GPT2LMHeadModel(config).eval()


MODELS: dict[str, Callable[[], nn.Module]] = {
    "minilm": lambda: load_model(None)[0],
    "bert": bert,
    "gpt2": gpt2,
}


def row_of(model: nn.Module, tokens: int, rounds: int) -> str:
    ids = torch.randint(1000, 20000, (1, tokens), generator=torch.Generator().manual_seed(0))
    (record,) = hs.capturing.capture_encoded(model, None, {"input_ids": ids})
    weights = np.concatenate([layer.weights_of() for layer in record["self"]])
    passes, taken = [], []
    for _ in range(rounds):
        passes.append(seconds(lambda: plain_pass(model, ids)))
        taken.append(seconds(lambda: head_distances(weights)))
    return (
        f"{tokens} | {min(passes) * 1e3:.1f} ms | {min(taken) * 1e3:.1f} ms "
        f"| {min(taken) / min(passes):.2f} | {error_of(weights[:SOME]):.0e}"
    )


@torch.no_grad()
def plain_pass(model: nn.Module, ids: torch.Tensor) -> None:
    model(input_ids=ids)


def seconds(act: Callable[[], object]) -> float:
    """Seconds of the processor that this takes."""
    began = time.process_time()
    act()
    return time.process_time() - began


def error_of(weights: np.ndarray) -> float:
    """Largest error of a distance, of it, against the definition in double precision."""
    exact = np.zeros((len(weights), len(weights)))
    for head in range(len(weights)):
        one = np.broadcast_to(weights[head], weights.shape)
        exact[head] = jensen_shannon(one, weights, smoothing=1e-3).sum(axis=1)
    others = ~np.eye(len(weights), dtype=bool)
    return float((np.abs(head_distances(weights) - exact)[others] / exact[others]).max())


if __name__ == "__main__":
    main()
