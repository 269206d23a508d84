import pytest
import torch

from headscope.testing import tiny_tokenizer


@pytest.fixture(scope="session")
def tokenizer():
    return tiny_tokenizer()


@pytest.fixture
def batch(tokenizer):
    """Three texts of several lengths, padded; which side is the test's choice."""

    def batch(side="right"):
        tokenizer.padding_side = side
        found = tokenizer(
            ["the cat sat.", "a bee", "on it she ran"], return_tensors="pt", padding=True
        )
        tokenizer.padding_side = "right"
        return {name: found[name] for name in ("input_ids", "attention_mask")}

    return batch


@pytest.fixture
def states():
    """The last hidden states of a model, or its scores."""

    def states(model, **inputs):
        with torch.no_grad():
            return model(**inputs)[0]

    return states
