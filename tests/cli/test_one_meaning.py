"""An option of the command line means the same in every command."""

import re
import shlex
from collections import defaultdict
from functools import cache
from types import NoneType
from typing import get_args

import pytest

import headscope as hs
from headscope.cli import run
from headscope.cli._main import app
from headscope.testing import random_record

from .conftest import header_of

COMMANDS = sorted(name for name in app if not name.startswith("-"))
PAGE = {"figure", "serve", "view"}
"""They share the options of a page, which are declared once; a figure says where it draws less."""
BEGINNINGS = {
    "--answer": "The answer, ",
    "--at": "Layer and heads, such as 2-0, 2-0,3,5, or 2 for all heads of layer 2",
    "--by": "What replaces what is ",
    "--data": "Annotated data: ",
    "--keep": "What to store",
    "--layer": "Layer number, from 0; -1 is the last.",
    "--model": "Hub name or folder",
    "--out": "Write ",
    "--plot": "Draw ",
    "--sentences": "How many sentences are read; by default all. ",
    "--stack": "Attention stack of the model, such as decoder or cross; by default ",
    "--texts": "A file of texts: .txt (one per line), .jsonl, .csv, .tsv or .parquet with the",
}
"""What is written, drawn or left out by default differs; how the help begins does not."""
SEVERAL = {"--at", "--by", "--keep"}
"""One command takes several values, or fewer choices, where another takes one."""


@cache
def uses():
    """Of each option, its type and help in each command."""
    found = defaultdict(dict)
    for command in COMMANDS:
        for argument in app[command].assemble_argument_collection(parse_docstring=True):
            name = argument.names[0] if argument.names else ""
            if argument.show and name.startswith("--"):
                kind = argument.hint
                if NoneType in get_args(kind):
                    kind = get_args(kind)[0]
                kind = str(kind).replace("list[int]", "tuple[int, ...]")
                told = " ".join((argument.parameter.help or "").split())
                found[name][command] = kind.removeprefix("<class '").removesuffix("'>"), told
    return found


def test_every_option_of_every_command_says_what_it_is():
    assert len(uses()) > 100
    texts = [(name, text) for name, told in uses().items() for _, text in told.values()]
    assert not [name for name, text in texts if not text]


def test_options_mean_the_same_in_every_command():
    """In one test: which options there are takes a second to know, in each worker that collects."""
    wrong = {}
    for option, by_command in uses().items():
        told = {command: each for command, each in by_command.items() if command not in PAGE}
        texts, kinds = ({each[at] for each in told.values()} for at in (1, 0))
        beginning = BEGINNINGS.get(option)
        if beginning is not None:
            texts = {text for text in texts if not text.startswith(beginning)} | {beginning}
        if len(texts) > 1 or (len(kinds) > 1 and option not in SEVERAL):
            wrong[option] = told
    assert wrong == {}


@pytest.mark.parametrize("task", ["next_word", "next-word", "masked_word", "minimal_pairs"])
def test_names_of_several_words_take_hyphens_and_underscores(task, capsys):
    assert run(["ablate", "--task", task]) == 1
    assert "needs a file of examples" in capsys.readouterr().err
    assert run(["ablate", "--task", task, "--by", "mean_output"]) == 1
    assert "needs a file of examples" in capsys.readouterr().err
    assert run(["ablate", "--task", "gone_file.py:own_task", "--data", "a.txt"]) == 1
    assert "own-task" not in capsys.readouterr().err


TEN = "--view --layer --heads --query --quantity --out --texts --open --evidence-of --model".split()
SHORT = {"-m": "--model", "-o": "--out", "-t": "--texts", "-l": "--layer", "-p": "--plot"}


MACHINE = {"--device", "--dtype", "--revision", "--batch-size"}
WITHOUT_MODEL = {"check", "compare", "export"}
"""They read files alone."""


@pytest.mark.parametrize("command", COMMANDS)
def test_help_begins_with_examples_and_help_all_explains_every_option(command, capsys):
    assert run([command, "--help"]) == 0
    short = capsys.readouterr().out
    does, first, second, *_ = short.split("\n\n")
    assert does.endswith(".")
    for example in (first, second):
        words = shlex.split(" ".join(example.split()))
        assert words[:2] == ["headscope", command]
        app.parse_args(words[1:], exit_on_error=False, print_error=False)
    assert run([command, "--help-all"]) == 0
    whole = capsys.readouterr().out
    assert len(short.splitlines()) <= 60
    assert len(whole) >= len(short)
    options = {name for name in uses() if command in uses()[name]}
    assert (options & MACHINE) == (set() if command in WITHOUT_MODEL else MACHINE)
    assert "--model" not in options or command not in WITHOUT_MODEL
    for text in (short, whole):
        assert options <= set(re.findall(r"--[\w-]+", text))
    explained = set(re.findall(r"^│[ *]+(--[\w-]+)", whole, re.MULTILINE))
    assert options <= explained


def test_help_of_view_explains_ten_common_options_first(capsys):
    assert run(["view", "--help"]) == 0
    common = capsys.readouterr().out.partition("─ Common ─")[2].partition("╰")[0]
    assert re.findall(r"^│ (--[\w-]+)", common, re.MULTILINE) == TEN


def test_the_commonest_options_have_short_forms_that_mean_the_same_everywhere():
    for command in COMMANDS:
        for argument in app[command].assemble_argument_collection():
            short = [name for name in argument.names if re.fullmatch("-[a-z]", name)]
            is_common = argument.show and argument.names[:1] and argument.names[0] in SHORT.values()
            assert [SHORT[name] for name in short] == list(argument.names[:1] if is_common else [])


def test_short_forms_are_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    record = random_record()
    hs.save(record, "run.safetensors")
    assert run(["view", "run.safetensors", "-l", "1", "-o", "a.html"]) == 0
    assert header_of(tmp_path / "a.html")["selection"]["layer"] == 1


def test_an_option_is_that_of_the_signature():
    """Type, default, choices and help of options that commands read of functions."""
    rows, window = (
        next(each for each in app["coref"].assemble_argument_collection() if each.name == name)
        for name in ("--word-rows", "--window")
    )
    assert get_args(rows.hint) == ("mean", "first", "max")
    assert rows.field_info.default == "mean"
    assert rows.parameter.help.startswith("How rows of a word's tokens become one")
    assert (window.hint, window.field_info.default) == (int, 128)


@pytest.mark.parametrize("view", ["model", "pair", "scatter"])
def test_names_of_views_for_print_open_what_took_over(view, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    record = random_record()
    hs.save(record, "run.safetensors")
    assert run(["view", "run.safetensors", "--view", view, "--out", "a.html"]) == 0
    assert (
        header_of(tmp_path / "a.html")["selection"]
        == hs.view(record, view=view).header["selection"]
    )
