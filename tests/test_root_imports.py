"""The check of imports of the root package finds them, and lets those of subpackages pass."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

from check_root_imports import main, root_imports


@pytest.mark.parametrize(
    "lines",
    [
        "import headscope",
        "import numpy, headscope as hs",
        "from headscope import studies",
        "def figure(self):\n    import headscope",
        "if TYPE_CHECKING:\n    from headscope import Record",
        "importlib.import_module('headscope')",
    ],
)
def test_an_import_of_the_root_is_found(lines):
    assert root_imports(lines) == [lines.count("\n") + 1]


@pytest.mark.parametrize(
    "lines",
    [
        "import headscope.views",
        "from headscope.studies import heads",
        "from headscope._version import __version__",
        "importlib.import_module('headscope.views')",
        "from . import headscope",
    ],
)
def test_imports_of_what_is_in_it_pass(lines):
    assert root_imports(lines) == []


def test_a_planted_import_is_named_by_its_place(tmp_path, monkeypatch, capsys):
    package = tmp_path / "src" / "headscope"
    package.mkdir(parents=True)
    (package / "_planted.py").write_text("\nimport headscope\n")
    monkeypatch.setattr("check_root_imports.SOURCE", package)
    assert main() == 1
    assert (
        capsys.readouterr().out
        == "src/headscope/_planted.py:2: imports headscope itself; import from its subpackage\n"
    )
