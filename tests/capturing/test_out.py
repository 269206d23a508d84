"""Records that are written layer by layer while they are captured."""

import copy

import numpy as np
import pytest

import headscope as hs
from headscope.capturing.building._build import Builder
from headscope.errors import FileError
from headscope.record import ARRAYS, STATISTICS
from headscope.testing import tiny_model

from ..close import assert_close

TEXT = "the cat sat on the mat and slept"
KEPT = {
    "auto": {},
    "qk": {"keep": ("qk", "values", "before")},
    "weights": {"keep": "weights", "precision": "float16"},
    "statistics": {"keep": ("statistics", "qk"), "top": 2},
    "norms": {"keep": "norms"},
    "heads": {"keep": ("qk", "weights"), "heads": [(1, 1)]},
}


@pytest.fixture(scope="module")
def model():
    return tiny_model("llama")


def assert_same(one, other):
    for name, stack in other.stacks.items():
        assert one[name].query == stack.query
        for layer, wanted in zip(one[name], stack, strict=True):
            assert (layer.layer, layer.visible) == (wanted.layer, wanted.visible)
            assert layer.verified == pytest.approx(wanted.verified, abs=1e-5)
            for array in ARRAYS:
                assert layer.has(array) == wanted.has(array)
                if layer.has(array):
                    assert_close(layer.part(array), wanted.part(array))
            for array in STATISTICS if wanted.statistics else ():
                assert_close(getattr(layer.statistics, array), getattr(wanted.statistics, array))
            if wanted.contributions:
                for kind in ("attention", "residual", "output"):
                    assert_close(layer.contributions_of(kind), wanted.contributions_of(kind))


@pytest.mark.parametrize("kept", KEPT)
def test_what_is_written_is_what_is_kept_in_memory(kept, model, tokenizer, tmp_path):
    path = tmp_path / "run.safetensors"
    written = hs.capture(model, tokenizer, TEXT, out=path, **KEPT[kept])
    assert_same(written, hs.capture(model, tokenizer, TEXT, **KEPT[kept]))
    assert_same(hs.load(path, check=True), written)
    assert [file.name for file in tmp_path.iterdir()] == ["run.safetensors"]


@pytest.mark.parametrize("kept", ["qk", "weights", "statistics", "heads"])
def test_memory_does_not_grow_with_the_layers(kept, model, tokenizer, tmp_path, monkeypatch):
    """Bytes of arrays that the layers hold after each of them."""
    held, take = [], Builder.take

    def bytes_of(value):
        arrays = [value] if not hasattr(value, "entropy") else vars(value).values()
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))

    def counted(builder, call):
        take(builder, call)
        layers = [layer for entry in builder.seen.values() for layer in entry.layers]
        held.append(sum(bytes_of(value) for layer in layers for value in layer.values()))

    monkeypatch.setattr(Builder, "take", counted)
    # of a model of which nothing is remembered, so that no layer waits for the others
    hs.capture(copy.deepcopy(model), tokenizer, TEXT, **KEPT[kept])
    assert len(held) >= 2
    assert held[-1] > held[0]
    held.clear()
    hs.capture(model, tokenizer, TEXT, out=tmp_path / "run.safetensors", **KEPT[kept])
    assert len(held) >= 2
    assert set(held) == {0}


@pytest.mark.parametrize("heads", [{}, {"heads": [(1, 1), (1, 2)]}])
def test_norms_leave_memory_with_their_layer(heads, model, tokenizer, tmp_path, monkeypatch):
    held, records = [], Builder.records

    def counted(builder, facts):
        layers = [layer for entry in builder.seen.values() for layer in entry.layers]
        parts = [vars(layer["contributions"]) for layer in layers if "contributions" in layer]
        assert len(parts) == 2
        values = [value for part in [*layers, *parts] for value in part.values()]
        held.append(sum(value.nbytes for value in values if isinstance(value, np.ndarray)))
        return records(builder, facts)

    monkeypatch.setattr(Builder, "records", counted)
    options = {"keep": "norms", **heads}
    # The first pass follows outputs everywhere, the second at the modules that the first has found.
    for number in range(2):
        path = tmp_path / f"{number}.safetensors"
        written = hs.capture(model, tokenizer, TEXT, out=path, **options)
        assert held.pop() == 0
        assert_same(written, hs.capture(model, tokenizer, TEXT, **options))
        assert held.pop() > 0
    with_alti = hs.capture(model, tokenizer, TEXT, out=tmp_path / "a.safetensors", keep="alti")
    assert held.pop() == 0
    assert with_alti["self"].layers[0].contributions_of("alti").sum(axis=-1) == pytest.approx(1)


def test_nothing_half_written_is_left(model, tokenizer, tmp_path, monkeypatch):
    path = tmp_path / "run.safetensors"
    hs.capture(model, tokenizer, TEXT, out=path, keep="qk")
    before = path.read_bytes()
    monkeypatch.setattr(Builder, "records", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        hs.capture(model, tokenizer, TEXT, out=path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["run.safetensors"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("run.npz", "name it .*run.safetensors"),
        ("missing/run.safetensors", "Cannot write .*no such file"),
        (".", "is a folder"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_a_model_is_loaded(
    name, message, tmp_path
):
    with pytest.raises(FileError, match=message):
        hs.capture("no/such/model", text=TEXT, out=tmp_path / name)
