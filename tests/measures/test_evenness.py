import math

import numpy as np

from headscope.measures import evenness


def test_evenness_follows_the_definition(weights, pairs, close):
    wanted = []
    for head in weights:
        found = []
        for q in range(5):
            inside = [head[q][k] for k in range(7) if pairs[q][k]]
            if len(inside) > 1:
                shares = [a / sum(inside) for a in inside]
                found.append(-sum(a * math.log(a) for a in shares) / math.log(len(inside)))
        wanted.append(sum(found) / len(found))
    close(evenness(weights, pairs), wanted)


def test_one_token_of_many_is_zero():
    assert evenness(np.eye(4, 6)[None], np.ones((4, 6), bool)).tolist() == [0]


def test_no_query_with_two_pairs_is_not_a_number(weights):
    assert np.isnan(evenness(weights, np.eye(5, 7, dtype=bool))).all()
