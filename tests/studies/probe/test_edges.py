"""Edge probing finds the layer that a label was planted in."""

import numpy as np
import pytest

from headscope.studies.probe._data import ProbeItem, Training
from headscope.studies.probe._spans import DEPENDENCIES, TAGS, edge_scores

LAYERS, FEATURES, PLANTED = 3, 9, 1
LABELS = ("NOUN", "VERB", "DET", "nsubj", "obj", "det")


@pytest.fixture
def planted(sentences, data_of, rng):
    """Tag and relation of each word are in one piece of it, in layer 1; all else is noise."""

    def made(sentence):
        pieces, states = [], [np.zeros((LAYERS, 1, FEATURES))]
        for tag, relation in zip(sentence.upos, sentence.relations, strict=True):
            count, first = int(rng.integers(1, 4)), len(states)
            for piece in range(count):
                state = rng.standard_normal((LAYERS, 1, FEATURES)) * 0.3
                if piece == 0:
                    state[PLANTED, 0, LABELS.index(tag)] += 3
                    state[PLANTED, 0, LABELS.index(relation) if relation in LABELS else -1] += 3
                states.append(state)
            pieces.append([*range(first, first + count), *[-1] * (3 - count)])
        joined = np.concatenate(states, axis=1).astype(np.float16)
        return ProbeItem(sentence=sentence, states=joined, pieces=np.array(pieces))

    return data_of(sentences, made)


def test_planted_labels_and_their_layer_are_found(planted):
    scores, facts = edge_scores(planted, Training(epochs=15, rate=0.01, patience=2), least=5)
    found = {(score.task, score.of): score.value for score in scores}
    for task in (TAGS, DEPENDENCIES):
        assert found[task, "probe"] > 0.9
        assert found[task, "layer 0"] < 0.6
        assert found[task, "layers 0 to 1"] > 0.9
        assert found[task, "majority"] < 0.6
        assert facts[f"expected layer, {task}"] == pytest.approx(PLANTED, abs=0.25)
        assert int(np.argmax(facts[f"layer weights, {task}"])) == PLANTED
        assert sum(facts[f"layer weights, {task}"]) == pytest.approx(1)
    assert (DEPENDENCIES, "distances") in found
    assert (TAGS, "majority of the word") in found
