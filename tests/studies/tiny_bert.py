"""A tiny BERT that classifies, with random weights."""

import torch


def tiny_bert(layers, classes=2):
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
