"""Figures of what tokens add, and of numbers of your own."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

import headscope as hs
from headscope.errors import FigureError
from headscope.norms import rollout
from headscope.testing import tiny_model, tiny_tokenizer
from headscope.views.figures._plan import parse_options
from headscope.views.figures._style import short_score, style_of

STYLE = style_of({})
VIEWS = ("head", "model", "matrix", "text", "pair")
PER_LAYER = ("contribution-heads", "contribution-residual", "alti", "rollout")


@pytest.fixture(scope="module")
def record():
    return hs.capture(tiny_model("bert"), tiny_tokenizer(), "the cat sat on it", keep="alti")


def place(view):
    return {"query": 4, "key": 1} if view == "pair" else {}


def told(number):
    return f"{number:.2f}"


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("quantity", ["contribution", *PER_LAYER])
def test_every_view_shows_every_quantity_and_says_so(record, see, view, quantity):
    figure = hs.figure(record, view=view, quantity=quantity, width=170, **place(view))
    assert figure.recipe["quantity"] == quantity
    seen = see(figure)
    labels = {
        "contribution": "contribution",
        "contribution-heads": "contribution of all heads",
        "contribution-residual": "contribution with residual",
        "alti": "ALTI",
    }
    assert labels.get(quantity, quantity) in seen.texts
    assert ("all heads together" in seen.said) == (
        quantity in PER_LAYER and view not in ("model", "pair")
    )


def test_contributions_are_weights_times_the_length_of_values(record, see):
    layer = record["self"].layer(1)
    wanted = np.asarray(layer.weights_of(2), float) * layer.value_norms[2]
    seen = see(hs.figure(record, view="pair", quantity="contribution", query=4, key=1))
    assert short_score(wanted[4, 1]) in seen.texts
    plan = parse_options(record, {"quantity": "contribution", "heads": [2], "layer": 1})
    assert plan.shown.numbers(layer, (2,))[0] == pytest.approx(wanted)


def test_a_map_of_all_heads_has_one_tile_for_each_layer(record, see):
    seen = see(hs.figure(record, view="pair", quantity="rollout", query=4, key=1, layer=1))
    rolled = [rollout(record["self"])[number][4, 1] for number in range(2)]
    written = [text for text in seen.texts if text in {told(number) for number in rolled}]
    assert written[:2] == list(map(told, rolled)), "the bar has the largest once more"
    tiles = np.array([image[0, 0] for image in seen.images[:2]], int)
    wanted = STYLE.weight_scale(max(rolled)).rgb(np.array(rolled))
    # A number in the middle between two colours may have either.
    assert np.abs(tiles - wanted).max() <= 3
    grid = see(hs.figure(record, view="model", quantity="rollout"))
    assert {"layer 0", "layer 1"} <= set(grid.texts)
    assert len(grid.images) == 2 + 1


def test_heads_change_nothing_of_a_map_of_all_together(record):
    files = [
        hs.figure(record, quantity="alti", heads=heads).to_bytes("png") for heads in ([0, 2], [1])
    ]
    pictures = [data[data.index(b"IDAT") : data.rindex(b"IDAT")] for data in files]
    assert pictures[0] == pictures[1]


def test_numbers_of_your_own_have_both_signs(record, see, rng):
    mine = [
        rng.choice([-1, 1], (3, 15, 15)) * (0.5 + rng.random((3, 15, 15))) for _ in record["self"]
    ]
    figure = hs.figure(
        record, view="head", heads=[1], quantity="mine", quantities={"mine": mine}, top_percent=100
    )
    seen = see(figure)
    assert seen.dashed == (mine[0][1] < 0).sum()
    assert "dashed lines are below 0" in seen.said
    assert figure.recipe["call"].endswith("quantity='mine', quantities=..., top_percent=100)")
    legend = see(hs.figure(record, view="matrix", quantity="mine", quantities={"mine": mine}))
    assert short_score(-np.abs(mine[0].mean(axis=0)).max()) in legend.texts


def test_one_colour_stands_for_all_heads(record, see):
    seen = see(hs.figure(record, view="head", quantity="contribution-heads"))
    assert {to_hex(patch.get_edgecolor()) for patch in seen._paths()} == {STYLE.muted}


def test_what_the_record_has_not_is_refused(record):
    plain = hs.from_weights([[[[0.5, 0.5], [0.0, 1.0]]]], ["a", "b"])
    with pytest.raises(FigureError, match=r"quantity='contribution': stack 'self' has 'weight';"):
        hs.figure(plain, quantity="contribution")
    with pytest.raises(FigureError, match=r"quantity='nothing': stack 'self' has 'weight',"):
        hs.figure(record, quantity="nothing")
    with pytest.raises(FigureError, match="expected finite"):
        hs.figure(plain, quantity="mine", quantities={"mine": [np.zeros((3, 3))]})
