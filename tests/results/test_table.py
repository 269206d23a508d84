"""Every result is printed by one printer: plain words first, at most 100 columns, a legend, HTML in
notebooks.
"""

from html.parser import HTMLParser
from pathlib import Path

import pytest

import headscope as hs
from headscope.results import Column, TextTable, wrapped
from headscope.testing import random_record

KEPT = Path(__file__).parent / "kept"
HOSTILE = "<script>alert(1)</script> & \"'"


def results():
    """One of each kind that needs no model."""
    yield from (hs.load(path) for path in sorted(KEPT.glob("*.safetensors")))
    yield hs.compare(
        random_record(seed=1),
        random_record(seed=2),
        spread=[(random_record(seed=3), random_record())],
    )
    yield hs.heads([random_record(seed=seed, layers=3) for seed in range(3)])


class Tags(HTMLParser):
    """Counts the tags, and sees that each one that is opened is closed."""

    def __init__(self, text):
        super().__init__()
        self.opened, self.words = [], []
        self.seen = set()
        self.feed(text)
        assert not self.opened

    def handle_starttag(self, tag, attrs):
        self.opened.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.opened.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_no_line_of_any_result_is_longer_than_100():
    for found in results():
        assert max(map(len, str(found).splitlines())) <= 100, type(found).__name__
        assert len(repr(found).splitlines()) == 1


def test_the_summary_comes_first_and_is_words():
    for found in results():
        summary = found.summary
        assert " ".join(str(found).split()).startswith(" ".join(summary.split())), type(
            found
        ).__name__
        assert "<" not in summary.splitlines()[0].split(":")[0]
        assert found.table() in str(found)


def test_every_table_has_a_legend():
    for found in results():
        tables = [block for block in found._blocks() if isinstance(block, TextTable)]
        assert tables, type(found).__name__
        assert all(table.legend for table in tables)


def test_what_a_legend_says_stands_once():
    text = str(hs.load(KEPT / "relations.safetensors"))
    assert text.count("words: how many have the relation") == 1


def test_notebooks_show_the_same_as_html():
    for found in results():
        tags = Tags(found._repr_html_())
        assert {"p", "table", "th", "td"} <= tags.seen
        assert "".join(tags.words).startswith(found.summary)


def test_strings_of_strangers_are_escaped():
    study = hs.load(KEPT / "relations.safetensors")
    study.sums.facts["model"] = HOSTILE
    study.left_out = {HOSTILE: HOSTILE}
    assert "<script>" not in study._repr_html_()
    assert Tags(study._repr_html_()).seen == set(
        "p div table caption thead tbody tr th td small".split()
    )
    table = TextTable((Column(HOSTILE, (HOSTILE,), HOSTILE),), title=HOSTILE)
    assert "<script>" not in table.html()


def test_columns_that_do_not_fit_stand_below_behind_the_first():
    names = ["key", *(f"column {number}" for number in range(20))]
    rows = [
        names,
        *([f"row {row}", *(f"{row}.{number}" for number in range(20))] for row in range(3)),
    ]
    parts = str(TextTable.of_rows(rows, says={"column 19": "the last"})).split("\n\n")
    assert len(parts) == 3
    assert all(part.startswith("key") and "\nrow 2" in part for part in parts)
    words = " ".join(parts).split()
    assert all(f"{row}.{number}" in words for row in range(3) for number in range(20))
    assert parts[-1].endswith("\ncolumn 19: the last")


def test_long_cells_are_wrapped_in_their_column():
    words = (
        "next 0.90 [0.80, 1.00], previous 0.70 [0.60, 0.80], delimiter 0.65 [0.60, 0.70], sink "
        "0.9, bag 0.8, same 1"
    )
    text = str(
        TextTable.of_rows([("head", "labels"), ("0-0", words), ("0-1", "-")], wraps=("labels",))
    )
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100
    assert [line[:3] for line in lines] == ["hea", "0-0", "   ", "0-1"]
    assert " ".join(text.replace("0-0", "").split()).startswith(f"head labels {words} 0-1")
    assert str(
        TextTable.of_rows([("head", "a", "labels"), ("0-0", "x" * 60, words)], wraps=("labels",))
    ).splitlines()[0].split() == ["head", "a", "labels"]


def test_numbers_stand_on_the_right_where_that_is_wanted():
    table = TextTable.of_rows(
        [("layer", "share"), ("0", "9 %"), ("all", "10 %")], align="right", title="Shares:"
    )
    assert str(table).splitlines() == ["Shares:", "layer  share", "0        9 %", "all     10 %"]


@pytest.mark.parametrize("inset", ["", "  "])
def test_text_is_wrapped_between_words_and_keeps_its_inset(inset):
    lines = wrapped(f"{inset}{'word ' * 40}\nshort\n\nlast").splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[1].startswith(f"{inset}word")
    assert lines[-3:] == ["short", "", "last"]
