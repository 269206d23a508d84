"""Two texts, or two models, beside each other."""

import numpy as np
import pytest

import headscope as hs
from headscope.testing import tiny_model, tiny_tokenizer

from .conftest import TEXT, page_of, unpacked

OTHER = "the dog sat on it."


@pytest.fixture(scope="module")
def two():
    """Models of one type, with other weights; their records are kept together."""
    first, second = (tiny_model("gpt2", writes=True, seed=seed) for seed in (0, 1))
    return page_of(first, tiny_tokenizer(), beside=second)


@pytest.fixture(scope="module")
def unlike():
    """Models of two types: 3 layers of 5 heads, and others."""
    first, second = tiny_model("gpt2", writes=True), tiny_model("llama", writes=True)
    return page_of(first, tiny_tokenizer(), beside=second)


def beside(page, a, b, **looking):
    answer = page.post("/compare", {"page": "one-beside", "a": a, "b": b, "looking": looking})
    assert answer.status_code == 200, answer.text
    return unpacked(answer.content)


def compared(page, *texts, models=None):
    given = models or [page.live.model] * 2
    records = [hs.capture(*each) for each in zip(given, [tiny_tokenizer()] * 2, texts, strict=True)]
    return hs.compare(*records)


def assert_moved(header, comparison):
    (stack,) = header["stacks"]
    moved = np.array(stack["moved"]["values"], float)
    assert moved == pytest.approx(comparison["self"].map(), rel=2e-3)


def test_two_texts_are_aligned_as_compare_does(two):
    first, second = (two.ask(text)[0] for text in (TEXT, OTHER))
    head, _ = beside(two, first["id"], second["id"])
    assert_moved(head["header"], compared(two, TEXT, OTHER))
    labels = head["header"]["stacks"][0]["query"]["labels"]
    assert any("→" in label for label in labels)
    assert "partners" not in head


def test_the_second_model_reads_the_same(two):
    first, second = two.ask()[0], two.ask(second=True)[0]
    assert first["id"] != second["id"]
    assert first["output"]["places"] != second["output"]["places"]
    model = tiny_model("gpt2", writes=True, seed=1)
    head, _ = beside(two, first["id"], second["id"])
    assert_moved(head["header"], compared(two, TEXT, TEXT, models=(two.live.model, model)))
    assert two.get("/model.json").json()["beside"] == "GPT2LMHeadModel"


def test_of_other_heads_the_partners_are_told(unlike):
    first, second = unlike.ask()[0], unlike.ask(second=True)[0]
    head, _ = beside(unlike, first["id"], second["id"])
    stack = compared(
        unlike, TEXT, TEXT, models=(unlike.live.model, tiny_model("llama", writes=True))
    )["self"]
    wanted = [[*own, *other] for own, other in zip(stack.cells, stack.partners, strict=True)]
    assert head["partners"]["self"] == wanted
    assert any(row[:2] != row[2:] for row in wanted)


def test_the_chunks_of_what_is_looked_at_come_with_it(two):
    first, second = (two.ask(text)[0] for text in (TEXT, OTHER))
    looking = {"layer": 1, "heads": [3], "quantity": "difference"}
    head, chunks = beside(two, first["id"], second["id"], **looking)
    assert any("difference" in name for name in chunks)
    assert two.get(f"/record/{head['id']}/header.json").json()["note"] == head["header"]["note"]


def test_two_models_share_what_may_be_kept(two):
    two.ask("a cat.", second=True)
    two.ask("a cat.")
    assert len(two.live.records) <= two.live.records.most


def test_what_is_gone_or_is_not_there_is_said(two, unlike, page):
    answer = two.post("/compare", {"page": "one", "a": "x", "b": "y", "looking": {}})
    assert (answer.status_code, "no longer kept" in answer.json()["error"]) == (410, True)
    message = {"page": "one", "input": {"text": TEXT}, "changes": [], "looking": {}, "second": True}
    answer = page.post("/ask", message)
    assert (answer.status_code, "--beside" in answer.json()["error"]) == (400, True)
    first, second = unlike.ask(TEXT)[0], unlike.ask(OTHER, second=True)[0]
    message = {"page": "one", "a": first["id"], "b": second["id"], "looking": {}}
    answer = unlike.post("/compare", message)
    assert (answer.status_code, "could not be" in answer.json()["error"]) == (400, True)
