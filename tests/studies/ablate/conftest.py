"""What tests of ablation share: a model, texts, a task that every change moves, and a result."""

import pytest
import torch

from headscope import ablate
from headscope.tasks import Task, translation
from headscope.testing import tiny_model

TEXTS = ["the cat sat on it.", "a bee", "on it she ran", "he, too", "so far so good, no"]


@pytest.fixture(scope="module")
def bert():
    return tiny_model("bert", num_hidden_layers=3)


def states_task(tokenizer, texts=TEXTS, batch=2):
    """The mean of the last states, which every model has and every change moves."""
    inputs = [
        tokenizer(texts[at : at + batch], padding=True, return_tensors="pt")
        for at in range(0, len(texts), batch)
    ]
    names = ("input_ids", "attention_mask")

    def score(model, batch):
        states = model(**batch)[0].double()
        kept = batch["attention_mask"][..., None]
        return (states * kept * torch.linspace(-1, 1, states.shape[-1])).sum((1, 2))

    return Task([{name: one[name] for name in names} for one in inputs], score, "states", "sum")


@pytest.fixture(scope="module")
def found(tokenizer):
    model = tiny_model("bart", encoder_layers=1, decoder_layers=2)
    return ablate(
        model, translation(tokenizer, [(a, b) for a in TEXTS for b in TEXTS[:4]], batch=8)
    )
