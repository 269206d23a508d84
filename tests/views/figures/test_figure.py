import io
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image

import headscope as hs
from headscope.errors import FigureError, FileError, RecordError
from headscope.record import ModelFacts
from headscope.testing import random_record, random_weights

ALL_VIEWS = {
    "head": {},
    "model": {},
    "matrix": {"head": 1},
    "neuron": {"query": 4},
    "text": {},
    "pair": {"query": 4, "key": 1},
}


@pytest.fixture(params=ALL_VIEWS)
def drawn(request, grouped):
    return hs.figure(grouped, view=request.param, **ALL_VIEWS[request.param])


def pdf_text(data):
    """The PDF's parts that are not packed."""
    return data.decode("latin-1")


def test_every_view_is_as_wide_as_asked_in_every_format(grouped):
    for view, options in ALL_VIEWS.items():
        figure = hs.figure(grouped, view=view, width=100, **options)
        box = re.search(r"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", pdf_text(figure.to_bytes("pdf")))
        assert float(box[1]) * 25.4 / 72 == pytest.approx(100, abs=0.001)
        svg = ET.fromstring(figure.to_bytes("svg"))
        assert float(svg.get("width").removesuffix("pt")) * 25.4 / 72 == pytest.approx(
            100, abs=0.001
        )
        assert float(svg.get("height").removesuffix("pt")) == pytest.approx(float(box[2]), abs=0.01)
        assert Image.open(io.BytesIO(figure.to_bytes("png", dpi=200))).width == pytest.approx(
            100 / 25.4 * 200, abs=1
        )


def test_text_is_text_in_svg_and_pdf(drawn, see):
    svg = ET.fromstring(drawn.to_bytes("svg"))
    written = ["".join(node.itertext()) for node in svg.iter("{http://www.w3.org/2000/svg}text")]
    shown = see(drawn)
    ticks = [axis for axes in shown.axes.child_axes for axis in (axes.xaxis, axes.yaxis)]
    numbers = [label.get_text() for axis in ticks for label in axis.get_ticklabels()]
    assert sorted(text for text in [*shown.texts, *numbers] if text) == sorted(written)
    pdf = pdf_text(drawn.to_bytes("pdf"))
    assert "/Subtype /Type0" in pdf
    assert "/Type3" not in pdf


def test_the_same_record_gives_the_same_bytes_in_any_process(tmp_path, grouped):
    """In this one as in another, which has other hashes of the same strings."""
    hs.save(grouped, tmp_path / "r.safetensors")
    code = """
import headscope as hs
record = hs.load("r.safetensors")
print(hash("headscope"))
for kind in ("svg", "pdf", "png"):
    hs.figure(record, view="head").save(f"head.{kind}")
    hs.figure(record, view="neuron", query=4).save(f"neuron.{kind}")
"""
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    other = [sys.executable, "-c", code]
    told = subprocess.run(other, check=True, cwd=tmp_path, env=environment, stdout=subprocess.PIPE)
    assert int(told.stdout) != hash("headscope")
    record = hs.load(tmp_path / "r.safetensors")
    for view, options in (("head", {}), ("neuron", {"query": 4})):
        for kind in ("svg", "pdf", "png"):
            written = (tmp_path / f"{view}.{kind}").read_bytes()
            assert written == hs.figure(record, view=view, **options).to_bytes(kind)
            assert b"CreationDate" not in written
            assert b"dc:date" not in written


def test_every_file_carries_the_recipe(grouped, tmp_path):
    figure = hs.figure(grouped, view="head", layer=2, heads=[3, 1])
    wanted = figure.recipe
    assert wanted["call"] == "headscope.figure(record, view='head', layer=2, heads=[3, 1])"
    assert (wanted["layers"], wanted["heads"], wanted["tokens"]) == ([2], [1, 3], [6, 6])
    assert (wanted["model"], wanted["revision"]) == ("org/tiny", "abc")
    assert set(wanted["versions"]) == {"torch", "headscope", "matplotlib"}
    assert len(wanted["text_sha256"]) == 64
    image = Image.open(figure.save(tmp_path / "f.png"))
    assert json.loads(image.text["Description"]) == wanted
    svg = ET.fromstring(figure.save(tmp_path / "f.svg").read_bytes())
    assert json.loads(svg.find(".//{http://purl.org/dc/elements/1.1/}description").text) == wanted
    pdf = pdf_text(figure.save(tmp_path / "f.pdf").read_bytes())
    literal = re.search(r"/Subject \((.*?)(?<!\\)\)\s", pdf)[1]
    assert json.loads(re.sub(r"\\([()\\])", r"\1", literal)) == wanted


def test_none_is_not_given_and_numbers_of_numpy_are_numbers():
    figure = hs.figure(
        random_record(), view=None, heads=None, layer=np.int64(1), key=np.int32(3), title=None
    )
    assert figure.recipe["call"] == "headscope.figure(record, layer=1, key=3)"
    with pytest.raises(FigureError, match="no option 'vieww'"):
        hs.figure(random_record(), vieww=None)


def test_the_hash_is_of_the_text_and_of_nothing_else(pair, rng):
    other = hs.from_weights(random_weights(rng, (1, 2, 7, 7)), pair["self"].query)
    changed = hs.from_weights(random_weights(rng, (1, 2, 2, 2)), ["[CLS]", "b"])
    found = [hs.figure(record).recipe["text_sha256"] for record in (pair, other, changed)]
    assert found[0] == found[1] != found[2]


def test_saving_is_whole_or_not_at_all(tmp_path, monkeypatch):
    figure = hs.figure(random_record())
    path = figure.save(tmp_path / "fig.SVG")
    before = path.read_bytes()
    monkeypatch.setattr(type(figure), "to_bytes", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        figure.save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["fig.SVG"]


@pytest.mark.parametrize("name", ["fig.jpg", "fig", "fig.svg.gz", ".pdf"])
def test_another_format_is_refused(tmp_path, name):
    with pytest.raises(FigureError, match=r"ends in \.svg, \.pdf or \.png, got"):
        hs.figure(random_record()).save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_said(tmp_path):
    with pytest.raises(FileError, match="choose another place"):
        hs.figure(random_record()).save(tmp_path / "no" / "fig.svg")


def test_a_notebook_shows_the_svg(drawn):
    assert drawn._repr_svg_().startswith("<svg")
    assert ET.fromstring(drawn._repr_svg_()).tag.endswith("svg")


def test_what_is_drawn_on_top_is_saved():
    figure = hs.figure(random_record())
    figure.matplotlib.axes[0].text(1, 1, "mine")
    assert b"mine" in figure.to_bytes("svg")


def test_settings_of_the_reader_change_nothing_and_stay(grouped):
    wanted = hs.figure(grouped).to_bytes("svg")
    theirs = {
        "font.family": "serif",
        "savefig.facecolor": "red",
        "svg.fonttype": "path",
        "lines.dashed_pattern": (1, 9),
    }
    with mpl.rc_context(theirs):
        assert hs.figure(grouped).to_bytes("svg") == wanted
        assert mpl.rcParams["svg.fonttype"] == "path"


def test_no_window_and_no_global_figure_is_made():
    code = (
        "import sys, numpy as np, headscope as hs; "
        "record = hs.from_weights(np.ones((1, 2, 3, 3)) / 3, list('abc')); "
        "hs.figure(record).to_bytes('png'); sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_without_colour_everything_is_grey(grouped, theme):
    for view, options in ALL_VIEWS.items():
        figure = hs.figure(grouped, view=view, theme=theme, colour=False, **options)
        pixels = np.asarray(
            Image.open(io.BytesIO(figure.to_bytes("png", dpi=100))).convert("RGB")
        ).astype(int)
        assert np.ptp(pixels, axis=-1).max() <= 3
        assert pixels.std() > 5
    colours = np.asarray(
        Image.open(io.BytesIO(hs.figure(grouped).to_bytes("png", dpi=100))).convert("RGB")
    ).astype(int)
    assert np.ptp(colours, axis=-1).max() > 100


def test_dark_is_dark_and_light_is_light(grouped):
    for theme, low, high in (("light", 200, 255), ("dark", 0, 80)):
        data = hs.figure(grouped, view="model", theme=theme).to_bytes("png", dpi=50)
        assert low <= np.median(np.asarray(Image.open(io.BytesIO(data)).convert("L"))) <= high


def test_what_looks_like_markup_is_written_as_it_is(rng, see):
    tokens = ["$x^2$", "$", "\\frac{1}{2}_a^b", "&amp;", "<![CDATA[", "]]>"]
    record = hs.from_weights(
        cross=random_weights(rng, (2, 3, 6, 5)), decoder_tokens=tokens, encoder_tokens=list("klmno")
    )
    figure = hs.figure(
        record, title="$\\alpha$ <b>\x00", width=170
    )  # wide enough for the token in any font
    svg = ET.fromstring(figure.to_bytes("svg"))
    written = {"".join(node.itertext()) for node in svg.iter("{http://www.w3.org/2000/svg}text")}
    assert {*tokens, "$\\alpha$ <b>⟨U+0000⟩"} <= written & set(see(figure).texts)


def test_characters_without_a_font_become_squares_and_this_is_said(rng, see):
    weights = random_weights(rng, (1, 2, 2, 3))
    record = hs.from_weights(
        cross=weights, decoder_tokens=["a", f"b{chr(0x3FFFD)}"], encoder_tokens=["x", "y", "z"]
    )
    seen = see(hs.figure(record))
    assert "b□" in seen.texts
    assert "□ stands for a character that no font here can write" in seen.said
    assert "□" not in see(hs.figure(random_record())).said


def test_title_model_and_none(see):
    record = random_record()
    assert {"Cross · layer 0 · 3 heads", "random"} <= set(see(hs.figure(record)).texts)
    assert "Mine" in see(hs.figure(record, title=" Mine\n")).texts
    shown = see(hs.figure(record, view="matrix", layer=1, heads=[2], title="Mine")).texts
    assert any("layer 1" in text and "head 2" in text for text in shown)
    assert "random" not in see(hs.figure(record, title="")).texts


@pytest.mark.parametrize("view", ALL_VIEWS)
def test_titles_and_names_of_models_are_never_cut(view, grouped, check_titles):
    title = "Illicit hill · titles of more than sixty characters, " + "lilliputian" * 9
    name = "a-model-whose-name-is-much-longer-than-one-column-of-a-journal-" + "i" * 60
    record = replace(grouped, model=ModelFacts(name=name))
    for width in (50, 180):
        figure = hs.figure(record, view=view, title=title, width=width, **ALL_VIEWS[view])
        check_titles(figure, title, name)
    check_titles(hs.figure(record, tray=["0-1", "2 view=matrix"], title=title, width=50), title)
    check_titles(hs.figure(record, tray="kinds", title=title, width=50), title)


def test_font_size_is_in_points(grouped):
    for size in (6, 12):
        svg = hs.figure(grouped, font_size=size).to_bytes("svg").decode()
        assert re.search(rf"font-size: {size}px;[^>]*>the</text>", svg)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"vieww": "head"}, FigureError, "figure has no option 'vieww'; it has view, stack"),
        ({"view": "heads"}, FigureError, "view must be one of 'overview', 'head', .* not 'heads'"),
        ({"view": "model", "top_percent": 5}, FigureError, "View 'model' has no option"),
        (
            {"view": "neuron", "query": 1, "quantity": "score"},
            FigureError,
            "View 'neuron' has no option 'quantity'",
        ),
        ({"view": "neuron"}, FigureError, r"View 'neuron' shows one query; give its position"),
        ({"view": "pair", "query": 1}, FigureError, "View 'pair' shows one key"),
        ({"view": "text", "query": 1, "key": 1}, FigureError, "view 'pair' shows both"),
        ({"head": 1, "heads": [2]}, FigureError, "head=1 and heads=.*: give one"),
        ({"head": 3}, FigureError, r"heads=\[3\]: layer 0 has heads 0 to 2"),
        ({"heads": []}, FigureError, "choose at least one"),
        ({"heads": ["1"]}, FigureError, r"heads=\['1'\]"),
        ({"view": "model", "layers": []}, FigureError, "choose at least one layer"),
        ({"view": "model", "layers": [1, 9]}, RecordError, "has layers 0, 1, not 9"),
        ({"layer": 9}, RecordError, "has layers 0, 1, not 9"),
        ({"stack": "self"}, RecordError, "has the stacks 'cross', not 'self'"),
        ({"query": 5}, FigureError, "query=5: give the position of a token, 0 to 4"),
        ({"key": 7}, FigureError, "key=7: give the position of a token, 0 to 6"),
        ({"key": -1}, FigureError, "0 to 6"),
        ({"key": True}, FigureError, "key must be a whole number or a text, not True"),
        ({"filter": "ab"}, FigureError, "not of a pair of texts"),
        ({"top_percent": 0}, FigureError, "top_percent must be a number from 1 to 100, not 0"),
        ({"width": 30}, FigureError, "width must be a number from 40 to 1000, not 30"),
        ({"width": "85"}, FigureError, "not '85'"),
        ({"font_size": 3}, FigureError, "font_size must be a number from 4 to 24"),
        ({"font": "No Such Font"}, FigureError, "finds no such font"),
        ({"theme": "auto"}, FigureError, "theme must be one of 'light', 'dark', not 'auto'"),
        ({"quantity": "score"}, RecordError, "keep='qk'"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_what_is_not_there_cannot_be_drawn(options, error, message):
    with pytest.raises(error, match=message):
        hs.figure(random_record(), **options)


def test_only_special_tokens_leave_nothing(rng):
    record = hs.from_weights(random_weights(rng, (1, 2, 2, 2)), ["[CLS]", "[SEP]"])
    with pytest.raises(FigureError, match="drop hide_special="):
        hs.figure(record, hide_special=True)


def test_dots_are_checked():
    with pytest.raises(FigureError, match="dpi must be a number from 30 to 2400, not 0"):
        hs.figure(random_record()).to_bytes("png", dpi=0)


@pytest.mark.parametrize("given", [{"words": "yes"}, {"mean_heads": 3}, {"colour": "red"}])
def test_what_is_neither_true_nor_false_is_refused(given):
    (name,) = given
    with pytest.raises(FigureError, match=f"{name} must be True or False, not "):
        hs.figure(random_record(), view="matrix", **given)


@pytest.mark.parametrize("dpi", [96, 110, 120, 300])
def test_no_line_is_cut_at_any_resolution(dpi):
    """What stands below the grid fills its lines to the edge."""
    given = {"effect": [np.ones((12, 10, 10))] * 6}
    even = [np.full((12, 10, 10), 0.1, np.float32)] * 6
    record = hs.from_weights(even, [f"t{number}" for number in range(10)])
    figure = hs.figure(record, view="model", quantity="effect", quantities=given, width=170)
    picture = Image.open(io.BytesIO(figure.to_bytes("png", dpi=dpi))).convert("L")
    assert (np.asarray(picture)[-picture.height // 10 :, -2:] > 250).all()


@pytest.mark.parametrize("view", ["matrix", "text"])
def test_a_narrow_figure_shows_the_whole_scale(view, grouped, check_titles):
    figure = hs.figure(grouped, view=view, layer=0, head=1, width=40)
    texts = (text.get_text() for axes in figure.matplotlib.axes for text in axes.texts)
    numbers = [text for text in texts if text.endswith(" ×")]
    assert len(numbers) > 1
    check_titles(figure, "times the even share", *numbers)
