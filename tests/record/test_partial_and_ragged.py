"""Rows of which a part was kept, and weights that came step by step."""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.errors import RecordError
from headscope.testing import tiny_model, tiny_tokenizer
from headscope.views._page import page_parts


def cut(weights, top):
    """The largest weights of each row alone."""
    least = np.sort(weights, axis=-1)[..., -top : -top + 1 or None][..., :1]
    return np.where(weights >= least, weights, 0)


@pytest.fixture
def weights():
    found = np.random.default_rng(0).random((2, 3, 5, 5))
    return found / found.sum(-1, keepdims=True)


def test_rows_of_which_a_part_was_kept_say_how_much_is_missing(weights, tmp_path):
    part = cut(weights, 2)
    with pytest.raises(RecordError, match=r"sums to 0\.\d+; .*from_weights\(..., partial=True\)"):
        hs.from_weights(part, list("abcde"))
    record = hs.from_weights(part, list("abcde"), partial=True)
    missing = 1 - part[1].sum(-1).mean()
    assert record["self"].layer(1).not_kept == pytest.approx(missing, abs=1e-6)
    header, _ = page_parts(record, {})
    layer = header["stacks"][0]["layers"][1]
    assert layer["row_sums"] == "less"
    assert layer["not_kept"] == pytest.approx(missing, abs=1e-6)
    figure = hs.figure(record, view="matrix", layer=1, head=0).to_bytes("svg").decode()
    assert "not kept: " in figure.replace("\u00a0", " ")
    _check_figures(record, part)
    loaded = hs.load(hs.save(record, tmp_path / "run.safetensors"))
    assert loaded["self"].layer(1).partial
    assert np.array_equal(loaded["self"].weights(), record["self"].weights())


def _check_figures(record, part):
    """Every row with its own number, and of one query the share of this query in these heads."""
    missing = 1 - part[1].sum(-1)
    figure = hs.figure(record, view="matrix", layer=1, heads=[0, 2])
    texts = figure.to_bytes("svg").decode().replace("\u00a0", " ")
    for share in missing[[0, 2]].mean(axis=0):
        assert f"{share:.2f}".removeprefix("0") in texts
    figure = (
        hs.figure(record, view="head", layer=1, heads=[1], query=3)
        .to_bytes("svg")
        .decode()
        .replace("\u00a0", " ")
    )
    assert f"not kept: {100 * missing[1, 3]:.0f} % of what “d” looks at" in figure


def test_whole_rows_say_nothing(weights):
    header, _ = page_parts(hs.from_weights(weights, list("abcde")), {})
    assert "not_kept" not in header["stacks"][0]["layers"][0]
    assert hs.from_weights(weights, list("abcde"))["self"].layer(0).not_kept == 0


def test_more_than_a_whole_row_is_refused_all_the_same(weights):
    with pytest.raises(RecordError, match="sums to 1.5"):
        hs.from_weights(weights * 1.5, list("abcde"), partial=True)


@pytest.mark.parametrize("given", ["read", "read and written"])
def test_what_generate_returns_is_joined(given):
    model, tokenizer = (
        tiny_model("llama", writes=True, attn_implementation="eager"),
        tiny_tokenizer(),
    )
    inputs = tokenizer("the cat sat", return_tensors="pt")
    out = model.generate(
        **inputs,
        max_new_tokens=4,
        do_sample=False,
        output_attentions=True,
        return_dict_in_generate=True,
    )
    pieces = tokenizer.convert_ids_to_tokens(out.sequences[0])
    record = hs.from_weights(out.attentions, pieces if given == "read and written" else pieces[:-1])
    with torch.no_grad():
        whole = model(out.sequences[:, :-1], output_attentions=True).attentions
    assert np.allclose(
        record["self"].weights(), np.concatenate([layer.numpy() for layer in whole]), atol=1e-6
    )


def test_steps_that_do_not_go_on_from_each_other_are_refused():
    steps = [
        [np.full((1, 2, 3, 3), 1 / 3)],
        [np.full((1, 2, 1, 3), 1 / 3)],
        [np.full((1, 2, 1, 4), 1 / 4)],
    ]
    with pytest.raises(RecordError, match="step 1 has 3 keys, and 4 tokens were read by then"):
        hs.from_weights(steps, list("abcde"))
    two = [[np.full((2, 2, 3, 3), 1 / 3)], [np.full((2, 2, 1, 4), 1 / 4)]]
    with pytest.raises(RecordError, match="give one text, one beam"):
        hs.from_weights(two, list("abcd"))
