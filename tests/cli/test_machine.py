"""Where a command's model runs: --device, --dtype, --revision, --batch-size; what was used is
printed and kept.
"""

import json
import os
import shlex
import subprocess
import sys

import pytest

import headscope as hs
from headscope.cli import run
from headscope.cli._main import app

from .conftest import header_of, run_line


def test_what_was_used_is_printed_and_kept(folder, here, capsys):
    arguments = shlex.split(f"--model {folder} --device cpu --dtype bfloat16 --out run.safetensors")
    assert run(["capture", "a cat", *arguments]) == 0
    assert "Ran on cpu, bfloat16, sdpa attention\n" in capsys.readouterr().out
    assert hs.load("run.safetensors").model.dtype == "bfloat16"


def test_a_study_says_where_its_model_ran(folder, here, capsys):
    (here / "a.txt").write_text("a cat\na dog ran\nthe hen sat\n", encoding="utf-8")
    assert run_line(f"heads --texts a.txt --model {folder} --dtype float64 --batch-size 2") == 0
    assert capsys.readouterr().out.endswith("tiny ran on cpu, float64, sdpa attention\n")
    assert run(["check", "--help"]) == 0
    assert "ran on" not in capsys.readouterr().out


def outcomes(commands, folder, **variables):
    """The exit code of each command, whether torch is loaded after it, and its stderr.

    In a process of their own, because here torch is loaded already; in one, since torch, once
    imported, would be seen by the next.
    """
    script = (
        "import contextlib, io, json, sys\n"
        "from headscope.cli import run\n"
        "for words in json.load(sys.stdin):\n"
        "    with contextlib.redirect_stderr(io.StringIO()) as said:\n"
        "        code = run(words)\n"
        "    print(json.dumps([code, 'torch' in sys.modules, said.getvalue()]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env=os.environ | variables,
    )
    pairs = zip(commands, [json.loads(line) for line in done.stdout.splitlines()], strict=True)
    return {tuple(words): outcome for words, outcome in pairs}


REFUSED_BY_COMMAND = [
    # The first, so that no command before it has imported what it needs.
    ("capture --chat a.json --out r.safetensors", 1, "Expected a conversation in a.json"),
    ("capture x --out r.safetensors --device gpu", 2, "mps or xpu, got 'gpu'"),
    ("capture x --out r.safetensors --dtype bf16", 2, 'Choose from: "auto", "float32", "bfloat16"'),
    ("capture x --out r.safetensors --model no/such/folder", 1, "and a hub name looks like"),
    ("capture x --out r.safetensors --image no.png", 1, "The picture no.png does not exist"),
    ("capture x --out r.safetensors --revision main", 1, "the demo model has none; leave it out"),
    ("capture ' ' --out r.safetensors", 1, "The text is empty"),
    ("heads '' --model a/b", 1, "The text is empty"),
    ("effect '' --zero 0-0", 1, "The text is empty"),
    ("capture x --out r.safetensors --rows 5", 1, "rows and top belong to the statistics"),
    ("capture x --out r.safetensors --keep values", 1, "values alone have no attention in them"),
    ("capture x --out r.safetensors --keep-heads x", 1, "Expected layer and head for --keep-heads"),
    ("generate x --model no/such/folder --out r.safetensors", 1, "There is no folder 'no/such"),
    ("generate x --model a/b --out gone/r.safetensors", 1, "create it first"),
    ("generate x --model a/b --out r.safetensors --max-new-tokens 0", 2, "Must be >= 1"),
    ("generate x --model a/b --out r.safetensors --temperature 0", 2, "Must be > 0"),
    ("generate x --model a/b --out r.safetensors --batch-size 0", 2, "Must be >= 1"),
    ("generate --model a/b --out r", 1, "Expected one or more prompts"),
    ("generate x --texts a.txt --model a/b --out r", 1, "Expected one or more prompts, or a file"),
    ("generate --texts gone.txt --model a/b --out r", 1, "gone.txt does not exist"),
    ("generate --texts empty.txt --model a/b --out r", 1, "empty.txt holds no example"),
    ("generate x y --model a/b --out a.txt", 1, "Expected a folder for --out, got a.txt"),
    ("generate x ' ' --model a/b --out r", 1, "The prompt is empty"),
    ("support --batch-size 0", 2, "Must be >= 1"),
    ("support --out table.csv", 1, "Expected .md, .json for --out"),
    (
        "generate x --model {here} --target-tokenizer no/such/folder --out r.safetensors",
        1,
        "There is no folder 'no/such/folder'",
    ),
    ("view x --target-tokenizer no/such/folder", 1, "There is no folder 'no/such"),
    ("ablate --task nonsense", 1, "There is no task 'nonsense'"),
    ("ablate --task next-word", 1, "needs a file of examples"),
    ("ablate --task next-word --data empty.txt", 1, "empty.txt holds no example"),
    ("view --texts empty.txt", 1, "empty.txt holds no example"),
    ("heads --texts empty.txt --model a/b", 1, "empty.txt holds no example"),
    ("heads --texts a.txt --target x --out run", 1, "--target-tokenizer are for commands that"),
    ("norms --texts gone.txt --model a/b", 1, "gone.txt does not exist"),
    ("mechanism --texts a.txt --at nonsense", 1, "Expected layer and heads for --at"),
    ("faithfulness --texts empty.txt --model a/b", 1, "empty.txt holds no example"),
    ("atlas --texts empty.txt --model a/b --out run", 1, "holds no example"),
    ("headvis --texts empty.txt --model a/b --out run", 1, "holds no example"),
    (
        "ask --question What? --image gone.png --model no/such/folder",
        1,
        "The picture gone.png does not exist",
    ),
    ("why --chat gone.json --model a/b", 1, "--chat is gone.json: No such file"),
    ("effect x", 1, "Expected heads to disable, such as --zero 2-0"),
    ("probe --treebank gone.conllu", 1, "gone.conllu does not exist"),
    ("relations --treebank empty.txt", 1, "has no sentences"),
    ("coref --data gone.tsv", 1, "gone.tsv does not exist"),
    ("align --pairs empty.txt --model a/b", 1, "empty.txt holds no example"),
    ("support no/such/folder", 1, "There is no folder 'no/such/folder'"),
    ("figure gone.safetensors --out f.svg", 1, "gone.safetensors does not exist"),
    ("serve gone.safetensors", 1, "gone.safetensors does not exist"),
    ("compare gone.safetensors gone.safetensors", 1, "gone.safetensors"),
    ("export gone.safetensors --out w.csv", 1, "gone.safetensors"),
    ("check gone.safetensors", 1, "gone.safetensors"),
]


def test_every_command_refuses_before_torch_is_imported(here):
    """One process for all: torch, once imported, would be seen by the next."""
    (here / "empty.txt").write_text("\n\n", encoding="utf-8")
    (here / "a.txt").write_text("a cat\n", encoding="utf-8")
    (here / "a.json").write_text("[1]", encoding="utf-8")
    script = (
        "import sys, json; from headscope.cli import run\n"
        "for words in json.load(sys.stdin): print(run(words), 'torch' in sys.modules, "
        "file=sys.stderr)"
    )
    asked = json.dumps([shlex.split(words.format(here=here)) for words, _, _ in REFUSED_BY_COMMAND])
    lines = subprocess.run(
        [sys.executable, "-c", script], input=asked, capture_output=True, text=True, check=True
    ).stderr.splitlines()
    assert len(lines) == 2 * len(REFUSED_BY_COMMAND)
    for (words, code, line), said, ended in zip(
        REFUSED_BY_COMMAND, lines[::2], lines[1::2], strict=True
    ):
        assert line in said, words
        assert ended == f"{code} False", words
    assert {words.split()[0] for words, _, _ in REFUSED_BY_COMMAND} == {
        name for name in app if not name.startswith("-")
    }


WITHOUT_HUB = [
    ["heads", "--texts", "a.txt", "--model", "a/b"],
    ["support", "a/b"],
    ["generate", "x", "--out", "r.safetensors", "--model", "a/b"],
]
WITHOUT_TOKENIZER = [
    ["capture", "x", "--out", "r.safetensors"],
    ["view", "x"],
    ["effect", "x", "--zero", "0-0"],
    ["generate", "x", "--model", "{folder}", "--out", "r.safetensors"],
    ["align", "--pairs", "pairs.txt", "--model", "{folder}"],
    ["ablate", "--task", "translation", "--data", "pairs.jsonl", "--model", "{folder}"],
]


@pytest.fixture(scope="module")
def without_hub(folder, tmp_path_factory):
    """What becomes of commands whose hub cannot be reached."""
    work = tmp_path_factory.mktemp("without_hub")
    (work / "a.txt").write_text("a cat\n", encoding="utf-8")
    (work / "pairs.txt").write_text("a cat ||| a dog ||| 0-0 1-1\n", encoding="utf-8")
    (work / "pairs.jsonl").write_text('{"source": "a cat", "target": "a dog"}\n', encoding="utf-8")
    commands = [*WITHOUT_HUB, *(asking_for_tokenizer(words, folder) for words in WITHOUT_TOKENIZER)]
    # nothing listens on port 9 of this machine
    hub = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(work / "hf"), "HF_HUB_OFFLINE": "0"}
    return outcomes(commands, work, **hub)


def asking_for_tokenizer(command, folder):
    words = [str(folder) if word == "{folder}" else word for word in command]
    return [*words, "--target-tokenizer", "a/b"]


@pytest.mark.parametrize("command", WITHOUT_HUB)
def test_a_hub_that_cannot_be_reached_is_told_before_torch_is_imported(command, without_hub):
    code, is_loaded, said = without_hub[tuple(command)]
    assert (code, is_loaded) == (1, False)
    assert "http://127.0.0.1:9 cannot be reached" in said


@pytest.mark.parametrize("command", WITHOUT_TOKENIZER)
def test_so_is_a_hub_that_is_asked_for_a_tokenizer(command, folder, without_hub):
    code, is_loaded, said = without_hub[tuple(asking_for_tokenizer(command, folder))]
    assert (code, is_loaded) == (1, False)
    assert "Cannot load 'a/b': http://127.0.0.1:9 cannot be reached" in said


def test_help_loads_nothing_heavy():
    """It is asked for most often, and has to come at once."""
    code = (
        "import sys; from headscope.cli import run; run(['--help']); run(['view', '--help']); "
        "sys.exit(bool({'torch', 'transformers', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "--include-layers" in done.stdout
    as_module = [sys.executable, "-m", "headscope", "view", "--help"]
    done = subprocess.run(as_module, capture_output=True, text=True, check=True)
    assert "--include-layers" in done.stdout


def test_several_texts_are_viewed(folder, here, capsys):
    rows = ["a cat", "the hen sat there", None, "a dog ran"]
    (here / "a.jsonl").write_text(
        "".join(json.dumps({"text": row}) + "\n" for row in rows), encoding="utf-8"
    )
    arguments = ["--model", folder, "--evidence-of", "a.jsonl", "--layer", "1", "--out", "pages"]
    assert run(["view", "--texts", "a.jsonl", *arguments]) == 3
    pages = {page.name: header_of(page) for page in (here / "pages").iterdir()}
    assert {name: page["title"] for name, page in pages.items()} == {
        "1.html": "a cat",
        "2.html": "the hen sat there",
        "4.html": "a dog ran",
    }
    assert all(page["selection"]["layer"] == 1 and "evidence" in page for page in pages.values())
    assert "tiny ran on cpu" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("'a cat' --texts a.txt", "--texts replaces a text"),
        ("--texts a.txt --out a.txt", "Expected a folder for --out, got a.txt"),
        ("--texts gone.txt", "gone.txt does not exist"),
    ],
)
def test_pages_of_several_texts_say_what_they_need(arguments, line, here, capsys):
    (here / "a.txt").write_text("a cat\n", encoding="utf-8")
    assert run_line(f"view {arguments}") == 1
    assert line in capsys.readouterr().err
