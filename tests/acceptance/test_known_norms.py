"""The weight is not the contribution, seen on the demo model."""

import pytest

import headscope as hs

PAIRS = [
    ("I went to the store.", "At the store, I bought fresh strawberries."),
    ("The committee met on Monday, but nobody came.", "It will meet again in May."),
    ("She plays the piano, and he sings.", "They have never been on a stage together."),
]


@pytest.fixture(scope="module")
def study(minilm):
    return hs.norm_study(hs.capture_many(*minilm, PAIRS, keep=("weights", "norms")))


def test_cls_gets_weight_and_adds_little(study):
    by_weight, by_norm = (study.mean(f"share by {by}: cls") for by in ("weight", "norm"))
    assert (by_weight[1:5] > 0.15).all()
    assert (by_norm[1:5] < by_weight[1:5] / 3).all()
    assert study.mean("length of f: cls")[-1] < study.mean("length of f: other")[-1] / 5


def test_most_of_a_token_is_its_own_after_the_norm(study):
    by_weight, after_norm = (
        study.mean(f"mixing {kind}: all")[-1] for kind in ("weights", "output")
    )
    assert by_weight > 0.8
    assert after_norm < 0.4


def test_expansion_rates_are_of_the_weights_alone(study):
    assert study.mean("expansion")[:-1] == pytest.approx(
        [0.67, 1.07, 1.26, 1.39, 1.16, 1.07], abs=0.01
    )
