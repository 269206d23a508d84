"""Two atlases side by side: planted permutations are recovered, and chance is told as such."""

import numpy as np
import pytest

import headscope as hs
from headscope.atlases import Atlas, AtlasComparison, atlas_of, text_counts
from headscope.atlases._comparison import one_to_one
from headscope.corpus import Sums
from headscope.errors import PageError, RecordError
from headscope.patterns import PATTERNS, Heads, Tally
from headscope.record import Tokens
from headscope.views.opening import view

CELLS = [(layer, head) for layer in range(2) for head in range(4)]
SCORES = (*(pattern.name for pattern in PATTERNS), "confidence")


def texts_of(count, seed=0):
    """Weights of eight heads on some texts, each head with keys of its own taste."""
    rng = np.random.default_rng(seed)
    taste = np.random.default_rng(5).normal(size=(8, 40))
    for number in range(count):
        length = 5 + number % 6
        words = rng.choice(["the", "cat", "7", ",", "sat"], length - 2).tolist()
        offset = np.arange(length)[None, :] - np.arange(length)[:, None]
        logits = 2 * taste[:, offset + 20] + rng.normal(size=(8, length, length))
        weights = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
        yield f"{seed} {number}", Tokens(pieces=("[CLS]", *words, "[SEP]")), weights


def atlas_made(texts, order, values, noise=0.0, cells=CELLS):
    """An atlas of heads in another order, of which some may be left out."""
    rng = np.random.default_rng(9)
    sums, facts = Sums(), {"scores": list(SCORES)}
    of_layers = tuple(dict(cells))
    for name, tokens, weights in texts:
        length = len(tokens)
        drawn = rng.dirichlet(np.ones(length), size=(len(order), length))
        mixed = (1 - noise) * weights[order] + noise * drawn
        visible = (np.ones((length, length), bool),) * len(of_layers)
        scores = rng.random((len(SCORES), len(order)))
        mixed = mixed.astype(np.float32)
        counts = text_counts(tokens, weights=mixed, visible=visible, scores=scores)
        sums.add(name, name, counts, length=length, facts=facts)
    return atlas_of(Heads(Tally.of_values(PATTERNS, cells, values[:, :, order])), sums)


@pytest.fixture
def values(rng):
    """Scores of eight heads on nine texts, each around a mean of its own; low baselines."""
    rows = Tally().rows
    means = rng.random((len(rows), 8))
    means[[":" in row for row in rows]] = 0.02
    return np.clip(means + 0.01 * rng.normal(size=(9, len(rows), 8)), 0, 1)


@pytest.fixture
def atlas(values):
    return atlas_made(list(texts_of(9)), list(range(8)), values)


def test_a_planted_permutation_is_recovered_under_noise(atlas, values):
    order = [5, 2, 7, 0, 1, 6, 3, 4]
    other = atlas_made(list(texts_of(9)), order, values, noise=0.3)
    compared = atlas.compare(other, names=("step 1", "step 2"))
    assert [order[to] for _, to in compared.matched] == list(range(8))
    assert compared.same_texts
    assert (compared.only_in_a, compared.only_in_b) == ((), ())
    assert compared.in_place == sum(order[at] == at for at in range(8))
    assert compared.mean_similarity > compared.different_heads
    assert compared.mean_similarity > compared.chance
    assert compared.caution == ""
    assert "A is step 1, 8 heads; B is step 2, 8 heads: 8 heads are matched" in str(compared)
    for pair in compared.pairs:
        assert pair.similarity > pair.next_best
        assert pair.parts["links"] > 0.5
        assert (pair.gained, pair.lost) == ((), ())
    by_number = atlas.compare(other, heads="number")
    assert [pair.b for pair in by_number.pairs] == CELLS
    assert by_number.mean_similarity < compared.mean_similarity


def test_heads_of_another_shape_are_matched_as_far_as_there_are(atlas, values):
    order, cells = [6, 1, 4], [(0, 0), (1, 0), (2, 0)]
    compared = atlas.compare(atlas_made(list(texts_of(9)), order, values, cells=cells))
    assert {pair.a: pair.b for pair in compared.pairs} == {
        CELLS[head]: cell for head, cell in zip(order, cells, strict=True)
    }
    assert compared.only_in_a == tuple(CELLS[head] for head in (0, 2, 3, 5, 7))
    assert compared.only_in_b == ()
    assert "Heads of A without a partner: 0-0, 0-2, 0-3, 1-1, 1-3" in str(compared)


def test_unlike_heads_are_told_to_be_matched_by_chance(atlas, values):
    rng = np.random.default_rng(3)
    other = atlas_made(list(texts_of(9)), list(range(8)), rng.random(values.shape), noise=1.0)
    compared = atlas.compare(other)
    assert compared.mean_similarity <= compared.different_heads
    assert "does not show which heads are the same" in compared.caution
    assert compared.caution in " ".join(str(compared).split())


def test_differences_are_those_of_the_scores(atlas, values):
    changed = values.copy()
    previous = Tally().rows.index("previous")
    changed[:, previous, 2] = np.abs(values[:, previous, 2] - 0.5)
    changed[:, previous, 3] = np.abs(values[:, previous, 3] - 0.5)
    compared = atlas.compare(atlas_made(list(texts_of(9)), list(range(8)), changed))
    assert [to for _, to in compared.matched] == list(range(8))
    clear = [each for each in compared.differences if each.is_clear]
    assert {(each.layer, each.head) for each in clear} == {(0, 2), (0, 3)}
    assert compared.differences[: len(clear)] == tuple(clear)
    for each in clear:
        column = CELLS.index((each.layer, each.head))
        means = values[:, previous, column].mean(), changed[:, previous, column].mean()
        assert (each.before, each.after) == pytest.approx(means)
        assert each.difference == pytest.approx(means[1] - means[0])
        assert each.low < each.difference < each.high
    columns = compared.columns()
    assert {len(column) for column in columns.values()} == {len(compared.differences)}
    assert columns["pattern"][0] == "previous"


def test_other_texts_are_told_and_leave_links_out(atlas, values):
    compared = atlas.compare(atlas_made(list(texts_of(9, seed=1)), list(range(8)), values))
    assert not compared.same_texts
    assert np.isnan(compared.part_similarities["links"]).all()
    assert "The atlases are of different texts" in str(compared)
    # What has other parts cannot be set against it.
    assert compared.different_heads == pytest.approx(
        atlas.compare(atlas_made(list(texts_of(9, seed=2)), list(range(8)), values)).different_heads
    )


def test_pairs_are_the_best_of_all_assignments_and_no_head_is_in_two():
    # The largest similarity is not part of the best assignment.
    assert one_to_one(np.array([[0.9, 0.8, 0.1], [0.8, 0.2, 0.1]])) == [(0, 1), (1, 0)]


def test_it_says_what_is_wrong(atlas, monkeypatch):
    with pytest.raises(RecordError, match=r"Expected another atlas, got a Heads; make one with"):
        atlas.compare(atlas.heads)
    with pytest.raises(RecordError, match="heads='best' or heads='number', got heads='nearest'"):
        atlas.compare(atlas, heads="nearest")
    assert isinstance(hs.compare(atlas, atlas), AtlasComparison)
    with pytest.raises(PageError, match=r"view\(a\.compare\(b\)\)"):
        view(atlas, atlas)
    assert isinstance(atlas, Atlas)
