"""What is built: no wheel without the viewer, the same wheel each time, whole links."""

import importlib.util
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def hook(tmp_path):
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    bundles = [tmp_path / bundle for bundle in module.BUNDLES]
    return module.BundleHook(str(tmp_path), {}, None, None, str(tmp_path), "wheel"), bundles


def write(bundles):
    for bundle in bundles:
        bundle.parent.mkdir(parents=True, exist_ok=True)
        bundle.write_text("viewer()")


def test_a_wheel_without_the_bundles_is_refused(hook):
    with pytest.raises(RuntimeError, match="run `make bundle` first"):
        hook[0].initialize("standard", {})


@pytest.mark.parametrize("missing", range(3))
def test_a_wheel_without_one_of_the_bundles_is_refused(missing, hook):
    write(hook[1][:missing] + hook[1][missing + 1 :])
    with pytest.raises(RuntimeError, match=f"^{hook[1][missing].relative_to(hook[0].root)} missing: run"):
        hook[0].initialize("standard", {})


def test_an_editable_install_may_come_before_the_bundles(hook):
    hook[0].initialize("editable", {})


def test_with_the_bundles_it_is_built(hook):
    write(hook[1])
    hook[0].initialize("standard", {})


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """The wheel of this checkout, built twice."""
    if not all((ROOT / "src/headscope/views/static" / name).is_file() for name in ("page.js", "live.js", "frame.js")):
        pytest.skip("the bundles are not built here: make bundle")
    if not (ROOT / "README.md").is_file():
        pytest.skip("README.md is not part of this checkout")
    built = []
    for time in ("first", "second"):
        folder = tmp_path_factory.mktemp(time)
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        built.append(next(folder.glob("*.whl")))
    return built


def test_a_wheel_built_again_is_the_same_to_the_last_byte(wheels):
    first, second = wheels
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()


def test_a_wheel_holds_the_viewer_and_its_notices(wheels):
    with zipfile.ZipFile(wheels[0]) as wheel:
        names = set(wheel.namelist())
    assert {f"headscope/views/static/{name}.js" for name in ("page", "live", "frame")} <= names
    assert any(name.endswith("licenses/NOTICE") for name in names)
    assert "headscope/py.typed" in names


def test_every_link_of_the_description_has_a_whole_address(wheels):
    with zipfile.ZipFile(wheels[0]) as wheel:
        (metadata,) = [name for name in wheel.namelist() if name.endswith("METADATA")]
        description = wheel.read(metadata).decode("utf-8").partition("\n\n")[2]
    links = re.findall(r'\]\(([^)\s]+)\)|(?:src|srcset|href)="([^"]+)"', description)
    targets = [first or second for first, second in links]
    assert len(targets) > 20
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
