"""A tiny model in a folder, which most commands are tried on."""

import pytest

from headscope.testing import tiny_model, tiny_tokenizer


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A tiny BERT with its tokenizer, saved."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    tiny_model("bert").save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return str(folder)
