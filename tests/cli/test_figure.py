import io
import json
import shlex

import pytest
from PIL import Image

import headscope as hs
from headscope.cli import run
from headscope.testing import random_record

from .conftest import complaint, run_line


@pytest.fixture
def here(here):
    hs.save(random_record(), "run.safetensors")
    return here


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_a_figure_is_the_one_that_python_draws(here, kind, capsys):
    out = f"fig.{kind}"
    line = shlex.split(
        f"figure run.safetensors --view head --at 1-0,2 --out {out} --theme dark --grey"
    )
    assert (
        run([*line, "--width", "70", "--font-size", "7", "--top-percent", "80", "--query", "3"])
        == 0
    )
    out_text, err = capsys.readouterr()
    assert f"Wrote {here / out}" in out_text
    assert err == ""
    options = {
        "layer": 1,
        "heads": [0, 2],
        "query": 3,
        "top_percent": 80,
        "theme": "dark",
        "width": 70.0,
        "font_size": 7.0,
    }
    wanted = hs.figure(hs.load("run.safetensors"), view="head", **options, colour=False)
    assert (here / out).read_bytes() == wanted.to_bytes(kind)


def test_every_option_reaches_the_figure(here):
    line = shlex.split("figure run.safetensors --view model --out fig.png --layers 1 --stack cross")
    assert (
        run([*line, *shlex.split("--at 1-2 --title T --hide-special --filter all --dpi 100")]) == 0
    )
    image = Image.open(io.BytesIO((here / "fig.png").read_bytes()))
    assert image.width == pytest.approx(85 / 25.4 * 100, abs=1)
    assert "layers=[1]" in image.text["Description"]
    assert "head=2" in image.text["Description"]


@pytest.mark.parametrize(("command", "out"), [("figure", "fig.svg"), ("view", "page.html")])
def test_a_further_record_stands_beside_the_first(here, command, out, capsys):
    rest = ["--tray", "0-1", "0-1 record=b", "--out", out]
    assert run([command, "run.safetensors", "--beside", "run.safetensors", *rest]) == 0
    assert "record=b" in (here / out).read_text()
    assert run([command, "run.safetensors", *rest]) != 0
    assert "--beside" in capsys.readouterr().err


@pytest.mark.parametrize("tray", ["0-1 '1-2 view=matrix'", "kinds"])
def test_pictures_stand_in_a_row(here, tray):
    assert run_line(f"figure run.safetensors --tray {tray} --out fig.png --dpi 100") == 0
    image = Image.open(io.BytesIO((here / "fig.png").read_bytes()))
    assert image.width == pytest.approx(174 / 25.4 * 100, abs=1)
    assert json.loads(image.text["Description"])["view"] == "compare"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("--at 2_0 --out f.svg", "headscope: Expected layer and heads for --at, such as 2-0"),
        ("--at 1-2 --layer 0 --out f.svg", "headscope: --at and --layer both say where to look;"),
        ("--at 5 --out f.svg", "headscope: Stack 'cross' has layers 0, 1, not 5"),
        ("--at 1-7 --out f.svg", "headscope: heads=[7]: layer 1 has heads 0 to 2"),
        ("--out f.jpg", "headscope: Expected .svg, .pdf, .png for --out, got f.jpg"),
        ("--view pair --out f.svg", "headscope: View 'pair' shows one query; give its position"),
        ("--view neuron --query 1 --out f.svg", "headscope: Layer 0 holds weights but no queries"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing_behind(here, arguments, line, capsys):
    assert run_line(f"figure run.safetensors {arguments}") == 1
    assert complaint(capsys).startswith(line)
    assert [entry.name for entry in here.iterdir()] == ["run.safetensors"]


def test_an_unknown_view_is_wrong_usage(here, capsys):
    assert run(["figure", "run.safetensors", "--view", "heads", "--out", "f.svg"]) == 2
    assert capsys.readouterr().err.startswith("headscope: Invalid value")
