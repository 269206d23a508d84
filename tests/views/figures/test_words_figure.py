"""Figures of whole words, and of means of layers and heads; what their files say of it."""

import io
import json

import numpy as np
import pytest
from PIL import Image

import headscope as hs
from headscope.cli import run
from headscope.errors import FigureError, RecordError
from headscope.record import Layer, Record, Stack, Tokens
from headscope.testing import random_record, random_weights
from headscope.views.figures._neuron import neurons_of
from headscope.views.figures._plan import parse_options

PIECES = ("[CLS]", "straw", "##berr", "##ies", "taste", "[SEP]")
RUNS = ((0,), (1, 2, 3), (4,), (5,))


@pytest.fixture
def record(rng):
    """Three layers of two heads."""
    return hs.from_weights(random_weights(rng, (3, 2, 6, 6)), Tokens(pieces=PIECES))


def between_words(weights):
    rows = [np.mean([weights[..., at, :] for at in run], axis=0) for run in RUNS]
    columns = [np.sum([np.stack(rows, -2)[..., at] for at in run], axis=0) for run in RUNS]
    return np.stack(columns, -1)


@pytest.mark.parametrize("view", ["head", "matrix", "text", "texts", "model", "overview", "pair"])
def test_every_view_draws_words(view, record, see):
    chosen = {"query": 2, "key": "taste"} if view == "pair" else {}
    figure = hs.figure(record, view=view, words=True, width=150, **chosen)
    said = see(figure).said
    assert "whole words: the sum of what their pieces get" in said
    if view in ("head", "matrix", "text", "texts", "pair"):
        assert "strawberries" in said
        assert "berr" not in said.replace("strawberries", "")
    assert figure.recipe["words"]
    assert "words=True" in figure.recipe["call"]
    assert not hs.figure(record, view=view, **chosen).recipe["words"]


def test_numbers_are_those_of_the_arrays(record):
    plan = parse_options(record, {"view": "matrix", "layer": 1, "words": True})
    drawn = plan.shown.numbers(plan.layer, (0, 1))
    np.testing.assert_allclose(drawn, record["self"].weights(1, words=True), atol=1e-6)
    np.testing.assert_allclose(drawn, between_words(record["self"].weights(1)), atol=1e-6)


def test_the_even_share_of_a_word_is_that_of_its_pieces(record):
    plan = parse_options(record, {"view": "matrix", "words": True})
    np.testing.assert_allclose(plan.shown.even(plan.layer)[0], np.array([1, 3, 1, 1]) / 6)


def test_scores_are_means_over_the_pairs_that_may_be_seen(rng):
    queries, keys = rng.standard_normal((2, 6, 8)), rng.standard_normal((1, 6, 8))
    layer = Layer(layer=0, queries=queries, keys=keys, visible=np.tril(np.ones((6, 6), bool)))
    tokens = Tokens(pieces=PIECES)
    record = Record(stacks={"self": Stack(name="self", query=tokens, key=tokens, layers=(layer,))})
    plan = parse_options(record, {"view": "matrix", "words": True, "quantity": "score"})
    drawn = plan.shown.numbers(plan.layer, (1,))[0]
    scores = layer.scores_of(1)
    block = scores[1:4, 1:4]
    assert drawn[1, 1] == pytest.approx(block[np.isfinite(block)].mean())
    assert np.isnan(drawn[0, 1])


def test_means_of_layers_and_heads(record, see):
    weights = record["self"].weights()
    options = {"view": "head", "layer": 0, "mean_layers": [2], "mean_heads": True}
    plan = parse_options(record, options)
    drawn = plan.shown.numbers(plan.layer, plan.maps)
    np.testing.assert_allclose(drawn[0], weights[[0, 2]].mean(axis=(0, 1)), atol=1e-6)
    figure = hs.figure(record, **options)
    assert "Mean of layers 0, 2 · mean of 2 heads" in see(figure).texts
    assert figure.recipe["mean_layers"] == figure.recipe["layers"] == [0, 2]
    assert figure.recipe["mean_heads"]
    plain = hs.figure(record, view="head", layer=0).recipe
    assert plain["mean_layers"] == []
    assert not plain["mean_heads"]
    # A matrix of several heads always is their mean.
    assert hs.figure(record, view="matrix").recipe["mean_heads"]
    assert not hs.figure(record, view="matrix", head=1).recipe["mean_heads"]
    assert (
        "3 layers · mean of 2 heads" in see(hs.figure(record, view="model", mean_heads=True)).texts
    )


def test_heads_of_a_mean_are_named(record, see):
    """In the recipe of all layers, and beside the numbers of a chosen token."""
    for view in ("model", "pair"):
        chosen = {"query": 1, "key": 0} if view == "pair" else {}
        three = random_record(layers=2, heads=3)
        figure = hs.figure(three, view=view, heads=[0, 2], mean_heads=True, **chosen)
        assert (figure.recipe["heads"], figure.recipe["mean_heads"]) == ([0, 2], True)
    said = "numbers at tokens: mean of these heads"
    texts = " ".join(see(hs.figure(record, view="head", heads=[0, 1], query=1)).texts)
    assert said in texts
    assert said not in " ".join(see(hs.figure(record, view="head", heads=[0, 1])).texts)
    assert said not in " ".join(see(hs.figure(record, view="head", head=0, query=1)).texts)


def test_layers_of_a_mean_are_those_that_were_named(record, see):
    figure = hs.figure(record, view="matrix", mean_layers=[1, 2])
    assert figure.recipe["layers"] == figure.recipe["mean_layers"] == [1, 2]
    several = hs.figure(record, view="matrix", mean_layers=[0, 1, 2], layer=1)
    assert "Mean of layers 0, 1, 2" in " ".join(see(several).texts)
    assert "mean of layers 0, 1, 2</title>" in several.to_bytes("svg").decode()
    pair = hs.figure(record, view="pair", words=True, query=1, key=0)
    assert "word 1 looks at word 0" in " ".join(see(pair).texts)
    both = hs.figure(record, view="matrix", mean_layers=[2], layer=0)
    assert both.recipe["layers"] == [0, 2]
    with pytest.raises(FigureError, match=r"mean_layers=\[1\] names no layer beside layer 1"):
        hs.figure(record, view="matrix", mean_layers=1)


def test_layers_and_heads_are_one_number_several_or_true_for_all(record):
    def recipe(**options):
        return hs.figure(record, view="head", layer=0, **options).recipe

    assert recipe(mean_layers=True)["mean_layers"] == [0, 1, 2]
    assert recipe(mean_layers=1)["mean_layers"] == [0, 1]
    assert recipe(mean_layers=False)["mean_layers"] == []
    assert recipe(heads=1)["heads"] == [1]
    assert hs.figure(record, view="model", layers=1).recipe["layers"] == [1]
    with pytest.raises(FigureError, match=r"mean_layers=\['0-1'\]: give numbers, such as"):
        recipe(mean_layers="0-1")
    with pytest.raises(FigureError, match=r"heads=\['0-1'\]: layer 0 has heads 0 to 1"):
        recipe(heads="0-1")


def test_a_token_of_a_word_is_chosen_by_its_position_or_by_the_word(record, see):
    for query in (1, 3, "strawberries"):
        said = see(hs.figure(record, view="head", words=True, query=query)).said
        assert "only from “strawberries”" in said


def test_each_file_and_the_command_line_say_it(record, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hs.save(record, "run.safetensors")
    flags = ["--view", "head", "--at", "0", "--words", "--mean-layers", "1", "2", "--mean-heads"]
    for kind in ("svg", "pdf", "png"):
        assert run(["figure", "run.safetensors", "--out", f"f.{kind}", *flags]) == 0
    recipe = json.loads(
        Image.open(io.BytesIO((tmp_path / "f.png").read_bytes())).text["Description"]
    )
    assert (recipe["words"], recipe["mean_layers"], recipe["mean_heads"]) == (True, [0, 1, 2], True)
    for kind in ("svg", "pdf"):
        assert "mean_layers" in (tmp_path / f"f.{kind}").read_bytes().decode("latin-1")


def test_queries_and_keys_of_a_word_are_the_means_over_its_pieces(rng, see):
    queries, keys = rng.standard_normal((2, 2, 6, 4)).astype(np.float32)
    tokens = Tokens(pieces=PIECES)
    layer = Layer(layer=0, queries=queries, keys=keys, scale=0.5)
    stack = Stack(name="self", query=tokens, key=tokens, layers=(layer,))
    record = Record(stacks={"self": stack})
    plan = parse_options(record, {"view": "neuron", "head": 1, "query": "taste", "words": True})
    found = neurons_of(layer, 1, plan.query, plan.shown.units)
    np.testing.assert_allclose(found.query, queries[1, 4], atol=1e-6)
    np.testing.assert_allclose(found.keys[1], keys[1, 1:4].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(found.scores, 0.5 * found.dots, atol=1e-5)
    np.testing.assert_allclose(found.weights, stack.weights(0, 1, words=True)[2], atol=1e-6)
    figure = hs.figure(record, view="neuron", head=1, query=2, words=True, width=150)
    said = see(figure).said
    assert "strawberries" in said
    assert "whole words: the sum of what their pieces get" in said
    assert figure.recipe["words"]


@pytest.mark.parametrize("view", ["head", "matrix", "text"])
@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"head": 1, "mean_heads": True}, "the mean of several heads, not of head 1"),
        ({"heads": [1], "mean_heads": True}, "the mean of several heads, not of head 1"),
        ({"quantity": "mine", "mean_heads": True}, "'mine' is of all heads together"),
        ({"layer": 1, "mean_layers": [1]}, r"mean_layers=\[1\] names no layer beside layer 1"),
    ],
)
def test_a_mean_that_would_change_nothing_is_refused(view, options, why, record):
    mine = {"mine": [np.eye(6)] * 3} if "quantity" in options else None
    with pytest.raises(FigureError, match=why):
        hs.figure(record, view=view, quantities=mine, **options)


@pytest.mark.parametrize(
    ("query", "why"),
    [(9, "give the position of any token of the word, 0 to 5"), ("x", "are .*'strawberries', 't")],
)
def test_a_word_that_is_not_there_is_told_by_words(query, why, record):
    with pytest.raises(FigureError, match=why):
        hs.figure(record, view="pair", words=True, query=query, key=1)


def test_what_has_no_mean_is_refused(record, rng):
    with pytest.raises(RecordError, match="has layers 0 to 2, not 7"):
        hs.figure(record, view="head", mean_layers=[7])
    with pytest.raises(FigureError, match="View 'neuron' has no option 'mean_heads'"):
        hs.figure(record, view="neuron", query=1, mean_heads=True)
    layers = tuple(
        Layer(layer=number, weights=random_weights(rng, (heads, 6, 6)))
        for number, heads in enumerate((2, 3))
    )
    tokens = Tokens(pieces=PIECES)
    other = Record(stacks={"self": Stack(name="self", query=tokens, key=tokens, layers=layers)})
    with pytest.raises(FigureError, match="Layers 0, 1 have no mean head by head"):
        hs.figure(other, view="matrix", mean_layers=[0, 1])
