"""Time the statistics of one long call beside torch's own attention of it, in processor time of one
thread.

    python benchmarks/statistics_of_attention.py
    python benchmarks/statistics_of_attention.py --tokens 1024 --rounds 2
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from headscope.capturing.building._side_tokens import SideTokens
from headscope.capturing.building.statistics import Marks, statistics_of_call
from headscope.capturing.calls.call import Call, visibility_of
from headscope.capturing.keep import KeepChoice
from headscope.record import Tokens

SHAPES = ((12, 12, 32, False), (12, 12, 64, False), (12, 4, 64, True))
"""Heads, heads of keys, size of a head, and whether later keys are hidden: of MiniLM, of BERT and
GPT-2, and of the small LLaMA of the other tables.
"""
WORDS = 30_000


def call_of(heads: int, kv_heads: int, size: int, tokens: int, *, causal: bool) -> Call:
    """A call with queries and keys at random, of one text."""
    query = torch.randn(1, heads, tokens, size)
    key, value = torch.randn(2, 1, kv_heads, tokens, size)
    return Call(
        module=nn.Identity(),
        name="call",
        route="interface",
        cross=False,
        query=query,
        key=key,
        value=value,
        context=torch.zeros(1, tokens, heads, size),
        scale=size**-0.5,
        causal=causal,
    )


def attention_of(call: Call) -> torch.Tensor:
    """What the model computes."""
    assert call.query is not None
    assert call.key is not None
    shared = call.query.shape[1] // call.key.shape[1]
    key, value = (part.repeat_interleave(shared, 1) for part in (call.key, call.value))
    return functional.scaled_dot_product_attention(call.query, key, value, is_causal=call.causal)


def shortest(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Seconds of processor time of each; they take turns, so that a busy minute falls on both."""
    seconds = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            start = time.process_time()
            work()
            seconds[name] = min(seconds[name], time.process_time() - start)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    # with the frequencies of text: about 2 % of the pairs are equal
    frequencies = torch.arange(1, WORDS).float() ** -1.05
    ids = torch.multinomial(frequencies, options.tokens, replacement=True)[None]
    tokens = Tokens(pieces=("x",) * options.tokens, ids=tuple(ids[0].tolist()))
    side = SideTokens((tokens,), (torch.arange(options.tokens),))
    print("| heads | of keys | size | causal | attention | statistics | ratio |")
    print("| ---: | ---: | ---: | --- | ---: | ---: | ---: |")
    for heads, kv_heads, size, causal in SHAPES:
        call = call_of(heads, kv_heads, size, options.tokens, causal=causal)
        marks = Marks(call, (side, side), KeepChoice())
        works = {
            "attention": lambda call=call: attention_of(call),
            "statistics": lambda call=call, marks=marks: statistics_of_call(
                call, visibility_of(call), marks
            ),
        }
        seconds = shortest(works, options.rounds)
        own, ours = seconds["attention"], seconds["statistics"]
        facts = f"| {heads} | {kv_heads} | {size} | {'yes' if causal else 'no'} |"
        print(f"{facts} {own * 1e3:.0f} ms | {ours * 1e3:.0f} ms | {ours / own:.2f} |")


if __name__ == "__main__":
    main()
