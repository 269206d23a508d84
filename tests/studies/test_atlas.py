"""An atlas over a corpus: the same however it is run; kept, resumed and loaded."""

import numpy as np
import pytest

import headscope as hs
from headscope.atlases import CLASSES, CONFIDENCE, STEP
from headscope.errors import FileError, RecordError, RunError
from headscope.testing import tiny_model, tiny_tokenizer

from ..close import assert_close, assert_same_numbers, numbers_before

WORDS = ["the", "cat", "dog", "sat", "ran", "on", "by", "it", "us", "me", "all"]


def corpus(count, seed=0):
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(WORDS, rng.integers(2, 9))) for _ in range(count)]
    return texts, [f"d{number % 12}" if number % 4 else None for number in range(count)]


def over(folder, texts, groups=None, **options):
    options.setdefault("part_size", 20)
    return hs.atlas(folder, texts=texts, groups=groups, progress=False, **options)


def kept_of(result):
    sums = {name: counted / STEP for name, counted in result.counts.items()}
    return result.heads.columns(), sums


@pytest.fixture(scope="module")
def wanted(folder):
    return over(folder, *corpus(48))


# Order, parts and engines: tests/corpus/test_study_runs.py.
def test_a_loaded_model_and_streams_change_nothing(folder, wanted):
    texts, groups = corpus(48)
    loaded = tiny_model("bert"), tiny_tokenizer()
    given = hs.atlas(*loaded, iter(texts), groups=iter(groups), part_size=48, progress=False)
    assert_close(kept_of(given), kept_of(wanted))


def test_labels_are_those_of_heads(folder, wanted):
    # In memory and in parts, intervals included.
    heads = hs.heads(folder, texts=corpus(48)[0], groups=corpus(48)[1])
    assert heads.columns().keys() == wanted.heads.columns().keys()
    for name, column in heads.columns().items():
        assert_close(column, wanted.heads.columns()[name])


def test_where_attention_goes_is_that_of_the_captured_texts(folder):
    texts, _ = corpus(9, seed=5)
    texts = list(dict.fromkeys(texts))
    result = over(folder, texts)
    records = list(hs.capture_many(tiny_model("bert"), tiny_tokenizer(), texts, keep="weights"))
    weights = [np.concatenate([layer.weights_of() for layer in each["self"]]) for each in records]
    queries = sum(each.shape[1] for each in weights)
    assert (result.texts, result.tokens) == (len(texts), queries)
    head = result.head(*result.cells[3])
    itself = sum(np.trace(each[3]) for each in weights) / queries
    before = sum(np.trace(each[3], offset=-1) for each in weights) / queries
    assert head.distance["itself"][0] == pytest.approx(itself, abs=1e-6)
    assert head.distance["1 before"][0] == pytest.approx(before, abs=1e-6)
    assert head.map[0, 0] == pytest.approx(np.mean([each[3, 0, 0] for each in weights]), abs=1e-6)
    assert head.map[0, -1] == pytest.approx(np.mean([each[3, 0, -1] for each in weights]), abs=1e-6)
    example = head.strata[0].examples[0]
    by_words = {each["self"].query.pieces: one for each, one in zip(records, weights, strict=True)}
    query, key, weight = example.links[0]
    assert weight == pytest.approx(by_words[example.words][3, query, key], abs=1e-3)
    assert sum(stratum.texts for stratum in head.strata) == len(texts)
    assert head.score == CONFIDENCE or head.labels[0].holds


def test_norms_are_those_of_the_captured_texts(folder, wanted):
    texts = list(dict.fromkeys(corpus(6, seed=5)[0]))
    result = over(folder, texts, norms=True)
    keep = ("weights", "norms")
    records = list(hs.capture_many(tiny_model("bert"), tiny_tokenizer(), texts, keep=keep))
    at, (layer, head) = 4, result.cells[4]
    by_norm = {"first": [], "itself": [], "previous": []}
    for record in records:
        number = [each.layer for each in record["self"]].index(layer)
        shares = record["self"].layers[number].head_contributions_of(head)
        shares = shares / shares.sum(axis=1, keepdims=True)
        by_norm["first"] += shares[:, 0].tolist()
        by_norm["itself"] += np.diagonal(shares).tolist()
        by_norm["previous"] += [0.0, *np.diagonal(shares, offset=-1).tolist()]
    norms = result.head(layer, head).norms
    for name, shares in by_norm.items():
        assert norms[name][0] == pytest.approx(np.mean(shares), abs=1e-6)
    assert norms["first"][0] != pytest.approx(norms["first"][1], abs=1e-3)
    itself = result.head(layer, head).relations["itself"][0]
    assert norms["itself"][1] == pytest.approx(itself, abs=1e-9)
    assert sum(norms[name][0] for name in CLASSES) == pytest.approx(1, abs=1e-6)
    assert result.norms_of(at) == norms
    assert wanted.head(0, 0).norms == {}


def test_it_is_kept_and_loaded_and_goes_on(folder, wanted, tmp_path):
    texts, groups = corpus(48)
    out = tmp_path / "run"
    result = over(folder, texts, groups, out=out)
    assert_close(kept_of(result), kept_of(wanted))
    (out / "parts" / "000001.safetensors").unlink()
    assert_close(kept_of(over(folder, texts, groups, out=out)), kept_of(wanted))
    for path in (out, out / "result.safetensors", result.save(tmp_path / "atlas.safetensors")):
        loaded = hs.load(path)
        assert_close(kept_of(loaded), kept_of(wanted))
        assert str(loaded) == str(wanted)
    with pytest.raises(RunError, match='study "atlas", now "heads"'):
        hs.heads(folder, texts=texts, groups=groups, out=out, progress=False)
    with pytest.raises(FileError, match=r"no result\.safetensors"):
        hs.load(tmp_path)


def test_it_says_what_is_wrong(folder, wanted):
    with pytest.raises(RecordError, match="An atlas is made over texts"):
        hs.atlas(folder)
    with pytest.raises(RecordError, match="atlas has no option 'depth'; it has patterns"):
        over(folder, ["a cat"], depth=3)
    with pytest.raises(RecordError, match="There is no head 9-9; heads go from 0-0 to"):
        wanted.head(9, 9)


def numbers_of(result, every):
    """Some rows of its tables, and sums of what was counted, as JSON has them."""
    tables = {"columns": result.columns(), "heads": result.heads.columns()}
    found = {
        name: {column: rows[::every] for column, rows in table.items()}
        for name, table in tables.items()
    }
    first = result.head(*result.cells[0])
    return found | {
        "counts": {
            name: float(np.nan_to_num(counts).sum() / STEP)
            for name, counts in result.counts.items()
        },
        "pairs": [[each.query, each.key, each.share, each.even] for each in first.pairs[:5]],
        "spread": list(first.spread),
        "texts": sorted(" ".join(text.words) for text in result.sample),
    }


@pytest.mark.filterwarnings("ignore:.*too few:UserWarning")
def test_numbers_of_real_texts_stay_what_they_were(minilm, real_texts):
    """As a run in parts gave them, before an atlas was a fold."""
    texts, groups = real_texts
    found = {
        "documents": numbers_of(hs.atlas(*minilm, texts, groups=groups, random_weights=True), 13),
        "norms": numbers_of(hs.atlas(*minilm, texts[:6], norms=True), 17),
    }
    assert_same_numbers(found, numbers_before("atlas"))
