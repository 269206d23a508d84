"""Thresholds against trying all of them, ranks against SciPy, cosines against single texts."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from headscope.errors import TextError
from headscope.tasks import likeness
from headscope.tasks._classification import threshold
from headscope.testing import tiny_model

from .conftest import TEXTS

PAIRS = [(one, two) for one in TEXTS for two in TEXTS if one < two]


@pytest.fixture(scope="module")
def model():
    return tiny_model("bert")


def cosine(model, tokenizer, pair, pooling):
    states = []
    for text in pair:
        with torch.no_grad():
            found = model(**tokenizer(text, return_tensors="pt"))[0][0].double()
        states.append(found.mean(0) if pooling == "mean" else found[0])
    return torch.nn.functional.cosine_similarity(*states, dim=0).item()


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_graded_pairs_give_spearmans_rho(pooling, model, tokenizer, scored, rng):
    gold = rng.normal(size=len(PAIRS)).round(1)
    scores, values = scored(
        likeness(tokenizer, PAIRS, gold.tolist(), pooling=pooling, batch=3), model
    )
    wanted = [cosine(model, tokenizer, pair, pooling) for pair in PAIRS]
    np.testing.assert_allclose(values[:, 0], wanted, atol=1e-5)
    assert scores.mean() == pytest.approx(spearmanr(wanted, gold).statistic)


def test_pairs_that_are_alike_or_not_give_accuracy(model, tokenizer, scored):
    gold = [number % 2 for number in range(len(PAIRS))]
    scores, values = scored(likeness(tokenizer, PAIRS, gold, batch=3), model)
    cut = threshold(values[:, 0], np.array(gold, float))
    assert scores.tolist() == [
        float((value >= cut) == bool(wanted))
        for value, wanted in zip(values[:, 0], gold, strict=True)
    ]
    assert scores.mean() >= 0.5


@given(st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=2, max_size=12))
def test_no_threshold_is_better(rows):
    cosines, alike = (np.array(column, float) for column in zip(*rows, strict=True))
    assert ((cosines >= threshold(cosines, alike)) == (alike == 1)).mean() == max(
        ((cosines >= other) == (alike == 1)).mean() for other in [*cosines, cosines.max() + 1]
    )


def test_pairs_that_are_all_alike_are_refused(tokenizer):
    with pytest.raises(TextError, match="must differ between them"):
        likeness(tokenizer, PAIRS, [1] * len(PAIRS))
