"""Records say which weights they are of, so that two models of one name are not mixed."""

from dataclasses import replace

import pytest
import torch

import headscope as hs
from headscope.capturing import random_twin
from headscope.capturing.facts import weights_name
from headscope.capturing.loading import load_bare_model
from headscope.errors import RecordError, RunError
from headscope.patterns import Tally
from headscope.testing import tiny_model, tiny_tokenizer

from ..processors import with_head


@pytest.fixture
def model():
    return tiny_model("bert")


def test_the_same_weights_have_the_same_name_and_others_another(model, tmp_path):
    own = weights_name(model)
    model.save_pretrained(tmp_path)
    assert weights_name(type(model).from_pretrained(tmp_path)) == own
    assert weights_name(random_twin(model)) != own
    assert len(own) == 16


def test_weights_that_are_changed_in_place_are_seen(model):
    own = weights_name(model)
    with torch.no_grad():
        model.encoder.layer[1].attention.self.query.weight[0, 0] += 1
    assert weights_name(model) != own


@pytest.mark.parametrize("change", ["a column", "two columns", "all, uncounted"])
def test_a_run_sees_any_change_of_weights(change, tokenizer, tmp_path):
    model = tiny_model("bert", hidden_size=48, vocab_size=4096)
    weight = model.embeddings.word_embeddings.weight
    call = {"out": tmp_path / "run", "keep": "qk", "progress": False}
    list(hs.capture_many(model, tokenizer, ["the cat sat."], **call))
    with torch.no_grad():
        if change == "a column":
            weight[:, 5] = 0
        elif change == "two columns":
            weight[:, [5, 7]] = weight[:, [7, 5]]
        else:
            weight.data.mul_(1.5)
    with pytest.raises(RunError, match="weights"):
        list(hs.capture_many(model, tokenizer, ["the cat sat."], **call))


def test_records_of_other_weights_are_not_counted_together(model, tokenizer, tmp_path):
    first = hs.capture(model, tokenizer, "the cat sat.")
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.01)
    second = hs.capture(model, tokenizer, "a dog ran off.")
    assert (first.model.name, first.model.class_name) == (
        second.model.name,
        second.model.class_name,
    )
    tally, other = Tally(), Tally()
    tally.update("one", first)
    with pytest.raises(RecordError, match="Text 2 .two. is of other weights than those before it"):
        tally.update("two", second)
    other.update("two", second)
    with pytest.raises(RecordError, match="are of other weights; they cannot be added up"):
        tally + other
    hs.save(second, tmp_path / "second.safetensors")
    kept = hs.load(tmp_path / "second.safetensors")
    assert kept.model.weights == second.model.weights
    with pytest.raises(RecordError, match="other weights"):
        hs.heads([first, kept])
    # records of bare arrays do not say it
    tally.update("three", replace(second, model=replace(second.model, weights="")))
    assert tally.texts == 2


@pytest.mark.parametrize(("name", "workers"), [("bert", None), ("roberta", 1)])
def test_a_run_of_a_model_without_a_pooler_goes_on(name, workers, tmp_path):
    """As most of these models are published: with a head that reads no pooler."""
    folder = str(tmp_path / "model")
    with_head("MaskedLM", name).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    texts = [f"the cat sat on {word} mat" for word in ("a", "the", "my", "no", "its", "one")]
    given = {"texts": texts, "out": tmp_path / "run", "part_size": 2, "progress": False}
    wanted = hs.heads(folder, **given)
    (tmp_path / "run" / "parts" / "000001.safetensors").unlink()
    (tmp_path / "run" / "result.safetensors").unlink()
    again = {} if workers is None else {"workers": workers}
    assert str(hs.heads(folder, **given, **again)) == str(wanted)


def test_random_weights_that_attention_follows_from_have_another_name_each_time(model, tmp_path):
    weights = model.state_dict()
    weights.pop("encoder.layer.0.attention.self.query.weight")
    model.save_pretrained(tmp_path, state_dict=weights)
    names = set()
    for _ in range(2):
        with pytest.warns(UserWarning, match="these weights are random"):
            loaded = load_bare_model(tmp_path)
        names.add(weights_name(loaded))
    assert len(names) == 2
