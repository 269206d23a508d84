"""Numbers of the documentation, made again from public data by a stated rule.

    python benchmarks/documented.py compare banking77/test.csv           # docs/compare.md
    python benchmarks/documented.py norms en_ewt-ud-dev.conllu           # docs/norms.md
    python benchmarks/documented.py relations en_ewt-ud-dev.conllu       # docs/relations.md
    python benchmarks/documented.py coref litbank/coref/tsv              # docs/coref.md
    python benchmarks/documented.py interventions en_ewt-ud-dev.conllu   # docs/interventions.md
    python benchmarks/documented.py patterns en_ewt-ud-dev.conllu        # docs/patterns.md
    python benchmarks/documented.py patterns banking77/test.csv          # docs/patterns.md
    python benchmarks/documented.py mechanism en_ewt-ud-dev.conllu       # docs/mechanism.md
    python benchmarks/documented.py alignment                            # docs/alignment.md

All but the last of the demo model, all-MiniLM-L6-v2. The last teaches two small models, 20 s of a
core each.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from scipy.stats import spearmanr

import headscope as hs
from headscope.capturing import load_model
from headscope.interventions import Importance, confidence_importance, leave_one_out
from headscope.linguistics import Treebank, read_treebank
from headscope.storage import read_texts
from headscope.tasks import Task
from headscope.testing import cipher_pairs, cipher_translator

NEXT = (1, 8)
"""The head that looks at the next word."""
PAIRS = 40
WORDS = 50
"""Of a passage, at least."""
SENTENCES = 96
LONG = 110
"""Words of a long document, as white space separates them."""


def main() -> None:
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument("page", choices=sorted([*PAGES, "alignment"]))
    asked.add_argument(
        "data", type=Path, nargs="?", help="a file or folder; alignment makes its own"
    )
    options = asked.parse_args()
    if options.page == "alignment":
        alignment()
        return
    if options.data is None:
        asked.error(f"{options.page} reads data: give a file or folder, as above")
    PAGES[options.page](options.data)


def compare(path: Path) -> None:
    """Head 1-8 zeroed over 24 questions, one in 128 from the first; controls: the other heads of
    its layer.
    """
    texts = read_texts(path)[::128][:24]
    layer, head = NEXT
    controls = [[hs.Zero(layer=layer, heads=[other])] for other in range(12) if other != head]
    change = [hs.Zero(layer=layer, heads=[head])]
    print(len(texts), "texts")
    print(hs.effect(None, None, texts, interventions=change, controls=controls))


def norms(path: Path) -> None:
    """Pairs of passages, whole sentences of 50 words or a little more: the first two of each
    document that has them.
    """
    pairs, documents = pairs_of(read_treebank(path))
    study = hs.norm_study(None, None, pairs[:PAIRS], groups=documents[:PAIRS])
    print(study)


def pairs_of(bank: Treebank) -> tuple[list[tuple[str, str]], list[str]]:
    """Two passages of each document that has so many words, and the documents."""
    passages: dict[str, list[list[str]]] = {}
    for sentence in bank:
        own = passages.setdefault(sentence.document, [[]])
        own[-1].append(sentence.written or sentence.text)
        if sum(len(part.split()) for part in own[-1]) >= WORDS:
            own.append([])
    passages_of = {
        name: [" ".join(parts) for parts in own[:2]]
        for name, own in passages.items()
        if len(own) > 2
    }
    return [(first, second) for first, second in passages_of.values()], list(passages_of)


def relations(path: Path) -> None:
    """All sentences, with random weights beside them."""
    print(hs.relations(None, None, path, random_weights=True))


def coref(path: Path) -> None:
    """The first 128 words of each text, with random weights beside them."""
    print(hs.coref(None, None, path, random_weights=True))


def interventions(path: Path) -> None:
    """How far the embedding of a sentence moves without a head: one sentence in 20 from the first,
    96 of them.
    """
    model, tokenizer = load_model(None)
    texts = [sentence.text for sentence in read_treebank(path)][::20][:SENTENCES]
    batches: list[dict[str, Any]] = []
    with torch.no_grad():
        for first in range(0, len(texts), 12):
            batch = dict(tokenizer(texts[first : first + 12], return_tensors="pt", padding=True))
            batches.append({**batch, "intact": pooled(model, batch)})
    task = Task(batches, lambda model, batch: (pooled(model, batch) * batch["intact"]).sum(-1))
    for layers in (False, True):
        _print_largest(leave_one_out(model, task, layers=layers), 100)
    few = replace(task, batches=batches[:2])
    zeroed, level = (leave_one_out(model, few, by=by) for by in (hs.Zero, hs.interventions.Uniform))
    for name, importance in (("zero", zeroed), ("uniform", level)):
        print(f"{name}, the first {len(importance.values)} sentences:")
        _print_largest(importance, 3)
    sure = confidence_importance(
        [hs.capture(model, tokenizer, text, keep="weights") for text in texts[:24]]
    )
    for one, two, names in (
        (zeroed, level, "zero and uniform"),
        (sure, level, "confidence and uniform"),
        (sure, zeroed, "confidence and zero"),
    ):
        print(f"Spearman of {names}: {spearmanr(one.mean, two.mean).statistic:.2f}")


def _print_largest(importance: Importance, count: int) -> None:
    rows = zip(
        importance.cells, importance.mean, importance.intervals(method="expanded"), strict=True
    )
    for cell, mean, (low, high) in sorted(rows, key=lambda row: -row[1])[:count]:
        print(f"{cell[1]}-{cell[2]}  {mean:.4f} [{low:.4f}, {high:.4f}]")


def pooled(model: Any, batch: dict[str, Any]) -> torch.Tensor:
    """The mean over tokens, of length 1."""
    states = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])[0]
    kept = batch["attention_mask"][..., None]
    return torch.nn.functional.normalize((states * kept).sum(1) / kept.sum(1), dim=-1)


def patterns(path: Path) -> None:
    """How many heads hold each label: of long documents, or of one question in 50 from the
    first.
    """
    short = path.suffix == ".csv"
    texts = read_texts(path)[::50] if short else long_documents(read_treebank(path))
    result = hs.heads(None, None, texts)
    print(result.summary)
    for pattern, own in sorted(result.by_label().items()):
        print(pattern, len(own))


def mechanism(path: Path) -> None:
    """The neurons that carry heads, by the labels that these hold over long documents."""
    texts = long_documents(read_treebank(path))
    result = hs.mechanism(None, None, texts)
    print(result)
    print(result.grouped(hs.heads(None, None, texts).by_label()))


def alignment() -> None:
    """Error rates of a translator of a made-up cipher, on 100 sentences drawn anew."""
    for order in ("swap", "reverse"):
        model, tokenizer, loss = cipher_translator(order=order)
        study = hs.alignment_study(model, tokenizer, cipher_pairs(100, order=order, seed=10**6))
        print(f"{order}, loss {loss:.4f}")
        print(study)
        apart = 100 * study.difference("output")[:, -1]
        for layer, (mean, low, high) in zip(study.layers, apart, strict=True):
            print(f"norm less weight, output, layer {layer}: {mean:.1f} [{low:.1f}, {high:.1f}]")


def long_documents(bank: Treebank) -> list[str]:
    """The first 110 words of each document that has so many."""
    documents: dict[str, list[str]] = {}
    for sentence in bank:
        documents.setdefault(sentence.document, []).extend(
            (sentence.written or sentence.text).split()
        )
    return [" ".join(words[:LONG]) for words in documents.values() if len(words) >= LONG]


PAGES = {
    "compare": compare,
    "norms": norms,
    "relations": relations,
    "coref": coref,
    "interventions": interventions,
    "patterns": patterns,
    "mechanism": mechanism,
}

if __name__ == "__main__":
    main()
