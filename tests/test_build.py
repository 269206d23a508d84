"""A wheel without the viewer must not be built."""

import importlib.util
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
