"""What draws and shows results is found by their kind; of what has neither, one sentence says what
there is.
"""

import base64
import html
import subprocess
import sys

import pytest

import headscope as hs
from headscope.results import Result, drawing_of, view_of
from headscope.studies import Relations
from headscope.testing import random_record


class Lengths(Result):
    KIND = "lengths of the tests"

    def columns(self):
        return {"length": [3, 5]}


def test_every_kind_that_is_drawn_is_that_of_a_result():
    assert drawing_of(hs.heads([random_record(seed=seed) for seed in range(2)])) is not None
    assert view_of(hs.compare(random_record(seed=1), random_record(seed=2))) is not None


def test_results_are_drawn_by_figure_and_by_themselves():
    heads = hs.heads([random_record(seed=seed) for seed in range(2)])
    drawn = hs.figure(heads, title="one")
    assert drawn.to_bytes("svg") == heads.figure(title="one").to_bytes("svg")
    assert drawn.recipe["call"] == "headscope.figure(result, title='one')"
    with pytest.raises(hs.errors.FigureError, match="fits into no axes"):
        hs.figure(heads, ax=object())


def test_comparisons_are_shown_by_view_and_by_themselves():
    compared = hs.compare(random_record(seed=1), random_record(seed=2))
    assert hs.view(compared).header == compared.view().header
    assert hs.view(compared, view="matrix").header["selection"]["view"] == "matrix"


def test_every_kind_of_result_is_drawn_and_shown(result, tmp_path):
    drawn = result.plot(tmp_path / "a.svg", title="what was <b>found</b>")
    assert drawn.read_bytes() == hs.figure(result, title="what was <b>found</b>").to_bytes("svg")
    page = hs.view(result).save(tmp_path / "a.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "Content-Security-Policy" in page
    assert type(result.view()) is type(hs.view(result))


def test_a_page_of_a_result_holds_words_figure_and_tables_and_no_script():
    heads = hs.heads([random_record(seed=seed) for seed in range(2)])
    page = hs.view(heads, theme="dark", title="<script>alert(1)</script>")
    assert page.html.count('src="data:image/svg+xml;base64,') == 1
    assert "<script" not in page.html
    assert "&lt;script&gt;" in page.html
    assert heads.summary in html.unescape(page.html)
    assert page.html.count("<table>") == heads._repr_html_().count("<table>")
    assert base64.b64decode(page.html.partition("base64,")[2].partition('"')[0]) == heads.figure(
        theme="dark", title="<script>alert(1)</script>"
    ).to_bytes("svg")
    assert page._repr_html_().endswith(page.body)
    with pytest.raises(hs.errors.PageError, match="theme is 'auto'; give 'light' or 'dark'"):
        hs.view(heads, theme="auto")
    with pytest.raises(hs.errors.PageError, match="A figure of a result has no option 'layer'"):
        heads.view(layer=2)
    with pytest.raises(hs.errors.PageError, match="A figure of a result has no option 'view'"):
        hs.view(heads, view="head")


def test_a_page_says_why_there_is_no_figure():
    assert "No figure: No sentence was counted" in hs.view(Relations()).html


def test_what_is_missing_is_said_in_one_sentence():
    for ask in (hs.figure, Result.figure):
        with pytest.raises(hs.errors.FigureError, match="^Lengths has no figure: print it"):
            ask(Lengths())


def test_a_result_is_drawn_where_nothing_imported_the_figures():
    code = (
        "from headscope.patterns import heads; from headscope.testing import random_record; "
        "import sys;found = heads([random_record(seed=seed) for seed in range(2)]);assert "
        "'headscope.views' not in sys.modules; found.figure().to_bytes('svg')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
