"""What tests of several studies share."""

import pytest
import torch

from headscope.linguistics import read_treebank
from headscope.testing import tiny_model, tiny_tokenizer


@pytest.fixture(scope="session")
def tiny_bert():
    """Makes a tiny BERT that classifies, with random weights."""
    return _tiny_bert


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The folder of a tiny BERT and its tokenizer."""
    folder = tmp_path_factory.mktemp("model") / "tiny"
    tiny_model("bert").save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def real_texts(shared):
    """Sentences of a real treebank as texts, and the document of each."""
    bank = list(read_treebank(shared / "ud-english-ewt" / "en_ewt-ud-dev.conllu"))[:24]
    documents = list(dict.fromkeys(sentence.document for sentence in bank))
    groups = [f"d{documents.index(sentence.document):03}" for sentence in bank]
    return [sentence.text for sentence in bank], groups


@pytest.fixture(autouse=True)
def cheap(counted_once):
    """What takes long in every study of heads is done once."""


def _tiny_bert(layers, classes=2):
    from transformers import AutoConfig, AutoModelForSequenceClassification

    sizes = {
        "hidden_size": 24,
        "num_hidden_layers": layers,
        "num_attention_heads": 3,
        "intermediate_size": 40,
    }
    config = AutoConfig.for_model("bert", vocab_size=64, num_labels=classes, **sizes)
    torch.manual_seed(0)
    return AutoModelForSequenceClassification.from_config(config).eval()
