"""What is written of a model: every rule of the format holds, and numbers are those of a loop."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

import headscope as hs
from headscope.errors import CaptureError, FileError, RecordError
from headscope.headvis import read_headvis, strongest_of_rows, write_headvis
from headscope.headvis._heads import SampleOfTexts
from headscope.testing import tiny_model, tiny_tokenizer

from .conftest import METRICS, check_tree

WORDS = ["the", "cat", "dog", "sat", "ran", "on", "by", "it", "us", "me", "all"]


def texts_of(count, seed=0):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(2, 9))) for _ in range(count)]


TEXTS = [*dict.fromkeys(texts_of(60))]


@pytest.fixture(scope="module", params=["bert", "gpt2"])
def written(request, tmp_path_factory):
    """A tree with the model it is of."""
    folder = tmp_path_factory.mktemp("trees") / request.param
    model = tiny_model(request.param)
    return write_headvis(folder, model, tiny_tokenizer(), TEXTS, dataset="made up"), model


def naive(record, layer, head):
    """Sums of a text for the metrics, by loops over positions."""
    weights, ids = record["self"].weights(layer, head), record["self"].query.ids
    sums = dict.fromkeys(("self", "previous", "entropy", "distance", "square", "induction"), 0.0)
    repeats = 0
    for query, row in enumerate(weights.astype(float)):
        for key, weight in enumerate(row):
            sums["self"] += weight if query == key else 0
            sums["previous"] += weight if query - 1 == key else 0
            sums["entropy"] -= weight * np.log(weight) if weight > 0 else 0
            sums["distance"] += weight * abs(query - key)
            sums["square"] += weight * (query - key) ** 2
        followers = [at + 1 for at in range(query) if ids[at] == ids[query]]
        repeats += bool(followers)
        sums["induction"] += sum(row[at] for at in followers if row[at] >= 0.01)
    return np.array([*sums.values(), len(weights), 1, repeats])


def test_metrics_are_those_of_a_loop_over_records(written):
    folder, model = written
    tree = read_headvis(folder)
    records = list(hs.capture_many(model, tiny_tokenizer(), TEXTS))
    for place in (1, len(tree.cells) - 1):
        sums = sum(naive(record, *tree.cells[place]) for record in records)
        itself, previous, entropy, distance, square, induction, positions, texts, repeats = sums
        mean = distance / positions
        wanted = (
            itself / positions,
            previous / (positions - texts),
            entropy / positions,
            mean,
            square / positions - mean**2,
            induction / repeats,
        )
        assert [tree.metrics[name][place] for name in METRICS] == pytest.approx(wanted, abs=1e-4)
    assert tree.texts == len(TEXTS)


def test_every_rule_of_the_format_holds(written):
    assert check_tree(written[0]) > 100


def test_strata_histogram_and_strongest_are_of_all_texts(written):
    folder, model = written
    tree = read_headvis(folder)
    layer, number = tree.cells[2]
    head = tree.head(layer, number)
    records = hs.capture_many(model, tiny_tokenizer(), TEXTS)
    maxima = np.array([each["self"].weights(layer, number)[1:, 1:].max() for each in records])
    assert head.histogram.values == tuple(np.histogram(maxima, 50, (0, 1))[0])
    by_stratum = [
        [each.max_activation for each in head.sequences if each.interval == stratum]
        for stratum in range(1, 6)
    ]
    assert [len(each) for each in by_stratum] == [4, 4, 4, 4, 10]
    assert by_stratum[4] == pytest.approx(np.sort(maxima)[::-1][:10], abs=1e-4)
    borders = np.sort(maxima)[[round(part * len(TEXTS) / 5) for part in range(1, 5)]]
    for stratum, inside in enumerate(by_stratum):
        assert set(np.searchsorted(borders, np.array(inside) + 1e-4, side="right")) == {stratum}


def test_rows_are_those_of_the_capture(written):
    folder, model = written
    tree = read_headvis(folder)
    head = tree.head(*tree.cells[1])
    by_tokens = {}
    for record in hs.capture_many(model, tiny_tokenizer(), TEXTS):
        by_tokens[tuple(record["self"].query.pieces)] = record["self"].weights(*tree.cells[1])
    for each in head.sequences:
        weights = by_tokens[each.tokens]
        np.testing.assert_allclose(each.weights, weights[each.queries, each.keys], atol=1e-4)
        assert 0.3 < each.kept.min() < 1.0 - 1e-3 or len(each) <= 8


def test_shares_of_distance_and_keys_are_of_all_attention(written):
    folder, _ = written
    tree = read_headvis(folder)
    head = tree.head(*tree.cells[0])
    (distance,) = [plot for plot in head.plots if plot.name == "qk_distance_histogram_all"]
    assert sum(distance.values) == pytest.approx(1, abs=1e-3)
    assert distance.values[0] == pytest.approx(tree.metrics["self_attention_score"][0], abs=1e-4)
    (keys,) = [table for table in head.tables if table.name == "top_key_tokens_all"]
    assert sum(weight for _, weight in keys.rows) == pytest.approx(1, abs=1e-4)


def test_order_and_repeats_of_texts_change_no_example(written, tmp_path):
    folder, model = written
    stream = iter([*TEXTS[::-1], *TEXTS[:7]])
    again = write_headvis(tmp_path / "tree", model, tiny_tokenizer(), stream, dataset="made up")
    for cell in read_headvis(folder).cells:
        one, other = (read_headvis(each).head(*cell) for each in (folder, again))
        # By name: which of two that are nearly the same comes first is rounding.
        ours, theirs = (
            sorted(each.sequences, key=lambda own: (own.interval, own.name))
            for each in (one, other)
        )
        for first, second in zip(ours, theirs, strict=True):
            assert (first.name, first.interval) == (second.name, second.interval)
            np.testing.assert_allclose(first.weights, second.weights, atol=2e-4)


def test_a_sample_that_is_cut_is_that_of_all():
    rng = np.random.default_rng(4)
    maxima = rng.random((90, 3)).round(1)
    keys = rng.permutation(90).tolist()
    chosen = []
    for order in (range(90), reversed(range(90))):
        sample = SampleOfTexts(strongest=4, most=20)
        for row in order:
            sample.add(keys[row], (row, f"text {row}"), maxima[row])
        chosen.append(sample.chosen(3, 2))
    assert [dict(each.strata) for each in chosen[0]] == [dict(each.strata) for each in chosen[1]]
    assert [each.number for each in chosen[0]] == [each.number for each in chosen[1]]
    strong = [each.number for each in chosen[0] if each.strata.get(1) == 3]
    wanted = sorted(range(90), key=lambda row: (-maxima[row, 1], keys[row]))[:4]
    assert sorted(strong) == sorted(wanted)
    assert max([keys[each.number] for each in chosen[0] if each.strata.get(1) in (1, 2)]) < 20


def test_the_largest_entry_is_kept_though_it_is_small():
    indices, values = strongest_of_rows(np.array([[0.997, 0.001, 0.002]] * 3))
    assert indices.tolist() == [0, 3, 5, 6]
    assert values.tolist() == [0.997, 0.997, 0.002, 0.997]
    assert len(strongest_of_rows(np.full((2, 12), 1 / 12))[0]) == 16


def test_a_text_that_fails_costs_one_text(tmp_path):
    left_out = []
    given = ["the cat sat", "", "by the dog", "the " * 100, 7]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_headvis(
            tmp_path / "tree",
            tiny_model("bert"),
            tiny_tokenizer(),
            given,
            on_error=lambda number, _: left_out.append(number),
        )
    assert sorted(left_out) == [1, 3, 4]
    assert read_headvis(tmp_path / "tree").texts == 2
    assert check_tree(tmp_path / "tree")


def test_nothing_half_written_stays(tmp_path, monkeypatch):
    from headscope.headvis import _write

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_write, "_config_of", full)
    with pytest.raises(FileError, match="No space left"):
        write_headvis(tmp_path / "tree", tiny_model("bert"), tiny_tokenizer(), TEXTS[:4])
    assert not list(tmp_path.iterdir())


def test_places_options_and_stacks_that_make_no_tree_are_refused(tmp_path):
    model, tokenizer = tiny_model("bert"), tiny_tokenizer()
    (tmp_path / "file").write_text("")
    for place, why in (
        (tmp_path, "is not empty"),
        (tmp_path / "file", "got the file"),
        (tmp_path / "no" / "tree", "there is no folder"),
    ):
        with pytest.raises(FileError, match=why):
            write_headvis(place, model, tokenizer, TEXTS)
    with pytest.raises(RecordError, match="no option 'sample'"):
        write_headvis(tmp_path / "tree", model, tokenizer, TEXTS, sample=3)
    with pytest.raises(RecordError, match="intervals must be"):
        write_headvis(tmp_path / "tree", model, tokenizer, TEXTS, intervals=0)
    with pytest.raises(RecordError, match="none could be read"):
        write_headvis(tmp_path / "tree", model, tokenizer, [])
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_cross_attention_is_refused_by_name(tmp_path):
    with pytest.raises(CaptureError, match="'cross' is cross-attention"):
        write_headvis(
            tmp_path / "tree", tiny_model("bart"), tiny_tokenizer(), TEXTS[:2], stack="cross"
        )


def test_the_checker_of_the_example_passes(tmp_path, shared):
    folder = write_headvis(tmp_path / "tree", tiny_model("gpt2"), tiny_tokenizer(), TEXTS[:30])
    done = subprocess.run(
        [sys.executable, shared / "headvis-example" / "check.py", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "checks hold" in done.stdout, done.stderr
