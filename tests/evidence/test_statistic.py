"""Adding up does not depend on order, batch or machine, to the last bit."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from headscope import FileError, RecordError
from headscope.evidence import MapSum, Statistic, interval, load_beside, load_statistic

SHAPE = (2, 3)
VALUES = st.floats(-1e9, 1e9) | st.just(np.nan)
TEXTS = st.dictionaries(
    st.text(min_size=1, max_size=5),
    arrays(np.float64, SHAPE, elements=VALUES),
    min_size=1,
    max_size=8,
)


def same(one, other):
    assert one.tobytes() == other.tobytes()


def statistic(rows):
    found = Statistic(SHAPE)
    for text, values in rows:
        found.update(text, values)
    return found


@settings(max_examples=60)
@given(texts=TEXTS, data=st.data())
def test_any_order_and_any_split_give_the_same_bits(texts, data):
    rows = list(texts.items())
    whole = statistic(rows)
    order = data.draw(st.permutations(rows))
    cut = data.draw(st.integers(0, len(rows)))
    parts = statistic(order[cut:]) + statistic(order[:cut])
    for name in ("values", "total", "mean", "count"):
        same(getattr(parts, name), getattr(whole, name))
    same(
        interval(parts.values.reshape(-1, 6), resamples=20),
        interval(whole.values.reshape(-1, 6), resamples=20),
    )


@settings(max_examples=30)
@given(texts=TEXTS)
def test_totals_are_exact_and_rounded_once(texts):
    found = statistic(texts.items())
    for place in np.ndindex(SHAPE):
        known = [
            Fraction(float(values[place]))
            for values in texts.values()
            if not np.isnan(values[place])
        ]
        assert found.total[place] == float(sum(known, Fraction(0)))
        assert found.count[place] == len(known)


@settings(max_examples=20)
@given(texts=TEXTS, cut=st.integers(0, 8))
def test_a_resumed_run_is_the_whole_run(texts, cut, tmp_path_factory):
    rows = list(texts.items())
    path = tmp_path_factory.mktemp("kept") / "part.safetensors"
    resumed = load_statistic(statistic(rows[:cut]).save(path))
    for text, values in rows[cut:]:
        resumed.update(text, values)
    same(resumed.values, statistic(rows).values)
    assert resumed.texts == statistic(rows).texts
    assert [entry.name for entry in path.parent.iterdir()] == ["part.safetensors"]


@settings(max_examples=40)
@given(sizes=st.permutations([2, 3, 4, 4, 5]), cut=st.integers(0, 5), seed=st.integers(0, 99))
def test_maps_add_up_to_the_same_bits(sizes, cut, seed):
    rng = np.random.default_rng(seed)
    maps = {
        f"{number}": rng.dirichlet(np.full(size, 0.05), size=(3, size))
        for number, size in enumerate(sorted(sizes))
    }
    first, second, whole = (MapSum(3, 4) for _ in range(3))
    order = sorted(maps, key=lambda text: sizes[int(text)] * 10 + int(text))
    for number, text in enumerate(order):
        (first if number < cut else second).update(text, maps[text])
    for text, each in maps.items():
        whole.update(text, each)
    same((second + first).mean, whole.mean)
    wanted = [sum(m[1, 2, 0] for m in maps.values() if m.shape[1] > 2) / 4]
    np.testing.assert_allclose(whole.mean[1, 2, 0], wanted[0], rtol=0, atol=1e-15)


def test_means_leave_out_what_has_no_value():
    found = statistic(
        [("a", np.full(SHAPE, 2.0)), ("b", np.full(SHAPE, np.nan)), ("c", np.full(SHAPE, 4.0))]
    )
    assert found.mean.tolist() == np.full(SHAPE, 3.0).tolist()
    assert np.isnan(Statistic(SHAPE).mean).all()
    assert repr(found) == "<Statistic of 3 texts, values [2, 3]>"
    assert "a" in found


def test_a_text_counts_once_and_must_fit():
    found = statistic([("a", np.zeros(SHAPE))])
    with pytest.raises(RecordError, match="'a' was counted before"):
        found.update("a", np.ones(SHAPE))
    with pytest.raises(RecordError, match="'a' was counted before"):
        found + found
    with pytest.raises(RecordError, match=r"values of shape \(3, 2\), the texts before it \(2"):
        found.update("b", np.zeros((3, 2)))
    with pytest.raises(RecordError, match="infinite"):
        found.update("b", np.full(SHAPE, np.inf))


def test_names_are_kept_and_must_agree(tmp_path):
    named = Statistic((1,), ("2-0",))
    named.update("a", np.ones(1))
    assert load_statistic(named.save(tmp_path / "a.safetensors")).names == ("2-0",)
    with pytest.raises(RecordError, match="of other names"):
        named + Statistic((1,), ("0-2",))


def test_files_that_are_none_of_ours_are_refused(tmp_path):
    kept = statistic([("a", np.zeros(SHAPE))]).save(tmp_path / "kept.safetensors")
    (tmp_path / "cut.safetensors").write_bytes(kept.read_bytes()[:-40])
    (tmp_path / "other.safetensors").write_bytes(b"PK" * 99)
    for name, message in (
        ("cut", "is cut or no"),
        ("other", "is cut or no"),
        ("no", "does not exist"),
    ):
        with pytest.raises(FileError, match=message):
            load_statistic(tmp_path / f"{name}.safetensors")
    with pytest.raises(FileError, match="Cannot write"):
        statistic([]).save(tmp_path / "gone" / "a.safetensors")


def test_maps_of_other_heads_or_twice_are_refused():
    maps = MapSum(1, 2)
    maps.update("a", np.ones((1, 1, 1)))
    with pytest.raises(RecordError, match="counted before"):
        maps.update("a", np.ones((1, 1, 1)))
    with pytest.raises(RecordError, match="counted in both"):
        maps + maps
    with pytest.raises(RecordError, match="has 2 heads"):
        maps.update("b", np.ones((2, 1, 1)))
    with pytest.raises(RecordError, match="cannot be added"):
        maps + MapSum(1, 3)


def test_documents_of_texts_are_kept_and_added_up(tmp_path):
    first, second = Statistic((1,)), Statistic((1,))
    first.update("b", np.array([1.0]), group="novel")
    second.update("a", np.array([2.0]))
    second.update("c", np.array([3.0]), group=7)
    whole = load_statistic(
        (first + second).save(tmp_path / "kept.safetensors", beside=np.arange(3))
    )
    assert whole.groups == (None, "novel", "7")
    assert whole.documents == 3
    assert list(load_beside(tmp_path / "kept.safetensors")) == ["beside"]
    assert load_statistic(Statistic((1,)).save(tmp_path / "old.safetensors")).groups is None
