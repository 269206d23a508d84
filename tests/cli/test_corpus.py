"""The options of commands that run over a corpus."""

import re

import pytest

from headscope.cli import run

from .conftest import run_line

TEXTS = "the cat sat\nit sat\nthe cat sat on it\na cat\n\nthe dog\n"


@pytest.fixture
def texts(here):
    (here / "texts.txt").write_text(TEXTS * 3 + "the cat " * 40 + "\n", encoding="utf-8")
    return "texts.txt"


def test_a_folder_keeps_the_run_and_the_same_command_goes_on(texts, here, folder, capsys):
    command = ["heads", "--texts", texts, "--model", folder, "--out", "run", "--part-size", "8"]
    assert run(command) == 3
    out, err = capsys.readouterr()
    assert "95% interval over documents" in " ".join(out.split())  # of copies, which are one
    assert "1 of 16 texts were left out: see run/failed.jsonl" in err
    assert re.search(r"headscope: text \(.*, line \d+\) was left out: .*positions for", err)
    assert sorted(path.name for path in (here / "run").iterdir())[:2] == [
        "corpus.json",
        "failed.jsonl",
    ]
    parts = sorted((here / "run" / "parts").iterdir())
    times = [path.stat().st_mtime_ns for path in parts]
    assert len(parts) == 2
    parts[-1].unlink()
    assert run(command) == 3
    again, err = capsys.readouterr()
    assert again == out
    assert "Going on: 1 parts are finished, 1 are left" in err
    assert parts[0].stat().st_mtime_ns == times[0]
    assert run([*command, "--truncate"]) == 1
    assert "truncate false, now true" in capsys.readouterr().err


def test_a_figure_of_a_run_has_the_map_of_heads(texts, here, folder, capsys):
    pytest.importorskip("matplotlib", reason="needs the extra figures")
    command = ["heads", "--texts", texts, "--model", folder]
    assert run([*command, "--out", "run", "--plot", "a.svg", "--position-mean"]) == 3
    assert "map of all heads" in (here / "a.svg").read_text(encoding="utf-8")
    # The same parts whether a figure is drawn now or not.
    assert run([*command, "--out", "run", "--position-mean"]) == 3
    assert run([*command, "--out", "other"]) == 3
    assert "has no map" not in capsys.readouterr().err
    assert run([*command, "--out", "other", "--plot", "b.svg"]) == 3
    assert "map of all heads" not in (here / "b.svg").read_text(encoding="utf-8")
    err = capsys.readouterr().err
    assert "b.svg has no map of all heads, since the run in other was begun without --plot" in err


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        ("--workers 0", 2, "--workers"),
        ("--workers 2 --dask tcp://x:1", 1, "a cluster has its own workers"),
        ("--out texts.txt/run", 1, "texts.txt"),
    ],
)
def test_bad_options_are_one_line(texts, folder, capsys, more, code, said):
    assert run_line(f"heads --texts {texts} --model {folder} {more}") == code
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err


def test_a_layer_alone_is_all_its_heads_in_a_run(texts, folder, capsys):
    given = ["mechanism", "--texts", texts, "--model", folder, "--out", "run"]
    assert run([*given, "--at", "1"]) == 3
    assert "tiny: 3 heads" in capsys.readouterr().out


def test_capture_of_a_file_goes_to_a_folder_of_records(texts, here, folder, capsys):
    given = ["capture", "--texts", texts, "--model", folder, "--out", "run", "--keep", "qk"]
    assert run(given) == 3
    out, err = capsys.readouterr()
    assert f"Wrote 15 records to {here / 'run'}" in out
    assert "1 of 16 texts were left out: see run/failed.jsonl" in err
    index = (here / "run" / "records.jsonl").read_text().splitlines()
    assert len(index) == 16
    assert index[0] == index[5]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("--out a.safetensors", "Expected a folder for --out, got a.safetensors"),
        ("--out run 'a text'", "Expected --texts alone, got a text"),
        ("--out run --target a", "Expected --texts alone, got --target"),
    ],
)
def test_capture_says_what_does_not_go_with_a_file(texts, folder, capsys, given, said):
    assert run_line(f"capture --texts {texts} --model {folder} {given}") == 1
    assert said in capsys.readouterr().err
    assert run(["capture", "a text", "--out", "a.safetensors", "--workers", "2"]) == 1
    assert "are for many texts: give --texts" in capsys.readouterr().err
