import numpy as np

from headscope.measures import confidence


def test_confidence_follows_the_definition(weights, keys, queries, close):
    wanted = [
        sum(max(head[q][k] for k in range(7) if keys[k]) for q in range(5) if queries[q])
        / queries.sum()
        for head in weights
    ]
    close(confidence(weights, keys=keys, queries=queries), wanted)


def test_one_token_is_one_and_uniform_is_one_in_n(close):
    close(confidence(np.full((2, 5, 8), 1 / 8)), [1 / 8] * 2)
    assert confidence(np.eye(5, 8)[None]).tolist() == [1]
