import csv

import numpy as np
import pytest

import headscope as hs
from headscope.cli import run
from headscope.errors import RecordError
from headscope.record import Contributions, Layer, ModelFacts, Stack, Tokens
from headscope.studies import NormStudy
from headscope.studies.norm_study import CLASSES, classes_of
from headscope.testing import random_weights

from ..close import assert_close, assert_same_numbers, numbers_before

PIECES = ("[CLS]", "well", ",", "it", "was", ".", "[SEP]", "so", "[SEP]")
LABELS = {"cls": [0], "sep": [6, 8], "first": [], "stop": [2, 5], "other": [1, 3, 4, 7]}
LAYERS, HEADS, TOKENS = 2, 3, len(PIECES)


def planted(seed=0, *, refused=False):
    """A record with random weights and value norms."""
    rng = np.random.default_rng(seed)
    layers = []
    for number in range(LAYERS):
        added = Contributions(
            attention=rng.random((TOKENS, TOKENS)),
            mixing_attention=rng.random(TOKENS),
            mixing_residual=rng.random(TOKENS),
            mixing_output=rng.random(TOKENS),
            expansion=1.5 + number,
        )
        told = {"value_norms": rng.random((HEADS, TOKENS)), "contributions": added}
        if refused and number == 1:
            told = {"contributions": Contributions(missing={"attention": "its heads are mixed"})}
        layers.append(
            Layer(layer=number, weights=random_weights(rng, (HEADS, TOKENS, TOKENS)), **told)
        )
    tokens = Tokens(pieces=PIECES)
    stack = Stack(name="self", query=tokens, key=tokens, layers=tuple(layers))
    return hs.Record(stacks={"self": stack}, model=ModelFacts(name="planted"))


@pytest.fixture
def records():
    return [planted(seed) for seed in range(4)]


@pytest.fixture
def study(records):
    return hs.norm_study(records)


def test_numbers_of_real_texts_stay_what_they_were(minilm, real_texts):
    """Every third row of the table, as it was before documents had rows of their own."""
    texts, groups = real_texts
    columns = hs.norm_study(*minilm, texts, groups=groups, progress=False).columns()
    found = {name: column[::3] for name, column in columns.items()}
    assert_same_numbers(found, numbers_before("norm_study"))


def test_every_token_is_in_one_class():
    found = classes_of(Tokens(pieces=PIECES))
    assert {name: np.flatnonzero(chosen).tolist() for name, chosen in found.items()} == LABELS
    decoder = classes_of(Tokens(pieces=("Once", "upon", ".")))
    assert {name: np.flatnonzero(chosen).tolist() for name, chosen in decoder.items()} == {
        "cls": [], "sep": [], "first": [0], "stop": [2], "other": [1]
    }  # fmt: skip


def test_shares_are_those_counted_by_hand(study, records):
    for layer in range(LAYERS):
        for name in CLASSES:
            by_weight, by_norm, lengths = [], [], []
            for record in records:
                weights, norms = (
                    record["self"].weights(layer),
                    record["self"].layer(layer).value_norms,
                )
                for head in range(HEADS):
                    for query in range(TOKENS):
                        row = [float(weight) for weight in weights[head, query]]
                        added = [weight * norms[head, key] for key, weight in enumerate(row)]
                        by_weight.append(sum(row[key] for key in LABELS[name]) / sum(row))
                        by_norm.append(sum(added[key] for key in LABELS[name]) / sum(added))
                    lengths += [norms[head, key] for key in LABELS[name]]
            assert study.mean(f"share by weight: {name}")[layer] == pytest.approx(
                np.mean(by_weight), abs=1e-9
            )
            assert study.mean(f"share by norm: {name}")[layer] == pytest.approx(
                np.mean(by_norm), abs=1e-9
            )
            if lengths:
                assert study.mean(f"length of f: {name}")[layer] == pytest.approx(
                    np.mean(lengths), abs=1e-9
                )
    np.testing.assert_allclose(study.shares("weight").sum(0), 1, atol=1e-9)
    np.testing.assert_allclose(study.shares("norm").sum(0), 1, atol=1e-9)
    assert np.isnan(study.mean("length of f: first")).all()
    assert study.classes == ("cls", "sep", "stop", "other")


def test_mixing_ratios_by_class_of_the_query(study, records):
    wanted = np.mean(
        [record["self"].layer(1).contributions.mixing_output[[6, 8]].mean() for record in records]
    )
    assert study.mean("mixing output: sep")[1] == pytest.approx(wanted, abs=1e-9)
    apart = ~np.eye(TOKENS, dtype=bool)
    by_weight = [
        (record["self"].weights(0).astype(float).mean(0) * apart).sum(-1).mean()
        for record in records
    ]
    assert study.mean("mixing weights: all")[0] == pytest.approx(np.mean(by_weight), abs=1e-6)
    np.testing.assert_allclose(study.mean("expansion"), [1.5, 2.5, 2.0], atol=1e-9)


def test_tokens_that_add_nothing_get_weight_and_no_share():
    rng = np.random.default_rng(5)
    norms = np.ones((HEADS, TOKENS))
    norms[:, [0, 6, 8]] = 0
    layer = Layer(layer=0, weights=random_weights(rng, (HEADS, TOKENS, TOKENS)), value_norms=norms)
    tokens = Tokens(pieces=PIECES)
    stack = Stack(name="self", query=tokens, key=tokens, layers=(layer,))
    study = hs.norm_study(hs.Record(stacks={"self": stack}))
    assert study.mean("share by weight: sep")[0] > 0.1
    assert study.mean("share by norm: sep")[0] == study.mean("share by norm: cls")[0] == 0
    assert np.isnan(study.mean("spearman: sep")[0])


def test_parts_of_the_texts_add_up_whatever_the_order(records, tmp_path):
    whole, first, second = NormStudy(), NormStudy(), NormStudy()
    for number, record in enumerate(records):
        whole.update(str(number), record)
        (first if number % 2 else second).update(str(number), record)
    for both in (first + second, second + first, NormStudy() + first + second):
        assert_close(both.means, whole.means)
        assert str(both) == str(whole)
    again = NormStudy.load(first.save(tmp_path / "half.safetensors"))
    assert_close((again + second).means, whole.means)
    assert again.layers == (0, 1)
    with pytest.raises(RecordError, match="share a text"):
        first + whole
    assert first.texts == 2


def test_layers_that_were_refused_are_left_out_and_said():
    study = hs.norm_study([planted(seed, refused=True) for seed in range(3)])
    assert np.isnan(study.mean("share by norm: sep")[1])
    assert study.mean("share by norm: sep")[2] == study.mean("share by norm: sep")[0]
    assert "layer 1 is left out: its heads are mixed" in str(study)


def test_records_without_norms_are_refused(records):
    tokens = Tokens(pieces=PIECES)
    layer = Layer(layer=0, weights=records[0]["self"].weights(0))
    bare = hs.Record(stacks={"self": Stack(name="self", query=tokens, key=tokens, layers=(layer,))})
    with pytest.raises(RecordError, match="capture with keep=\\('weights', 'norms'\\)"):
        hs.norm_study([bare])
    with pytest.raises(RecordError, match="no record"):
        hs.norm_study([])
    with pytest.raises(RecordError, match="no row 'share'"):
        hs.norm_study(records).mean("share")


def test_the_command_prints_writes_and_draws(folder, tmp_path, capsys):
    texts, out, plot = tmp_path / "texts.txt", tmp_path / "out.csv", tmp_path / "out.svg"
    texts.write_text("the cat sat.\na dog, it ran\nso it was, and so.\n")
    arguments = [
        "--texts",
        str(texts),
        "--model",
        str(folder),
        "--out",
        str(out),
        "--plot",
        str(plot),
    ]
    assert run(["norms", *arguments]) == 0
    said = capsys.readouterr().out
    assert "2 layers, 3 texts" in said
    assert "all layers by weight: [CLS]" in said
    rows = list(csv.DictReader(out.read_text().splitlines()))
    shares = [
        float(row["mean"])
        for row in rows
        if row["quantity"] == "share by norm" and row["layer"] == "0"
    ]
    assert len(shares) == len(CLASSES)
    assert sum(shares) == pytest.approx(1, abs=1e-9)
    drawn = plot.read_text()
    assert "[SEP]" in drawn
    assert "by norm" in drawn
