"""Too little memory is an error that says what to choose, wherever it runs out."""

import numpy as np
import pytest
import torch
from torch.nn import functional

import headscope as hs
from headscope.errors import CaptureError
from headscope.tasks import next_word
from headscope.testing import tiny_model, tiny_tokenizer

TEXTS = ["the cat sat on the mat", "a dog ran off", "it sat by the bee"]
ERRORS = {
    "on a GPU": torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has"),
    "on a CPU": RuntimeError(
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate 2147483648 bytes."
    ),
    "in NumPy": MemoryError("Unable to allocate 2.00 GiB for an array with shape (1,)"),
}
RUNS = {
    "capture": lambda model, tokenizer: hs.capture(model, tokenizer, TEXTS[0]),
    "statistics": lambda model, tokenizer: hs.capture(
        model, tokenizer, TEXTS[0], keep="statistics"
    ),
    "norms": lambda model, tokenizer: hs.capture(model, tokenizer, TEXTS[0], keep="norms"),
    "generate": lambda model, tokenizer: hs.generate(model, tokenizer, TEXTS[0], max_new_tokens=3),
    "ablate": lambda model, tokenizer: hs.ablate(model, next_word(tokenizer, TEXTS)),
    "effect": lambda model, tokenizer: hs.effect(
        model, tokenizer, TEXTS[0], interventions=[hs.Zero(layer=0, heads=[0])]
    ),
}


@pytest.fixture
def model():
    return tiny_model("gpt2", writes=True)


@pytest.fixture
def fails(monkeypatch):
    """Attention that runs out of memory from the second call on."""

    def fail(error):
        attend, calls = functional.scaled_dot_product_attention, []

        def attention(*given, **options):
            calls.append(1)
            if len(calls) > 1:
                raise error
            return attend(*given, **options)

        monkeypatch.setattr(functional, "scaled_dot_product_attention", attention)

    return fail


@pytest.mark.parametrize(
    ("run", "error"),
    [*(("capture", error) for error in ERRORS), *((run, "on a GPU") for run in [*RUNS][1:])],
)
def test_it_names_tokens_bytes_and_what_to_choose(run, error, model, fails, monkeypatch):
    tokenizer = tiny_tokenizer()
    wanted = hs.capture(model, tokenizer, TEXTS[0])
    hooks = [len(each._forward_hooks) + len(each._forward_pre_hooks) for each in model.modules()]
    fails(ERRORS[error])
    told = r"too little memory, (2.00 GiB|2147483648 bytes) more, for \d+ x \d+ tokens: .*keep="
    with pytest.raises(CaptureError, match=told):
        RUNS[run](model, tokenizer)
    monkeypatch.undo()
    assert hooks == [
        len(each._forward_hooks) + len(each._forward_pre_hooks) for each in model.modules()
    ]
    found = hs.capture(model, tokenizer, TEXTS[0])
    for layer, own in zip(found["self"], wanted["self"], strict=True):
        np.testing.assert_allclose(layer.weights_of(), own.weights_of(), atol=1e-6)


def test_other_errors_are_left_as_they_are(model, fails):
    fails(RuntimeError("the model's own"))
    with pytest.raises(RuntimeError, match="the model's own"):
        hs.capture(model, tiny_tokenizer(), TEXTS[0])


def test_of_many_texts_the_one_that_is_too_long_is_named(model, monkeypatch):
    """It runs out with more than so many tokens, in a batch or alone."""
    tokenizer, attend = tiny_tokenizer(), functional.scaled_dot_product_attention

    def attention(query, *given, **options):
        if query.shape[0] * query.shape[2] > 15:
            raise torch.OutOfMemoryError("Tried to allocate 2.00 GiB.")
        return attend(query, *given, **options)

    monkeypatch.setattr(functional, "scaled_dot_product_attention", attention)
    told = []
    given = ["it sat", "the cat sat on the mat", "a dog"]
    records = list(
        hs.capture_many(model, tokenizer, given, on_error=lambda *error: told.append(error))
    )
    assert [record.texts for record in records] == [("it sat",), ("a dog",)]
    ((number, error),) = told
    assert number == 1
    assert "too little memory, 2.00 GiB more, for 1 x" in str(error)
