"""headscope export: what is written holds the weights of the record."""

import csv

import numpy as np
import pytest

import headscope as hs
from headscope.cli import run

from .conftest import run_line


@pytest.fixture
def record(here):
    weights = np.random.default_rng(0).random((2, 3, 4, 4)).astype(np.float32)
    record = hs.from_weights(weights / weights.sum(-1, keepdims=True), ["a", "b,", '"c"', "d"])
    hs.save(record, "run.safetensors")
    return record["self"]


def test_every_format_holds_the_weights(record, here, capsys):
    for kind in ("csv", "parquet", "nc", "npz"):
        assert run(["export", "run.safetensors", "--out", f"w.{kind}"]) == 0, kind
    assert capsys.readouterr().err == ""
    with (here / "w.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    row = rows[2 * 16 + 4 * 1 + 2]  # layer 0, head 2, query 1, key 2
    assert (row["layer"], row["head"], row["query_token"], row["key_token"]) == (
        "0",
        "2",
        "b,",
        '"c"',
    )
    assert np.float32(row["weight"]) == record.weights(0, 2)[1, 2]
    import pyarrow.parquet
    import xarray

    assert len(pyarrow.parquet.read_table("w.parquet")) == len(rows) == record.weights().size
    with xarray.open_dataarray("w.nc", engine="scipy") as found:
        assert np.array_equal(found.values, record.weights())
        assert found.dims == ("layer", "head", "query", "key")
    assert np.array_equal(np.load("w.npz")["weights"], record.weights())


@pytest.mark.parametrize("more", [[], ["--layer", "0", "--head", "1", "--words"]])
def test_every_format_says_that_nothing_stands_against_the_weights(more, here):
    ones = np.ones((1, 2, 3, 4), np.float32)
    record = hs.foreign.from_queries_keys(ones, ones, ["a", "b", "c"], rotary="none")
    hs.save(record, "run.safetensors")
    for kind in ("csv", "parquet", "nc", "npz"):
        assert run(["export", "run.safetensors", "--out", f"w.{kind}", *more]) == 0, kind
    import pyarrow.parquet
    import xarray

    with xarray.open_dataarray("w.nc", engine="scipy") as found:
        assert found.attrs["unverified"] == record.unverified
    assert set(pyarrow.parquet.read_table("w.parquet")["unverified"].to_pylist()) == {
        record.unverified
    }
    assert record.unverified in (here / "w.csv").read_text(encoding="utf-8")
    assert np.load("w.npz")["unverified"] == record.unverified


def test_whole_words(here):
    pieces = ["[CLS]", "straw", "##berries", "[SEP]"]
    hs.save(hs.from_weights(np.full((1, 2, 4, 4), 0.25), pieces), "run.safetensors")
    assert run(["export", "run.safetensors", "--out", "w.npz", "--words"]) == 0
    made = np.load("w.npz")
    assert made["query_token"].tolist() == ["[CLS]", "strawberries", "[SEP]"]
    np.testing.assert_allclose(made["weights"][0, 1, 2], [0.25, 0.5, 0.25])


def test_a_layer_or_a_head_alone(record):
    assert run(["export", "run.safetensors", "--out", "w.npz", "--layer", "1", "--head", "2"]) == 0
    assert np.array_equal(np.load("w.npz")["weights"], record.weights(1, 2))


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("--out w.txt", "Expected .csv, .parquet, .nc, .npz for --out, got w.txt"),
        ("--out w.csv --layer 7", "Stack 'self' has layers 0, 1, not 7"),
        ("--out w.csv --stack cross", "This record has the stacks 'self', not 'cross'"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing_behind(arguments, line, record, here, capsys):
    assert run_line(f"export run.safetensors {arguments}") == 1
    assert line in capsys.readouterr().err
    assert [path.name for path in here.iterdir()] == ["run.safetensors"]
