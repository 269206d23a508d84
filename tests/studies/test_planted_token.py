"""Faithfulness of a classifier that is known to read one token alone."""

import numpy as np
import pytest
import torch

from headscope import faithfulness
from headscope.studies import CounterfactualAttention

PLANTED = "c"


def planted(tokenizer, tiny_bert):
    """One layer that looks evenly at every token, all of which are nothing but one: the answer is
    whether it is there.

    Norms without shift leave nothing what it is, and what is there the same however often it was
    divided.
    """
    model = tiny_bert(layers=1)
    attention = model.bert.encoder.layer[0].attention.self
    for part in (attention.query, attention.key):
        part.weight.data.zero_()
    embeddings = model.bert.embeddings
    for table in (
        embeddings.word_embeddings,
        embeddings.position_embeddings,
        embeddings.token_type_embeddings,
    ):
        table.weight.data.zero_()
    number = tokenizer.convert_tokens_to_ids(PLANTED)
    embeddings.word_embeddings.weight.data[number] = torch.randn(
        24, generator=torch.Generator().manual_seed(3)
    )
    with torch.no_grad():
        there = model.bert(input_ids=torch.tensor([[1, number, 2]])).pooler_output[0]
        model.classifier.weight.copy_(torch.stack([-there, there]) * 40 / (there @ there))
        model.classifier.bias.copy_(torch.tensor([20.0, -20.0]))
    return model


def test_a_planted_token_is_found(tokenizer, tiny_bert):
    found = faithfulness(
        planted(tokenizer, tiny_bert),
        tokenizer,
        ["a bad c, is it"],
        counterfactual=CounterfactualAttention(permutations=6),
    )
    text = found.explained[0]
    at = text.pieces.index(PLANTED)
    only = np.eye(len(text.pieces))[at]
    assert text.probabilities.argmax() == 1
    np.testing.assert_allclose(text.signals["leave_one_out"], only, atol=1e-6)
    for name in ("contribution", "alti"):
        assert text.signals[name][at] > 1e-3
        np.testing.assert_allclose(text.signals[name] * (1 - only), 0, atol=1e-6)
    assert np.ptp(text.signals["attention"]) < 1e-7
    for name in ("leave_one_out", "contribution", "alti"):
        assert (text.comprehensiveness[name], text.sufficiency[name]) == pytest.approx(
            (1, 0), abs=1e-6
        )
