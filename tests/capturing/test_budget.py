"""What will be kept is told before the run, to the byte."""

from pathlib import Path

import pytest

import headscope as hs
from headscope.errors import CaptureError
from headscope.record import STATISTICS
from headscope.testing import tiny_model, tiny_tokenizer

TEXT = "the cat sat. a dog, it ran"
ARRAYS = {
    "qk": ("queries", "keys", "bias"),
    "values": ("values",),
    "weights": ("weights",),
    "before": ("queries_before", "keys_before"),
}


def kept(record):
    layers = [layer for stack in record.stacks.values() for layer in stack]
    found = {
        part: sum(
            getattr(layer, name).nbytes
            for layer in layers
            for name in names
            if getattr(layer, name) is not None
        )
        for part, names in ARRAYS.items()
    }
    held = [
        getattr(layer.statistics, name)
        for layer in layers
        if layer.statistics
        for name in STATISTICS
    ]
    return found | {"statistics": sum(array.nbytes for array in held if array is not None)}


SOME = {"keep": ("qk", "values", "statistics"), "top": 3}
BUDGETS = [
    *((family, {}) for family in ("bert", "llama", "bart", "t5", "bloom", "longformer", "jamba")),
    *((family, SOME) for family in ("bert", "llama", "bart", "t5", "longformer", "jamba")),
    ("llama", {"keep": ("qk", "before")}),
    ("t5", {"keep": "statistics", "rows": 5}),
]


@pytest.mark.parametrize(("family", "options"), BUDGETS)
def test_the_budget_is_what_is_kept(family, options):
    model, tokenizer = tiny_model(family), tiny_tokenizer()
    target = {"target": "a bee it ran. a cat"} if family in ("bart", "t5") else {}
    told = hs.budget(model, tokenizer, TEXT, **target, **options)
    found = kept(hs.capture(model, tokenizer, TEXT, **target, **options))
    in_place = (
        "longformer" in family and options.get("keep") is not None and "qk" in options["keep"]
    )
    if in_place:  # its queries and keys cannot be seen: the weights are kept in their place
        found |= {"qk": found["weights"], "weights": 0}
    assert {part: getattr(told, part) for part in told.what} == {
        part: found[part] for part in told.what
    }
    assert told.kept == sum(found.values())


def test_half_precision_halves_it():
    model, tokenizer = tiny_model("bert"), tiny_tokenizer()
    whole, half = (hs.budget(model, tokenizer, TEXT, precision=p) for p in ("float32", "float16"))
    assert half.kept * 2 == whole.kept


def test_it_reads_like_a_sentence():
    told = hs.budget(tiny_model("bert"), tiny_tokenizer(), TEXT, keep="qk")
    text = told.summary
    assert str(told) == text
    assert text == (
        "keeps 8.45 kB: queries and keys 8.45 kB; not values 4.22 kB, weights 11.6 kB, "
        "statistics 7.39 kB"
    )


@pytest.mark.parametrize("keep", ["qk", ("weights", "statistics")])
def test_the_budget_of_many_inputs_is_the_sum_of_their_records(keep):
    model, tokenizer = tiny_model("bert"), tiny_tokenizer()
    texts = ["a cat", TEXT, ("the cat sat", "a dog ran"), "a bee", TEXT]
    told = hs.budget(model, tokenizer, texts, keep=keep)
    sizes = []
    for record in hs.capture_many(model, tokenizer, texts, keep=keep):
        held = kept(record)
        sizes.append(sum(held[part] for part in told.what))
    assert (told.texts, told.kept, told.largest) == (5, sum(sizes), max(sizes))
    assert f" of 5 inputs, at most {told.largest / 1000:.3g} kB of one: " in str(told)


def test_a_budget_names_the_input_that_cannot_be_read():
    with pytest.raises(hs.errors.TextError, match="Input 1: The text is empty"):
        hs.budget(tiny_model("bert"), tiny_tokenizer(), ["a cat", " "])
    with pytest.raises(hs.errors.TextError, match="empty list"):
        hs.budget(tiny_model("bert"), tiny_tokenizer(), [])


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="only Linux tells what is free")
def test_a_record_larger_than_the_memory_is_refused_before_the_model_runs():
    model = tiny_model("llama", max_position_embeddings=10**6)
    text = "a " * 300_000
    with pytest.raises(CaptureError, match=r"300,002 tokens keeps .* GB: .* free: keep='qk'"):
        hs.capture(model, tiny_tokenizer(), text, keep="weights")
