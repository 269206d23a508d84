"""Faithfulness: signals against plain loops, tampering against what it must do."""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope import InterventionError, TextError
from headscope.studies import Tampering, erasure, faithfulness
from headscope.studies._faithfulness import divergence
from headscope.testing import tiny_tokenizer

TEXT = "the cat sat."
LAYERS, HEADS = 2, 3


@pytest.fixture(scope="module")
def tokenizer():
    return tiny_tokenizer()


@pytest.fixture(scope="module")
def model():
    from transformers import AutoConfig, AutoModelForSequenceClassification

    sizes = {"hidden_size": 24, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": 40}
    config = AutoConfig.for_model("bert", vocab_size=64, num_labels=4, **sizes)
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(config).eval()
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2 and "embed" not in name:
            parameter.data.normal_(std=1.6 / parameter.shape[-1] ** 0.5)
    return model


@pytest.fixture(scope="module")
def found(model, tokenizer):
    return faithfulness(model, tokenizer, [TEXT, "a bee on it"], tampering=Tampering(permutations=8, adversary=0))


def probabilities(model, ids):
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids])).logits.softmax(-1)[0].double().numpy()


def test_attention_is_the_mean_row_of_the_layer(found, model, tokenizer):
    record = hs.capture(model, tokenizer, TEXT)
    wanted = record["self"].weights(LAYERS - 1).mean(0)[0, 1:-1]
    np.testing.assert_allclose(found.texts[0].signals["attention"], wanted, atol=1e-6)
    assert found.texts[0].pieces == record["self"].query.pieces[1:-1]
    other = faithfulness(
        model, tokenizer, [TEXT], layer=0, query=3, tampering=Tampering(permutations=0, adversary=0)
    ).texts[0]
    wanted = record["self"].weights(0).mean(0)[3, 1:-1]
    np.testing.assert_allclose(other.signals["attention"], wanted, atol=1e-6)


def test_leaving_out_is_one_token_at_a_time(found, model, tokenizer):
    ids = tokenizer(TEXT)["input_ids"]
    own = probabilities(model, ids)
    np.testing.assert_allclose(found.texts[0].probabilities, own, atol=1e-6)
    for token, value in enumerate(found.texts[0].signals["leave_one_out"], start=1):
        wanted = np.abs(probabilities(model, ids[:token] + ids[token + 1 :]) - own).mean()
        assert value == pytest.approx(wanted, abs=1e-6)


def test_the_gradient_holds_attention_constant(found, model, tokenizer):
    """Against finite differences of a forward whose weights are frozen to those of the text."""
    model = model.double()
    ids = torch.tensor([tokenizer(TEXT)["input_ids"]])
    vectors = model.get_input_embeddings()(ids).detach()
    kept = {layer: hs.capture(model, tokenizer, TEXT)["self"].weights(layer) for layer in range(LAYERS)}
    frozen = [hs.Given(weights=weights, layer=layer) for layer, weights in kept.items()]

    def scores(given):
        with torch.no_grad(), hs.intervene(model, *frozen):
            return model(inputs_embeds=given).logits.softmax(-1)[0].numpy()

    step, wanted = 1e-5, []
    for token in range(1, ids.shape[1] - 1):
        moved = []
        for sign in (1, -1):
            given = vectors.clone()
            given[0, token] *= 1 + sign * step
            moved.append(scores(given))
        wanted.append(np.abs((moved[0] - moved[1]) / (2 * step)).sum())
    model.float()
    np.testing.assert_allclose(found.texts[0].signals["gradient"], np.array(wanted) / sum(wanted), rtol=2e-3)


def test_erasure_of_a_score_that_one_token_decides():
    decided = lambda kept: 0.9 if 2 in kept else 0.1  # noqa: E731
    right, wrong = np.array([0.1, 0.2, 0.9, 0.3]), np.array([0.9, 0.2, 0.1, 0.3])
    assert erasure(decided, right, shares=(0.25, 0.5)) == pytest.approx((0.8, 0.0))
    assert erasure(decided, wrong, shares=(0.25, 0.5)) == pytest.approx((0.0, 0.8))


def test_erasure_takes_tokens_out_of_the_text(found, model, tokenizer):
    ids, text = tokenizer("a bee on it")["input_ids"], found.texts[1]
    own = probabilities(model, ids)
    best, order = int(own.argmax()), np.argsort(-text.signals["attention"], kind="stable") + 1
    wanted = []
    for share in (0.01, 0.05, 0.10, 0.20, 0.50):
        top = order[: max(1, round(share * len(order)))]
        wanted.append(own[best] - probabilities(model, [one for at, one in enumerate(ids) if at not in top])[best])
    assert text.comprehensiveness["attention"] == pytest.approx(np.mean(wanted), abs=1e-6)


def test_shuffling_moves_the_output_where_the_row_is_read(found, model, tokenizer):
    assert found.texts[0].permuted.shape == (8,)
    assert (found.texts[0].permuted > 1e-5).all()
    # only [CLS] is read, so that another row of the last layer moves nothing
    unread = faithfulness(model, tokenizer, [TEXT], query=3, tampering=Tampering(permutations=4, adversary=0)).texts[0]
    np.testing.assert_allclose(unread.permuted, 0, atol=1e-7)


def test_the_adversary_is_free_where_nobody_reads(model, tokenizer):
    """Another row than [CLS]'s in the last layer: any attention will do; and it must stay a distribution."""
    free = faithfulness(model, tokenizer, ["a bee"], query=2, tampering=Tampering(permutations=0, adversary=10)).texts[
        0
    ]
    bound = faithfulness(
        model, tokenizer, ["a bee"], tampering=Tampering(permutations=0, adversary=10, within=1.0)
    ).texts[0]
    assert 0 < free.adversarial <= np.log(2)
    assert 0 < bound.adversarial <= np.log(2)
    assert (
        faithfulness(model, tokenizer, ["a bee"], tampering=Tampering(permutations=0, adversary=1, within=0.0))
        .texts[0]
        .adversarial
        is None
    )


def test_the_divergence_is_that_of_scipy(rng):
    from scipy.spatial.distance import jensenshannon

    first, second = (rng.dirichlet(np.ones(5), size=3) for _ in range(2))
    wanted = np.mean([jensenshannon(*rows) ** 2 for rows in zip(first, second, strict=True)])
    assert divergence(torch.tensor(first), torch.tensor(second)).item() == pytest.approx(wanted, abs=1e-9)


def test_it_prints_what_it_found(found):
    table = str(found)
    for word in ("2 texts", "attention and gradient", "erasure by leave_one_out", "output moved by shuffled attention"):
        assert word in table
    assert found.agreement().shape == (2, 2)


def test_what_cannot_be_is_said(model, tokenizer):
    with pytest.raises(TextError, match="has 1 tokens that are not special; give at least two"):
        faithfulness(model, tokenizer, ["a"])
    with pytest.raises(InterventionError, match="The model has layers 0 to 1, not 2"):
        faithfulness(model, tokenizer, [TEXT], layer=2)
