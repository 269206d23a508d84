import numpy as np
import pytest

from headscope.linguistics import Sentence
from headscope.studies.probe._data import ProbeData, ProbeItem, parts_of

WORDS = "cat dog tree house river saw heard was red old the a in on".split()
RELATIONS = ("nsubj", "obj", "det")
SHARES = (0.6, 0.2, 0.2)
MAPS = 7


def random_sentence(rng, number):
    """A random tree over random words; the last word is punctuation."""
    size = int(rng.integers(4, 10))
    order = rng.permutation(size - 1)
    heads = np.zeros(size, int)
    for place in range(1, size - 1):
        heads[order[place]] = order[rng.integers(0, place)] + 1
    heads[-1] = order[0] + 1
    relations = [RELATIONS[rng.integers(0, len(RELATIONS))] for _ in range(size)]
    relations[order[0]], relations[-1] = "root", "punct"
    forms = [*(WORDS[rng.integers(0, len(WORDS))] for _ in range(size - 1)), "."]
    tags = [("NOUN", "VERB", "DET")[rng.integers(0, 3)] for _ in forms]
    return Sentence(
        words=tuple(forms),
        heads=tuple(heads.tolist()),
        relations=tuple(relations),
        upos=tuple(tags),
        name=f"s{number}",
    )


@pytest.fixture
def sentence_of(rng):
    return lambda number: random_sentence(rng, number)


@pytest.fixture
def sentences(rng):
    return [random_sentence(rng, number) for number in range(60)]


@pytest.fixture
def data_of():
    """Items of sentences, made by a function of one, and how they are divided."""

    def made(sentences, item_of):
        return ProbeData(tuple(map(item_of, sentences)), None, parts_of(sentences, SHARES, 0))

    return made


def random_maps(rng, size):
    return rng.dirichlet(np.ones(size), size=(MAPS, size)).astype(np.float32)


@pytest.fixture
def random_item(rng):
    """A sentence with attention that has nothing to do with its tree."""

    def made(sentence):
        ends = rng.random((MAPS, 2, 2, len(sentence))).astype(np.float32) / 10
        return ProbeItem(sentence=sentence, maps=random_maps(rng, len(sentence)), ends=ends)

    return made
