"""View neuron: the order of the neurons, and how many carry the score."""

import numpy as np
import pytest

import headscope as hs
from headscope.errors import FigureError
from headscope.record import Layer, ModelFacts, Record, Rotary, Stack, Tokens
from headscope.views.figures._neuron import neurons_of

FEATURES = 10


@pytest.fixture
def turned(rng):
    """5 queries, 7 keys, 10 features of which rotary positions turn 8, from the second on."""
    layer = Layer(
        layer=0,
        queries=rng.standard_normal((3, 5, FEATURES)).astype(np.float32),
        keys=rng.standard_normal((3, 7, FEATURES)).astype(np.float32),
        rotary=Rotary(frequencies=np.array([1.0, 0.5, 0.1, 0.01]), style="halves", start=1),
        visible=np.tril(np.ones((5, 7), bool), 2),
        scale=0.3,
    )
    tokens = [
        Tokens(pieces=tuple(f"{side}{at}" for at in range(count)))
        for side, count in (("q", 5), ("k", 7))
    ]
    stack = Stack(name="self", query=tokens[0], key=tokens[1], layers=(layer,))
    return Record(stacks={"self": stack}, model=ModelFacts(name="m"))


def test_what_neurons_add_is_the_weighted_less_the_plain_mean(turned):
    layer = turned["self"].layer(0)
    found = neurons_of(layer, 1, 2)
    weights = layer.weights_of(1)[2, :5]
    products = layer.queries[1, 2].astype(float) * layer.keys[1, :5].astype(float)
    wanted = sum(
        weight * product for weight, product in zip(weights, products, strict=True)
    ) - products.mean(axis=0)
    np.testing.assert_allclose(found.added, wanted)
    # summed over the neurons: how far the attended keys' scores stand above the mean score
    scores = layer.scores_of(1)[2, :5]
    assert found.added.sum() * layer.scale == pytest.approx(weights @ scores - scores.mean())
    assert (np.diff(found.carried) >= 0).all()
    assert found.carried[-1] == pytest.approx(1)
    assert found.carried[0] == pytest.approx(np.abs(wanted).max() / np.abs(wanted).sum())


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ("model", "in the model's order"),
        ("ranked", "by contribution to the score margin"),
        ("pairs", "fastest first"),
    ],
)
def test_the_figure_says_its_order_and_what_few_carry(order, words, turned, see):
    figure = hs.figure(turned, view="neuron", head=1, query=2, neurons=order)
    found = neurons_of(turned["self"].layer(0), 1, 2)
    assert words in see(figure).said
    assert f"the strongest 4 carry {100 * found.carried[3]:.0f} %" in see(figure).said
    assert f"80 % needs {int((found.carried < 0.8 - 1e-9).sum()) + 1}" in see(figure).said


def test_columns_stand_in_that_order(turned, see):
    images = {
        order: see(hs.figure(turned, view="neuron", head=1, query=2, neurons=order)).images[0]
        for order in ("model", "pairs")
    }
    row = {order: image[image.shape[0] // 2] for order, image in images.items()}
    wide = row["model"].shape[0] // FEATURES
    cells = {order: line[wide // 2 :: wide][:FEATURES] for order, line in row.items()}
    assert np.array_equal(cells["pairs"], cells["model"][[1, 5, 2, 6, 3, 7, 4, 8, 0, 9]])


def test_pairs_where_nothing_is_turned_are_refused(rng, grouped):
    with pytest.raises(FigureError, match="neurons='pairs': layer 2 is not rotary"):
        hs.figure(grouped, view="neuron", layer=2, query=1, neurons="pairs")
