"""`capture_many` to a folder: a file for each text, and an index in the order of the texts."""

from copy import deepcopy

import numpy as np
import pytest

import headscope as hs
from headscope.errors import CaptureError, FileError, RecordError, RunError
from headscope.storage import RecordFolder
from headscope.testing import tiny_model, tiny_tokenizer

TEXTS = ["the dog ran", ("it sat", "on us"), "", "the dog ran", "cat " * 90, "me"]


@pytest.fixture(scope="module")
def loaded():
    return tiny_model("bert"), tiny_tokenizer()


@pytest.fixture(scope="module")
def captured(loaded, tmp_path_factory):
    """Records of a stream of texts, and what was told of those that were left out."""
    told = {}
    records = hs.capture_many(
        *loaded,
        iter(TEXTS),
        out=tmp_path_factory.mktemp("capture") / "run",
        keep=("qk", "weights"),
        heads=[(1, np.int64(2)), (0, 1)],
        on_error=told.__setitem__,
    )
    return records, told


def test_the_index_is_in_the_order_of_the_texts(captured, loaded):
    records, told = captured
    assert records.numbers == (0, 1, 3, 5)
    assert [records.text(at) for at in range(4)] == [TEXTS[at] for at in records.numbers]
    assert str(told[2]) == records.left_out[2] == "The text is empty; give at least one word"
    assert told.keys() == records.left_out.keys() == {2, 4}
    assert repr(records).startswith("<RecordFolder: 4 records of 6 texts in ")
    # One text, one file, however often it is there.
    assert records.file(0) == records.file(2) != records.file(3)
    for record, at in zip(records, records.numbers, strict=True):
        given = [TEXTS[at]] if isinstance(TEXTS[at], str) else TEXTS[at]
        alone = hs.capture(*loaded, *given)["self"]
        np.testing.assert_allclose(record["self"].weights(1, 2), alone.weights(1, 2), atol=1e-5)
        assert record["self"].layers[0].held_heads.numbers == (1,)
    assert [len(each["self"].query) for each in records[1:3]] == [12, 11]


def test_a_record_that_was_removed_is_captured_again(loaded, tmp_path):
    def captured():
        return hs.capture_many(*loaded, ["me", "the dog ran"], out=tmp_path / "run")

    lost = captured().file(1)
    before = lost.read_bytes()
    lost.unlink()
    records = captured()
    assert [len(record["self"].query) for record in records] == [4, 11]
    assert lost.read_bytes() == before


def test_a_record_under_the_name_of_another_is_refused(loaded, tmp_path):
    records = hs.capture_many(*loaded, ["me", "the dog ran"], out=tmp_path / "run")
    first, second = records.file(0), records.file(1)
    whole = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(whole)
    for read in (
        lambda: hs.load(tmp_path / "run")[0],
        lambda: hs.load(tmp_path / "run")[1],
        lambda: hs.capture_many(*loaded, ["me", "the dog ran"], out=tmp_path / "run"),
    ):
        with pytest.raises(FileError, match="holds another record than its own"):
            read()


def test_a_folder_is_loaded_and_what_is_wrong_with_it_is_said(captured, tmp_path):
    records, _ = captured
    loaded = hs.load(records.path)
    assert isinstance(loaded, RecordFolder)
    assert loaded.numbers == records.numbers
    with pytest.raises(RecordError, match="has 4 records, and no record 4"):
        loaded[4]
    index = tmp_path / "records.jsonl"
    index.write_text('{"text": "a", "record": "records/a.safetensors"}\n')
    with pytest.raises(FileError, match=r"a\.safetensors"):
        hs.load(tmp_path)[-1]
    for line in ("{", "[]", '{"texts": 1}'):
        index.write_text(line)
        with pytest.raises(FileError, match=r"records\.jsonl is cut or holds no index"):
            hs.load(tmp_path)
    for path in ("../a.safetensors", "/tmp/a.safetensors", "records\\\\..\\\\a.safetensors"):
        index.write_text(f'{{"text": "a", "record": "{path}"}}\n')
        with pytest.raises(FileError, match=r"is damaged: Expected the path of a record within"):
            hs.load(tmp_path)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"workers": 2}, RunError, "was given workers and no folder for the records"),
        ({"out": "run", "held": 9}, RunError, "capture over a corpus has no option 'held'"),
        ({"out": "run", "keep": "wieghts"}, CaptureError, "keep must be 'auto'"),
        ({"out": "run", "heads": [(9, 9)]}, CaptureError, "there are the layers 0, 1"),
        ({"out": "run", "workers": 2}, RunError, "cannot go to other processes"),
    ],
)
def test_what_cannot_be_captured_is_said(loaded, tmp_path, monkeypatch, options, error, match):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=match):
        hs.capture_many(*loaded, TEXTS, **options)


def test_other_kept_arrays_are_refused(captured, loaded):
    records, _ = captured
    with pytest.raises(RunError, match=r'keep \["qk", "weights"\], now "auto"'):
        hs.capture_many(*loaded, TEXTS, out=records.path)


def test_a_model_that_was_saved_anew_is_read_anew(loaded, tmp_path):
    """As by a training loop, which saves into one folder again and again."""
    model, tokenizer = loaded
    tokenizer.save_pretrained(tmp_path / "model")
    found = []
    for factor in (1.0, 3.0):
        trained = deepcopy(model)
        trained.encoder.layer[0].attention.self.query.weight.data *= factor
        trained.save_pretrained(tmp_path / "model")
        records = hs.capture_many(
            tmp_path / "model", texts=TEXTS[:1], out=tmp_path / f"run {factor}", keep="weights"
        )
        alone = hs.capture(trained, tokenizer, TEXTS[0])["self"]
        found.append(records[0]["self"].weights(0, 2))
        np.testing.assert_allclose(found[-1], alone.weights(0, 2), atol=1e-5)
    assert np.abs(found[0] - found[1]).max() > 1e-3
    with pytest.raises(RunError, match="weights"):
        hs.capture_many(
            tmp_path / "model", texts=TEXTS[:1], out=tmp_path / "run 1.0", keep="weights"
        )
