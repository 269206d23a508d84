"""The public face: list and names hold together, and importing is light."""

import importlib
import inspect
import re
import subprocess
import sys
from contextlib import suppress
from functools import cache, reduce
from pathlib import Path
from typing import get_args, get_overloads, get_type_hints

import pytest

import headscope


def test_every_public_name_is_there_and_sorted():
    assert headscope.__all__ == sorted(headscope.__all__)
    for name in headscope.__all__:
        assert getattr(headscope, name) is not None


def test_the_root_stays_small():
    assert len(headscope.__all__) <= 40


def test_names_keep_pointing_at_functions_after_submodules_are_imported():
    import headscope.capturing
    import headscope.record
    import headscope.views

    assert callable(headscope.capture)
    assert callable(headscope.view)


def test_a_name_that_another_library_puts_on_every_module_is_still_ours(monkeypatch):
    import headscope.results

    monkeypatch.setattr(type(headscope), "save", lambda self: "nnsight's", raising=False)
    assert headscope.save is headscope.results.save


@pytest.mark.parametrize("package", ["headscope.capturing", "headscope.views"])
def test_packages_that_are_loaded_on_first_use_hold_what_they_list(package):
    module = importlib.import_module(package)
    assert sorted(module.__all__) == sorted(set(module.__all__))
    assert all(getattr(module, name) is not None for name in module.__all__)
    assert dir(module) == sorted(module.__all__)
    with pytest.raises(AttributeError, match=f"{package} has no 'nothing'; it has"):
        module.nothing  # noqa: B018


def test_unknown_name_lists_those_there_are():
    with pytest.raises(AttributeError, match="headscope has no 'atention'; it has"):
        headscope.atention  # noqa: B018


@pytest.mark.parametrize(
    "code",
    [
        "import headscope",
        "import headscope; headscope.load; headscope.from_weights([[[[1.0]]]], ['a']); "
        "headscope.view",
        "import headscope; headscope.heads",
        "import headscope.cli._main",
        "from headscope.capturing import check_text, check_name",
        "from headscope.testing import random_record; random_record()",
    ],
)
def test_torch_and_transformers_stay_unloaded(code):
    check = "import sys; sys.exit(bool({'torch', 'transformers'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", f"{code}; {check}"], check=False).returncode == 0


@pytest.mark.parametrize(
    ("name", "more"),
    [("generate", ()), ("capture_many", ("keep", "device", "batch_size", "truncate", "workers"))],
)
def test_every_overload_names_the_options_that_editors_show(name, more):
    function = getattr(headscope, name)
    assert get_overloads(function)
    for overload in get_overloads(function):
        options = get_args(get_type_hints(overload)["options"])
        named = {*inspect.signature(overload).parameters}
        named.update(*(each.__annotations__ for each in options))
        assert {*inspect.signature(function).parameters, *more} <= named


ROOT = Path(__file__).parents[1]
ADDRESS = re.compile(r"(?<![\w./-])(?:hs|headscope)((?:\.[A-Za-z]\w*)+)")


@pytest.mark.parametrize(
    "pattern",
    ["README.md", "CHANGELOG.md", "docs/*.md", "notebooks/*.md", "src/**/*.py", "tools/*.py"],
)
def test_every_address_that_is_named_exists(pattern):
    """In prose and messages, where no interpreter looks it up."""
    lost = []
    for path in ROOT.glob(pattern):
        text = path.read_text(encoding="utf-8")
        # Commands call the packages themselves hs, which loads them on first use.
        text = re.sub(r"\bhs\.", "", text) if path.parent.name == "cli" else text
        for names in ADDRESS.findall(text):
            if names != ".html" and not _exists(tuple(names.split(".")[1:])):
                lost.append((path.relative_to(ROOT).as_posix(), names))
    assert lost == []


@cache
def _exists(names):
    """Whether the first is a public name of the root, or all but the last are a module, and the
    others are there.
    """
    first = getattr(headscope, names[0]) if names[0] in headscope.__all__ else None
    places = [(first, names[1:])]
    for number in range(1, len(names) + 1):
        places.append((_module(names[:number]), names[number:]))
    return any(
        reduce(lambda place, name: getattr(place, name, None), rest, place) is not None
        for place, rest in places
    )


def _module(names):
    with suppress(ModuleNotFoundError):
        return importlib.import_module(".".join(("headscope", *names)))
    return None


def test_errors_are_at_hand_without_a_further_import():
    check = (
        "import sys, headscope as hs; assert issubclass(hs.errors.CaptureError, "
        "hs.errors.HeadscopeError); assert hs.foreign.from_nnsight; "
        "assert not hasattr(hs, 'CaptureError'); assert 'torch' not in sys.modules; "
        "assert hs.interventions.Mean"
    )
    subprocess.run([sys.executable, "-c", check], check=True)
