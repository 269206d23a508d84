"""One format for all results, one call that reads any, files of headscope 0.1 too."""

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import headscope as hs
from headscope.evidence import Statistic
from headscope.patterns import Mechanism, Pattern
from headscope.results import Result
from headscope.storage import RecordFile, kind_of
from headscope.studies import (
    Ablation,
    AlignmentStudy,
    Coreference,
    NormStudy,
    Relations,
    load_alignment_study,
    load_coref,
    load_relations,
)
from headscope.testing import random_record

OLD = Path(__file__).parent / "old"
RESULTS = {
    "tally.npz": hs.Heads,
    "mechanism.npz": Mechanism,
    "norms.npz": NormStudy,
    "relations.npz": Relations,
    "coref.npz": Coreference,
    "alignment.npz": AlignmentStudy,
    "ablation.npz": Ablation,
}
NUMBERS = {
    "relations.npz": ("held_out_accuracy", 0.2666666666666666),
    "coref.npz": ("held_out_above", -0.049999999999999975),
    "alignment.npz": ("aer", 0.4722222222222222),
    "ablation.npz": ("change", 0.14998138481118406),
    "norms.npz": ("mean", 0.14920915213560917),
}
"""First numbers of columns, as headscope 0.1 printed them."""


@pytest.mark.parametrize("name", RESULTS)
def test_files_of_headscope_0_1_are_read(name):
    found = hs.load(OLD / name)
    assert type(found) is RESULTS[name]
    assert len(str(found)) > 100
    if name in NUMBERS:
        column, wanted = NUMBERS[name]
        assert found.columns()[column][0] == pytest.approx(wanted, abs=1e-15)


def test_a_record_of_headscope_0_1_is_read():
    record = hs.load(OLD / "record.safetensors", check=True)
    assert record["cross"].weights(1).shape == (2, 4, 5)


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_kept_and_comes_back(name, tmp_path):
    found = hs.load(OLD / name)
    path = hs.save(found, tmp_path / "found.safetensors")
    assert kind_of(path) == found.KIND
    again = hs.load(path)
    assert type(again) is type(found)
    assert str(again) == str(found)
    np.testing.assert_equal(again.columns(), found.columns())
    assert [entry.name for entry in tmp_path.iterdir()] == ["found.safetensors"]


def test_a_name_of_0_1_gets_its_format_and_a_warning(tmp_path):
    found = hs.load(OLD / "relations.npz")
    with pytest.warns(
        DeprecationWarning,
        match=r"a\.npz: results are kept as \.safetensors; \.npz is written for one",
    ):
        path = found.save(tmp_path / "a.npz")
    assert path.read_bytes()[:2] == b"PK"
    assert str(load_relations(path)) == str(hs.load(path)) == str(found)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.save(tmp_path / "a.safetensors")


def test_a_bit_that_was_flipped_is_named(tmp_path):
    path = hs.load(OLD / "alignment.npz").save(tmp_path / "a.safetensors")
    raw = bytearray(path.read_bytes())
    raw[-3] ^= 1
    path.write_bytes(raw)
    with pytest.raises(
        hs.FileError, match=r"a\.safetensors is damaged: \w+ is not what was written; run the study"
    ):
        hs.load(path)
    path.write_bytes(raw[:-8])
    with pytest.raises(
        hs.FileError,
        match=r"a\.safetensors is cut or no \.safetensors file .*; run the study again",
    ):
        load_alignment_study(path)


def test_a_file_of_another_kind_is_refused(tmp_path):
    path = hs.load(OLD / "relations.npz").save(tmp_path / "a.safetensors")
    with pytest.raises(hs.FileError, match="holds no coreference"):
        load_coref(path)
    with pytest.raises(
        hs.FileError, match=r"holds a result \(relations\) and no record; headscope.load reads both"
    ):
        hs.storage.load(path)
    record = hs.save(random_record(), tmp_path / "r.safetensors")
    with pytest.raises(hs.FileError, match="holds no relations"):
        load_relations(record)
    assert kind_of(record) == "record"
    with pytest.raises(hs.FileError, match="holds a statistic of your own"):
        hs.load(Statistic((1,)).save(tmp_path / "s.safetensors"))
    with pytest.raises(hs.FileError, match=r"gone\.safetensors does not exist"):
        hs.load(tmp_path / "gone.safetensors")
    with pytest.raises(
        hs.FileError, match="holds 'lengths', which this headscope does not know; update"
    ):
        hs.load(hs.storage.save_kept(tmp_path / "l.safetensors", "lengths", {}, {}))


def test_every_result_comes_back_as_it_was_kept(result, tmp_path):
    path = hs.save(result, tmp_path / "a.safetensors")
    assert kind_of(path) == result.KIND
    again = hs.load(path)
    assert type(again) is type(result)
    if hasattr(result, "control") and type(result).__name__ in WITHOUT_TWIN:
        again.control = result.control
    assert str(again) == str(result)
    np.testing.assert_equal(again.columns(), result.columns())


WITHOUT_TWIN = ("AlignmentStudy", "Relations", "Coreference", "NormStudy")
"""What was counted with random weights is a study of its own, kept by itself."""


def test_what_cannot_be_kept_says_so(tmp_path):
    class Lengths(Result):
        KIND = "lengths"

    with pytest.raises(
        hs.FileError, match=r"A Lengths is not kept as a file; keep its table, to_pandas\(\)"
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
    assert again.tally.statistic.texts[-1] == "one more"


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
    with pytest.raises(hs.RecordError, match="'own' was kept without its functions"):
        again.tally.update("more", random_record(seed=9))


def test_a_mechanism_is_kept_with_its_control(tmp_path):
    found, control = (hs.load(OLD / "mechanism.npz") for _ in range(2))
    found = Mechanism(found.tally, 0.8, control)
    again = hs.load(found.save(tmp_path / "m.safetensors"))
    assert again.confidence == 0.8
    np.testing.assert_equal(again.columns(), found.columns())
    assert "random_mass" in again.columns()


def test_files_say_which_headscope_wrote_them(tmp_path):
    path = hs.load(OLD / "coref.npz").save(tmp_path / "c.safetensors")
    document = RecordFile(path).document
    assert (document["kind"], document["headscope"]) == ("coreference", hs.__version__)


def test_reading_results_needs_no_torch():
    code = (
        f"import sys, headscope as hs; hs.load({str(OLD / 'relations.npz')!r}); sys.exit('torch' "
        "in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
