"""Reading trees that others wrote, and refusing what is none."""

import json

import numpy as np
import pytest

from headscope.errors import FileError, RecordError
from headscope.headvis import read_headvis

from .conftest import SENTENCES, map_of


def test_a_tree_of_another_writer_is_read(foreign_tree):
    tree = read_headvis(foreign_tree)
    assert tree.cells == ((0, 0), (0, 1), (3, 0))
    assert list(tree.metrics) == ["self_attention_score", "prev_token_score", "pattern_entropy"]
    trace = sum(np.trace(map_of(each, 3, 0)) for each in SENTENCES)
    assert tree.metrics["self_attention_score"][2] == pytest.approx(trace / 22)
    assert np.isnan(tree.metrics["pattern_entropy"]).tolist() == [False, False, True]
    head = tree.head(3, 0)
    assert [each.interval for each in head.sequences] == [1, 1, 2, 2]
    assert head.histogram is None
    assert [plot.name for plot in head.plots] == ["qk_distance_histogram"]
    assert head.tables[0].rows == ((" cat", 2.5), ("<b>", 1.0))
    assert head.statistics == {"n_samples": 4}
    assert "3 heads of made-up" in tree.summary


def test_rows_say_how_much_of_them_is_kept(foreign_tree):
    head = read_headvis(foreign_tree).head(0, 1)
    (sequence,) = [each for each in head.sequences if each.name == "0"]
    weights = map_of(SENTENCES[0], 0, 1)
    kept = np.sort(weights, axis=1)[:, -2:].sum(axis=1)
    np.testing.assert_allclose(sequence.kept, kept, atol=2e-4)
    assert sequence.kept.min() < 0.8
    assert np.all(np.diff(7 * sequence.queries + sequence.keys) > 0)
    np.testing.assert_allclose(
        sequence.weights, weights[sequence.queries, sequence.keys], atol=1e-4
    )


def changed(path, change):
    document = json.loads(path.read_text())
    told = change(document)
    path.write_text(json.dumps(document if told is None else told))


def test_what_may_be_missing_is(foreign_tree):
    path = foreign_tree / "heads" / "L0H0.json"

    def loosen(head):
        first = head["sequences"][0]
        del first["interval"], first["seq_len"], first["max_activation"]
        first["attention_indices"] += first["attention_indices"][:1]
        first["attention_values"] += [0.125]
        return head["sequences"]

    changed(path, loosen)
    changed(foreign_tree / "config.json", lambda config: config.pop("heads") and config)
    tree = read_headvis(foreign_tree)
    assert tree.cells == ((0, 0), (0, 1), (3, 0))
    (sequence,) = [each for each in tree.head(0, 0).sequences if each.name == "0"]
    assert (sequence.interval, sequence.max_activation) == (0, 0.0)
    assert sequence.weights[0] == 0.125
    assert tree.head(0, 0).plots == ()


def of_first_row(rows):
    del rows[0]["layer"]


def of_sequence(**fields):
    return lambda head: head["sequences"][1].update(fields)


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        ("heads/L0H1.json", of_sequence(seq_len=4), "5 tokens and a seq_len of 4"),
        ("heads/L0H1.json", of_sequence(tokens=["a"]), "1 tokens and a seq_len of 5"),
        ("heads/L0H1.json", of_sequence(tokens=[1] * 5), "tokens[0] is '1'"),
        ("heads/L0H1.json", of_sequence(attention_values=[0.5]), "and 1 values"),
        ("heads/L0H1.json", of_sequence(attention_indices=None), "attention_indices is not a list"),
        (
            "heads/L0H1.json",
            of_sequence(attention_indices=[25], attention_values=[0.5]),
            "the index 25 among 5 x 5",
        ),
        (
            "heads/L0H1.json",
            of_sequence(attention_indices=[-1], attention_values=[0.5]),
            "the index -1",
        ),
        (
            "heads/L0H1.json",
            of_sequence(attention_indices=[1], attention_values=[1.5]),
            "the weight 1.5",
        ),
        ("heads/L0H1.json", lambda head: "text", "is not an object"),
        (
            "heads/L0H1.json",
            lambda head: head["qk_distance_histogram"].update(bin_edges=[0, 1]),
            "one more as bin_edges",
        ),
        ("config.json", lambda config: [], "is not an object"),
        ("config.json", lambda config: config["heads"].append([1]), "has 1 entries, expected 2"),
        ("config.json", lambda config: config["heads"].append([3, 0]), "one head twice"),
        (
            "config.json",
            lambda config: config.update(head_data_pattern="../L{layer}H{head}.json"),
            "name of a file",
        ),
        ("scatter_data.json", of_first_row, "row 0"),
        ("scatter_data.json", lambda rows: {}, "rows is not a list"),
    ],
)
def test_what_readers_break_on_is_refused_by_name(foreign_tree, name, change, why):
    changed(foreign_tree / name, change)
    with pytest.raises(FileError) as caught:
        read_headvis(foreign_tree).head(0, 1)
    assert name in str(caught.value)
    assert why in str(caught.value)


@pytest.mark.parametrize("name", ["config.json", "scatter_data.json", "heads/L0H1.json"])
def test_a_file_that_is_missing_or_cut_is_named(foreign_tree, name):
    path = foreign_tree / name
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(FileError, match=f"{name}.*no JSON"):
        read_headvis(foreign_tree).head(0, 1)
    path.unlink()
    with pytest.raises(FileError, match=name):
        read_headvis(foreign_tree).head(0, 1)


def test_a_head_that_the_tree_lacks_is_named(foreign_tree):
    with pytest.raises(RecordError, match="no head 1-0"):
        read_headvis(foreign_tree).head(1, 0)


def test_the_example_is_read(shared):
    tree = read_headvis(shared / "headvis-example")
    assert tree.texts == 12
    for cell in tree.cells:
        head = tree.head(*cell)
        assert len(head.sequences) == 10
        assert head.histogram is not None
        assert {len(each) for each in head.sequences} >= {6, 8, 9}
