"""The command line as a user meets it: exit codes, one line for an error, and no half-written
file.
"""

import shlex
from pathlib import Path

import numpy as np
import pytest

import headscope as hs
from headscope.cli import run
from headscope.testing import random_record, tiny_model, tiny_tokenizer

from .conftest import LONG, complaint, run_line

PAIR = ("I went to the store.", "At the store, I bought fresh strawberries.")


def test_view_writes_the_page_of_the_demo_model_and_says_where(here, capsys):
    assert run(["view", *PAIR, "--out", "page.html"]) == 0
    out, err = capsys.readouterr()
    assert "all-MiniLM-L6-v2: 6 layers x 12 heads, 19 tokens" in out
    assert f"Wrote {here / 'page.html'}" in out
    assert err == ""
    assert "strawberries" in (here / "page.html").read_text(encoding="utf-8")


def test_capture_keeps_a_record_that_view_shows(here, folder, capsys):
    assert run(["capture", "the cat", "it sat", "--model", folder, "--out", "run.safetensors"]) == 0
    assert hs.load("run.safetensors").texts == ("the cat", "it sat")
    assert run_line("view run.safetensors --layer 1 --heads 0 2 --theme dark") == 0
    assert (here / "headscope.html").exists()
    assert capsys.readouterr().err == ""


@pytest.fixture(scope="module")
def writer(saved):
    """A tiny model that writes, saved."""
    return saved("writer", tiny_model("llama", writes=True), tiny_tokenizer())


@pytest.fixture(scope="module")
def mixture(saved):
    """A tiny mixture of experts that writes, saved."""
    return saved("mixture", tiny_model("mixtral", writes=True), tiny_tokenizer())


@pytest.mark.parametrize(
    "asked", [["capture", "the cat sat"], ["generate", "the cat", "--max-new-tokens", "3"]]
)
def test_router_scores_are_kept_where_asked_for(asked, here, mixture, capsys):
    more = ["--model", mixture, "--out", "run.safetensors"]
    assert run([*asked, *more, "--routers"]) == 0
    stack = hs.load("run.safetensors")["self"]
    assert [scores.shape for scores in stack.routers.values()] == [(len(stack.query), 4)] * 2
    assert run([*asked, *more]) == 0
    assert not hs.load("run.safetensors")["self"].routers
    assert capsys.readouterr().err == ""


def test_generate_keeps_a_record_that_view_shows(here, writer, capsys):
    asked = shlex.split(
        f"generate 'the cat' --model {writer} --max-new-tokens 4 --out run.safetensors"
    )
    assert (
        run([*asked, *shlex.split("--sample --temperature 2 --top-p 0.9 --seed 3 --keep qk")]) == 0
    )
    out, err = capsys.readouterr()
    generation = hs.load("run.safetensors").generation
    assert (len(generation), generation.sampled, generation.seed) == (4, True, 3)
    assert f"{generation.text!r}: 4 tokens generated (reached --max-new-tokens)" in out
    assert "11 tokens; 4 tokens generated" in out
    assert err == ""
    assert run(["view", "run.safetensors"]) == 0
    assert (here / "headscope.html").exists()


def test_generate_keeps_a_record_of_each_prompt(here, writer, capsys):
    (here / "prompts.jsonl").write_text(
        '{"prompt": "the cat"}\n{"prompt": "a dog ran"}\n{"label": 1}\n{"prompt": "a"}\n',
        encoding="utf-8",
    )
    asked = ["generate", "--model", writer, "--max-new-tokens", "4"]
    together = ["--texts", "prompts.jsonl", "--out", "stories", "--batch-size", "3"]
    assert run([*asked, *together]) == 3
    out, err = capsys.readouterr()
    assert out.count("(reached --max-new-tokens)") == out.count("Ran on cpu") == 3
    assert "headscope: prompt 3 was left out: prompts.jsonl, line 3 has no 'prompt'" in err
    assert "one at a time" not in err
    assert sorted(path.name for path in (here / "stories").iterdir()) == [
        "1.safetensors",
        "2.safetensors",
        "4.safetensors",
    ]
    assert run([*asked, "a", "a dog ran", "--out", "alone", "--batch-size", "1"]) == 0
    for kept, alone in (("4", "1"), ("2", "2")):
        one, two = hs.load(f"stories/{kept}.safetensors"), hs.load(f"alone/{alone}.safetensors")
        assert one.generation.tokens == two.generation.tokens
        np.testing.assert_allclose(one["self"].weights(), two["self"].weights(), atol=1e-5)


def test_a_text_may_begin_with_a_hyphen(here, folder):
    assert run(["capture", "--model", folder, "--out", "r.safetensors", "--", "-a cat"]) == 0
    assert hs.load("r.safetensors").texts == ("-a cat",)


def broken_record():
    hs.save(random_record(), "broken.safetensors")
    Path("broken.safetensors").write_bytes(Path("broken.safetensors").read_bytes()[:-9])


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("view ''", "headscope: The text is empty; give at least one word"),
        ("generate a --model m --out a.txt", "headscope: Expected a .safetensors file for --out"),
        ("view a ' '", "headscope: The second text is empty; give at least one word"),
        ("view a --model headscope-no/model", "headscope: Cannot load the model"),
        (f"view '{LONG}' --model FOLDER", "headscope: The text has 101 tokens and the model has"),
        (
            "view a --model FOLDER --layer 5",
            "headscope: layer=5: this view holds the layers 0 to 1 of stack 'self'; choose one of "
            "them",
        ),
        ("view a --out no/page.html", "headscope: Cannot write no/page.html: there is no folder"),
        ("view a --out .", "headscope: Expected a file for --out, got the folder ."),
        ("view gone.safetensors", "headscope: gone.safetensors does not exist"),
        ("view broken.safetensors", "headscope: broken.safetensors is cut or no .safetensors file"),
        ("view broken.safetensors b", "headscope: broken.safetensors is a record file, which"),
        ("capture a --out run.bin", "headscope: Expected a .safetensors file for --out, got"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing_behind(arguments, line, here, folder, capsys):
    broken_record()
    assert run_line(arguments.replace("FOLDER", folder)) == 1
    assert complaint(capsys).startswith(line)
    assert [entry.name for entry in here.iterdir()] == ["broken.safetensors"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("view", "headscope: "),
        ("view a --bogus", "headscope: Unknown option"),
        ("view a b c", "headscope: Unused"),
        ("view a --theme blue", "headscope: Invalid value"),
        ("nonsense", "headscope: Unknown command"),
        ("capture a", "headscope: "),
    ],
)
def test_wrong_usage_exits_with_2(arguments, line, here, capsys):
    assert run_line(arguments) == 2
    assert complaint(capsys).startswith(line)


def test_a_fault_of_ours_is_one_line_too(here, capsys, monkeypatch):
    monkeypatch.setattr("headscope.storage.load", lambda _: 1 / 0)
    assert run(["view", "a.safetensors"]) == 1
    assert (
        "unexpected ZeroDivisionError: division by zero; this is a bug in headscope"
        in capsys.readouterr().err
    )
    monkeypatch.setenv("HEADSCOPE_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        run(["view", "a.safetensors"])


def test_chosen_heads_alone_are_kept(here, folder, capsys):
    out = ["--model", folder, "--out", "run.safetensors"]
    assert run(["capture", "a cat", *out, "--keep-heads", "1-2", "self:0-0"]) == 0
    assert hs.load("run.safetensors")["self"].held_heads == ((0, 0), (1, 2))
    assert "2 chosen heads (0-0, 1-2)" in capsys.readouterr().out
    assert run(["capture", "a cat", *out, "--keep-heads", "12"]) == 1
    assert (
        "headscope: Expected layer and head for --keep-heads, such as 12-7"
        in capsys.readouterr().err
    )
    assert run(["capture", "a cat", *out, "--keep-heads", "9-0"]) == 1
    assert "there are the layers 0, 1" in capsys.readouterr().err


@pytest.mark.filterwarnings("always")
def test_each_advice_is_of_what_was_asked(here, folder, writer, capsys):
    assert run(["capture", "[CLS] the cat [SEP]", "--model", folder, "--out", "a.safetensors"]) == 0
    assert capsys.readouterr().err.count("are read once, not twice") == 1
    assert run(["capture", "it slept well", "--model", folder, "--out", "b.safetensors"]) == 0
    refused = {
        "compare a.safetensors b.safetensors": "or give less to hs.compare(..., least=)",
        "figure a.safetensors --layer 1 --quantity nope --out a.svg": "stack 'self' has 'weight'",
        "export nothere --out a.csv": "--out of capture or --save of a study",
        f"generate a b --model {writer} --out c.safetensors": "Expected a folder for --out",
    }
    for line, why in refused.items():
        assert run(line.split()) == 1
        assert why in capsys.readouterr().err
    assert not (here / "c.safetensors").exists()
