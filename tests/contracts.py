"""The contract of a page, read by pydantic."""

import importlib
import sys
import typing
from unittest import mock

import pytest

MODULES = tuple(f"headscope.views.{name}" for name in ("options", "why_contract", "contract"))


def check_page(header):
    """Raise where a page's data are not what the contract says."""
    # Before Python 3.12 pydantic reads no TypedDict but that of typing_extensions, of which the
    # modules are made once more.
    pydantic = pytest.importorskip("pydantic", minversion="2.12")  # older ones have no extra=
    extensions = pytest.importorskip("typing_extensions")
    own = {name: importlib.import_module(name) for name in MODULES}
    views = sys.modules["headscope.views"]
    with mock.patch.dict(sys.modules), mock.patch.object(views, "contract"):
        for name in MODULES:
            del sys.modules[name]
        with mock.patch.object(typing, "TypedDict", extensions.TypedDict):
            page = importlib.import_module(MODULES[-1]).Page
        # What its fields hold is looked up by name in the modules that are there.
        pydantic.TypeAdapter(page).validate_python(header, strict=True, extra="forbid")
    assert sys.modules[MODULES[0]] is own[MODULES[0]]
    for name, module in own.items():
        setattr(views, name.rpartition(".")[2], module)
