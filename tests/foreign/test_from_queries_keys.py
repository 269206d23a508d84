"""Queries and keys that nothing stands against, as engines and dumps keep them."""

import numpy as np
import pytest

import headscope as hs
from headscope.errors import RecordError
from headscope.testing import tiny_model, tiny_tokenizer

WORD = "unverified: of queries and keys that nothing stands against"


@pytest.fixture(scope="module")
def captured():
    """Six heads on two key/value heads, turned by their positions; a window of five tokens."""
    model = tiny_model("mistral", sliding_window=5, num_attention_heads=6, num_key_value_heads=2)
    return hs.capture(model, tiny_tokenizer(), "the cat sat on the mat today", keep="qk")["self"]


def arrays(stack, layers=(0, 1)):
    """What an engine would keep: queries and keys after positions, by number of the layer."""
    return [{n: stack.layer(n).part(name) for n in layers} for name in ("queries", "keys")]


def read(stack, queries, keys, **more):
    given = {"rotary": "applied", "window": 5} | more
    return hs.foreign.from_queries_keys(queries, keys, stack.key.pieces, **given)


def test_weights_follow_from_queries_and_keys(captured):
    record = read(captured, *arrays(captured, [1]))
    assert record["self"].kinds == {1: "sliding"}
    np.testing.assert_allclose(record["self"].weights(1), captured.weights(1), atol=1e-6)
    wide = read(captured, *arrays(captured), window={0: 5})
    assert wide["self"].kinds == {0: "sliding", 1: "causal"}
    given = list(arrays(captured)[0].values()), list(arrays(captured)[1].values())
    listed = read(captured, *given)
    np.testing.assert_allclose(listed["self"].weights(0), captured.weights(0), atol=1e-6)


def test_queries_and_keys_are_turned_by_their_positions(captured):
    turn = captured.layer(0).rotary
    before = [{0: turn.turned(each[0], back=True)} for each in arrays(captured, [0])]
    for rotary in (10000.0, turn):
        record = read(captured, *before, rotary=rotary)
        np.testing.assert_allclose(record["self"].weights(0), captured.weights(0), atol=1e-5)
    queries, keys = before
    places = [2, 4, 9]
    some = read(captured, {0: queries[0][:, places]}, keys, rotary=1e4, positions=places)
    wanted = captured.weights(0)[:, places]
    np.testing.assert_allclose(some["self"].weights(0), wanted, atol=1e-5)


@pytest.mark.parametrize("whole_keys", [True, False])
def test_chosen_heads_and_the_last_rows_keep_their_numbers(captured, whole_keys):
    queries, keys = arrays(captured, [1])
    own = keys[1] if whole_keys else keys[1][1:]
    stack = read(captured, {1: queries[1][[3, 4], -2:]}, {1: own}, heads=[3, 4], of=(6, 2))["self"]
    assert stack.held_heads == ((1, 3), (1, 4))
    assert stack.query.pieces == captured.key.pieces[-2:]
    np.testing.assert_allclose(stack.weights(1, 4), captured.weights(1, 4)[-2:], atol=1e-6)


def test_they_are_marked_wherever_they_are_shown(captured, tmp_path):
    record = hs.load(hs.save(read(captured, *arrays(captured)), tmp_path / "a.safetensors"))
    assert record.verified is None
    shown = [repr(record), record.summary, record.verification, hs.view(record).html]
    figure = hs.figure(record, view="matrix", layer=1, head=4)
    shown += [figure.to_bytes("svg").decode().replace("\u00a0", " "), str(figure.recipe)]
    shown.append(str(record["self"].to_xarray(1, 4).attrs))
    shown += record["self"].to_pandas(1)["unverified"].tolist()[:1]
    shown += record["self"].words().columns(1, 4)["unverified"].tolist()[:1]
    for each in shown:
        assert WORD in " ".join(each.split())
    assert "scale 0.3536" in record.summary
    assert "unverified" in repr(record["self"].layer(1))
    mine = read(captured, *arrays(captured), verified=1e-6)
    assert mine.verified == 1e-6
    assert "unverified" not in mine.summary
    assert "unverified" not in record_of_weights(captured).summary


def record_of_weights(stack):
    return hs.from_weights(stack.weights(), stack.key.pieces)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"rotary": None}, "rotary is what positions did .* 'applied' .*rope_theta"),
        ({"rotary": "turned"}, "rotary is 'turned'"),
        ({"rotary": True}, "rotary is True"),
        ({"rotary": np.inf}, "rotary is inf"),
        (
            {"rotary": 1e4, "queries": {0: np.ones((6, 24, 7))}, "keys": {0: np.ones((2, 24, 7))}},
            "have 7 features, which are no pairs",
        ),
        ({"scale": -1.0}, "scale is -1.0"),
        ({"scale": 0.0}, "scale is 0.0; give a number above 0"),
        ({"soft_cap": 0.0}, "soft_cap is 0.0"),
        ({"window": 0}, "window is 0"),
        ({"positions": []}, "and 0 queries: positions= names"),
        ({"positions": [3]}, "and 1 queries: positions= names"),
        ({"positions": [3, 2]}, "give rising places"),
        ({"heads": [1]}, "give the number of each, and of="),
        ({"heads": list(range(6))}, "give the number of each, and of="),
        ({"keys": {}}, "keys are of layers"),
        ({"keys": {3: np.ones((2, 2, 2))}}, "give both of each"),
        ({"keys": {0: np.ones((4, 19, 8))}}, "share key/value heads evenly"),
    ],
)
def test_what_does_not_fit_is_refused(captured, changes, told):
    queries, keys = arrays(captured, [0])
    own = {"queries": queries, "keys": keys} | changes
    with pytest.raises(RecordError, match=told):
        read(captured, **own)
