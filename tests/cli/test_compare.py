"""headscope compare and headscope effect."""

import csv
import shlex
from pathlib import Path

import pytest

import headscope as hs
from headscope.cli import run
from headscope.testing import random_record, tiny_model, tiny_tokenizer

from .conftest import complaint, run_line


@pytest.fixture
def here(here):
    for seed in range(4):
        hs.save(random_record(seed=seed), f"{seed}.safetensors")
    return here


@pytest.fixture(scope="module")
def writer(saved):
    return saved("writer", tiny_model("gpt2", writes=True), tiny_tokenizer())


def test_two_records_are_compared_and_written(here, capsys):
    assert run(["compare", "0.safetensors", "1.safetensors", "--out", "found.csv"]) == 0
    out, err = capsys.readouterr()
    assert (
        "No baseline given (give spread= (--spread), from two texts or seeds without a real "
        "difference)" in out
    )
    assert err == ""
    with (here / "found.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    wanted = hs.compare(hs.load("0.safetensors"), hs.load("1.safetensors"))["cross"].moved
    assert [float(row["distance"]) for row in rows] == pytest.approx(wanted)
    assert run(["compare", "0.safetensors", "1.safetensors", "--out", "page.html"]) == 0
    assert "weight of A" in (here / "page.html").read_text(encoding="utf-8")


def test_pairs_of_records_are_the_spread(here, capsys):
    assert (
        run(
            [
                "compare",
                *[f"{n}.safetensors" for n in (0, 1)],
                "--spread",
                *[f"{n}.safetensors" for n in (2, 3)],
            ]
        )
        == 0
    )
    printed = " ".join(capsys.readouterr().out.split())
    assert (
        "the largest in 1 given pair; for any one head 1 in 2 of the kind would look like this"
        in printed
    )


def test_effect_tells_what_moves(here, writer, capsys):
    arguments = shlex.split(f"effect 'the cat sat.' --model {writer} --zero 0-1 --control 0-0 0-2")
    assert run([*arguments, "--out", "page.html"]) == 0
    out, err = capsys.readouterr()
    assert "Changed: layer 0: output set to zero (heads 1)" in out
    assert "KL(intact || changed) of the predicted tokens" in out
    assert "in 2 controls" in " ".join(out.split())
    assert err == ""
    assert "weight before" in (here / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("compare 0.safetensors page.html", "page.html is not a record"),
        ("compare 0.safetensors none.safetensors", "none.safetensors"),
        (
            "compare 0.safetensors 1.safetensors --spread 2.safetensors",
            "Expected pairs of records for --spread, got 1 records",
        ),
        ("compare 0.safetensors 1.safetensors --out x.txt", "Expected .csv"),
        ("compare 0.safetensors 1.safetensors --stack self", "has the stacks 'cross', not 'self'"),
        ("effect 'a text'", "Expected heads to disable, such as --zero 2-0"),
        ("effect 'a text' --zero first", "Expected layer and heads, such as 2-0"),
        ("effect ' ' --zero 1", "The text is empty"),
    ],
)
def test_what_is_wrong_is_one_line(here, capsys, arguments, said):
    assert run_line(arguments) == 1
    assert said in complaint(capsys)


def test_two_results_are_compared(here, capsys):
    kept = Path(__file__).parents[1] / "results" / "kept"
    files = [str(kept / f"{name}.safetensors") for name in ("tally", "relations")]
    assert run(["compare", files[0], files[0], "--out", "c.csv", "--plot", "c.svg"]) == 0
    assert "B less A" in (here / "c.svg").read_text()
    assert "heads, A " in capsys.readouterr().out
    assert (here / "c.csv").read_text().startswith("layer,head,pattern,measure,a,b,difference")
    assert run(["compare", *files]) == 1
    assert run(["compare", files[0], files[0], "--stack", "self"]) == 1
    err = capsys.readouterr().err
    assert "two results of one kind, got Heads and Relations" in err
    assert "stack='self' is for records" in err
