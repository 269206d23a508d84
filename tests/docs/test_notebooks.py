"""The tutorials run as notebooks, and the committed notebooks are those of the pages."""

import base64
import io
import re
import tomllib
from functools import partialmethod

import nbformat
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.patches import FancyBboxPatch, Rectangle
from PIL import Image

import headscope
import write_notebooks
from headscope.capturing import _hub
from headscope.views.figures import Figure
from write_notebooks import FOLDER, INSTALL, TUTORIALS, cells_of

NAMES = [page.stem for page in TUTORIALS]


LEAST = 1.0
"""Width and height in millimetres of what is seen in a small picture."""


def sources(cells):
    return [(cell.cell_type, cell.source) for cell in cells]


def kept_in(figure, to_bytes, drawn, kind, **options):
    """The bytes of a figure; that of a picture is put into a list."""
    if kind == "png":
        drawn.append(figure)
    return to_bytes(figure, kind, **options)


def pictures_of(notebook):
    """The colours of each picture of a notebook, once each."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    stored = [
        output.data["image/png"] for output in outputs if "image/png" in output.get("data", ())
    ]
    pictures = [Image.open(io.BytesIO(base64.b64decode(each))) for each in stored]
    return [np.unique(np.asarray(each.convert("RGB")).reshape(-1, 3), axis=0) for each in pictures]


def colours_of_marks(figure):
    """Colours of the squares of legends, chips and bars of a figure."""
    marks = [patch for axes in figure.matplotlib.axes for patch in axes.patches]
    squares = [mark for mark in marks if isinstance(mark, Rectangle | FancyBboxPatch)]
    seen = [mark for mark in squares if min(mark.get_width(), mark.get_height()) >= LEAST]
    filled = [mark.get_facecolor() for mark in seen if mark.get_facecolor()[3] == 1]
    return {tuple(round(255 * part) for part in to_rgb(colour)) for colour in filled}


@pytest.mark.parametrize("page", TUTORIALS, ids=NAMES)
def test_a_tutorial_runs_and_its_notebook_is_that_of_the_page(
    page, cheap, models, tmp_path, monkeypatch
):
    kept = nbformat.read(FOLDER / f"{page.stem}.ipynb", as_version=4)
    nbformat.validate(kept)
    cells = cells_of(page)
    assert sources(kept.cells) == sources(cells), f"{page.stem} was changed: make notebooks"
    monkeypatch.chdir(tmp_path)
    if page.stem == "does_it_matter":  # runs the model some hundred times
        narrow = models / "sentence-transformers" / "all-MiniLM-L6-v2"
        monkeypatch.setattr(_hub, "demo_model", lambda: narrow)
    drawn = []
    monkeypatch.setattr(Figure, "to_bytes", partialmethod(kept_in, Figure.to_bytes, drawn))
    write_notebooks.run(cells)
    pictures = pictures_of(kept)
    assert len(pictures) == len(drawn)
    for picture, figure in zip(pictures, drawn, strict=True):
        lost = colours_of_marks(figure) - {tuple(colour) for colour in picture.tolist()}
        assert not lost, f"{page.stem}: colours of the figure are not in its picture"
    shown = [
        [output.output_type for output in cell.outputs]
        for cell in cells
        if cell.cell_type == "code"
    ]
    assert shown == [
        [output.output_type for output in cell.outputs]
        for cell in kept.cells
        if cell.cell_type == "code"
    ]


def test_each_is_small():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NAMES)
    assert all(path.stat().st_size < 400_000 for path in FOLDER.glob("*.ipynb"))


def test_each_installs_the_wheel_of_this_version_with_extras_that_there_are():
    project = tomllib.loads((FOLDER.parent / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    extras = re.search(r"\[([\w,]+)\]", INSTALL)[1].split(",")
    assert set(extras) <= set(project["optional-dependencies"])
    assert f"headscope-{headscope.__version__}-" in INSTALL or "headscope[" in INSTALL
    for name in NAMES:
        cells = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4).cells
        assert cells[1].source == INSTALL


def test_links_of_a_notebook_lead_to_notebooks_and_pages():
    for page in TUTORIALS:
        text = "\n".join(cell.source for cell in cells_of(page) if cell.cell_type == "markdown")
        targets = re.findall(r"\]\(([^)#]+)", text)
        assert targets
        assert [target for target in targets if not (FOLDER / target).is_file()] == []
