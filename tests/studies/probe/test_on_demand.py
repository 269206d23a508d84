"""What probes learn from is made when it is asked for: the same numbers, and little memory."""

import tracemalloc

import numpy as np
import pytest

import headscope as hs
from headscope.storage import ArraysInFile
from headscope.studies.probe import KINDS, _data, _spans
from headscope.studies.probe._data import ProbeData, ProbeItem, Training, parts_of
from headscope.studies.probe._heads import head_scores
from headscope.studies.probe._spans import edge_scores, relation_scores
from headscope.studies.probe._structural import structural_scores
from headscope.testing import tiny_model, tiny_tokenizer

from ...close import assert_close

QUICK = {"epochs": 3, "least": 2, "rank": 3, "seeds": (0, 1), "random_weights": True}


@pytest.mark.parametrize("run", [{}, {"part_size": 16, "progress": False}])
@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_the_same_where_hardly_anything_is_held(kind, run, sentence_of, monkeypatch):
    sentences = [sentence_of(number) for number in range(80)]
    sentences = [each for each in sentences if sum(map(len, each.words)) <= 30][:40]
    tiny = tiny_model("bert"), tiny_tokenizer()
    held = hs.probe(*tiny, sentences, kind=kind, **QUICK, **run)
    monkeypatch.setattr(_data, "HELD", 3000)
    bounded = hs.probe(*tiny, sentences, kind=kind, **QUICK, **run)
    assert len(bounded.scores) == len(held.scores)
    for own, wanted in zip(bounded.scores, held.scores, strict=True):
        assert (own.task, own.measure, own.of) == (wanted.task, wanted.measure, wanted.of)
        assert_close(own.hits, wanted.hits)
        assert own.seeds == wanted.seeds
    # As text: what is not a number is not equal to itself.
    assert repr(bounded.facts) == repr(held.facts)


WIDE = 2000
HOW = Training(epochs=2, rate=0.01)
LEARNT = {
    "maps": (lambda data: head_scores(data, HOW), lambda data: relation_scores(data, HOW, least=2)),
    "states": (
        lambda data: structural_scores(data, HOW, layer=1, rank=2),
        lambda data: edge_scores(data, HOW, layers=False, least=2),
    ),
}


def wide_item(sentence, rng, reads, put):
    """A sentence of which much is read."""
    size = len(sentence)
    if reads == "states":
        states = rng.standard_normal((3, size, WIDE)).astype(np.float16)
        pieces = np.arange(size)[:, None]
        return ProbeItem(sentence=sentence, states=put(states), pieces=pieces)
    maps = rng.random((WIDE, size, size)).astype(np.float32)
    return ProbeItem(
        sentence=sentence,
        maps=put(maps),
        ends=put(rng.random((WIDE, 2, 2, size)).astype(np.float32)),
    )


@pytest.mark.parametrize(
    ("reads", "which"), [("maps", 0), ("maps", 1), ("states", 0), ("states", 1)]
)
def test_memory_does_not_grow_with_what_was_read(reads, which, sentence_of, rng, monkeypatch):
    monkeypatch.setattr(_data, "HELD", 2**20)
    monkeypatch.setattr(_spans, "AT_ONCE", 64)
    peaks = []
    for count in (40, 160):
        sentences = [sentence_of(number) for number in range(count)]
        parts = parts_of(sentences, (0.6, 0.2, 0.2), 0)
        with ArraysInFile() as arrays:
            items = [wide_item(sentence, rng, reads, arrays.put) for sentence in sentences]
            data = ProbeData(items, None, parts)
            tracemalloc.start()
            LEARNT[reads][which](data)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    few, many = peaks
    assert many < 1.3 * few
