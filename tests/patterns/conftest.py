"""Heads that were planted: maps of a known pattern on made-up sentence pairs."""

import numpy as np
import pytest

from headscope import Record
from headscope.record import Layer, ModelFacts, Stack, Tokens

VOCABULARY = (
    *("stone", "river", "lamp", "cloud", "table", "horse", "glass", "paper", "green", "window"),
    *"garden bread letter silver market winter castle butter finger forest".split(),
)


def sentences(rng, *, pair=True, least=8, most=12):
    """Tokens of a pair (or of one sentence) in which some words come back."""
    sizes = rng.integers(least, most + 1, 2 if pair else 1)
    pieces, segments = ["[CLS]"], [0]
    for number, size in enumerate(sizes):
        pieces += [*rng.choice(VOCABULARY, size), "[SEP]"]
        segments += [number] * (size + 1)
    pieces[2 + sizes[0] if pair else 1] = pieces[3]
    return Tokens(pieces=tuple(map(str, pieces)), segments=tuple(map(int, segments)))


def onto(targets, noise=0.1):
    """Rows that look at their targets evenly, and a little at everything; rows without one look at
    [CLS].
    """
    targets = np.array(targets, float)
    targets[~targets.any(axis=1), 0] = 1
    even = np.full(targets.shape, 1 / targets.shape[1])
    return (1 - noise) * targets / targets.sum(axis=1, keepdims=True) + noise * even


def planted(tokens, name, noise=0.1):
    """One map of a pattern."""
    from headscope.measures import prefix_targets, same_form, same_segment, token_class

    size = len(tokens)
    same, own = same_form(tokens, tokens, itself=False), same_segment(tokens, tokens)
    other = ~same_segment(tokens, tokens)
    return onto(
        {
            "next": np.eye(size, k=1, dtype=bool) & own,
            "previous": np.eye(size, k=-1, dtype=bool) & own,
            "same": same,
            "same-other": same & other,
            "delimiter": np.broadcast_to(token_class(tokens, "sep"), (size, size)),
            "bag": own,
            "first-token": np.arange(size) == np.zeros((size, 1)),
            "induction": prefix_targets(tokens.pieces),
            "uniform": np.ones((size, size), bool),
        }[name],
        noise,
    )


def record_of(maps, tokens):
    """A record of one layer whose heads are these maps."""
    layer = Layer(layer=0, weights=np.stack(maps).astype(np.float32))
    stack = Stack(name="self", query=tokens, key=tokens, layers=(layer,))
    return Record(stacks={"self": stack}, model=ModelFacts(name="planted"))


NAMES = "next previous same same-other delimiter bag first-token induction uniform".split()


@pytest.fixture(scope="session")
def planted_records():
    rng = np.random.default_rng(7)
    texts = [sentences(rng) for _ in range(24)]
    return [record_of([planted(tokens, name) for name in NAMES], tokens) for tokens in texts]
