"""Faithfulness: signals against plain loops, counterfactual attention against what it must do."""

import copy
import csv

import numpy as np
import pytest
import torch

import headscope as hs
from headscope import faithfulness
from headscope.capturing import random_twin
from headscope.cli import run
from headscope.errors import InterventionError, ModelError, RecordError, TextError
from headscope.studies import CounterfactualAttention
from headscope.studies._explainer import FLOWING
from headscope.studies.faithfulness import SIGNALS
from headscope.testing import tiny_model, tiny_tokenizer

from ..close import assert_close, assert_same_numbers, numbers_before

TEXT = "the cat sat."
LAYERS, HEADS = 2, 3
QUIET = CounterfactualAttention(permutations=0)


@pytest.fixture(scope="module")
def model(tiny_bert):
    model = tiny_bert(LAYERS, classes=4)
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2 and "embed" not in name:
            parameter.data.normal_(std=1.6 / parameter.shape[-1] ** 0.5)
    return model


@pytest.fixture(scope="module")
def found(model, tokenizer):
    return faithfulness(
        model,
        tokenizer,
        [TEXT, "a bee on it"],
        counterfactual=CounterfactualAttention(permutations=8, adversary=0),
    )


def test_numbers_of_real_texts_stay_what_they_were(minilm, real_texts):
    """As they were before documents had rows of their own: MiniLM under a classifier with random
    weights.
    """
    from transformers import AutoModelForSequenceClassification

    encoder, tokenizer = minilm
    config = copy.deepcopy(encoder.config)
    config.num_labels = 3
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = AutoModelForSequenceClassification.from_config(config).eval()
    model.base_model.load_state_dict(encoder.state_dict(), strict=False)
    texts, groups = real_texts
    found = faithfulness(
        model,
        tokenizer,
        texts[:5],
        groups=groups[:5],
        allow_unfit=True,
        counterfactual=CounterfactualAttention(permutations=3, adversary=2, within=1.0),
    )
    wanted = numbers_before("faithfulness")
    curves = {
        name: found.erasure(*reversed(name.split(", "))).tolist() for name in wanted["curves"]
    }
    assert_same_numbers({"columns": found.columns(), "curves": curves}, wanted)


def probabilities(model, ids):
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids])).logits.softmax(-1)[0].double().numpy()


def test_attention_is_the_mean_row_of_the_layer(found, model, tokenizer):
    record = hs.capture(model, tokenizer, TEXT)
    wanted = record["self"].weights(LAYERS - 1).mean(0)[0, 1:-1]
    np.testing.assert_allclose(found.explained[0].signals["attention"], wanted, atol=1e-6)
    assert found.explained[0].pieces == record["self"].query.pieces[1:-1]
    other = faithfulness(
        model,
        tokenizer,
        [TEXT],
        layer=0,
        query=3,
        counterfactual=CounterfactualAttention(permutations=0, adversary=0),
    ).explained[0]
    wanted = record["self"].weights(0).mean(0)[3, 1:-1]
    np.testing.assert_allclose(other.signals["attention"], wanted, atol=1e-6)


def test_leaving_out_is_one_token_at_a_time(found, model, tokenizer):
    ids = tokenizer(TEXT)["input_ids"]
    own = probabilities(model, ids)
    np.testing.assert_allclose(found.explained[0].probabilities, own, atol=1e-6)
    for token, value in enumerate(found.explained[0].signals["leave_one_out"], start=1):
        wanted = np.abs(probabilities(model, ids[:token] + ids[token + 1 :]) - own).mean()
        assert value == pytest.approx(wanted, abs=1e-6)


def test_the_gradient_holds_attention_constant(found, model, tokenizer):
    """Against finite differences of a forward whose weights are frozen to those of the text."""
    model = model.double()
    ids = torch.tensor([tokenizer(TEXT)["input_ids"]])
    vectors = model.get_input_embeddings()(ids).detach()
    kept = {
        layer: hs.capture(model, tokenizer, TEXT)["self"].weights(layer) for layer in range(LAYERS)
    }
    frozen = [
        hs.interventions.SetWeights(weights=weights, layer=layer) for layer, weights in kept.items()
    ]

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
    np.testing.assert_allclose(
        found.explained[0].signals["gradient"], np.array(wanted) / sum(wanted), rtol=2e-3
    )


def test_erasure_takes_tokens_out_of_the_text(found, model, tokenizer):
    ids, text = tokenizer("a bee on it")["input_ids"], found.explained[1]
    own = probabilities(model, ids)
    best, order = int(own.argmax()), np.argsort(-text.signals["attention"], kind="stable") + 1
    wanted = []
    for share in (0.01, 0.05, 0.10, 0.20, 0.50):
        top = order[: max(1, round(share * len(order)))]
        wanted.append(
            own[best]
            - probabilities(model, [one for at, one in enumerate(ids) if at not in top])[best]
        )
    assert text.comprehensiveness["attention"] == pytest.approx(np.mean(wanted), abs=1e-6)


def test_shuffling_moves_the_output_where_the_row_is_read(found, model, tokenizer):
    assert found.explained[0].permuted.shape == (8,)
    assert (found.explained[0].permuted > 1e-5).all()
    # only [CLS] is read, so that another row of the last layer moves nothing
    unread = faithfulness(
        model,
        tokenizer,
        [TEXT],
        query=3,
        counterfactual=CounterfactualAttention(permutations=4, adversary=0),
    ).explained[0]
    np.testing.assert_allclose(unread.permuted, 0, atol=1e-6)


def test_the_adversary_is_free_where_nobody_reads(model, tokenizer):
    """Another row than [CLS]'s in the last layer: any attention will do; and it must stay a
    distribution.
    """
    free = faithfulness(
        model,
        tokenizer,
        ["a bee"],
        query=2,
        counterfactual=CounterfactualAttention(permutations=0, adversary=10),
    ).explained[0]
    bound = faithfulness(
        model,
        tokenizer,
        ["a bee"],
        counterfactual=CounterfactualAttention(permutations=0, adversary=10, within=1.0),
    ).explained[0]
    assert 0 < free.adversarial <= np.log(2)
    assert 0 < bound.adversarial <= np.log(2)
    assert (
        faithfulness(
            model,
            tokenizer,
            ["a bee"],
            counterfactual=CounterfactualAttention(permutations=0, adversary=1, within=0.0),
        )
        .explained[0]
        .adversarial
        is None
    )


def test_it_prints_what_it_found(found):
    table = str(found)
    for word in (
        "2 texts",
        "kendall, gradient",
        "spearman, leave_one_out",
        "erasure by",
        "output moved, attention shuffled",
    ):
        assert word in table
    assert "output held" not in table
    assert all(f"\n{signal} " in table for signal in SIGNALS)
    assert max(map(len, table.splitlines())) <= 100
    tau = found.means["kendall", "attention", "gradient"][0]
    assert f"Attention has Kendall's tau {tau:.2f} with the gradient and" in found.summary
    assert found.agreement().shape == (2, 2)


def test_random_weights_stand_beside(model, tokenizer, found):
    beside = faithfulness(
        model,
        tokenizer,
        [TEXT, "a"],
        counterfactual=QUIET,
        random_weights=True,
        on_error=lambda *_: None,
    )
    wanted = faithfulness(random_twin(model), tokenizer, [TEXT], counterfactual=QUIET)
    assert_close(beside.control.columns(), wanted.columns())
    assert_close(beside.columns()["random_mean"], [wanted.means[name][0] for name in beside.means])
    assert beside.columns()["random_mean"] != beside.columns()["mean"]
    first, second = str(beside).split("\n\nThe same with random weights:\n\n")
    own = [line for line in str(wanted).splitlines() if line.startswith(SIGNALS)]
    assert [line for line in second.splitlines() if line.startswith(SIGNALS)] == own
    assert "random" not in {line.strip() for line in first.splitlines()}


def test_what_cannot_be_is_said(model, tokenizer):
    with pytest.raises(TextError, match="has 1 tokens that are not special; give at least two"):
        faithfulness(model, tokenizer, ["a"])
    with pytest.raises(InterventionError, match="The model has layers 0 to 1, not 2"):
        faithfulness(model, tokenizer, [TEXT], layer=2)
    with pytest.raises(RecordError, match="confidence is a number between 0 and 1, not 1.5"):
        faithfulness(model, tokenizer, [TEXT], confidence=1.5)
    with pytest.raises(RecordError, match="faithfulness has no option 'steps'; it has layer,"):
        faithfulness(model, tokenizer, [TEXT], steps=3)
    with pytest.raises(ModelError, match="BertModel gives no logits; expected a classifier's"):
        faithfulness(model.base_model, tokenizer, [TEXT])
    with pytest.raises(ModelError, match="is an encoder-decoder; expected a classifier with one"):
        faithfulness(tiny_model("bart"), tokenizer, [TEXT])
    with pytest.raises(ModelError, match="has no trained classifier: its files lack"):
        faithfulness(None, None, [TEXT])


def test_a_text_that_cannot_be_explained_is_reported_and_the_rest_goes_on(model, tokenizer):
    told = []
    texts = ["a", "a bee", "it sat " * 400]
    found = faithfulness(
        model, tokenizer, texts, on_error=lambda number, error: told.append((number, type(error)))
    )
    assert len(found.explained) == 1
    assert told == [(0, TextError), (2, TextError)]
    with pytest.raises(RecordError, match="No text is left: 'a' has 1 tokens"):
        faithfulness(model, tokenizer, ["a"], on_error=lambda *_: None)


def test_contribution_rollout_and_alti_are_those_of_the_record(model, tokenizer):
    """Against the maps multiplied by hand."""
    stack = hs.capture(model, tokenizer, TEXT, keep=("weights", "alti"))["self"]
    size = len(stack.query)
    for layer in range(LAYERS):
        signals = (
            faithfulness(model, tokenizer, [TEXT], layer=layer, query=3, counterfactual=QUIET)
            .explained[0]
            .signals
        )
        wanted = stack.layer(layer).contributions_of("attention")[3, 1:-1]
        np.testing.assert_allclose(signals["contribution"], wanted, atol=1e-6)
        rolled = mixed = np.eye(size)
        for below in range(layer + 1):
            rolled = (stack.weights(below).mean(0) / 2 + np.eye(size) / 2) @ rolled
            mixed = stack.layer(below).contributions_of("alti") @ mixed
        np.testing.assert_allclose(signals["rollout"], rolled[3, 1:-1], atol=1e-6)
        np.testing.assert_allclose(signals["alti"], mixed[3, 1:-1], atol=1e-6)


def test_a_signal_that_cannot_be_had_is_left_out_and_said(model, tokenizer, monkeypatch):
    def refused(stack, layer):
        raise RecordError(f"Layer {layer}: its heads are mixed")

    monkeypatch.setitem(FLOWING, "alti", refused)
    found = faithfulness(model, tokenizer, [TEXT, "a bee on it"], counterfactual=QUIET)
    assert found.signals == tuple(name for name in SIGNALS if name != "alti")
    assert str(found).endswith("alti is left out: Layer 1: its heads are mixed")


def test_a_pair_is_read_with_its_segments(model):
    tokenizer = tiny_tokenizer()
    tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    pair = ("the cat", "it sat")
    encoding = tokenizer(*pair, return_tensors="pt")
    assert set(encoding["token_type_ids"][0].tolist()) == {0, 1}
    with torch.no_grad():
        own = model(**encoding).logits.softmax(-1)[0]
        without = [at for at in range(encoding["input_ids"].shape[1]) if at != 1]
        left = model(
            **{name: values[:, without] for name, values in encoding.items()}
        ).logits.softmax(-1)[0]
    text = faithfulness(model, tokenizer, [pair], counterfactual=QUIET).explained[0]
    np.testing.assert_allclose(text.probabilities, own, atol=1e-6)
    assert text.signals["leave_one_out"][0] == pytest.approx(
        (left - own).abs().mean().item(), abs=1e-6
    )
    assert "[SEP]" not in text.pieces


def test_draws_belong_to_the_text_and_not_to_its_place(model, tokenizer):
    how = {"counterfactual": QUIET}
    alone = faithfulness(model, tokenizer, [TEXT], **how).explained[0]
    behind = faithfulness(model, tokenizer, ["a bee on it", TEXT], **how).explained[1]
    np.testing.assert_array_equal(alone.signals["random"], behind.signals["random"])


def test_a_classifier_that_does_not_read_is_moved_by_nothing(tokenizer, tiny_bert):
    model = tiny_bert(layers=2)
    model.classifier.weight.data.zero_()
    text = faithfulness(
        model, tokenizer, [TEXT], counterfactual=CounterfactualAttention(permutations=5)
    ).explained[0]
    for name in ("gradient", "leave_one_out"):
        np.testing.assert_allclose(text.signals[name], 0, atol=1e-7)
    assert list(text.comprehensiveness.values()) == pytest.approx([0] * len(SIGNALS), abs=1e-7)
    assert list(text.sufficiency.values()) == pytest.approx([0] * len(SIGNALS), abs=1e-7)
    np.testing.assert_allclose(text.permuted, 0, atol=1e-7)


def test_a_decoder_classifies_by_its_last_token(tokenizer):
    from transformers import AutoConfig, AutoModelForSequenceClassification

    sizes = {"n_embd": 24, "n_layer": LAYERS, "n_head": HEADS, "vocab_size": 64, "num_labels": 3}
    config = AutoConfig.for_model("gpt2", **sizes, bos_token_id=None, eos_token_id=None)
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(config).eval()
    with pytest.raises(ModelError, match=r"cannot read two texts at once: .*padding token"):
        faithfulness(model, tokenizer, [TEXT])
    model.config.pad_token_id = 0
    last, first = (
        faithfulness(
            model,
            tokenizer,
            [TEXT],
            query=query,
            counterfactual=CounterfactualAttention(permutations=4),
        )
        .explained[0]
        .permuted
        for query in (-1, 2)
    )
    assert (last > 1e-6).all()
    np.testing.assert_allclose(first, 0, atol=1e-6)


@pytest.fixture
def folder(model, tokenizer, tmp_path):
    model.save_pretrained(tmp_path / "tiny")
    tokenizer.save_pretrained(tmp_path / "tiny")
    return tmp_path


def test_the_command_says_the_same(folder, model, tokenizer, capsys):
    (folder / "texts.txt").write_text(f"{TEXT}\na\na bee on it\n", encoding="utf-8")
    options = [
        "--texts",
        str(folder / "texts.txt"),
        "--model",
        str(folder / "tiny"),
        "--permutations",
        "8",
    ]
    made = ["--out", str(folder / "found.csv"), "--plot", str(folder / "found.svg")]
    assert (
        run(["faithfulness", *options, *made, "--random-weights"]) == 3
    )  # one of three texts is too short
    assert "with leaving out" in (folder / "found.svg").read_text(encoding="utf-8")
    out, err = capsys.readouterr()
    assert "2 texts, median 9 tokens without special ones. Attention has" in out
    assert "The same with random weights:" in out
    assert "output held" not in out
    assert err.startswith("headscope: text 2 (")
    assert "line 2) was left out: 'a' has 1 tokens that are not special" in err
    with (folder / "found.csv").open(encoding="utf-8", newline="") as file:
        rows = {
            (row["measure"], row["signal"], row["against"]): row for row in csv.DictReader(file)
        }
    wanted = faithfulness(model, tokenizer, [TEXT, "a bee on it"], counterfactual=QUIET).means
    for name in (("spearman", "contribution", "leave_one_out"), ("sufficiency", "alti", "")):
        assert float(rows[name]["mean"]) == pytest.approx(wanted[name][0], abs=1e-5)
    assert rows.keys() - wanted.keys() == {("output moved, attention shuffled", "attention", "")}
