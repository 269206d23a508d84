"""headscope atlas: the folder that it writes, and what it refuses."""

import pytest

import headscope as hs
from headscope.cli import run
from headscope.testing import tiny_model, tiny_tokenizer

TEXTS = ["the cat sat", "the dog ran by us", "it sat on me", "all ran", "us and the cat", "me"]


@pytest.fixture
def texts(here):
    tiny_model("bert").save_pretrained(here / "tiny")
    tiny_tokenizer().save_pretrained(here / "tiny")
    (here / "texts.txt").write_text("\n".join(TEXTS * 2))
    return "texts.txt"


def test_it_writes_a_run_and_its_page(texts, here, capsys):
    command = ["atlas", "--texts", texts, "--model", "tiny", "--out", "run"]
    assert run(command) == 0
    told = capsys.readouterr().out
    assert "most alike" in told
    assert str(here / "run" / "page" / "index.html") in told
    atlas = hs.load("run")
    assert (atlas.texts, len(atlas.cells)) == (12, 6)
    assert len(sorted(path.name for path in (here / "run" / "page" / "data").glob("head-*"))) == 6
    assert run(command) == 0


def test_what_is_no_folder_or_no_atlas_is_refused(texts, here, capsys):
    assert run(["atlas", "--texts", texts, "--model", "tiny", "--out", "atlas.csv"]) != 0
    assert "Expected a folder for --out, got atlas.csv" in capsys.readouterr().err
    pytest.importorskip("uvicorn", reason="needs the extra server")
    assert run(["serve", str(here)]) != 0
    assert "has no result.safetensors" in capsys.readouterr().err


def test_it_writes_a_tree_of_headvis(texts, here, capsys):
    command = ["headvis", "--texts", texts, "--model", "tiny", "--out", "tree"]
    (here / texts).write_text("\n".join([*TEXTS, "the " * 90]))
    assert run(command) == 3
    told = capsys.readouterr()
    assert "6 heads of" in told.out
    assert "over 6 texts (texts)" in told.out
    assert f"text 7 ({texts}, line 7) was left out" in told.err
    assert (here / "tree" / "heads" / "L1H2.json").is_file()
    assert hs.load("tree").texts == 6
    assert run(command) != 0
    assert "is not empty" in capsys.readouterr().err


def test_two_atlases_are_compared(texts, here, capsys):
    tiny_model("bert", num_hidden_layers=3, seed=1).save_pretrained(here / "other")
    tiny_tokenizer().save_pretrained(here / "other")
    for model, out in (("tiny", "step1"), ("other", "step2")):
        command = ["atlas", "--texts", texts, "--model", model, "--out", out, "--no-battery"]
        assert run(command) == 0
    capsys.readouterr()
    assert run(["compare", "step1", "step2", "--out", "changes.csv"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "A is step1, tiny, 6 heads; B is step2, other, 9 heads: 6 heads are matched" in told
    assert "Heads of B without a partner" in told
    assert (here / "changes.csv").read_text().startswith("layer,head,other_layer,other_head")
    assert run(["compare", "step1", "step2", "--out", "changes"]) == 0
    assert (here / "changes" / "data" / "b-head-2-1.js").exists()
    assert run(["compare", "step1", "step2", "--min-overlap", "0.2"]) != 0
    assert "least=0.2 is for records" in capsys.readouterr().err
    for command in ("compare", "serve"):
        assert run([command, "step1", "tiny"]) != 0
        assert "has no result.safetensors" in capsys.readouterr().err
    assert run(["serve", "record.safetensors", "step2"]) != 0
    assert "Expected the folders of two atlases" in capsys.readouterr().err
