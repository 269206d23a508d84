"""Measure what headscope costs on a graphics card, as ratios to the model's plain pass in one run.

    python benchmarks/gpu.py
    python benchmarks/gpu.py --only "qk" --profile profiles/

Random weights in the shapes of LLaMA 3.2 1B (bfloat16) and BERT-base (float32), sdpa attention.
Each row is the median of turns with the plain pass; beside it the simplest program that keeps the
same: hooks that copy queries and keys into pinned memory, and eager ``output_attentions``.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import random
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig, BertModel, LlamaConfig, LlamaForCausalLM

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.testing import tiny_tokenizer

ROUNDS, SLOW = 7, 3
ENOUGH = 2.0
"""Seconds after which no further round is begun."""
WRITTEN = 64
VOCABULARY = 128_256
WORDS = [
    "the",
    "cat",
    "sat",
    "by",
    "a",
    "green",
    "river",
    "and",
    "old",
    "letters",
    "ran",
    "near",
    "houses",
    "of",
    "stone",
]
SIZES = {"llama": (2048, 8192, 16, 32, 8), "bert": (768, 3072, 12, 12, 12)}
SMALL = {"llama": (64, 128, 2, 8, 2), "bert": (64, 128, 2, 4, 4)}
"""Features, those inside, layers, heads and heads of keys."""


def model_of(family: str, device: str, sizes: dict[str, tuple[int, ...]]) -> Any:
    torch.manual_seed(0)
    names = "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"
    options = dict(zip(names, sizes[family], strict=False))
    if family == "bert":
        return BertModel(BertConfig(vocab_size=64, **options)).to(device).eval()
    more = {"num_key_value_heads": sizes[family][-1], "max_position_embeddings": 65_536}
    ends = {"bos_token_id": 1, "eos_token_id": 63, "pad_token_id": 0, "vocab_size": VOCABULARY}
    with torch.device(device):
        model = LlamaForCausalLM(LlamaConfig(**options, **more, **ends))
    return model.to(torch.bfloat16).eval()


def by_hand(model: Any, given: dict[str, Any]) -> None:
    """The simplest program that keeps queries and keys: hooks, and one copy of each."""
    kept, hooks = [], []
    card = next(model.parameters()).device.type == "cuda"

    def hook(module: torch.nn.Module, inputs: Any, output: torch.Tensor) -> None:
        into = torch.empty(output.shape, dtype=output.dtype, pin_memory=card)
        kept.append(into.copy_(output, non_blocking=True))

    for name, module in model.named_modules():
        if name.endswith(("q_proj", "k_proj")):
            hooks.append(module.register_forward_hook(hook))
    try:
        with torch.no_grad():
            model(**given)
    finally:
        for each in hooks:
            each.remove()


def timed(act: Callable[[], object], card: bool) -> float:
    if card:
        torch.cuda.synchronize()
    start = time.perf_counter()
    act()
    if card:
        torch.cuda.synchronize()
    return time.perf_counter() - start


def row(
    name: str, plain: Callable, act: Callable, *, rounds: int, card: bool, profile: Any
) -> None:
    """Print the median of both, which take turns, and their ratio."""
    try:
        timed(plain, card)
        timed(act, card)
        free = torch.cuda.max_memory_allocated
        peaks, times = [0.0, 0.0], ([], [])
        started = time.perf_counter()
        for _ in range(rounds):
            if times[1] and time.perf_counter() - started > ENOUGH:
                break
            for number, each in enumerate((plain, act)):
                if card:
                    torch.cuda.reset_peak_memory_stats()
                times[number].append(timed(each, card))
                peaks[number] = free() / 2**20 if card else 0.0
        least, ours = (1000 * statistics.median(each) for each in times)
        memory = f", {peaks[1] - peaks[0]:.0f} MiB more on the card" if card else ""
        print(f"{name}: {least:.1f} ms, {ours:.1f} ms, {ours / least:.2f}{memory}", flush=True)
        if profile:
            profile.mkdir(parents=True, exist_ok=True)
            with cProfile.Profile() as seen:
                timed(act, card)
            with (profile / f"{name.replace(' ', '_')}.txt").open("w") as file:
                pstats.Stats(seen, stream=file).sort_stats("tottime").print_stats(45)
                pstats.Stats(seen, stream=file).sort_stats("cumtime").print_stats(60)
    except (hs.errors.HeadscopeError, RuntimeError) as error:  # the other rows are still wanted
        print(f"{name}: {type(error).__name__}: {str(error)[:300]}", flush=True)


def texts_of(count: int) -> list[str]:
    drawn = random.Random(0)
    return [" ".join(drawn.choices(WORDS, k=drawn.randint(3, 12))) for _ in range(count)]


class Rows:
    """Measures rows, and prints each.

    Args:
        asked: the arguments of the command.
    """

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked, self.card = asked, torch.cuda.is_available()
        self.device = "cuda" if self.card else "cpu"
        self.sizes = SMALL if asked.small else SIZES

    def add(self, name: str, plain: Callable, act: Callable, rounds: int = ROUNDS) -> None:
        if any(part in name for part in self.asked.only):
            row(name, plain, act, rounds=rounds, card=self.card, profile=self.asked.profile)

    def captures(self) -> None:
        """One pass of LLaMA, by what is kept, and a text that it writes."""
        model = model_of("llama", self.device, self.sizes)
        for size in ((1, 16), (1, 512), (8, 128), (8, 512), (1, 2048)):
            self.capture(model, "by hand", size, by_hand)
            self.capture(model, "qk", size, keep="qk")
            self.capture(model, "qk float16", size, keep="qk", precision="float16")
        self.capture(model, "one head", (1, 512), heads=[(1, 1)])
        self.capture(model, "weights", (1, 512), keep="weights")
        for size in ((1, 16), (8, 512), (1, 2048)):
            self.capture(model, "statistics", size, keep="statistics")
        for size in ((1, 16), (1, 512)):
            self.capture(model, "norms", size, keep="norms")
        tokenizer, prompt = tiny_tokenizer(), " ".join(WORDS)
        options = {"max_new_tokens": WRITTEN, "min_new_tokens": WRITTEN, "do_sample": False}
        ids = torch.tensor([tokenizer(prompt)["input_ids"]], device=self.device)
        self.add(
            "generate",
            lambda: model.generate(ids, attention_mask=torch.ones_like(ids), **options),
            lambda: hs.generate(model, tokenizer, prompt, keep="qk", **options),
            rounds=SLOW,
        )

    def capture(
        self, model: Any, name: str, size: tuple[int, int], act: Any = None, **keep: Any
    ) -> None:
        ids = torch.randint(5, 60, size, generator=torch.Generator().manual_seed(0))
        ids = ids.to(self.device)
        inputs: dict[str, Any] = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        inputs["use_cache"] = False

        def plain() -> None:
            with torch.no_grad():
                model(**inputs)

        def captured() -> None:
            if act is not None:
                act(model, inputs)
            else:
                capture_encoded(model, None, inputs, **keep)

        rounds = SLOW if name == "norms" else ROUNDS
        self.add(f"{name} {size[0]} x {size[1]}", plain, captured, rounds)

    def studies(self) -> None:
        """Counting heads of BERT over texts, in memory and into a run on disk."""
        bert, tokenizer = model_of("bert", self.device, self.sizes), tiny_tokenizer()
        texts = texts_of(64 if self.asked.small else 1024)
        encoded = sorted((tokenizer(text)["input_ids"] for text in texts), key=len)

        def passes() -> None:
            with torch.no_grad():
                for length in sorted({len(each) for each in encoded}):
                    rows = [each for each in encoded if len(each) == length]
                    bert(torch.tensor(rows, device=self.device))

        def into_parts() -> None:
            with tempfile.TemporaryDirectory() as folder:
                hs.heads(bert, tokenizer, texts=texts, out=Path(folder) / "run")

        self.add("heads", passes, lambda: hs.heads(bert, tokenizer, texts=texts), rounds=SLOW)
        self.add("heads out", passes, into_parts, rounds=1)


def main() -> None:
    """Print a line for each measurement."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--only", nargs="+", default=[""], help="rows whose name holds one of these"
    )
    parser.add_argument("--profile", type=Path, help="folder for where the time goes")
    parser.add_argument("--small", action="store_true", help="small models, to try the script")
    rows = Rows(parser.parse_args())
    warnings.simplefilter("ignore")
    named = torch.cuda.get_device_name() if rows.card else "CPU"
    print(f"{named}, torch {torch.__version__}: plain pass, with headscope, ratio", flush=True)
    rows.captures()
    rows.studies()


if __name__ == "__main__":
    main()
