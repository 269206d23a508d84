"""One bad text costs one text: it is named, the rest goes on, and the last line and the exit code
say so.
"""

import json

import pytest

from headscope.cli import run
from headscope.testing import tiny_model, tiny_tokenizer

from .conftest import run_line

GOOD = ["the cat sat on it.", "a dog ran off.", "it was she who sat."]
BAD = {
    2: ({"text": "a\ud800b"}, "half of a character"),
    3: ({"text": None}, "has no 'text'"),
    5: ({"text": 7}, "has 7 (int)"),
    6: ({"text": " "}, "empty"),
    7: ({"text": "1 2 3 4"}, "are [UNK]"),
    8: ({"text": "a " * 60}, "positions for"),
}


@pytest.fixture
def texts(here):
    """Eight rows, three of them good, with a label besides."""
    good = iter(GOOD)
    rows = [
        BAD[number][0] if number in BAD else {"text": next(good)}
        for number in range(1, 9)
        if number != 4
    ]
    rows.insert(3, {"text": GOOD[1], "label": 1})
    (here / "texts.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="ascii"
    )
    return "texts.jsonl"


@pytest.fixture(scope="module")
def classifier(saved):
    from transformers import AutoModelForSequenceClassification

    config = tiny_model("bert").config
    return saved(
        "classifier", AutoModelForSequenceClassification.from_config(config), tiny_tokenizer()
    )


@pytest.mark.parametrize(
    "command", [["heads"], ["norms"], ["mechanism", "--at", "0-0"], ["faithfulness"]], ids=" ".join
)
def test_a_bad_text_costs_one_text(command, texts, folder, classifier, capsys):
    model = classifier if command == ["faithfulness"] else folder
    assert run([*command, "--texts", texts, "--model", model]) == 3
    told = capsys.readouterr()
    lines = told.err.strip().splitlines()
    assert lines[-1] == "headscope: 6 of 8 texts were left out: 2, 3, 5, 6, 7, 8"
    for number, (_, reason) in BAD.items():
        named = [line for line in lines if line.startswith(f"headscope: text {number} ")]
        assert len(named) == 1
        assert f"texts.jsonl, line {number}" in named[0]
        # [UNK] counts as special, and faithfulness ranks tokens that are not
        assert reason in named[0] or (number, command) == (7, ["faithfulness"])
    assert told.out


def test_nothing_left_out_is_a_plain_success(here, folder, capsys):
    (here / "texts.txt").write_text("\n".join(GOOD), encoding="utf-8")
    assert run(["heads", "--texts", "texts.txt", "--model", folder]) == 0
    assert "left out" not in capsys.readouterr().err


@pytest.mark.parametrize("command", ["heads"])
def test_too_few_texts_are_told_before_the_work_and_after_it(command, here, folder, capsys):
    (here / "texts.txt").write_text("\n".join(GOOD), encoding="utf-8")
    assert run_line(f"{command} --texts texts.txt --model {folder}") == 0
    told = capsys.readouterr()
    assert told.err.startswith("headscope: 3 texts are too few to tell up to ")
    assert "3 texts are too few to tell" in told.out


def test_one_text_that_cannot_be_read_is_an_error(here, folder, capsys):
    assert run(["heads", "a\udcffb", "--model", folder]) == 1
    assert "half of a character" in capsys.readouterr().err


def test_texts_of_unknown_tokens_are_refused_before_any_run(here, folder, capsys):
    (here / "texts.txt").write_text("1 2 3\n4 5 6 a\n", encoding="utf-8")
    assert run(["heads", "--texts", "texts.txt", "--model", folder]) == 1
    assert "86% of the tokens of the texts are [UNK]" in capsys.readouterr().err
    assert run(["heads", "--texts", "texts.txt", "--model", folder, "--allow-unfit"]) == 0


def test_the_evidence_of_a_page_says_it_too(texts, folder, capsys):
    assert run(["view", "the cat sat", "--model", folder, "--evidence-of", texts]) == 3
    assert (
        "headscope: 6 of 8 texts were left out: 2 of the evidence, 3 of the evidence, 5 of"
        in capsys.readouterr().err
    )


def test_texts_of_pages_and_of_their_evidence_are_counted_together(here, folder, capsys):
    (here / "pages.jsonl").write_text('{"text": null}\n"a cat"\n', encoding="utf-8")
    (here / "a.txt").write_text("a cat\na dog ran\n", encoding="utf-8")
    arguments = ["--model", folder, "--evidence-of", "a.txt", "--out", "pages"]
    assert run(["view", "--texts", "pages.jsonl", *arguments]) == 3
    assert [page.name for page in (here / "pages").iterdir()] == ["2.html"]
    assert "1 of 4 texts were left out: 1\n" in capsys.readouterr().err
