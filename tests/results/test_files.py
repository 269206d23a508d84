"""One format for all results, one call that reads any."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import headscope as hs
from headscope.patterns import Pattern
from headscope.results import Result
from headscope.storage import RecordFile
from headscope.studies import AlignmentStudy, Coreference, Relations
from headscope.testing import random_record

KEPT = Path(__file__).parent / "kept"


def test_a_bit_that_was_flipped_is_named(tmp_path):
    path = hs.load(KEPT / "alignment.safetensors").save(tmp_path / "a.safetensors")
    raw = bytearray(path.read_bytes())
    raw[-3] ^= 1
    path.write_bytes(raw)
    with pytest.raises(
        hs.errors.FileError, match=r"a\.safetensors is damaged: \w+ is not what was"
    ):
        hs.load(path)
    path.write_bytes(raw[:-8])
    with pytest.raises(
        hs.errors.FileError,
        match=r"a\.safetensors is cut or no \.safetensors file .*; give one that headscope "
        "wrote, or delete it and run the study again",
    ):
        AlignmentStudy.load(path)


def test_a_file_of_another_kind_is_refused(tmp_path):
    path = hs.load(KEPT / "relations.safetensors").save(tmp_path / "a.safetensors")
    with pytest.raises(hs.errors.FileError, match="holds no coreference"):
        Coreference.load(path)
    with pytest.raises(hs.errors.FileError, match=r"holds a result \(relations\) and no record;"):
        hs.storage.load(path)
    record = hs.save(random_record(), tmp_path / "r.safetensors")
    with pytest.raises(hs.errors.FileError, match="holds no relations"):
        Relations.load(record)
    assert "kind" not in RecordFile(record).document
    with pytest.raises(hs.errors.FileError, match=r"gone\.safetensors does not exist"):
        hs.load(tmp_path / "gone.safetensors")
    with pytest.raises(
        hs.errors.FileError, match="holds 'lengths', which this headscope does not know;"
    ):
        hs.load(hs.storage.save_kept(tmp_path / "l.safetensors", "lengths", {}, {}))


def test_every_result_comes_back_as_it_was_kept(result, tmp_path):
    path = hs.save(result, tmp_path / "a.safetensors")
    assert RecordFile(path).document["kind"] == result.KIND
    again = hs.load(path)
    assert type(again) is type(result)
    assert str(again) == str(result)
    np.testing.assert_equal(again.columns(), result.columns())


def test_what_cannot_be_kept_says_so(tmp_path):
    class Lengths(Result):
        KIND = "lengths"

    with pytest.raises(
        hs.errors.FileError, match=r"A Lengths is not kept as a file; keep to_pandas\(\)"
    ):
        hs.save(Lengths(), tmp_path / "a.safetensors")


def test_heads_are_kept_with_what_they_are_told_by(tmp_path):
    records = [random_record(seed=seed) for seed in range(6)]
    beside = hs.heads([random_record(seed=seed) for seed in range(6, 9)])
    found = hs.patterns.heads(
        records, groups="aabbcc", distances=True, random_weights=beside, margin=0.2, alpha=0.1
    )
    again = hs.load(hs.save(found, tmp_path / "heads.safetensors"))
    np.testing.assert_equal(again.columns(), found.columns())
    np.testing.assert_array_equal(again.distances, found.distances)
    assert (again.margin, again.alpha, again.levels, again.documents) == (0.2, 0.1, found.levels, 3)
    assert again.tally.model == found.tally.model
    again.tally.update("one more", random_record(seed=9))
    assert again.texts == found.texts + 1


def test_a_pattern_of_ones_own_comes_back_without_its_function(tmp_path):
    own = Pattern(
        name="own",
        says="looks far",
        source="ours",
        threshold=0.5,
        pairs=lambda sides: np.ones((5, 7), bool),
        by_place=True,
    )
    found = hs.patterns.heads([random_record(seed=seed) for seed in range(3)], patterns=(own,))
    again = hs.load(hs.save(found, tmp_path / "heads.safetensors"))
    np.testing.assert_equal(again.columns(), found.columns())
    assert again.tally.patterns[0].says == "looks far"
    with pytest.raises(hs.errors.RecordError, match="'own' was kept without its functions"):
        again.tally.update("more", random_record(seed=9))


def test_a_mechanism_is_kept_with_its_control(tmp_path):
    found, found.control = (hs.load(KEPT / "mechanism.safetensors") for _ in range(2))
    found.judging["confidence"] = 0.8
    again = hs.load(found.save(tmp_path / "m.safetensors"))
    assert again.confidence == 0.8
    np.testing.assert_equal(again.columns(), found.columns())
    assert "random_mass" in again.columns()


def test_files_say_which_headscope_wrote_them(tmp_path):
    path = hs.load(KEPT / "coref.safetensors").save(tmp_path / "c.safetensors")
    document = RecordFile(path).document
    assert (document["kind"], document["headscope"]) == ("coreference", hs.__version__)


def test_reading_results_needs_no_torch():
    path = str(KEPT / "relations.safetensors")
    code = f"import sys, headscope as hs; hs.load({path!r}); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
