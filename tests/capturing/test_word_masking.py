"""What masking a word costs another, on a planted model, a tiny random one, and where there is no
head for it.
"""

import types

import numpy as np
import pytest
import torch
from torch import nn

import headscope as hs
from headscope import CaptureError, ModelError
from headscope.capturing import load_masked_model, masking_drops
from headscope.capturing._word_masking import _looks_back
from headscope.patterns import heads, predictive_pattern
from headscope.testing import tiny_model, tiny_tokenizer

TEXT = "a b. c d e"


@pytest.fixture(scope="module")
def tokenizer():
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"mask_token": "[MASK]"})
    return tokenizer


@pytest.fixture(scope="module")
def masked():
    from transformers import AutoModelForMaskedLM

    torch.manual_seed(0)
    model = AutoModelForMaskedLM.from_config(tiny_model("bert").config).eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            nn.init.normal_(parameter, std=0.3)
    return model


class Planted(nn.Module):
    """Guesses a masked word surely where its neighbour (the other of its two) can be seen, by
    chance else.
    """

    device = torch.device("cpu")
    config = types.SimpleNamespace(max_position_embeddings=64)

    def __init__(self, tokenizer):
        super().__init__()
        self.mask, self.size = tokenizer.mask_token_id, len(tokenizer)

    def forward(self, input_ids, **_):
        logits = torch.zeros(*input_ids.shape, self.size)
        for row, ids in enumerate(input_ids.tolist()):
            for place in range(1, len(ids) - 1):
                other = ids[place + 1 if place % 2 else place - 1]
                if other != self.mask and other > 5:
                    logits[row, place, other + (1 if place % 2 == 0 else -1)] = 20
        return types.SimpleNamespace(logits=logits)


def test_the_partner_that_a_planted_model_guesses_from_is_found(tokenizer):
    drops = masking_drops(Planted(tokenizer), tokenizer, "a b c d e f")
    wanted = np.zeros((6, 6))
    for place in range(0, 6, 2):
        wanted[place, place + 1] = wanted[place + 1, place] = np.log(len(tokenizer))
    np.testing.assert_allclose(drops[1:-1, 1:-1], wanted, atol=1e-6)
    assert np.isnan(drops[0]).all()
    assert np.isnan(drops[:, -1]).all()


def test_it_follows_the_definition_one_pass_at_a_time(masked, tokenizer):
    drops = masking_drops(masked, tokenizer, TEXT, "f g", batch_tokens=40)
    encoding = tokenizer(TEXT, "f g", return_tensors="pt")
    ids = encoding["input_ids"][0]

    def probabilities(query, *places):
        given = {name: values.clone() for name, values in encoding.items()}
        given["input_ids"][0, list(places)] = tokenizer.mask_token_id
        with torch.no_grad():
            return masked(**given).logits.double().log_softmax(-1)[0, query, ids[query]].item()

    words = [place for place in range(len(ids)) if ids[place] not in tokenizer.all_special_ids]
    assert len(words) == 8
    for query in words:
        for key in words:
            wanted = probabilities(query, query) - probabilities(query, query, key)
            assert drops[query, key] == pytest.approx(wanted, abs=1e-4)
    assert np.abs(np.nan_to_num(drops)).max() > 0.05


def test_the_batch_makes_no_difference(masked, tokenizer):
    one, many = (masking_drops(masked, tokenizer, TEXT, batch_tokens=size) for size in (1, 4096))
    np.testing.assert_allclose(one, many, atol=1e-4)


def test_a_live_model_scores_its_heads(masked, tokenizer):
    from headscope.capturing import Masking

    texts = [TEXT, "b c d e", "g h i j k"]
    records = hs.capture_many(masked, tokenizer, texts)
    found = heads(records, patterns=(predictive_pattern(Masking(masked, tokenizer)),))
    assert len(found.all_labels) == len(found.cells)
    assert all(-1 <= label.score <= 1 and label.texts == 3 for label in found.all_labels)


@pytest.mark.parametrize(
    ("later", "earlier", "back"),
    [
        (0, 1, True),
        (1e-6, 0.01, True),
        (9e-5, 1.1e-4, False),
        (1, 1, False),
        (1, 0, False),
        (0, 9e-5, False),
    ],
)
def test_a_model_that_hardly_reacts_is_not_taken_for_one_that_looks_back(later, earlier, back, rng):
    drops = rng.uniform(-1, 1, (7, 7))
    upper, lower = np.triu(drops, 1), np.tril(drops, -1)
    drops = later * upper / np.abs(upper).max() + earlier * lower / np.abs(lower).max()
    assert _looks_back(drops) == back


def test_models_without_a_head_are_refused(tokenizer, masked):
    with pytest.raises(CaptureError, match="BertModel has no masked-word head: it gives no logits"):
        masking_drops(tiny_model("bert"), tokenizer, TEXT)
    with pytest.raises(CaptureError, match="GPT2LMHeadModel looks back only"):
        masking_drops(tiny_model("gpt2", writes=True), tokenizer, TEXT)
    with pytest.raises(CaptureError, match="has no mask"):
        masking_drops(masked, tiny_tokenizer(), TEXT)


def test_an_untrained_head_is_refused_and_a_trained_one_read(tmp_path, masked, tokenizer):
    with pytest.raises(
        ModelError, match="all-MiniLM-L6-v2 has no trained masked-word head: its files lack cls"
    ):
        load_masked_model(None)
    masked.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    found = masking_drops(str(tmp_path), None, TEXT)
    np.testing.assert_allclose(found, masking_drops(masked, tokenizer, TEXT), atol=1e-5)
