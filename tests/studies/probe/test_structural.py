"""The structural probe recovers planted trees."""

import numpy as np
import pytest

from headscope.studies.probe._data import ProbeItem, Training
from headscope.studies.probe._structural import structural_scores

from ...power2 import power2_embedding

FEATURES, WORDS = 14, 10
HOW = Training(epochs=200, rate=0.03, drop=0.5, patience=8)


def item_of(sentence, states):
    """Every word of two pieces whose mean is its state, between two special tokens."""
    pieces = [states[:, :1] * 0, states[:, :1] * 0]
    for word in range(len(sentence)):
        pieces[1:1] = [states[:, word : word + 1] * 0.5, states[:, word : word + 1] * 1.5]
    places = np.array([(1 + 2 * word, 2 + 2 * word) for word in reversed(range(len(sentence)))])
    return ProbeItem(sentence=sentence, states=np.concatenate(pieces, axis=1), pieces=places)


@pytest.fixture
def planted(sentences, data_of, rng):
    """Layer 1 holds the power-2 embedding of the tree, turned round; layers 0 and 2 are noise."""
    turned = np.linalg.qr(rng.standard_normal((FEATURES, FEATURES)))[0][:WORDS]

    def made(sentence):
        states = rng.standard_normal((3, len(sentence), FEATURES))
        states[1] = power2_embedding(np.array(sentence.heads) - 1) @ turned[: len(sentence)]
        return item_of(sentence, states.astype(np.float32))

    return data_of(sentences, made)


def test_a_power_2_embedding_is_recovered(planted):
    scores, facts = structural_scores(planted, HOW, layer=None, rank=FEATURES)
    found = {(score.measure, score.of): score.value for score in scores}
    assert facts["layer"] == 1
    assert found["UUAS", "probe"] == found["UUAS", "layer 1"] > 0.98
    # words as far in the tree share a rank there, and what is left of error ranks them
    assert found["DSpr", "probe"] > 0.9
    assert found["root", "probe"] > 0.95
    assert found["NSpr", "probe"] > 0.9
    for of in ("layer 0", "layer 2", "chain of words", "control task"):
        assert found["UUAS", of] < found["UUAS", "probe"] - 0.25


def test_one_layer_is_set_beside_the_embeddings(planted):
    scores, facts = structural_scores(planted, Training(epochs=1, rate=0.01), layer=2, rank=3)
    assert facts["layer"] == 2
    assert list(dict.fromkeys(score.of for score in scores)) == [
        "probe",
        "control task",
        "layer 0",
        "chain of words",
    ]
