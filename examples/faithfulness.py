"""Train a small classifier on frozen all-MiniLM-L6-v2 and see what its attention agrees with.

    python examples/faithfulness.py                              # Banking77, the intents that begin
    with card_ python examples/faithfulness.py --train a.tsv --test b.tsv   # your own texts and
    labels headscope faithfulness --texts intents/texts.jsonl --model intents

Files have the fields text and label (or category): .csv, .tsv with a header, or .jsonl.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import sys
from pathlib import Path

import torch
from torch.nn import functional
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from transformers.utils import logging

import headscope as hs
from headscope.capturing import demo_model
from headscope.studies import CounterfactualAttention

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "banking77"
WHERE = (
    "Banking77 (CC BY 4.0): PolyAI-LDN/task-specific-datasets on GitHub, banking_data/train.csv "
    "and test.csv"
)
LABELS = ("label", "category")


def main() -> None:
    asked = parser().parse_args()
    for path in (asked.train, asked.test):
        if not path.is_file():
            sys.exit(
                f"{path} is not there. Give --train and --test, files with the fields text and "
                f"label; or get {WHERE}"
            )
    torch.set_num_threads(asked.threads)
    torch.manual_seed(asked.seed)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    begins = asked.begins
    if begins is None:
        begins = "card_" if asked.train.parent == DATA else ""
    train, test = (
        [row for row in read(path) if row[1].startswith(begins)]
        for path in (asked.train, asked.test)
    )
    names = sorted({label for _, label in train})
    if len(names) < 2:
        sys.exit(
            f"{asked.train} has the labels {names} that begin with {begins!r}; wanted are at "
            "least two"
        )
    test = [row for row in test if row[1] in names]
    model, tokenizer = classifier(names)
    fit(model, features(model, tokenizer, train), targets(train, names))
    said = logits(model, features(model, tokenizer, test)).argmax(-1)
    right = (said == targets(test, names)).double().mean().item()
    print(
        f"{len(names)} labels, {len(train)} texts to learn from; right on {right:.1%} of "
        f"{len(test)} others"
    )
    chosen = random.Random(asked.seed).sample(
        [text for text, _ in test], min(asked.texts, len(test))
    )
    model.save_pretrained(asked.out)
    tokenizer.save_pretrained(asked.out)
    lines = "".join(json.dumps({"text": text}) + "\n" for text in chosen)
    (asked.out / "texts.jsonl").write_text(lines, encoding="utf-8")
    print(f"Wrote {asked.out}, and {len(chosen)} texts to {asked.out / 'texts.jsonl'}")
    steps = 500 if asked.adversary else 0
    print(
        hs.faithfulness(
            model,
            tokenizer,
            chosen,
            counterfactual=CounterfactualAttention(adversary=steps),
            progress=True,
        )
    )


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--train", type=Path, default=DATA / "train.csv")
    parser.add_argument("--test", type=Path, default=DATA / "test.csv")
    parser.add_argument(
        "--begins", help="only labels that begin so; card_ for Banking77, all for other files"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("intents"), help="folder of the model and its texts"
    )
    parser.add_argument(
        "--texts", type=int, default=200, help="how many texts of the test are explained"
    )
    parser.add_argument(
        "--adversary", action="store_true", help="look for adversarial attention too: slow"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    return parser


def read(path: Path) -> list[tuple[str, str]]:
    """Texts with their labels."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        if path.suffix == ".jsonl":
            rows = [json.loads(line) for line in file if line.strip()]
        else:
            rows = list(csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ","))
    label = next((name for name in LABELS if rows and name in rows[0]), None)
    if label is None or "text" not in rows[0]:
        sys.exit(f"{path} has no fields text and label")
    return [(row["text"], str(row[label])) for row in rows]


def classifier(names: list[str]) -> tuple:
    """The demo model with a head for these labels."""
    numbers = dict(enumerate(names))
    labels = {
        "num_labels": len(names),
        "id2label": numbers,
        "label2id": {name: at for at, name in numbers.items()},
    }
    folder = demo_model()
    model = AutoModelForSequenceClassification.from_pretrained(folder, **labels).eval()
    return model, AutoTokenizer.from_pretrained(folder)


def targets(rows: list[tuple[str, str]], names: list[str]) -> torch.Tensor:
    return torch.tensor([names.index(label) for _, label in rows])


@torch.no_grad()
def features(
    model: torch.nn.Module, tokenizer: object, rows: list[tuple[str, str]], size: int = 64
) -> torch.Tensor:
    """What the frozen model says of [CLS]."""
    states = []
    for start in range(0, len(rows), size):
        texts = [text for text, _ in rows[start : start + size]]
        encoded = tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
        states.append(model.base_model(**encoded).last_hidden_state[:, :1])
    return torch.cat(states)


def logits(model: torch.nn.Module, states: torch.Tensor) -> torch.Tensor:
    return model.classifier(model.base_model.pooler(states))


def fit(
    model: torch.nn.Module, states: torch.Tensor, wanted: torch.Tensor, steps: int = 300
) -> None:
    """Train the head alone: the pooler and the classifier."""
    head = [*model.base_model.pooler.parameters(), *model.classifier.parameters()]
    adam = torch.optim.AdamW(head, lr=1e-3, weight_decay=0.01)
    for _ in range(steps):
        loss = functional.cross_entropy(logits(model, states), wanted)
        adam.zero_grad()
        loss.backward()
        adam.step()


if __name__ == "__main__":
    main()
