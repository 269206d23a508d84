"""The score of a pair as a sum over what wrote its key and its query."""

import numpy as np
import pytest

import headscope as hs
from headscope.composition import attended
from headscope.errors import CaptureError, RecordError, TextError

from ..small_models import GROUPED, SHAPES, ids_of, planted_model, random_model


@pytest.mark.parametrize("name", SHAPES)
def test_parts_of_a_score_sum_to_it(name):
    model = random_model(name, **SHAPES[name])
    record = hs.capturing.capture_encoded(model, None, ids_of(model))[0]
    for stack in record.stacks:
        found = attended(model, None, ids_of(model), head=(2, 3), stack=stack)
        layer = record[stack].layer(2)
        # the weight of a pair against the mean log weight of the row is its score over the mean
        weights = layer.weights_of(3, queries=[found.query[1]])[0]
        row = np.log(weights.astype(np.float64))
        logged = row[found.key[1]] - row[np.isfinite(row)].mean()
        sides = np.array([found.by_key, found.by_query])
        scale = max(1.0, np.abs(sides).sum())
        assert sides.sum(axis=1) == pytest.approx(found.margin, abs=1e-5 * scale)
        if layer.soft_cap is None:
            assert found.margin == pytest.approx(logged, abs=1e-4 * scale)
        assert found.weight == weights.max()


@pytest.fixture(scope="module")
def planted():
    return planted_model()


def test_a_planted_head_attends_by_what_another_head_wrote(planted):
    found = attended(planted, None, [1, 3, 5, 2, 6, 3], head=(1, 2))
    assert (found.query, found.key) == (("3", 5), ("5", 2))
    table = found.to_pandas().set_index("part")
    # the key was told by 0-1 that 3 came before it, and the query is the token itself
    assert table["by_key"].idxmax() == "0-1"
    assert table["by_query"].idxmax() == "embedding"
    assert table.loc["0-1", "by_key"] > 0.9 * found.margin
    assert "into the key by 0-1" in found.summary


def test_it_is_kept_as_a_file(planted, tmp_path):
    found = attended(planted, None, [1, 3, 5, 2, 6, 3], head=(1, 2))
    again = hs.load(found.save(tmp_path / "attended.safetensors"))
    assert (type(again), str(again)) == (type(found), str(found))


def test_what_is_no_score_is_refused(planted):
    sizes = {**GROUPED, "num_local_experts": 4}
    router = random_model("MixtralForCausalLM", **sizes)
    with pytest.raises(CaptureError, match="the parts of the score over the mean key sum to"):
        attended(router, None, ids_of(router), head=(2, 0))
    with pytest.raises(RecordError, match="2"):
        attended(planted, None, [1, 3, 5], head=(2, 0))
    with pytest.raises(RecordError, match="9"):
        attended(planted, None, [1, 3, 5], head=(1, 9))
    with pytest.raises(TextError, match="token 0 cannot see token 2; name one that it can"):
        attended(planted, None, [1, 3, 5], head=(1, 0), query=0, key=2)
