from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.linguistics import OFFSETS, offset_heads, predicted_heads, read_treebank
from headscope.linguistics.dependencies import groups_of

TABLE = """
punct and root included | 204577 29.10 (+1) | 25147 29.09 (+1) | 25094 28.88 (+1) | 21180 30.58 (+1)
without punct | 181021 31.42 (+1) | 22086 31.39 (+1) | 22029 30.89 (+1) | 18732 33.34 (+1)
without punct and root | 168477 33.76 (+1) | 20085 34.51 (+1) | 19952 34.10 (+1) | 17732 35.22 (+1)
det | 15725 59.0 (+1) | 1817 59.6 (+1) | 1829 57.6 (+1) | 2043 56.8 (+1)
amod | 9587 76.1 (+1) | 1326 74.7 (+1) | 1247 74.6 (+1) | 1358 78.4 (+1)
compound | 7210 80.7 (+1) | 898 82.5 (+1) | 984 77.7 (+1) | 773 82.1 (+1)
obj | 9896 36.3 (-2) | 1211 35.8 (-2) | 1153 35.0 (-2) | 877 39.1 (-2)
nsubj | 15981 36.0 (+1) | 1958 36.5 (+1) | 1950 34.5 (+1) | 1393 39.4 (+1)
nsubj:pass | 1183 40.2 (+2) | 154 42.2 (+2) | 108 37.0 (+2) | 239 42.7 (+2)
aux | 6501 49.5 (+1) | 749 48.2 (+1) | 816 47.1 (+1) | 410 55.4 (+1)
aux:pass | 1358 81.4 (+1) | 162 82.7 (+1) | 123 77.2 (+1) | 274 79.9 (+1)
nmod:poss | 3688 59.8 (+1) | 391 58.1 (+1) | 387 61.8 (+1) | 364 47.5 (+1)
compound:prt | 749 78.2 (-1) | 74 74.3 (-1) | 89 76.4 (-1) | 70 91.4 (-1)
advmod | 11301 46.3 (+1) | 1353 45.8 (+1) | 1324 50.2 (+1) | 847 49.2 (+1)
mark | 7124 50.2 (+1) | 757 52.3 (+1) | 752 52.7 (+1) | 560 53.8 (+1)
xcomp | 3085 56.8 (-2) | 381 56.2 (-2) | 363 55.6 (-2) | 271 46.9 (-2)
ccomp | 2110 20.5 (-3) | 200 25.0 (-3) | 223 23.3 (-3) | 178 10.7 (-3)
cop | 4728 35.3 (+1) | 627 35.2 (+1) | 584 36.1 (+1) | 317 35.3 (+1)
cc | 6756 44.3 (+1) | 786 44.7 (+1) | 750 46.7 (+1) | 575 43.5 (+1)
conj | 7614 26.6 (-2) | 916 26.6 (-2) | 861 28.7 (-2) | 634 27.6 (-2)
case | 17444 35.8 (+2) | 2015 37.7 (+1) | 1969 38.6 (+1) | 2511 36.0 (+2)
"""
"""Counted once by another program, from the same releases."""
BANKS = (
    "ud-english-ewt/en_ewt-ud-train",
    "ud-english-ewt/en_ewt-ud-dev",
    "ud-english-ewt/en_ewt-ud-test",
)
GROUPS = {
    "punct and root included": "all",
    "without punct": "all but punct",
    "without punct and root": "all but punct and root",
}


class Baseline(NamedTuple):
    count: int
    offset: int
    accuracy: float


def offset_baseline(sentences, *, universal=False):
    """What position alone gives for every group of words: the best of a few fixed offsets."""
    listed = list(sentences)
    gold = np.concatenate([sentence.heads for sentence in listed])
    names = np.array([name for sentence in listed for name in sentence.relations])
    named = [np.concatenate([offset_heads(len(s), offset) for s in listed]) for offset in OFFSETS]
    baselines = {}
    for group, words in groups_of(names, universal=universal).items():
        shares = (np.stack(named) == gold)[:, words].mean(axis=1)
        best = int(shares.argmax())
        baselines[group] = Baseline(len(words), OFFSETS[best], float(shares[best]))
    return baselines


@pytest.mark.parametrize("column", [2, 3, 4])
def test_real_treebanks_have_the_known_baselines(shared, column):
    names = ("", *BANKS, "ud-english-pud/en_pud-ud-test")
    found = offset_baseline(read_treebank(shared / f"{names[column]}.conllu"))
    for line in TABLE.strip().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        count, accuracy, offset = cells[column].split()
        baseline = found[GROUPS.get(cells[0], cells[0])]
        assert (baseline.count, f"({baseline.offset:+d})") == (int(count), offset), cells[0]
        # the same number, rounded as the table is
        assert f"{100 * baseline.accuracy:.{len(accuracy.partition('.')[2])}f}" == accuracy, cells[
            0
        ]


def test_clamped_offsets_hit_the_root_and_the_word_itself():
    assert offset_heads(5, -3).tolist() == [0, 0, 0, 1, 2]
    assert offset_heads(5, 2).tolist() == [3, 4, 5, 5, 5]
    assert offset_heads(1, 1).tolist() == [1]


@given(st.integers(2, 7), st.integers(0, 999))
def test_predictions_are_the_largest_of_the_others(size, seed):
    maps = np.random.default_rng(seed).random((3, size, size))
    found = predicted_heads(maps)
    for head in range(3):
        for word in range(size):
            others = [other for other in range(size) if other != word]
            assert found[0, head, word] == max(others, key=lambda other: maps[head, word, other])
            assert found[1, head, word] == max(others, key=lambda other: maps[head, other, word])


def test_words_that_look_at_nothing_have_no_prediction():
    maps = np.array([[[1.0, 0.0, 0.0], [0.7, 0.3, 0.0], [0.2, 0.0, 0.8]]])
    assert predicted_heads(maps).tolist() == [[[-1, 0, 0]], [[1, -1, -1]]]
    assert predicted_heads(np.ones((2, 1, 1))).tolist() == [[[-1], [-1]], [[-1], [-1]]]


def test_baselines_count_by_hand(treebank):
    found = offset_baseline(treebank)
    assert found["all"].count == 10
    # +2: The-cats, do-sleep, Dogs-seen, and were-seen by the clamp
    assert (found["all"].offset, found["all"].accuracy) == (2, 4 / 10)
    assert found["nsubj"].count == 1
    # the first sentence's subject is three words from its head, which no offset reaches
    assert found["nsubj"].accuracy == 0
    assert found["nsubj:pass"].offset == 2
    assert found["root"].accuracy == 0.5
    assert found["root"].offset == -3
    universal = offset_baseline(treebank, universal=True)
    assert universal["nsubj"].count == 2
    assert universal["nsubj"].accuracy == 0.5
    assert universal["aux"].count == 2
    assert set(universal) == {name.partition(":")[0] for name in found}
    assert found["all but punct"].count == 9
    assert found["all but punct and root"].count == 7
    assert OFFSETS == (-3, -2, -1, 1, 2)
