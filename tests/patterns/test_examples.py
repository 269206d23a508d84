"""The examples of patterns run."""

import doctest
import importlib
import pkgutil
import subprocess
import sys

import numpy as np
import pytest

import headscope.patterns
from headscope.patterns import AttentionMaps
from headscope.patterns._maps import maps_of

MODULES = [
    f"headscope.patterns.{found.name}"
    for found in pkgutil.iter_modules(headscope.patterns.__path__)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    found = doctest.testmod(
        importlib.import_module(name),
        extraglobs={"np": np, "AttentionMaps": AttentionMaps, "maps_of": maps_of},
    )
    assert not found.failed


def test_public_names_are_sorted_and_there():
    assert headscope.patterns.__all__ == sorted(
        headscope.patterns.__all__, key=lambda name: (not name.isupper(), name[0].islower(), name)
    )
    assert all(hasattr(headscope.patterns, name) for name in headscope.patterns.__all__)


def test_importing_is_light():
    heavy = "{'torch', 'transformers', 'scipy', 'sklearn'}"
    code = f"import sys, headscope; headscope.heads; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
