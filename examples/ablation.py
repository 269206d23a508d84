"""Fine-tune all-MiniLM-L6-v2 on pairs of sentences and see which heads matter, and whether some do
harm.

    python examples/ablation.py                              # e-SNLI, if it is there
    python examples/ablation.py --train a.tsv --test b.tsv   # your own pairs and labels
    headscope ablate --task classification --model pairs --data pairs/test.jsonl --by uniform --plot
    heads.svg

Files are .tsv, .csv, .jsonl or .parquet with fields such as sentence1, sentence2 and label.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path

import torch
from torch.nn import functional
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from transformers.utils import logging

import headscope as hs
from headscope import tasks
from headscope.capturing import demo_model
from headscope.storage import given_pairs, read_rows

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "e-snli"
WHERE = (
    "e-SNLI (MIT; sentences of SNLI, CC BY-SA 4.0): OanaMariaCamburu/e-SNLI on GitHub, "
    "dataset/eSNLI"
)

Row = tuple[str, str, str]


def main() -> None:
    asked = parser().parse_args()
    torch.set_num_threads(asked.threads)
    torch.manual_seed(asked.seed)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    train, test = (
        rows_of(path, part) for path, part in ((asked.train, "dev"), (asked.test, "test"))
    )
    kept = asked.labels or (
        ("entailment", "contradiction")
        if asked.train == DATA
        else sorted({row[2] for row in train})
    )
    train, test = ([row for row in rows if row[2] in kept] for rows in (train, test))
    chosen = random.Random(asked.seed)
    train, test = (
        chosen.sample(train, min(asked.pairs, len(train))),
        chosen.sample(test, min(asked.tests, len(test))),
    )
    names = sorted({label for *_, label in train})
    test = [row for row in test if row[2] in names]
    model, tokenizer = classifier(names)
    began = time.perf_counter()
    fit(model, tokenizer, train, names=names, rounds=asked.rounds)
    print(
        f"{len(names)} classes, {len(train)} pairs to learn from, "
        f"{time.perf_counter() - began:.0f} s"
    )
    model.save_pretrained(asked.out)
    tokenizer.save_pretrained(asked.out)
    lines = (
        json.dumps(dict(zip(("sentence1", "sentence2", "label"), row, strict=True))) + "\n"
        for row in test
    )
    (asked.out / "test.jsonl").write_text("".join(lines), encoding="utf-8")
    print(f"Wrote {asked.out}, and {len(test)} pairs to {asked.out / 'test.jsonl'}")
    labels = [names.index(label) for *_, label in test]
    task = tasks.classification(tokenizer, [row[:2] for row in test], labels)
    began = time.perf_counter()
    result = hs.ablate(model, task, by=asked.by, progress=True)
    print(result)
    print(f"{time.perf_counter() - began:.0f} s")
    result.save(asked.out / f"{asked.by}.safetensors")
    print(f"Wrote {result.plot(asked.out / f'{asked.by}.png')}")


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--train", type=Path, default=DATA, help="a file of pairs, or the folder of e-SNLI"
    )
    parser.add_argument("--test", type=Path, default=DATA, help="the same")
    parser.add_argument(
        "--labels", nargs="+", help="only these; entailment and contradiction for e-SNLI, else all"
    )
    parser.add_argument("--pairs", type=int, default=2500, help="how many pairs are learnt from")
    parser.add_argument(
        "--tests", type=int, default=500, help="how many pairs heads are disabled on"
    )
    parser.add_argument("--rounds", type=int, default=2, help="how often each pair is learnt from")
    parser.add_argument(
        "--by",
        choices=("zero", "uniform", "mean attention", "mean output"),
        default="uniform",
        help="how heads are disabled",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("pairs"), help="folder of the model and what is found"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    return parser


def rows_of(path: Path, part: str) -> list[Row]:
    """Pairs with their labels: of a file, or of a part of e-SNLI."""
    if path.is_dir():
        files = [path / f"{name}.{part}" for name in ("s1", "s2", "labels")]
        if all(file.is_file() for file in files):
            columns = [file.read_text(encoding="utf-8").split("\n") for file in files]
            return [
                row
                for row in zip(*(map(str.strip, column) for column in columns), strict=False)
                if all(row)
            ]
    if not path.is_file():
        sys.exit(
            f"{path} is not there. Give --train and --test, files of pairs with labels; or get "
            f"{WHERE}"
        )
    rows = read_rows(path)
    pairs = given_pairs(rows, str(path))
    if "label" not in rows[0] or not all(isinstance(pair, tuple) for pair in pairs):
        sys.exit(f"{path} has no pairs with the field label")
    return [(*pair, str(row["label"])) for pair, row in zip(pairs, rows, strict=True)]


def classifier(names: list[str]) -> tuple:
    """The demo model with a head for these labels."""
    numbers = dict(enumerate(names))
    labels = {
        "num_labels": len(names),
        "id2label": numbers,
        "label2id": {name: at for at, name in numbers.items()},
    }
    folder = demo_model()
    return AutoModelForSequenceClassification.from_pretrained(
        folder, **labels
    ), AutoTokenizer.from_pretrained(folder)


def fit(
    model: torch.nn.Module, tokenizer: object, rows: list[Row], *, names: list[str], rounds: int
) -> None:
    """Fine-tune all weights: AdamW, batches of 32 of like length, the step falling evenly to
    nothing.
    """
    rows = sorted(rows, key=lambda row: len(row[0]) + len(row[1]))
    batches = [rows[start : start + 32] for start in range(0, len(rows), 32)]
    steps = rounds * len(batches)
    adam = torch.optim.AdamW(model.parameters(), lr=2e-4, weight_decay=0.01)
    falling = torch.optim.lr_scheduler.LambdaLR(
        adam, lambda step: min((step + 1) / (0.1 * steps), 1 - step / steps)
    )
    order = random.Random(0)
    model.train()
    for _ in range(rounds):
        for batch in order.sample(batches, len(batches)):
            firsts, seconds, labels = zip(*batch, strict=True)
            encoded = tokenizer(
                list(firsts), list(seconds), padding=True, truncation=True, return_tensors="pt"
            )
            wanted = torch.tensor([names.index(label) for label in labels])
            loss = functional.cross_entropy(model(**encoded).logits, wanted)
            adam.zero_grad()
            loss.backward()
            adam.step()
            falling.step()
    model.eval()


if __name__ == "__main__":
    main()
