"""A generation whose parts do not fit together is no generation."""

import dataclasses

import pytest

from headscope.errors import RecordError
from headscope.record import Candidate, Generation, Record, Tokens
from headscope.testing import random_record

WRITTEN = Tokens(pieces=("a", "b", "c"), ids=(4, 5, 6))


def generation(**changes):
    """Three tokens written after a prompt of four, which was read in two parts."""
    given = {
        "stack": "cross",
        "prompt": 4,
        "reads": (3, 1, 1, 1),
        "tokens": WRITTEN,
        "probabilities": (0.5, 0.25, 1.0),
        "entropies": (1.5, 2.0, 0.0),
        "ranks": (1, 2, 1),
        "alternatives": (
            (
                Candidate(id=4, piece="a", probability=0.5),
                Candidate(id=9, piece="x", probability=0.3),
            ),
        )
        + ((),) * 2,
    }
    return Generation(**given | changes)


def test_steps_queries_and_tokens_are_told_apart():
    found = generation()
    assert len(found) == 3
    assert found.step_of.tolist() == [0, 0, 0, 1, 2, 3]
    assert found.prefill.tolist() == [True] * 4 + [False] * 2
    assert found.chosen_by.tolist() == [3, 4, 5]
    assert generation(alternatives=()).alternatives == ((), (), ())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reads": ()}, "reads must be whole numbers from 1 on, one for each pass"),
        ({"reads": (3, 0, 3)}, "reads must be whole numbers from 1 on"),
        ({"reads": (3, 1, 1)}, "5 tokens were read, but a prompt of 4 and 3 written make 6, for"),
        ({"prompt": 0}, "a prompt of 0"),
        ({"tokens": Tokens(pieces=())}, "no token was written"),
        ({"stop": "bored"}, "stop is one of end, length, criterion, not 'bored'"),
        ({"ranks": (1, 2)}, "2 ranks for 3 tokens; give one for each"),
        ({"ranks": (1, 0, 1)}, "the rank 0 is none"),
        ({"probabilities": (0.5, 1.5, 1.0)}, "the probability 1.5 is none"),
        ({"probabilities": (0.5, float("nan"), 1.0)}, "the probability nan is none"),
        ({"entropies": (1.0, -0.5, 0.0)}, "the entropy -0.5 is none"),
        ({"entropies": (1.0, float("inf"), 0.0)}, "the entropy inf is none"),
        ({"alternatives": ((),)}, "1 alternatives for 3 tokens"),
        (
            {"alternatives": ((Candidate(id=1, piece="", probability=0.6),) * 2, (), ())},
            "the probability 1.2 is none",
        ),
    ],
)
def test_what_does_not_fit_is_said(changes, message):
    with pytest.raises(RecordError, match=message):
        generation(**changes)


def record_of(found, ids=None):
    stack = random_record(queries=6, keys=7)["cross"]
    query = dataclasses.replace(stack.query, ids=ids)
    return Record(stacks={"cross": dataclasses.replace(stack, query=query)}, generation=found)


def test_a_record_holds_what_was_read():
    assert record_of(generation()).summary.endswith("6 x 7 tokens; 3 tokens generated")
    record_of(generation(), (1, 1, 1, 1, 4, 5))
    with pytest.raises(RecordError, match=r"reads the ids \[4, 7\] after its prompt, but written"):
        record_of(generation(), (1, 1, 1, 1, 4, 7))
    with pytest.raises(RecordError, match="7 tokens were read, but stack 'cross' has 6 queries"):
        record_of(generation(prompt=5, reads=(7,)))
    with pytest.raises(RecordError, match="has the stacks 'cross', not 'self'"):
        record_of(generation(stack="self"))
