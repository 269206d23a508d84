"""headscope relations and coref: annotated files in, tables and pictures out."""

import csv
import json
import shlex

import pytest

from headscope.cli import run

from .conftest import complaint, header_of, run_line

BANK = """# sent_id = one
1\tthe\tthe\tDET\tDT\t_\t2\tdet\t_\t_
2\tcat\tcat\tNOUN\tNN\t_\t3\tnsubj\t_\t_
3\tsat\tsit\tVERB\tVB\t_\t0\troot\t_\t_

# sent_id = two
1\tit\tit\tPRON\tPRP\t_\t2\tnsubj\t_\t_
2\tsat\tsit\tVERB\tVB\t_\t0\troot\t_\t_

# sent_id = three
1\ta\ta\tDET\tDT\t_\t2\tdet\t_\t_
2\tcat\tcat\tNOUN\tNN\t_\t0\troot\t_\t_

# sent_id = four
1\tthe\tthe\tDET\tDT\t_\t2\tdet\t_\t_
2\tcat\tcat\tNOUN\tNN\t_\t0\troot\t_\t_
"""
SENTENCES = """sentid	sentence
cat.dog.0.male.txt	a cat saw a dog he sat
cat.dog.1.male.txt	a cat saw a dog he ran
cow.dog.1.male.txt	a cow saw a dog he sat
"""


@pytest.fixture
def here(here):
    (here / "bank.conllu").write_text(BANK, encoding="utf-8")
    (here / "all.tsv").write_text(SENTENCES, encoding="utf-8")
    return here


def test_relations_of_a_treebank(folder, here, capsys):
    given = shlex.split(
        f"relations --treebank bank.conllu --model {folder} --random-weights --out found.csv"
    )
    assert run(given) == 0
    out, _ = capsys.readouterr()
    assert "4 sentences (median 8 tokens), 9 words" in out
    assert "random weights" in out
    assert "tree undirected, all but punct and root" in out
    with (here / "found.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    det = next(row for row in rows if (row["relation"], row["score"]) == ("det", "max"))
    assert (det["count"], det["offset"], det["baseline"]) == ("3", "1", "1.0")
    assert 0 <= float(det["random_accuracy"]) <= 1
    assert (
        run_line(f"relations --treebank bank.conllu --model {folder} --sentences 2 --no-trees") == 0
    )
    out, _ = capsys.readouterr()
    assert "2 sentences (median " in out
    assert " tokens), 5 words" in out
    assert "tree" not in out.replace("treebank", "")


def test_relations_are_evidence_of_a_view(folder, here, capsys):
    assert run(["view", "the cat", "--model", folder, "--evidence-of", "bank.conllu"]) == 0
    evidence = header_of(here / "headscope.html")["evidence"]
    assert evidence["texts"] == 4
    assert [(each["name"], each["against"]) for each in evidence["patterns"]] == [
        ("det", "position"),
        ("nsubj", "position"),
    ]


def test_coreference_of_schemas(folder, here, capsys):
    assert run_line(f"coref --data all.tsv --model {folder} --out found.json --plot found.svg") == 0
    out, _ = capsys.readouterr()
    assert ", all: " in out
    assert "3 passages (median 18 tokens), 3 questions" in out
    rows = json.loads((here / "found.json").read_text(encoding="utf-8"))
    assert {(row["kind"], row["count"]) for row in rows} == {
        ("all", 3),
        ("pronoun", 3),
        ("male", 3),
    }
    assert "nearest mention" in (here / "found.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("relations --treebank none.conllu", "none.conllu does not exist"),
        ("relations --treebank bad.conllu", "bad.conllu, line 1: the head is 9; expected"),
        ("relations --treebank bank.conllu --out found.txt", "for --out, got found.txt"),
        ("coref --data bank.conllu", "bank.conllu is none of LitBank"),
    ],
)
def test_what_is_wrong_is_said_before_a_model_is_loaded(here, capsys, given, said):
    (here / "bad.conllu").write_text("1\tw\tw\tX\tX\t_\t9\tdep\t_\t_\n", encoding="utf-8")
    assert run_line(f"{given} --model no/such/model") == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wanted", "name"), [("", "one"), ("--sentence two", "two"), ("--sentence 2", "three")]
)
def test_view_shows_a_sentence_with_its_tree(wanted, name, folder, here, capsys):
    assert run_line(f"view --treebank bank.conllu {wanted} --model {folder} --out page.html") == 0
    assert capsys.readouterr().err == ""
    links = header_of(here / "page.html")["links"]
    assert (links["name"], links["tree"]) == (name, True)


def test_view_shows_a_tree_over_a_record_of_its_text(folder, here, capsys):
    assert run(["capture", "it sat", "--model", folder, "--out", "it.safetensors"]) == 0
    given = ["view", "it.safetensors", "--treebank", "bank.conllu"]
    assert run([*given, "--sentence", "two", "--out", "page.html"]) == 0
    links = header_of(here / "page.html")["links"]
    assert links["arcs"] == [{"dependent": 0, "head": 1, "label": "nsubj"}]
    capsys.readouterr()
    assert run([*given, "--sentence", "one"]) != 0
    err = capsys.readouterr().err
    assert err.startswith(
        "headscope: The record is of 'it sat', and links= is the sentence 'the cat sat'"
    )
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("--treebank bank.conllu --sentence five", "bank.conllu has no sentence 'five'; give"),
        ("--treebank bank.conllu --sentence 4", "or a number from 0 to 3"),
        ("--treebank none.conllu", "none.conllu does not exist"),
        ("'it sat' --sentence two", "--sentence two is of no treebank; give --treebank"),
        ("", "Expected a text, or a picture, video or sound with --image, --video or"),
    ],
)
def test_view_of_no_sentence_is_one_line(given, said, here, capsys):
    assert run_line(f"view {given}") != 0
    assert said in complaint(capsys)
