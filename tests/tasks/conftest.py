import pytest

# Whoever starts the workers of a run reads this file, too: torch is imported where it is used.

TEXTS = ["the cat sat on it.", "a bee", "on it she ran", "he, too", "so far so good, no"]


@pytest.fixture(scope="session")
def tokenizer():
    from headscope.testing import tiny_tokenizer

    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"mask_token": "[UNK]"})
    return tokenizer


@pytest.fixture(scope="session")
def writer():
    from headscope.testing import tiny_model

    return tiny_model("gpt2", writes=True)


@pytest.fixture(scope="session")
def classifier():
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification

    sizes = {
        "hidden_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 40,
    }
    config = AutoConfig.for_model("bert", vocab_size=64, num_labels=2, **sizes)
    torch.manual_seed(3)
    model = AutoModelForSequenceClassification.from_config(config).eval()
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2 and "embed" not in name:
            parameter.data.normal_(std=1.6 / parameter.shape[-1] ** 0.5)
    return model


@pytest.fixture
def scored():
    """The scores of a task in the order of its examples, and the values they are made of."""
    import torch

    def scored(task, model):
        with torch.no_grad():
            values = task.joined(
                [task.values(model, number) for number in range(len(task.batches))]
            )
        return task.scores(values), values

    return scored
