"""What draws and shows results is found by their kind; of what has neither, one sentence says what
there is.
"""

import subprocess
import sys

import pytest

import headscope as hs
from headscope.results import Result, drawing_of, draws, shows, view_of
from headscope.studies import Relations
from headscope.testing import random_record
from headscope.views.figures import heads_figure


class Lengths(Result):
    KIND = "lengths of the tests"

    def columns(self):
        return {"length": [3, 5]}


@pytest.fixture
def entered(monkeypatch):
    """Entries that a test makes are gone after it."""
    for door, entries in hs.results._registry._ENTRIES.items():
        monkeypatch.setitem(hs.results._registry._ENTRIES, door, dict(entries))


def test_every_kind_that_is_drawn_is_that_of_a_result():
    heads = hs.heads([random_record(seed=seed) for seed in range(2)])
    assert drawing_of(heads) is heads_figure
    assert view_of(hs.compare(random_record(seed=1), random_record(seed=2))) is not None


def test_results_are_drawn_by_figure_and_by_themselves():
    heads = hs.heads([random_record(seed=seed) for seed in range(2)])
    assert hs.figure(heads, title="one").to_bytes("svg") == heads_figure(
        heads, title="one"
    ).to_bytes("svg")
    assert heads.figure(title="one").to_bytes("svg") == heads_figure(heads, title="one").to_bytes(
        "svg"
    )
    with pytest.raises(hs.FigureError, match="fits into no axes"):
        hs.figure(heads, ax=object())


def test_comparisons_are_shown_by_view_and_by_themselves():
    compared = hs.compare(random_record(seed=1), random_record(seed=2))
    assert hs.view(compared).header == compared.view().header
    assert hs.matrix_view(compared).header["selection"]["view"] == "matrix"


def test_what_is_missing_is_said_in_one_sentence():
    heads = hs.heads([random_record(seed=seed) for seed in range(2)])
    compared = hs.compare(random_record(seed=1), random_record(seed=2))
    for ask in (hs.view, hs.head_view, Result.view):
        with pytest.raises(
            hs.PageError, match=r"^A Heads has a figure and no page: draw it with headscope.figure"
        ):
            ask(heads)
    for ask in (hs.figure, Result.figure):
        with pytest.raises(hs.FigureError, match="^A Comparison has a page and no figure"):
            ask(compared)
    with pytest.raises(
        hs.FigureError,
        match=r"^A Relations is drawn to a file by its own \.plot\(path\), and not by",
    ):
        hs.figure(Relations())
    with pytest.raises(
        hs.PageError,
        match=r"^A Relations has no page: draw it to a file with its own \.plot\(path\)",
    ):
        hs.view(Relations())
    with pytest.raises(hs.FigureError, match="^A Lengths has no figure: print it"):
        hs.figure(Lengths())
    with pytest.raises(hs.PageError, match="^A Lengths has neither a page nor a figure"):
        hs.view(Lengths())


def test_a_kind_of_ones_own_is_entered(entered):
    record = random_record()

    @draws(Lengths.KIND)
    def lengths_figure(found, **options):
        assert isinstance(found, Lengths)
        return hs.figure(record, view="head", layer=0, head=0, **options)

    @shows(Lengths.KIND)
    def lengths_view(found, **options):
        assert isinstance(found, Lengths)
        return hs.view(record, **options)

    assert hs.figure(Lengths(), width=80.0).matplotlib.get_size_inches()[0] == pytest.approx(
        80 / 25.4
    )
    assert Lengths().figure(width=60.0).matplotlib.get_size_inches()[0] == pytest.approx(60 / 25.4)
    assert hs.view(Lengths(), theme="dark").header["selection"]["theme"] == "dark"
    assert Lengths().view(layer=1).header["selection"]["layer"] == 1


def test_a_result_is_drawn_where_nothing_imported_the_figures():
    code = (
        "from headscope.patterns import heads; from headscope.testing import random_record; "
        "import sys;found = heads([random_record(seed=seed) for seed in range(2)]);assert "
        "'headscope.views' not in sys.modules; found.figure().to_bytes('svg')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
