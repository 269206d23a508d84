"""Zeroing a head is the same as zeros in its slice of the output projection."""

import re

import numpy as np
import pytest
import torch
from matplotlib.text import Text

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.testing import tiny_model

from ..close import assert_close

TEXT = "the cat sat."


def silenced(model, layer, heads):
    """Zeros in the columns of the projection that take these heads."""
    projection, size = model.get_submodule(layer.projection), layer.values.shape[-1]
    columns = [head * size + at for head in heads for at in range(size)]
    with torch.no_grad():
        if type(projection).__name__ == "Conv1D":
            projection.weight[columns] = 0
        else:
            projection.weight[:, columns] = 0


FAMILIES = ("bert", "gpt2", "llama", "gptj", "bloom", "mpnet")


@pytest.mark.parametrize(
    ("family", "heads"), [*((family, [0, 2]) for family in FAMILIES), ("bert", [1]), ("gpt2", None)]
)
def test_it_equals_zeros_in_the_output_projection(family, heads, tokenizer, batch, states):
    model, inputs = tiny_model(family), batch()
    layer = hs.capture(model, tokenizer, TEXT)["self"].layer(1)
    with hs.intervene(model, hs.Zero(layer=1, heads=heads)):
        ours = states(model, **inputs)
    intact = states(model, **inputs)
    silenced(model, layer, range(layer.heads) if heads is None else heads)
    theirs = states(model, **inputs)
    assert (ours - theirs).abs().max() <= 1e-6 * theirs.abs().max()
    assert (ours - intact).abs().max() > 1e-3


def test_key_value_heads_stand_for_the_heads_that_share_them(batch, states):
    model, inputs = tiny_model("llama"), batch()
    with hs.intervene(model, hs.Zero(layer=0, kv_heads=1)):
        shared = states(model, **inputs)
    with hs.intervene(model, hs.Zero(layer=0, heads=[3, 4, 5])):
        assert_close(states(model, **inputs), shared)


def test_only_the_chosen_rows_change(tokenizer):
    model = tiny_model("bert")
    own, changed = (
        hs.capture(model, tokenizer, TEXT, interventions=interventions)["self"].layer(1)
        for interventions in ([], [hs.Zero(layer=1, heads=2, queries=[0, 4])])
    )
    rows = np.isin(np.arange(own.size[0]), [0, 4])
    assert not changed.weights[2, rows].any()
    np.testing.assert_allclose(changed.weights[2, ~rows], own.weights[2, ~rows], atol=1e-6)
    np.testing.assert_allclose(changed.weights[:2], own.weights[:2], atol=1e-6)
    assert changed.verified < 1e-5
    assert changed.changes == ("output set to zero (heads 2, queries 0, 4)",)
    assert own.changes == ()


@pytest.mark.parametrize("side", ["left", "right"])
def test_positions_are_counted_without_padding(side, tokenizer, batch):
    model, inputs = tiny_model("bert"), batch(side)
    with hs.intervene(model, hs.Zero(layer=0, heads=0, queries=1)):
        for record in capture_encoded(model, tokenizer, inputs):
            dead = ~record["self"].weights(0, 0).any(axis=-1)
            assert dead.tolist() == [query == 1 for query in range(len(dead))]


def test_layers_below_stay_the_same_to_the_last_bit(tokenizer):
    model = tiny_model("modernbert")
    own = hs.capture(model, tokenizer, TEXT)["self"]
    changed = hs.capture(model, tokenizer, TEXT, interventions=[hs.Zero(layer=2, heads=1)])["self"]
    for number in (0, 1):
        assert_close(changed.weights(number), own.weights(number))
    np.testing.assert_allclose(
        np.delete(changed.weights(2), 1, 0), np.delete(own.weights(2), 1, 0), atol=1e-6
    )
    assert np.abs(changed.weights(3) - own.weights(3)).max() > 1e-4
    assert [layer.changes != () for layer in changed] == [False, False, True, False]


@pytest.mark.filterwarnings("ignore:.*too few:UserWarning")
def test_a_record_of_a_changed_model_says_so_wherever_it_is_shown(tokenizer):
    model, said = tiny_model("bert"), "changed: layer 1: output set to zero (heads 2)"
    keep = ("weights", "norms")
    intact = hs.capture(model, tokenizer, TEXT, keep=keep)
    with hs.intervene(model, hs.Zero(layer=1, heads=[2])):
        record = hs.capture(model, tokenizer, "a bee", keep=keep)
    assert repr(record).endswith(f"; {said}>")
    assert record.verification.endswith(f"; {said}")
    assert said in hs.view(record).html
    for figure in (
        hs.figure(record, view="matrix", layer=1, head=2),
        hs.figure(intact, view="texts", layer=1, head=2, beside=[record]),
    ):
        assert said in " ".join(each.get_text() for each in figure.matplotlib.findobj(Text))
    recipe = hs.figure(record, view="model").recipe
    assert recipe["changed"] == ["layer 1: output set to zero (heads 2)"]
    assert not any("changed" in shown for shown in (repr(intact), intact.verification))
    assert "changed: layer" not in hs.view(hs.compare(intact, intact)).html
    for study in (hs.heads, hs.norm_study):
        with pytest.raises(hs.errors.RecordError, match=f"is of other model .*{re.escape(said)}"):
            study([record, intact])
        with pytest.warns(UserWarning, match=f"1 of 1 records .*{re.escape(said)}"):
            study([record])


def test_many_changes_are_named_in_short(tokenizer):
    zeros = [hs.Zero(layer=layer, heads=[head]) for layer in (0, 1) for head in (0, 1)]
    record = hs.capture(tiny_model("bert"), tokenizer, TEXT, interventions=zeros)
    assert len(record.changes) == 4
    assert record.changed.startswith(f"changed: {', '.join(record.changes[:3])} and 1 more")
