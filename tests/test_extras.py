"""What belongs to the extras headvis and diffusion may be missing; all else works without it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import headscope

EXTRAS = ("headvis", "diffusion.py")


@pytest.fixture(scope="module")
def said_without_extras(tmp_path_factory):
    """Runs code with a copy of the package from which they are removed; gives what it prints."""
    root = tmp_path_factory.mktemp("src")
    ignored = shutil.ignore_patterns(*EXTRAS, "__pycache__")
    shutil.copytree(Path(headscope.__file__).parent, root / "headscope", ignore=ignored)
    environment = os.environ | {"PYTHONPATH": str(root)}

    def said(code):
        command = [sys.executable, "-c", f"import headscope as hs\n{code}"]
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, env=environment, cwd=root
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return said


def test_all_other_modules_are_imported(said_without_extras):
    said = said_without_extras("""
import importlib, pkgutil
names = [module.name for module in pkgutil.walk_packages(hs.__path__, "headscope.")]
for name in names:
    importlib.import_module(name)
print(len(names) > 300, [name for name in names if "diffusion" in name])
""")
    assert said == "True []\n"


def test_the_command_is_there_only_with_the_extra(said_without_extras, capsys):
    assert "headvis" not in said_without_extras("from headscope.cli import run\nrun(['--help'])")
    from headscope.cli import run

    run(["--help"])
    assert "headvis" in capsys.readouterr().out


def test_results_are_shown_and_a_tree_is_refused_by_name(said_without_extras, tmp_path):
    (tmp_path / "scatter_data.json").write_text("[]")
    said = said_without_extras(f"""
from headscope.testing import random_record
assert hs.heads(random_record()).view()
try:
    hs.load({str(tmp_path)!r})
except hs.errors.FileError as error:
    print(error)
""")
    assert "holds 'headvis', which this headscope does not know" in said
    assert "pip install 'headscope[headvis]'" in said


def test_the_core_needs_no_typing_extensions(said_without_extras):
    said = said_without_extras("""
import sys
for name in ("typing_extensions", "torch", "transformers", "pydantic"):
    assert name not in sys.modules
    sys.modules[name] = None
from headscope.cli import run
from headscope.testing import random_record
from headscope.views import _html
_html.bundle = lambda name="page.js": ""
print(len(hs.view(random_record(), pinned="sum").html) > 500, run(["view", "--help"]))
""")
    assert said.startswith("Capture a text, picture or sound")
    assert said.endswith("True 0\n")
