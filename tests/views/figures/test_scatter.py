"""View scatter: a dot for each head where its measures are, rings, names, and what is refused."""

import numpy as np
import pytest

import headscope as hs
from headscope.cli import run
from headscope.errors import FigureError
from headscope.testing import random_weights
from headscope.views.answers import figure_file
from headscope.views.figures._heads_plane import axes_of

pytest.importorskip("matplotlib", reason="needs the extra figures")
from matplotlib.patches import Circle


def record(seed, layers=2):
    """Of 3 heads that look by chance."""
    pieces = ["[CLS]", *["the", "cat", "saw", "a", "cat"], "[SEP]"]
    return hs.from_weights(random_weights(np.random.default_rng(seed), (layers, 3, 7, 7)), pieces)


@pytest.fixture(scope="module")
def records():
    return [record(seed) for seed in range(4)]


@pytest.fixture(scope="module")
def found(records):
    return hs.heads(records, distances=True)


def dots(figure, see, *, filled=True):
    circles = see(figure).boxes(Circle)
    return np.array([each.center for each in circles if (each.get_facecolor()[3] > 0) == filled])


@pytest.mark.parametrize(
    "axes", [("distance", "entropy"), ("layer", "special"), ("class vertical", "self")]
)
def test_dots_stand_where_the_measures_are(axes, records, found, see):
    x, y = axes
    figure = hs.figure(records[0], view="scatter", evidence=found, x=x, y=y)
    places = dots(figure, see)
    assert len(places) == len(found.cells)
    for axis, name in enumerate(axes):
        values = axes_of(found)[name]
        # a line through all dots, to the right and upwards
        slope, start = (
            np.polyfit(values, places[:, axis], 1) if np.ptp(values) else (0.0, places[0, axis])
        )
        np.testing.assert_allclose(places[:, axis], slope * values + start, atol=1e-6)
        assert np.ptp(values) == 0 or (slope > 0) == (axis == 0)
    text = see(figure).texts
    assert any(each.startswith(x) for each in text)
    assert any(each.startswith(y) for each in text)
    assert f"{len(found.cells)} heads over 4 texts" in text


def test_the_map_keeps_distances(records, found, see):
    places = dots(hs.figure(records[0], view="scatter", evidence=found, x="map"), see)
    wanted = np.linalg.norm(found.map[:, None] - found.map, axis=-1)
    drawn = np.linalg.norm(places[:, None] - places, axis=-1)
    np.testing.assert_allclose(drawn / drawn.max(), wanted / wanted.max(), atol=1e-6)


def test_chosen_heads_have_rings_and_their_names(records, found, see):
    figure = hs.figure(records[0], view="scatter", evidence=found, layer=1, heads=[0, 2])
    places, rings = dots(figure, see), dots(figure, see, filled=False)
    np.testing.assert_allclose(
        rings, places[[found.cells.index((1, 0)), found.cells.index((1, 2))]]
    )
    assert {"1-0", "1-2"} <= set(see(figure).texts)
    assert "rings: the chosen heads" in see(figure).said
    assert "no label" in see(figure).said
    assert not len(dots(hs.figure(records[0], view="scatter", evidence=found), see, filled=False))


def test_the_recipe_names_the_evidence(records, found):
    recipe = hs.figure(records[0], view="scatter", evidence=found, x="self").recipe
    assert recipe["call"] == "headscope.figure(record, view='scatter', evidence=..., x='self')"
    assert (recipe["view"], recipe["layers"], recipe["heads"]) == ("scatter", [0, 1], [0, 1, 2])


def test_one_text_says_so(records, see):
    figure = hs.figure(records[0], view="scatter", evidence=hs.heads(records[0]))
    assert "seen on one text only, which is no evidence for others" in see(figure).said


def test_a_result_alone_is_drawn_by_its_measures(found, see):
    figure = found.figure(axes=("self", "special"))
    assert len(dots(figure, see)) == len(found.cells)
    assert "label" not in see(figure).texts


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "and nothing was given; give evidence=hs.heads"),
        ({"evidence": [1]}, "and a list was given"),
        ({"x": "height"}, "There is no 'height' of heads; there are layer, "),
        ({"quantity": "score"}, "View 'scatter' has no option 'quantity'"),
    ],
)
def test_what_cannot_be_drawn_is_said(options, message, records, found):
    given = {"evidence": found} if "x" in options or "quantity" in options else {}
    with pytest.raises(FigureError, match=message):
        hs.figure(records[0], view="scatter", **given | options)


def test_evidence_of_another_model_is_refused(records):
    larger = hs.heads([record(1, layers=4)])
    with pytest.raises(FigureError, match=r"The evidence has a head 2-0, which the record has not"):
        hs.figure(records[0], view="scatter", evidence=larger)


def test_a_live_page_gives_the_same(records, found):
    view = hs.view(records[0], evidence=found)
    given = figure_file(
        view.record, "svg", {"view": "scatter", "layer": 1, "head": 0}, view.options
    )
    assert given == hs.figure(records[0], view="scatter", layer=1, head=0, evidence=found).to_bytes(
        "svg"
    )


def test_the_command_takes_a_tally_or_this_text(records, found, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    hs.save(records[0], "run.safetensors")
    found.tally.save("kept.safetensors")
    line = ["figure", "run.safetensors", "--view", "scatter"]
    kept = "--evidence-of kept.safetensors --x map --at 1-0 --out a.svg"
    assert run([*line, *kept.split()]) == 0
    wanted = hs.figure(
        hs.load("run.safetensors"), view="scatter", layer=1, head=0, x="map", evidence=found
    )
    assert (tmp_path / "a.svg").read_bytes() == wanted.to_bytes("svg")
    assert run([*line, "--evidence", "--out", "b.svg"]) == 0
    assert "seen on one text only" in (tmp_path / "b.svg").read_text(encoding="utf-8")
    capsys.readouterr()
    assert run([*line, "--out", "c.svg"]) == 1
    assert "give evidence=hs.heads(records) (--evidence, --evidence-of)" in capsys.readouterr().err
    assert run(["figure", "run.safetensors", "--evidence", "--out", "c.svg"]) == 1
    assert "Evidence needs --view scatter, got --view head" in capsys.readouterr().err
    assert not (tmp_path / "c.svg").exists()
