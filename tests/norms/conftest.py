import itertools

import numpy as np
import pytest

from headscope.norms import Block, Norm

HEADS, SHARED, FEATURES, MODEL = 4, 2, 3, 11


def weights_of(rng, heads, queries, keys, causal=False):
    raised = np.exp(2 * rng.standard_normal((heads, queries, keys)))
    raised = raised * np.tri(queries, keys) if causal else raised
    return raised / raised.sum(-1, keepdims=True)


def norm_of(rng, kind):
    gain, shift = rng.standard_normal((2, MODEL))
    return Norm(
        gain=gain, shift=shift, eps=1e-5, centred=kind == "LayerNorm", divided=kind != "scale"
    )


KINDS = [
    {"after": after, "before": before, "same": same, "beside": beside}
    for after, before, same, beside in itertools.product(
        ("LayerNorm", "RMSNorm", None),
        (None, "RMSNorm", "LayerNorm", "scale"),
        (True, False),
        (True, False),
    )
]


@pytest.fixture(params=KINDS, ids=lambda kind: "-".join(map(str, kind.values())))
def block(request, rng):
    """Blocks with grouped heads, whose axes all differ but queries and keys of the same tokens."""
    return made_block(request.param, rng)


def made_block(kind, rng):
    queries, keys = (6, 6) if kind["same"] else (5, 7)
    return Block(
        weights=weights_of(rng, HEADS, queries, keys, causal=kind["same"]),
        values=rng.standard_normal((SHARED, keys, FEATURES)),
        projection=rng.standard_normal((HEADS, FEATURES, MODEL)),
        bias=rng.standard_normal(MODEL),
        residual=rng.standard_normal((queries, MODEL)),
        same=kind["same"],
        before=None if kind["before"] is None else norm_of(rng, kind["before"]),
        beside=rng.standard_normal((queries, MODEL)) if kind["beside"] else None,
        after=None if kind["after"] is None else norm_of(rng, kind["after"]),
        second=norm_of(rng, "LayerNorm"),
        stream_again=rng.standard_normal((queries, MODEL)),
    )


@pytest.fixture
def in_production():
    """Without the checks of axes that only tests run: what is wrong has to be found by our own."""
    from jaxtyping import config

    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)
