"""What was chosen among many is judged with the choice made again."""

import numpy as np
import pytest

from headscope.evidence.choice import Choices, chosen

DOCUMENTS, HEADS, RULES = 30, 40, 4


def table(rng, *, documents=DOCUMENTS, questions=10, best=0.0):
    """Heads and rules answer one question in five by chance; the first head knows more."""
    asked = []
    for _ in range(questions):
        wholes = rng.integers(3, 15, documents)
        scores = rng.binomial(wholes, 0.2, (HEADS, documents)).astype(float)
        scores[0] = rng.binomial(wholes, 0.2 + best)
        rules = rng.binomial(wholes, 0.2, (RULES, documents)).astype(float)
        asked.append(Choices(wholes=wholes.astype(float), scores=scores, baselines=rules))
    return asked


def column(found, name):
    return np.array([each[name] for each in found], float)


@pytest.mark.parametrize(("margin", "more"), [(0.0, 0.0), (0.1, 0.1)])
def test_where_nothing_is_above_its_rule_one_in_twenty_seems_to_be(margin, more):
    p, over, family = [], [], []
    for seed in range(60):
        asked = table(np.random.default_rng(seed))
        # Every head is as far above the rules as the margin.
        lifted = [
            Choices(wholes=q.wholes, scores=q.scores + more * q.wholes, baselines=q.baselines)
            for q in asked
        ]
        found = chosen(lifted, seed=seed, margin=margin)
        p.append(column(found, "p") < 0.05)
        family.append((column(found, "p_corrected") < 0.05).any())
        over.append(column(found, "held_out_above_low") > margin)
    # 600 rows; the fixed choice of ten splits gives 10 and 7 %.
    assert 0.02 < np.mean(p) < 0.075
    assert np.mean(over) < 0.045
    assert np.mean(family) < 0.12


def test_intervals_hold_what_the_chosen_heads_give():
    held = []
    for seed in range(30):
        for each in chosen(table(np.random.default_rng([1, seed]), best=0.3), seed=seed):
            held.append(each["held_out_above_low"] <= 0.3 <= each["held_out_above_high"])
    assert 0.91 < np.mean(held) < 0.985


def test_a_planted_head_is_found(rng):
    found = chosen(table(rng, best=0.3))
    assert all(each["best"] == each["held_best"] == 0 for each in found)
    assert (column(found, "p_corrected") < 0.01).all()
    assert (column(found, "held_out_above_low") > 0.05).all()
    # Above the rule by three in ten, and no more.
    assert (column(chosen(table(rng, best=0.3), margin=0.35), "p") > 0.05).all()


def test_few_documents_prove_little(rng):
    wholes = np.full(4, 10.0)
    perfect = Choices(
        wholes=wholes, scores=np.stack([wholes, 0 * wholes]), baselines=0.1 * wholes[None]
    )
    assert chosen([perfect])[0]["p"] >= 1 / 16
    one = Choices(wholes=wholes[:1], scores=wholes[None, :1], baselines=np.zeros((1, 1)))
    alone = chosen([one])[0]
    assert alone["accuracy"] == 1
    assert alone["held_best"] is None
    assert np.isnan([alone[name] for name in ("p", "p_corrected", "held_out_above_low")]).all()
    several = chosen([perfect, one_of_many(wholes)])
    assert np.isnan(several[1]["p"])
    assert several[0]["p_corrected"] == several[0]["p"]


def one_of_many(wholes):
    """A question that one document asks alone."""
    own = np.where(np.arange(len(wholes)) == 2, wholes, 0.0)
    return Choices(wholes=own, scores=own[None], baselines=0 * own[None])


def test_benjamini_and_hochberg_can_be_asked_for(rng):
    found = chosen(table(rng, questions=6), correction="benjamini-hochberg")
    assert (column(found, "p_corrected") >= column(found, "p")).all()
    assert column(found, "p_corrected").max() == pytest.approx(column(found, "p").max())
    assert chosen([]) == []
