import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.evidence import redrawn_interval, redrawn_ratios
from headscope.studies.probe import Probing, Score

TASK, MEASURE = "head", "UAS"


def score(of, hits, **more):
    return Score(task=TASK, measure=MEASURE, of=of, hits=np.array(hits, float), **more)


@pytest.fixture
def hits(rng):
    wholes = rng.integers(1, 9, 30)
    return np.stack([rng.integers(0, wholes + 1), wholes], axis=1).astype(float)


def test_a_ratio_is_redrawn_as_evidence_does(hits):
    found = score("probe", hits)
    assert found.value == hits[:, 0].sum() / hits[:, 1].sum()
    wanted = redrawn_ratios(hits[:, :1], hits[:, 1:])[:, 0]
    assert found.redrawn == pytest.approx(wanted, abs=1e-12)
    ends = redrawn_interval(wanted[:, None], hits[:, 1:], confidence=0.9)[0]
    assert found.interval(0.9) == pytest.approx(tuple(ends))


def test_over_lengths_every_length_from_5_to_50_weighs_the_same():
    lengths = np.array([4, 5, 5, 7, 51])
    found = score("probe", [(0, 1), (1, 2), (2, 4), (3, 3), (0, 1)], lengths=lengths)
    assert found.value == pytest.approx((3 / 6 + 3 / 3) / 2)
    low, high = found.interval(0.95)
    assert 0.5 <= low < found.value < high <= 1
    assert np.isnan(score("probe", [(1, 1)], lengths=np.array([4])).value)


def test_selectivity_is_paired(hits):
    def apart(by):
        scores = score("probe", hits), score("control task", hits * [by, 1])
        found = Probing(kind="attention", model="m", scores=scores, sentences=(70, 10, 30))
        return found.score("selectivity")

    assert (apart(1).value, *apart(1).interval(0.95)) == (0, 0, 0)
    wanted = score("probe", hits * [0.5, 1]).interval(0.95)
    assert apart(0.5).interval(0.95) == pytest.approx(wanted)


@pytest.fixture
def probing(hits):
    scores = (
        score("probe", hits),
        score("control task", hits * [0.5, 1]),
        score("layer 0", hits * [0.25, 1]),
    )
    return Probing(
        kind="attention",
        model="m",
        scores=scores,
        sentences=(70, 10, 30),
        facts={"epochs": {"probe": 3}},
    )


def test_a_result_prints_itself(probing):
    text = str(probing)
    value = probing.score().value
    assert probing.summary.startswith("attention probe of m. ")
    assert f"probe {100 * value:.1f} [" in probing.summary
    assert "\nlearnt from 70 sentences, 10 set aside, scores of 30 others; seed 0" in text
    assert max(map(len, text.splitlines())) <= 100
    assert f"\nprobe         {100 * value:.1f} [" in text
    assert f"\nselectivity   {50 * value:.1f} [" in text
    assert text.index("selectivity") < text.index("layer 0") < text.index("epochs: probe 3")


def test_scores_of_a_few_sentences_tell_nothing(probing, hits):
    scores = (score("probe", hits[:4]),)
    few = Probing(kind="attention", model="m", scores=scores, sentences=(4, 4, 4))
    assert "m (too few to tell: scores of 4, 5 at least are needed). " in few.summary
    assert "too few" not in probing.summary


def test_scores_are_found_by_name(probing):
    assert probing.score("selectivity").value == pytest.approx(probing.score().value / 2)
    assert list(probing.per_layer(TASK, MEASURE)) == [0]
    with pytest.raises(RecordError, match="no score of 'distances' for task None and measure"):
        probing.score("distances")


def test_documents_are_drawn_and_not_their_sentences(hits):
    groups = tuple(str(place // 6) for place in range(30))
    found = score("probe", hits, groups=groups)
    assert found.value == score("probe", hits).value
    assert found.redrawn == pytest.approx(
        redrawn_ratios(hits[:, :1], hits[:, 1:], groups=groups)[:, 0]
    )
    assert np.isnan(score("probe", hits, groups=("one",) * 30).interval(0.95)).all()
