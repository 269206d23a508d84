"""The scripts for other libraries run: each against a stand-in that has the calls of that library
and no others.

That the library itself draws what it is given is not shown by this.
"""

import re
import runpy
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from headscope.views import _html

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "integrations"


class SetWeights(list):
    """What a stand-in was called with."""

    def call(self, name, *, gives=None):
        def called(*args, **options):
            self.append((name, args, options))
            return gives(*args, **options) if callable(gives) else gives

        return called


def module(name, **names):
    found = types.ModuleType(name)
    vars(found).update(names)
    return found


def streamlit(given):
    components = module("streamlit.components.v1", html=given.call("html"))
    package = module("streamlit.components", v1=components)
    streamlit = module(
        "streamlit",
        text_input=given.call("input", gives=lambda label, value: value),
        components=package,
    )
    return {
        "streamlit": streamlit,
        "streamlit.components": package,
        "streamlit.components.v1": components,
    }


def gradio(given):
    def interface(fn, inputs, outputs):
        given.append(("html", (fn("The cat sat."),), {}))
        return types.SimpleNamespace(launch=given.call("launch"))

    return {
        "gradio": module(
            "gradio", Interface=interface, Textbox=given.call("box"), HTML=given.call("out")
        )
    }


class Writer:
    def __init__(self, given):
        self.add_image, self.log = given.call("image"), given.call("log")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def wandb(given):
    return {
        "wandb": module(
            "wandb",
            init=lambda project: Writer(given),
            Html=given.call("html"),
            Image=given.call("picture"),
        )
    }


def tensorboard(given):
    return {
        "torch.utils.tensorboard": module(
            "torch.utils.tensorboard", SummaryWriter=lambda folder: Writer(given)
        )
    }


STAND_INS = {
    "streamlit": streamlit,
    "gradio": gradio,
    "wandb": wandb,
    "tensorboard": tensorboard,
    "databricks": None,
}


@pytest.fixture
def given(request, monkeypatch, tmp_path):
    monkeypatch.setattr(_html, "bundle", lambda name="page.js": "viewer()")
    monkeypatch.chdir(tmp_path)
    return SetWeights()


@pytest.mark.parametrize("name", STAND_INS)
def test_scripts_run_against_the_calls_of_their_library(name, given, monkeypatch):
    for place, stand_in in (STAND_INS[name](given) if STAND_INS[name] else {}).items():
        monkeypatch.setitem(sys.modules, place, stand_in)
    runpy.run_path(str(FOLDER / f"in_{name}.py"), init_globals={"displayHTML": given.call("html")})
    called = {what: args for what, args, _ in given}
    if name == "tensorboard":
        _, pixels = called["image"]
        assert pixels.dtype == np.uint8
        assert pixels.shape[2] == 3
        assert pixels.std() > 0
        return
    assert "headscope-page" in called["html"][0]
    if name == "gradio":
        assert called["html"][0].startswith('<iframe srcdoc="&lt;!')
    if name == "wandb":
        assert {"attention", "heads"} == set(called["log"][0])


def test_the_quarto_document_runs(given):
    code = re.findall(
        r"^```\{python\}\n(.*?)^```$",
        (FOLDER / "in_quarto.qmd").read_text(),
        re.MULTILINE | re.DOTALL,
    )
    *lines, last = code[0].strip().splitlines()
    names = {}
    exec("\n".join(lines), names)
    assert "headscope-page" in eval(last, names)._repr_html_().replace("&quot;", '"')


def test_every_script_is_named_on_the_page():
    page = (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(in_\w+\.\w+)` \|$", page, re.MULTILINE)) == {
        path.name for path in FOLDER.iterdir()
    }
