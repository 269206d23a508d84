"""What most commands are tried with: an empty folder to work in, and tiny models in folders of
their own.
"""

import json
import re
import shlex

import pytest

from headscope import _progress
from headscope.cli import run
from headscope.testing import tiny_model, tiny_tokenizer
from headscope.views import _html


def run_line(line):
    """Run a command that is written as in a shell."""
    return run(shlex.split(line))


LONG = "a " * 99
"""More tokens than the tiny models read."""


def complaint(capsys):
    """The one line that a refused command writes, and nothing else."""
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err


def header_of(page):
    """What a page that was written says of what it shows."""
    found = re.search(
        r'id="headscope-page">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL
    )
    return json.loads(found[1])


@pytest.fixture(autouse=True)
def bundle(monkeypatch):
    """A stand-in for the viewer's script, so that Python's tests need no Node."""
    monkeypatch.setattr(_html, "bundle", lambda name="page.js": f"viewer('{name}')")


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    """No line of progress, however slow the machine is that the tests run on."""
    monkeypatch.setattr(_progress, "EVERY", float("inf"))


@pytest.fixture(autouse=True)
def cheap(counted_once):
    """What takes long in many commands and is looked at elsewhere is done once."""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The folder that commands run in; empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """Save a model and what it reads with in a folder, and give its path."""

    def saved(name, *parts):
        folder = tmp_path_factory.mktemp("models") / name
        for part in parts:
            part.save_pretrained(folder)
        return str(folder)

    return saved


@pytest.fixture(scope="session")
def folder(saved):
    """A tiny BERT with its tokenizer, saved."""
    return saved("tiny", tiny_model("bert"), tiny_tokenizer())
