"""Where answers looked and what they needed, against the truth that retrieval-tiny's prompts have.

python benchmarks/answers.py                 # 200 held-out prompts, ten minutes of one core
python benchmarks/answers.py --docs          # and write the tables into docs/answers.md
python benchmarks/answers.py --cost          # what cutting costs, in plain generations
python benchmarks/answers.py --long          # what 16,000 tokens in 40 documents cost
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import time
from pathlib import Path

import numpy as np
import torch
from retrieval_tiny import held_out, messages
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import headscope as hs
from headscope.answering import DEMO, ForcedAnswer, needed
from headscope.capturing import capture_encoded, load_model, random_twin
from headscope.evidence import interval

DOCS = Path(__file__).parent.parent / "docs" / "answers.md"
PROMPTS, SEED, OTHERS = 200, 2026, 7
KINDS = {"one": "one document holds the answer", "two": "two do", "none": "none does"}
NULLS = ("random weights", "words of documents in random order", "documents of other prompts")


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--docs", action="store_true", help="write into docs/answers.md")
    options.add_argument("--cost", action="store_true", help="measure what cutting costs")
    options.add_argument("--long", action="store_true", help="measure 16,000 tokens in 40 parts")
    options.add_argument("--prompts", type=int, default=PROMPTS)
    given = options.parse_args()
    torch.set_num_threads(1)
    if given.cost or given.long:
        print(cost() if given.cost else long())
        return
    readers = load_model(str(DEMO), writes=True)
    chosen = heads_of_others(readers)
    cases = held_out(SEED, given.prompts)
    parts = {
        "answers": numbers_table(readers, cases, chosen.best_heads(1)),
        "verdicts": verdicts_table(readers, cases),
        "heads": heads_table(chosen),
    }
    for name, text in parts.items():
        print(f"<!-- {name} -->\n{text}")
        if given.docs:
            page = DOCS.read_text(encoding="utf-8")
            answered = re.sub(
                rf"(<!-- {name} -->\n).*?(<!-- end -->)",
                lambda m, text=text: m[1] + text + m[2],
                page,
                flags=re.DOTALL,
            )
            DOCS.write_text(answered, encoding="utf-8")


def heads_of_others(readers):
    """Heads that look at what was needed, on prompts of another seed."""
    return hs.answers(*readers, [messages(case) for case in held_out(OTHERS, 60)])


def heads_table(answered):
    """The heads that give most attention to what was needed."""
    lines = [
        "| head | share of what was needed, % | lift | looked there most, % | retrieval score, % |",
        "|---|--:|--:|--:|--:|",
    ]
    for cell in answered.best_heads(5):
        cells = []
        for scale, (mean, low, high) in zip(
            (100, 1, 100, 100), answered.heads[:, answered.cells.index(cell)], strict=True
        ):
            digits = ".0f" if scale == 100 else ".2f"
            ends = ", ".join(f"{scale * each:{digits}}" for each in (low, high))
            cells.append(f"{scale * mean:{digits}} [{ends}]")
        lines.append(f"| {cell[0]}-{cell[1]} | {' | '.join(cells)} |")
    return f"{answered.summary}\n\n" + "\n".join(lines) + "\n"


def share(hits):
    """A share with its interval over prompts, as a cell."""
    (ends,) = interval(np.array(hits, float)[:, None])
    return f"{np.mean(hits):.3f} [{ends[0]:.3f}, {ends[1]:.3f}]"


def numbers_table(readers, cases, heads):
    """How often each number puts the needed document first, of prompts with one."""
    ranks = {}
    for case in cases:
        if case["kind"] != "one":
            continue
        for name, values in numbers_of(readers, case, heads).items():
            right = int(np.argmax(values)) in case["needed"]
            ranks.setdefault(name, []).append(right)
    lines = ["| number | needed document first |", "|---|--:|"]
    lines += [f"| {name} | {share(hits)} |" for name, hits in ranks.items()]
    return "\n".join(lines) + "\n"


def numbers_of(readers, case, heads):
    """One value for each document, by the name of the number."""
    answered = {need: hs.answer(*readers, messages(case), need=need) for need in ("cut", "direct")}
    for need in ("delete", "replace"):
        answered[need] = hs.answer(*readers, messages(case), need=need, answer=answered["cut"].text)
    cut, some = answered["cut"], list(answered["cut"].candidates)
    kinds = {
        kind: hs.answer(*readers, messages(case), need=None, quantity=kind)
        for kind in ("norm", "alti")
    }
    rollout = hs.rollout(cut.record)[-1][cut.record.generation.prompt - 1 :]
    places = [list(cut.parts[at].tokens) for at in some]
    last = cut.looked(heads=[(cut.layers[-1], head) for head in range(cut.shares.shape[2])])
    return {
        "length of the document (null)": cut.even_share()[some],
        "share, mean over all heads": cut.looked()[some],
        "**lift**, mean over all heads": cut.lift()[some],
        "share, last layer": last[some],
        f"share, head {heads[0][0]}-{heads[0][1]}, chosen on other prompts": cut.looked(
            heads=heads
        )[some],
        "lift of norms, mean over all heads": kinds["norm"].lift()[some],
        "lift of ALTI, mean over layers": kinds["alti"].lift()[some],
        "rollout of weights": [rollout[:, at].sum() for at in places],
        "**cut** from everything behind it": cut.change(),
        "cut from the answer alone (direct)": answered["direct"].change(),
        "deleted": answered["delete"].change(),
        "replaced by its words in random order": answered["replace"].change(),
        "alone": cut.alone.sum(axis=1),
    }


def verdicts_table(readers, cases):
    """What is said of prompts by how many documents hold the answer, and of nulls."""
    lines = [
        "| prompts | | right | what was needed is named | others named | looked at some more than "
        "its length gives |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for kind, name in KINDS.items():
        some = [case for case in cases if case["kind"] == kind]
        lines.append(verdicts(readers, some, name))
    twin = random_twin(readers[0]), readers[1]
    rng, one = random.Random(SEED), [case for case in cases if case["kind"] != "none"]
    for null in NULLS:
        made = [changed(case, null, rng, cases) for case in one]
        forced = null == NULLS[0]
        lines.append(verdicts(twin if forced else readers, made, f"*{null}*", forced=forced))
    return "\n".join(lines) + "\n"


def changed(case, null, rng, cases):
    """A prompt in which no document holds the answer."""
    documents = case["documents"]
    if null == NULLS[1]:
        documents = [" ".join(rng.sample(words, len(words))) for words in map(str.split, documents)]
    if null == NULLS[2]:
        key = case["keys"][0]
        others = [
            each["documents"] for each in cases if key not in " ".join(each["documents"]).lower()
        ]
        documents = rng.choice(others)
    return case | {"documents": documents, "needed": []}


def verdicts(readers, cases, name, *, forced=False):
    """One row: shares with intervals over prompts."""
    right, named, false, looks = [], [], [], []
    for case in cases:
        options = {"answer": case["turns"][0][1], "allow_unfit": True} if forced else {}
        answered = hs.answer(*readers, messages(case), **options)
        if not answered.words:
            continue
        documents = {answered.candidates.index(at) for at in answered.verdict.parts}
        right.append(answered.text.strip() == case["turns"][0][1])
        named.append(documents == set(case["needed"]))
        false.append(len(documents - set(case["needed"])) / len(answered.candidates))
        looks.append(answered.looks_at is not None)
    others = f"{np.mean(false):.3f}"
    cells = (str(len(right)), share(right), share(named), others, share(looks))
    return f"| {name} | {' | '.join(cells)} |"


def random_llama(layers, kv_heads):
    """A small model with random weights."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=4000,
        hidden_size=256,
        intermediate_size=688,
        num_hidden_layers=layers,
        num_attention_heads=8,
        num_key_value_heads=kv_heads,
        max_position_embeddings=2**15,
        eos_token_id=None,
    )
    return LlamaForCausalLM(config).eval()


def long(length=16_000, count=40, written=8):
    """Processor time of an answer about 40 documents of 16,000 tokens in all, in plain passes."""
    model, rng = random_llama(4, 2), random.Random(0)
    words = [f"w{number}" for number in range(4000)]
    known = Tokenizer(WordLevel({word: at for at, word in enumerate(words)}, unk_token="w0"))
    known.pre_tokenizer = WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=known, unk_token="w0")
    documents = [" ".join(rng.choices(words, k=length // count)) for _ in range(count)]
    ids = torch.tensor([tokenizer(" ".join(documents))["input_ids"]])
    asked = {"documents": documents, "question": "w5 w6", "max_new_tokens": written}
    read = torch.no_grad()(lambda: model(input_ids=ids, use_cache=False, logits_to_keep=1))
    ways = {
        "a plain pass": read,
        "the pass that is recorded": lambda: hs.capture(model, tokenizer, " ".join(documents)),
        "an answer, shares by part": lambda: hs.answer(model, tokenizer, need=None, **asked),
        "an answer, cut from it": lambda: hs.answer(model, tokenizer, need="direct", **asked),
    }
    lines, plain = [], None
    for name, way in ways.items():
        start = time.process_time()
        way()
        seconds = time.process_time() - start
        plain = plain or seconds
        lines.append(f"{name}: {seconds:.1f} s, {seconds / plain:.1f} x")
    return "\n".join(lines)


def cost():
    """Processor time of cutting 6 parts of 1,500 tokens, in plain generations of 16 tokens."""
    model, length, count, written = random_llama(6, 4), 1500, 6, 16
    prompt = torch.randint(8, 4000, (1, length))

    def generate():
        return model.generate(
            input_ids=prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=written,
            do_sample=False,
            pad_token_id=0,
            eos_token_id=None,
            return_dict_in_generate=True,
        )

    made = generate()
    ids = made.sequences[0].tolist()
    edges = np.linspace(10, length - 40, count + 1).astype(int)
    parts = [tuple(range(first, last - 5)) for first, last in itertools.pairwise(edges)]
    stack = capture_encoded(model, None, torch.tensor([ids[:-1]]), keep="qk")[0]["self"]
    forced = ForcedAnswer(model, tuple(ids), length, stack, cache=made.past_key_values)
    ways = {
        "a plain generation": generate,
        "cut: each part, each alone, none": lambda: needed(forced, parts),
        "cut from the answer alone": lambda: needed(forced, parts, "direct"),
    }
    best = dict.fromkeys(ways, np.inf)
    for _ in range(3):
        for name, way in ways.items():
            start = time.process_time()
            way()
            best[name] = min(best[name], time.process_time() - start)
    plain = best["a plain generation"]
    return "\n".join(
        f"{name}: {seconds:.2f} s, {seconds / plain:.1f} x" for name, seconds in best.items()
    )


if __name__ == "__main__":
    main()
