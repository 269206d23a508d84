"""What the first picture of a live page needs, in one answer."""

import json

import numpy as np
import pytest

import headscope as hs
from headscope.comparison import StackComparison
from headscope.testing import random_record
from headscope.views.answers import PageAnswers, packed_opening


def unpacked(data):
    size = int.from_bytes(data[:4], "little")
    head, rest = json.loads(data[4 : 4 + size]), data[4 + size :]
    chunks = {}
    for name, count in head["chunks"]:
        chunks[name], rest = rest[:count], rest[count:]
    assert rest == b""
    return head, chunks


@pytest.fixture(scope="module")
def answers():
    return PageAnswers(hs.view(random_record(layers=3, heads=4)))


def test_an_opening_holds_the_overview_and_the_heads_that_are_looked_at(answers):
    names = answers.opening({"layer": 2, "heads": [3, 1]})
    assert {f"thumbs/cross/{row}" for row in range(3)} < names.keys()
    assert {f"kinds/cross/{row}" for row in range(3)} < names.keys()
    assert {name for name in names if name.startswith("weights/")} == {
        "weights/cross/2/1",
        "weights/cross/2/3",
    }
    assert all(answers.chunk(name) == data for name, data in names.items())


@pytest.mark.parametrize(
    "looking",
    [{}, {"layer": 99}, {"layer": [1]}, {"stack": {}, "heads": [77], "quantity": ["weight"]}],
    ids=str,
)
def test_what_there_is_not_is_what_the_page_opens_with(looking, answers):
    assert "layer/cross/0" in answers.opening(looking)


def test_what_is_no_object_is_said(answers):
    with pytest.raises(hs.errors.PageError, match="looking is a JSON object"):
        answers.opening([1])


def test_the_bytes_are_head_and_chunks(answers):
    chunks = answers.opening({"layer": 1})
    head, read = unpacked(packed_opening({"id": "a", "header": answers.header}, chunks))
    assert (head["id"], read) == ("a", chunks)
    assert head["header"]["stacks"][0]["name"] == "cross"


def test_a_comparison_is_made_a_layer_at_a_time(monkeypatch):
    made = []
    difference = StackComparison.difference
    monkeypatch.setattr(
        StackComparison,
        "difference",
        lambda self, layer: made.append(layer) or difference(self, layer),
    )
    first, second = random_record(layers=3, seed=1), random_record(layers=3, seed=2)
    answers = PageAnswers(hs.view(hs.compare(first, second)))
    assert made == []
    sent = answers.opening({"layer": 2, "quantity": "difference"})
    assert set(made) == {2}
    layer = json.loads(sent["layer/cross/2"])["quantities"]["difference"]
    stored = (np.frombuffer(sent[layer["chunk"]], np.uint8).astype(float) - 128) / 127
    wanted = second["cross"].weights(2) - first["cross"].weights(2)
    values = (stored * np.abs(stored) * layer["most"]).reshape(wanted.shape)
    assert np.abs(values - wanted).max() < 2 / 127


def test_an_opening_holds_the_quantity_of_all_heads_where_all_heads_are_looked_at(monkeypatch):
    record = random_record(layers=3, heads=4)
    shares = [layer.weights_of() / 2 for layer in record["cross"]]
    answers = PageAnswers(hs.view(record, quantities={"share": shares}))
    looking = {"layer": 1, "heads": [0], "quantity": "share"}

    def names(**more):
        return {name for name in answers.opening(looking | more) if not name.startswith("thumbs")}

    alone = {"quantity-share/cross/1", "layer/cross/1"}
    everywhere = {
        f"{kind}/cross/{layer}" for kind in ("layer", "quantity-share") for layer in range(3)
    }
    assert alone < names()
    assert not everywhere < names()
    assert everywhere < names(view="overview")
    assert "weights/cross/2/0" not in names(view="overview")
    monkeypatch.setattr("headscope.views.answers.OF_ALL_HEADS", 100)
    assert not everywhere < names(view="overview")
