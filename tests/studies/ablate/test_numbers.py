"""Ablations of real models on real texts give the numbers that they gave before they were sums."""

import json
from pathlib import Path

import pytest
import torch

import headscope as hs
from headscope import tasks
from headscope.capturing import load_bare_model, load_model, load_tokenizer

from ...close import assert_same_numbers

FIXTURE = Path(__file__).parents[1] / "numbers" / "ablate.json"


def sentences(shared, count=18):
    """Lines of several speakers, in documents of a few each."""
    lines = (shared / "tinyshakespeare" / "input.txt").read_text().splitlines()
    return [line for line in lines if 25 < len(line) < 45][:count]


def documents(texts):
    return [f"d{number // 3:02}" for number in range(len(texts))]


def pairs(texts, *, graded):
    labels = [number % 5 / 4 if graded else number % 2 for number in range(len(texts))]
    return list(zip(texts, texts[1:] + texts[:1], strict=True)), labels


def ablations(shared, minilm):
    """Everything that is compared, by name: called when it is wanted."""
    texts = sentences(shared)
    path = shared / "models" / "stories260K"
    model, tokenizer = load_model(path, writes=True)
    few = {"heads": [(0, 1), (2, 3), (4, 7)], "layers": [1, 3]}
    task = tasks.next_word(tokenizer, texts, batch=4)
    grouped = {"groups": documents(texts)}

    def masked():
        torch.manual_seed(0)
        own = load_bare_model(None, head="masked word", allow_unfit=True)
        words = tasks.masked_word(load_tokenizer(None), texts[:6], allow_unfit=True)
        return hs.ablate(own, words, allow_unfit=True, heads=False)

    def alike(graded):
        given, labels = pairs(texts, graded=graded)
        return hs.ablate(minilm[0], tasks.likeness(minilm[1], given, labels), **heads)

    heads = {"heads": [(0, 1), (3, 4), (5, 11)], "layers": [2]}
    return {
        "zero": lambda: hs.ablate(model, task),
        "uniform": lambda: hs.ablate(model, task, by="uniform", **few, **grouped),
        "mean attention": lambda: hs.ablate(model, task, by="mean attention", **few),
        "mean output": lambda: hs.ablate(model, task, by="mean output", **few),
        "screen": lambda: hs.ablate(model, task, screen="gradient", top=4, **grouped),
        "masked words": masked,
        "alike": lambda: alike(False),
        "graded": lambda: alike(True),
    }


def numbers_of(result):
    """The table, totals, and estimates of a result, as JSON holds them."""
    columns = result.columns() | {"metric": result.metric, "by": result.by}
    columns |= {f"total {name}": values for name, values in result.totals.items()}
    if result.estimates is not None:
        columns["estimates"] = list(result.estimates.values())
    return json.loads(json.dumps(columns))


@pytest.fixture(scope="module")
def every(shared, minilm):
    return ablations(shared, minilm)


# Its head for masked words is of random weights.
@pytest.mark.filterwarnings("ignore:The files of all-MiniLM")
@pytest.mark.parametrize("name", json.loads(FIXTURE.read_text()) if FIXTURE.exists() else [])
def test_numbers_of_real_models_stay_what_they_were(name, every):
    assert_same_numbers(numbers_of(every[name]()), json.loads(FIXTURE.read_text())[name])
