"""How often a picture goes through the document that has the fact.

    python benchmarks/why_retrieval.py [PROMPTS]

Prompts of retrieval-tiny in which one document holds the answer. Of each picture it is asked from
which document the strongest line leaves, to a token outside it. Printed: how many prompts had a
picture, in how many that document is the right one, and the reasons of the others. Where no graph
keeps enough together with all larger ones, it is told whether one does by itself.
"""

from __future__ import annotations

import re
import sys
from collections import Counter

import numpy as np
import torch
from retrieval_tiny import held_out, messages

import headscope as hs
from headscope.answering import DEMO
from headscope.capturing import load_model

SEED = 2026


def document_of(result):
    """The number of the document from which the strongest line leaves; None where none does."""
    documents = [part for part in result.parts if part.kind == "document"]
    for at in result.lines():
        query, key = result.links[at, 2:].tolist()
        for number, part in enumerate(documents):
            if key in part.tokens and query not in part.tokens:
                return number
    return None


def main(prompts):
    torch.set_num_threads(1)
    readers = load_model(str(DEMO), writes=True)
    cases = [case for case in held_out(SEED, 2 * prompts) if case["kind"] == "one"][:prompts]
    right, reasons, alone = [], Counter(), 0
    for number, case in enumerate(cases):
        result = hs.why(*readers, messages(case))
        reasons[re.sub(r"[\d.]+", "N", result.refusal) or "shown"] += 1
        keeps = result.keeps(result.kept)
        alone += result.refusal.startswith("no graph") and ((keeps >= 0.75) & (keeps <= 1.25)).any()
        if not result.refusal:
            right.append(document_of(result) in case["needed"])
        told = f"{number + 1} asked, {len(right)} shown, {np.sum(right):.0f} through the document"
        print(told, result.refusal, keeps.round(2).tolist(), flush=True)
    for reason, count in reasons.most_common():
        print(f"  {count:4} {reason}")
    print(
        f"of those without a graph that keeps enough with all larger ones, {alone} have one alone"
    )
    print(f"shown: {len(right)} of {len(cases)}; through the document: {sum(right)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
