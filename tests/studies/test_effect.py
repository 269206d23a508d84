import math
import re

import numpy as np
import pytest
import torch
import transformers
from transformers import AutoConfig, AutoModelForSequenceClassification

import headscope as hs
from headscope.errors import InterventionError, TextError
from headscope.studies.runs import distances
from headscope.testing import ARCHITECTURES, tiny_model, tiny_tokenizer

from ..close import assert_close

TEXT = "the cat sat on it."


@pytest.fixture(scope="module")
def writer():
    return tiny_model("gpt2", writes=True), tiny_tokenizer()


@pytest.fixture(scope="module")
def reader():
    return tiny_model("bert"), tiny_tokenizer()


def classifier(**changes):
    config = AutoConfig.for_model("bert", vocab_size=200, **ARCHITECTURES["bert"] | changes)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return AutoModelForSequenceClassification.from_config(config).eval()


def logits(model, tokenizer, text, *interventions):
    with torch.no_grad(), hs.intervene(model, *interventions):
        return model(**tokenizer(text, return_tensors="pt")).logits.double()


def test_the_output_moves_as_plain_torch_says(writer):
    model, tokenizer = writer
    change = hs.Zero(layer=0, heads=[1])
    found = hs.effect(model, tokenizer, TEXT, interventions=[change], top=3)
    p, q = (logits(model, tokenizer, TEXT, *what)[0].softmax(-1) for what in ((), (change,)))
    wanted = torch.nn.functional.kl_div(q.log(), p, reduction="none").sum(-1).numpy()
    assert found.output.kind == "tokens"
    assert found.output.values == pytest.approx(wanted, rel=1e-6)
    assert (found.output.values > 0).all()
    assert found.output.mean == pytest.approx(wanted.mean())
    assert found.output.labels == found.intact["self"].query.labels
    for place, odds in ((0, p), (3, p)):
        best = odds[place].topk(3)
        assert [value for _, value in found.output.before[place]] == pytest.approx(
            best.values.tolist()
        )
        names = [
            tokenizer.decode([n]) or f"[{n}]" for n in best.indices.tolist()
        ]  # the model has more than the words
        assert [name for name, _ in found.output.before[place]] == names
    assert found.output.after[2][0][1] == pytest.approx(q[2].max().item())


def test_heads_below_the_change_do_not_move(writer):
    model, tokenizer = writer
    layers = len(model.transformer.h)
    for layer in range(layers):
        found = hs.effect(model, tokenizer, TEXT, interventions=[hs.Zero(layer=layer, heads=[0])])
        assert (found.moved[:layer] < 1e-9).all()
        assert (found.moved[layer, 1:] < 1e-9).all()
        assert (found.moved[layer + 1 :] > 1e-8).all()
        assert found.stack.changed == {(layer, 0)}


def test_a_change_to_what_is_there_already_moves_nothing(writer):
    model, tokenizer = writer
    record = hs.capture(model, tokenizer, TEXT)
    same = hs.interventions.SetWeights(
        layer=1, weights=record["self"].weights(1).astype(np.float32)
    )
    found = hs.effect(model, tokenizer, TEXT, interventions=[same])
    assert found.output.values == pytest.approx(np.zeros(len(record["self"].query)), abs=1e-9)
    assert found.moved.max() < 1e-12
    assert found.stack.count == 0


def test_a_classifier_moves_over_its_classes(reader):
    model = classifier(num_labels=4, id2label={n: f"class {n}" for n in range(4)})
    change = hs.interventions.Uniform(layer=0)
    found = hs.effect(model, reader[1], ("the cat", "it sat"), interventions=[change])
    p, q = (
        model_logits.softmax(-1)[0]
        for model_logits in (_pair_logits(model, reader[1]), _pair_logits(model, reader[1], change))
    )
    assert found.output.kind == "classes"
    assert found.output.values == pytest.approx([float((p * (p / q).log()).sum())], rel=1e-6)
    assert {name for name, _ in found.output.before[0]} == {f"class {n}" for n in range(4)}
    assert "of the classes" in str(found)


def _pair_logits(model, tokenizer, *interventions):
    with torch.no_grad(), hs.intervene(model, *interventions):
        return model(**tokenizer("the cat", "it sat", return_tensors="pt")).logits.double()


def test_a_discriminator_has_two_classes_at_each_token():
    """ELECTRA gives one logit for each token, which are no classes of the whole."""
    tokenizer, change = tiny_tokenizer(), hs.Zero(layer=0, heads=[0])
    model = transformers.ElectraForPreTraining(tiny_model("electra").config).eval()
    found = hs.effect(model, tokenizer, TEXT, interventions=[change]).output
    p, q = (logits(model, tokenizer, TEXT, *what)[0].sigmoid() for what in ((), (change,)))
    wanted = p * (p / q).log() + (1 - p) * ((1 - p) / (1 - q)).log()
    assert (found.kind, len(found.labels)) == ("classes", len(tokenizer(TEXT)["input_ids"]))
    assert found.values == pytest.approx(wanted.numpy(), rel=1e-3, abs=1e-12)
    assert dict(found.before[2])["replaced"] == pytest.approx(float(p[2]))


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_taggers_give_classes_of_each_token(name):
    config = tiny_model(name, num_labels=3).config
    kind = {"bert": "BertForTokenClassification", "llama": "LlamaForTokenClassification"}[name]
    model = getattr(transformers, kind)(config).eval()
    change = [hs.Zero(layer=0, heads=[0])]
    found = hs.effect(model, tiny_tokenizer(), TEXT, interventions=change)
    assert found.output.kind == "classes"
    assert {name for name, _ in found.output.before[1]} == {"LABEL_0", "LABEL_1", "LABEL_2"}
    assert "of the predicted tokens" not in str(found)


def test_without_a_text_tokenizer_tokens_have_numbers():
    model = transformers.Wav2Vec2ForCTC(tiny_model("wav2vec2").config).eval()
    found = hs.effect(
        model,
        transformers.Wav2Vec2FeatureExtractor(),
        sound=np.random.default_rng(0).normal(size=4000),
        sampling_rate=16000,
        interventions=[hs.Zero(layer=0, heads=[0])],
    ).output
    assert found.kind == "tokens"
    assert all(name.isdigit() for name, _ in found.before[0])


def test_a_model_of_one_number_moves_by_its_difference(reader):
    model = classifier(num_labels=1)
    change = hs.interventions.Uniform(layer=0)
    found = hs.effect(model, reader[1], TEXT, interventions=[change])
    before, after = (logits(model, reader[1], TEXT, *what).item() for what in ((), (change,)))
    assert found.output.kind == "number"
    assert found.output.values == pytest.approx([abs(before - after)])


def test_a_model_without_a_head_moves_its_states(reader):
    model, tokenizer = reader
    change = hs.Zero(layer=1, heads=[0])
    found = hs.effect(model, tokenizer, TEXT, interventions=[change])
    inputs = tokenizer(TEXT, return_tensors="pt")
    with torch.no_grad():
        before = model(**inputs).last_hidden_state[0].double().numpy()
        with hs.intervene(model, change):
            after = model(**inputs).last_hidden_state[0].double().numpy()
    lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    assert found.output.kind == "states"
    assert found.output.values == pytest.approx(1 - (before * after).sum(1) / lengths, abs=1e-9)
    assert "has no language-modelling head" in str(found)
    assert found.output.before == ()


def test_controls_are_the_spread(writer):
    model, tokenizer = writer
    controls = [[hs.Zero(layer=0, heads=[head])] for head in (1, 2)]
    found = hs.effect(
        model, tokenizer, TEXT, interventions=[hs.Zero(layer=0, heads=[0])], controls=controls
    )
    each = [hs.effect(model, tokenizer, TEXT, interventions=control).stack for control in controls]
    own = [
        [0.0 if cell in stack.changed else stack.distance(*cell) for cell in stack.cells]
        for stack in each
    ]
    rounding = hs.effect(model, tokenizer, TEXT, interventions=controls[0]).stack.spread
    assert found.stack.spread == pytest.approx(np.max([*own, rounding], axis=0))
    assert found.stack.spread[found.stack.cells.index((0, 1))] < 1e-6
    assert (
        "the largest in 2 controls; for any one head 1 in 3 of the kind would look like this"
        in " ".join(str(found).split())
    )


def test_only_heads_that_the_change_can_reach_are_counted(writer):
    model, tokenizer = writer
    layers, heads = model.config.num_hidden_layers, model.config.num_attention_heads
    controls = [[hs.Zero(layer=1, heads=[head])] for head in range(1, heads)]
    found = hs.effect(
        model, tokenizer, TEXT, interventions=[hs.Zero(layer=1, heads=[0])], controls=controls
    )
    reached = {
        cell for cell, counts in zip(found.stack.cells, found.stack.counting, strict=True) if counts
    }
    assert reached == {(layer, head) for layer in range(2, layers) for head in range(heads)}
    assert f"of {len(reached)} other heads that the change can reach moved" in " ".join(
        str(found).split()
    )


def test_the_sum_over_heads_is_ranked_among_the_controls(writer):
    model, tokenizer = writer
    controls = [[hs.Zero(layer=0, heads=[head])] for head in (1, 2)]
    found = hs.effect(
        model, tokenizer, TEXT, interventions=[hs.Zero(layer=0, heads=[0])], controls=controls
    )
    sums = [
        hs.effect(model, tokenizer, TEXT, interventions=each).moved[1:].sum() for each in controls
    ]
    place = 1 + sum(each >= found.moved[1:].sum() for each in sums)
    assert found.stack.rank == (place, pytest.approx(place / 3))
    assert f"in {3 - place} of 2: p {place / 3:.2f}" in str(found)


def test_without_controls_heads_are_ranked_and_no_more(writer):
    found = hs.effect(*writer, TEXT, interventions=[hs.Zero(layer=0, heads=[1])])
    assert "No baseline given (give controls= (--control)" in " ".join(str(found).split())
    assert "spread" not in str(found).split("ranked")[1]
    assert not {"spread", "beyond"} & set(found.columns())


def test_texts_of_one_document_widen_the_interval(writer):
    texts = [TEXT, "a bee ran.", "on it she sat.", "the dog ran."]
    change = [hs.interventions.Uniform(layer=0, heads=[0])]
    alone, grouped = (
        hs.effect(*writer, texts, interventions=change, groups=groups)
        for groups in (None, [*"aabb"])
    )
    moving = alone.stack.moved > 0
    assert (np.diff(grouped.stack.interval) != np.diff(alone.stack.interval))[moving].all()
    with pytest.raises(hs.errors.RecordError, match="3 groups were given for 4 texts"):
        hs.effect(*writer, texts, interventions=change, groups=[*"aab"])


def test_copies_of_a_text_are_no_further_evidence(writer):
    change = [hs.interventions.Uniform(layer=0, heads=[0])]
    copies = hs.effect(*writer, [TEXT] * 6, interventions=change)
    assert np.isnan(copies.stack.interval).all()
    assert "6 texts, 1 independent" in copies.summary
    several = [hs.effect(*writer, [TEXT, "a bee ran."] * n, interventions=change) for n in (1, 3)]
    assert_close(several[0].stack.interval, several[1].stack.interval)
    assert "independent" not in several[0].summary


def test_several_texts_have_an_interval(writer):
    model, tokenizer = writer
    texts = [TEXT, "a bee ran.", "on it she sat."]
    found = hs.effect(
        model, tokenizer, texts, interventions=[hs.interventions.Uniform(layer=0, heads=[0])]
    )
    alone = [
        hs.effect(
            model, tokenizer, text, interventions=[hs.interventions.Uniform(layer=0, heads=[0])]
        )
        for text in texts
    ]
    assert found.moved == pytest.approx(np.mean([each.moved for each in alone], axis=0))
    assert [output.mean for output in found.outputs] == pytest.approx(
        [each.output.mean for each in alone]
    )
    assert np.isfinite(found.stack.interval).all()
    assert "Over all texts: mean" in str(found)
    assert set(found.to_pandas().texts) == {3}


def test_an_encoder_decoder_reads_one_target_in_both():
    model, tokenizer = tiny_model("t5"), tiny_tokenizer()
    change = hs.Zero(stack="encoder", layer=0, heads=[1])
    found = hs.effect(model, tokenizer, "the cat sat.", target="a bee ran.", interventions=[change])
    assert found.intact["decoder"].query == found.changed["decoder"].query
    assert len(found.output.values) == len(found.intact["decoder"].query)
    assert found.comparison["encoder"].changed == {(0, 1)}
    assert (found.comparison["decoder"].moved[: model.config.num_heads] == 0).all()
    assert (found.comparison["cross"].moved > 0).all()


def test_the_table_says_which_heads_were_changed(writer):
    found = hs.effect(*writer, TEXT, interventions=[hs.Zero(layer=0, heads=[1])])
    table = found.to_pandas()
    assert table[table.changed][["layer", "head"]].to_numpy().tolist() == [[0, 1]]
    assert "Changed: layer 0: output set to zero (heads 1)" in str(found)
    assert repr(found).startswith("<Effect of layer 0: output set to zero (heads 1): output 0.")


def test_divergence_of_what_is_impossible_is_nothing():
    before = torch.tensor([[0.5, 0.5, 0.0]], dtype=torch.float64).log()
    after = torch.tensor([[0.25, 0.5, 0.25]], dtype=torch.float64).log()
    assert distances("tokens", before, after).item() == pytest.approx(0.5 * math.log(2))


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"interventions": []}, InterventionError, "effect takes lists of interventions"),
        ({"interventions": [3]}, InterventionError, "not [3]"),
        ({"interventions": [hs.Zero(layer=9)]}, InterventionError, "Layer 9"),
        ({"interventions": [hs.Zero(layer=0)], "controls": [[]]}, InterventionError, "not []"),
        ({"interventions": [hs.Zero(layer=0)], "text": None}, TextError, "effect needs a text"),
        ({"interventions": [hs.Zero(layer=0)], "text": []}, TextError, "an empty list of texts"),
    ],
)
def test_what_cannot_be_done_is_refused(writer, options, error, said):
    with pytest.raises(error, match=re.escape(said)):
        hs.effect(*writer, **{"text": TEXT, **options})


def test_several_labels_at_once_are_refused(reader):
    model = classifier(num_labels=3, problem_type="multi_label_classification")
    with pytest.raises(InterventionError, match="several labels at once"):
        hs.effect(model, reader[1], TEXT, interventions=[hs.Zero(layer=0)])


def test_a_bad_text_costs_one_text(writer):
    bad = {1: "a\ud800b", 2: None, 3: 7, 5: " ", 6: "1 2 3 4", 7: float("nan")}
    good = {0: TEXT, 4: "a dog ran off.", 8: "it was she."}
    texts = [(bad | good)[number] for number in range(9)]
    told = {}
    done = {
        "interventions": [hs.Zero(layer=0, heads=[1])],
        "controls": [[hs.Zero(layer=0, heads=[0])]],
    }
    found = hs.effect(*writer, texts, **done, groups=list("abcdefghi"), on_error=told.__setitem__)
    assert set(told) == set(bad)
    assert "half of a character" in str(told[1])
    assert "are [UNK]" in str(told[6])
    plain = hs.effect(*writer, list(good.values()), **done, groups=list("aei"))
    assert_close(found.moved, plain.moved)
    assert [each.mean for each in found.outputs] == [each.mean for each in plain.outputs]
    assert found.stack.groups == ("a", "e", "i")
    with pytest.warns(UserWarning, match="input 1 .from 0. was left out: The text holds half of"):
        hs.effect(*writer, [TEXT, bad[1]], **done)


def test_an_untrained_head_is_refused(tmp_path):
    """Kept as a base model whose configuration names a class with a head, which transformers then
    makes anew.
    """
    model, tokenizer = tiny_model("bert"), tiny_tokenizer()
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    done = {"interventions": [hs.Zero(layer=0, heads=[1])]}
    assert (
        hs.effect(tmp_path, None, TEXT, **done).output.kind == "states"
    )  # only the base model is used
    path = tmp_path / "config.json"
    path.write_text(
        re.sub('"BertModel"', '"BertForMaskedLM"', path.read_text(encoding="utf-8")),
        encoding="utf-8",
    )
    with pytest.raises(hs.errors.ModelError, match="has no trained masked-word head"):
        hs.effect(tmp_path, None, TEXT, **done)
    with pytest.warns(UserWarning, match="these weights are random"):
        assert hs.effect(tmp_path, None, TEXT, **done, allow_unfit=True).output.kind == "tokens"
    from transformers import AutoModelForMaskedLM

    own = AutoModelForMaskedLM.from_pretrained(tmp_path).eval()
    with pytest.raises(hs.errors.ModelError, match="has no trained masked-word head"):
        hs.effect(own, tokenizer, TEXT, **done)
