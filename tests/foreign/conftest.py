import numpy as np
import pytest

from headscope.record.recompute import softmax_of

CAUSAL = np.tril(np.ones((5, 5), bool))


@pytest.fixture
def made(rng):
    """A function that makes the hooks of one attention block, batch axis first, as run_with_cache
    does.
    """

    def make(
        block="blocks.1.attn",
        *,
        size=(5, 5),
        scale=0.5,
        cap=None,
        visible=CAUSAL,
        bias=0.0,
        sharp=2.0,
        batch=1,
    ):
        heads, kv_heads, features = 6, 2, 4
        queries, keys, values = (
            (sharp * rng.standard_normal((batch, length, count, features))).astype(np.float32)
            for length, count in ((size[0], heads), (size[1], kv_heads), (size[1], kv_heads))
        )
        scores = (
            np.einsum("bqhf,bkhf->bhqk", queries, np.repeat(keys, 3, 2), dtype=np.float64) * scale
        )
        scores = (scores if cap is None else cap * np.tanh(scores / cap)) + bias
        scores = scores if visible is None else np.where(visible, scores, -np.inf)
        pattern = np.stack([softmax_of(example) for example in scores])
        z = np.einsum("bhqk,bkhf->bqhf", pattern, np.repeat(values, 3, 2))
        arrays = {
            "q": queries,
            "k": keys,
            "v": values,
            "attn_scores": scores,
            "pattern": pattern,
            "z": z,
        }
        return {f"{block}.hook_{name}": array.astype(np.float32) for name, array in arrays.items()}

    return make
