"""Sentences from files, studies that are kept, gone on with and added up, and their figure."""

import dataclasses
import json
import re

import pytest

import headscope as hs
from headscope.capturing import random_twin
from headscope.errors import FileError, ModelError, RecordError
from headscope.studies import AlignedPair, AlignmentStudy, Relations, read_aligned_pairs
from headscope.testing import cipher_pairs, cipher_translator, tiny_model, tiny_tokenizer

from ..close import assert_close

PAIRS = cipher_pairs(7, seed=3)
LINKS = "0-1 1-0 2p1"


@pytest.fixture(scope="module")
def translator():
    model, tokenizer, _ = cipher_translator(steps=2)
    return model, tokenizer


@pytest.fixture(scope="module")
def study(translator):
    return hs.alignment_study(
        *translator, [*PAIRS, AlignedPair("ba " * 40, "BA", frozenset({(0, 0)}))]
    )


def test_random_weights_stand_beside(translator, tmp_path):
    model, tokenizer = translator
    found = hs.alignment_study(model, tokenizer, PAIRS, random_weights=True)
    wanted = hs.alignment_study(random_twin(model), tokenizer, PAIRS)
    assert_close(found.control.columns(), wanted.columns())
    assert found.columns()["random_aer"] == wanted.columns()["aer"] != found.columns()["aer"]
    assert AlignmentStudy.load(found.save(tmp_path / "a.safetensors")).columns() == found.columns()
    named = [dataclasses.replace(pair, name=f"pair {number}") for number, pair in enumerate(PAIRS)]
    parts = [
        hs.alignment_study(model, tokenizer, part, random_weights=True)
        for part in (named[:3], named[3:])
    ]
    assert (parts[0] + parts[1]).control.sentences == len(PAIRS)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", f"das Haus da ||| house the ||| {LINKS}\n\nes ||| it ||| 0-0\n"),
        ("a.jsonl", json.dumps({"source": "das Haus da", "target": "house the", "links": LINKS})),
        ("a.tsv", f"links\tsource\ttarget\n{LINKS}\tdas Haus da\thouse the\n"),
        ("a.csv", f"source,target,links\ndas Haus da,house the,{LINKS}\n"),
    ],
)
def test_files_of_pairs(name, content, tmp_path):
    (tmp_path / name).write_text(content, encoding="utf-8")
    found = read_aligned_pairs(tmp_path / name)[0]
    assert (found.source, found.target, found.name) == ("das Haus da", "house the", "a:1")
    assert (found.sure, found.possible) == ({(0, 1), (1, 0)}, {(2, 1)})


def test_links_may_count_from_one(tmp_path):
    (tmp_path / "a.txt").write_text("das Haus ||| house the ||| 1-2 2p1", encoding="utf-8")
    found = read_aligned_pairs(tmp_path / "a.txt", first=1)[0]
    assert (found.sure, found.possible) == ({(0, 1)}, {(1, 0)})
    with pytest.raises(FileError, match=r"a\.txt, line 1: The link 1-2 leaves the 2 source and 2"):
        read_aligned_pairs(tmp_path / "a.txt")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", "das Haus ||| the house", r"a\.txt, line 1 has 2 parts; expected: source"),
        ("a.csv", "source,target\na,b\n", "line 2 has no 'links'; expected the fields source,"),
        ("a.csv", "source,target,links\n , ,0-0\n", "line 2 has ' ' \\(str\\) for 'source'"),
        (
            "a.jsonl",
            '{"source": "a", "target": "b", "links": "0:0"}',
            "line 1: '0:0' is not a link",
        ),
        ("a.pdf", "", "is not a file of texts"),
    ],
)
def test_what_is_no_pair_is_said_with_its_row(name, content, said, tmp_path):
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(FileError, match=said):
        read_aligned_pairs(tmp_path / name)


def test_a_bad_row_costs_itself(tmp_path):
    (tmp_path / "a.txt").write_text(
        "a ||| b ||| 0-0\nwhat\na ||| b ||| 0:0\nc ||| d ||| 0-0\n", encoding="utf-8"
    )
    told = {}
    pairs = read_aligned_pairs(
        tmp_path / "a.txt", on_error=lambda name, error: told.update({name: str(error)})
    )
    assert [pair.name for pair in pairs] == ["a:1", "a:4"]
    assert list(told) == ["a:2", "a:3"]
    assert "line 2 has 1 parts" in told["a:2"]
    with (
        pytest.warns(UserWarning, match="a:2 was left out"),
        pytest.warns(UserWarning, match="'0:0' is not a link"),
    ):
        read_aligned_pairs(tmp_path / "a.txt")


def test_a_kept_study_says_the_same_and_goes_on(study, translator, tmp_path):
    kept = AlignmentStudy.load(study.save(tmp_path / "a.safetensors"))
    assert str(kept) == str(study)
    assert kept.columns() == study.columns()
    assert list(kept.left_out) == ["000007"]
    pair = cipher_pairs(1, seed=8)[0]
    record = hs.capture(*translator, pair.source, target=pair.target, keep=("weights", "norms"))
    kept.update(dataclasses.replace(pair, name="more"), record)
    assert kept.sentences == study.sentences + 1
    assert AlignmentStudy.load(AlignmentStudy().save(tmp_path / "none.safetensors")).sentences == 0
    with pytest.raises(FileError, match="holds no relations"):
        Relations.load(tmp_path / "a.safetensors")


def test_what_cannot_be_studied_is_refused(translator, tmp_path):
    with pytest.raises(FileError, match=r"gone\.txt does not exist"):
        hs.alignment_study(*translator, str(tmp_path / "gone.txt"))
    (tmp_path / "pairs.txt").write_text("ba ||| BA ||| 0-0\n", encoding="utf-8")
    assert hs.alignment_study(*translator, str(tmp_path / "pairs.txt")).sentences == 1
    with pytest.raises(RecordError, match="Two sentences are called 'a'"):
        hs.alignment_study(*translator, [AlignedPair("ba", "BA", frozenset(), name="a")] * 2)
    with pytest.raises(ModelError, match="is not an encoder-decoder; words are aligned by a model"):
        hs.alignment_study(tiny_model("bert"), tiny_tokenizer(), PAIRS)


def drawn(figure):
    """Axes of the sheet; its cells by place, and its words."""
    axes = figure.matplotlib.axes[0]
    return axes, re.findall(r"<text[^>]*>([^<]*)</text>", figure.to_bytes("svg").decode())


def test_the_figure_has_the_rate_of_every_head(study):
    pytest.importorskip("matplotlib", reason="needs the extra figures")
    axes, words = drawn(study.figure())
    rates = [
        study.error_rates(by, state) for state in ("output", "input") for by in ("weight", "norm")
    ]
    wanted = sorted(f"{100 * rate:.0f}" for each in rates for rate in each.ravel())
    numbers = [word for word in words if word.isdigit()]
    assert not [number for number in set(wanted) if numbers.count(number) < wanted.count(number)]
    assert f"error rate, % (diagonal {100 * study.baseline:.0f})" in words
    assert [image.get_array().shape[2] for image in axes.images] == [3] * 9
    recipe = study.figure(title="T", colour=False).recipe
    assert (recipe["view"], recipe["layers"], recipe["heads"]) == (
        "alignment",
        [0, 1],
        [0, 1, 2, 3],
    )
    assert recipe["call"] == "headscope.figure(result, title='T', colour=False)"
