"""What is not installed is named with the extra that brings it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from headscope._missing_packages import EXTRAS, WITH_TRANSFORMERS, missing_package
from headscope.cli import run

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
IMPORTED = {"pillow": "PIL"}


def test_the_extras_are_those_of_the_project():
    extras = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    brought = {}
    for extra in set(EXTRAS.values()):
        for wanted in extras[extra]:
            package = re.match(r"[\w-]+", wanted)[0]
            if package != "headscope":
                brought[IMPORTED.get(package, package)] = extra
    assert brought == EXTRAS
    assert not set(EXTRAS) & set(WITH_TRANSFORMERS)


@pytest.mark.parametrize(
    ("package", "wanted"),
    [
        ("conllu", "'headscope[linguistics]'"),
        ("matplotlib", "'headscope[figures]'"),
        ("pyarrow", "'headscope[tables]'"),
        ("torch", "'headscope[capture]'"),
        ("tokenizers", "'headscope[capture]'"),
        ("elsewhere", "elsewhere"),
    ],
)
def test_a_package_that_is_not_there_is_named_with_its_extra(
    package, wanted, monkeypatch, capsys, tmp_path
):
    """However deep the import is that fails."""

    def without(*_):
        raise ModuleNotFoundError(f"No module named '{package}.inner'", name=f"{package}.inner")

    monkeypatch.setattr("headscope.storage.load", without)
    assert run(["view", str(tmp_path / "a.safetensors")]) == 1
    err = capsys.readouterr().err
    assert err == (
        f"headscope: this needs the package {package}, which is not installed: pip install "
        f"{wanted}\n"
    )


WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, *_):
        if name.partition(".")[0] == sys.argv[1]:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Missing())
import headscope
try:
    exec(sys.argv[2])
except headscope.errors.HeadscopeError as error:
    print(f"headscope: {error}", file=sys.stderr)
"""
COMMAND = "from headscope.cli import run; run(['serve', 'run.safetensors'])"


@pytest.mark.parametrize(
    ("package", "code"),
    [
        ("torch", "headscope.capture"),
        ("starlette", "headscope.serve"),
        ("uvicorn", "headscope.serve"),
        ("uvicorn", COMMAND),
        ("anywidget", "from headscope.live import live_widget"),
    ],
)
def test_in_python_it_is_an_error_of_headscope(package, code):
    command = [sys.executable, "-c", WITHOUT, package, code]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert said == (
        f"headscope: this needs the package {package}, which is not installed: pip install "
        f"'headscope[{EXTRAS[package]}]'\n"
    )


def test_what_does_not_fit_is_said_in_its_own_words():
    error = ImportError("cannot import name 'that'\nfrom 'torch'", name="torch")
    assert (
        missing_package(error)
        == "a package is missing or does not fit: cannot import name 'that' from 'torch'"
    )
