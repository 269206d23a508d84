"""Statistics in place of weights, through the public interface."""

import numpy as np
import pytest

import headscope as hs
from headscope.errors import RecordError
from headscope.record import STATISTICS
from headscope.testing import tiny_model

from ..plain_statistics import statistics_of

TEXT, PAIR = "the cat sat. the cat", "a dog, it ran"


def assert_alike(found, wanted):
    for name in STATISTICS:
        ours, theirs = getattr(found, name), getattr(wanted, name)
        assert (ours is None) == (theirs is None)
        if ours is not None:
            np.testing.assert_allclose(ours, theirs, atol=5e-6, err_msg=name)
    np.testing.assert_array_equal(found.rows, wanted.rows)
    assert found.queries == wanted.queries


@pytest.mark.parametrize("family", ["bert", "llama", "gptj", "bart", "gpt_oss", "longformer"])
@pytest.mark.parametrize("asked", [{}, {"top": 3, "rows": 5}])
def test_statistics_are_those_of_the_weights(family, asked, tokenizer):
    model = tiny_model(family)
    both = hs.capture(model, tokenizer, TEXT, PAIR, keep=("weights", "statistics"), **asked)
    for stack in both.stacks.values():
        for layer in stack:
            others = None if stack.query == stack.key else stack.query
            rows = layer.statistics.rows
            wanted = statistics_of(
                layer.weights, stack.key, others, rows=rows, top=asked.get("top", 0)
            )
            assert_alike(layer.statistics, wanted)
            assert layer.statistics.sampled == ("rows" in asked and asked["rows"] < layer.size[0])


def test_nothing_of_the_size_of_the_weights_is_kept(tokenizer, tmp_path):
    record = hs.capture(tiny_model("llama"), tokenizer, TEXT, keep="statistics")
    again = hs.load(hs.save(record, tmp_path / "run.safetensors"))
    for stack in (record["self"], again["self"]):
        for layer in stack:
            assert layer.weights is layer.queries is layer.keys is layer.values is None
            assert (layer.heads, layer.size) == (6, (len(stack.query), len(stack.query)))
            with pytest.raises(RecordError, match="neither weights nor queries and keys; capture"):
                layer.weights_of(0)
    assert record.verified < 1e-5
    assert_alike(again["self"].layer(1).statistics, record["self"].layer(1).statistics)
