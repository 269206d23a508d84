"""The public face: list and names hold together, and importing is light."""

import subprocess
import sys

import pytest

import headscope


def test_every_public_name_is_there_and_sorted():
    assert headscope.__all__ == sorted(headscope.__all__)
    for name in headscope.__all__:
        assert getattr(headscope, name) is not None


def test_lazy_places_and_public_names_are_the_same_set():
    assert set(headscope._PLACE_OF) == set(headscope.__all__) - {"__version__"}


def test_names_keep_pointing_at_functions_after_submodules_are_imported():
    import headscope.capturing
    import headscope.record
    import headscope.views

    assert callable(headscope.capture)
    assert callable(headscope.page)


def test_a_name_that_another_library_puts_on_every_module_is_still_ours(monkeypatch):
    import headscope.storage

    monkeypatch.setattr(type(headscope), "save", lambda self: "nnsight's", raising=False)
    assert headscope.save is headscope.storage.save


def test_unknown_name_lists_those_there_are():
    with pytest.raises(AttributeError, match="headscope has no 'atention'; it has"):
        headscope.atention  # noqa: B018


@pytest.mark.parametrize(
    "code",
    [
        "import headscope",
        "import headscope; headscope.load; headscope.from_weights([[[[1.0]]]], ['a']); headscope.page",
        "import headscope.cli._app",
    ],
)
def test_torch_and_transformers_stay_unloaded(code):
    check = "import sys; sys.exit(bool({'torch', 'transformers'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", f"{code}; {check}"], check=False).returncode == 0


def test_the_gate_sees_torch_when_it_is_loaded():
    check = "import sys; sys.exit(bool({'torch', 'transformers'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", f"import headscope.capturing; {check}"], check=False).returncode == 1
