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
    return module.BundleHook(str(tmp_path), {}, None, None, str(tmp_path), "wheel"), tmp_path / module.BUNDLE


def test_a_wheel_without_the_bundle_is_refused(hook):
    with pytest.raises(RuntimeError, match="run `make bundle` first"):
        hook[0].initialize("standard", {})


def test_an_editable_install_may_come_before_the_bundle(hook):
    hook[0].initialize("editable", {})


def test_with_the_bundle_it_is_built(hook):
    hook[1].parent.mkdir(parents=True)
    hook[1].write_text("viewer()")
    hook[0].initialize("standard", {})
