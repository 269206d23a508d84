"""Every public function of measures has one example, and it runs."""

import doctest
import importlib
import pkgutil

import numpy as np
import pytest

import headscope.measures
from headscope.record import Tokens

MODULES = [
    f"headscope.measures.{found.name}"
    for found in pkgutil.iter_modules(headscope.measures.__path__)
]
FUNCTIONS = [
    name for name in headscope.measures.__all__ if callable(getattr(headscope.measures, name))
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    found = doctest.testmod(importlib.import_module(name), extraglobs={"np": np, "Tokens": Tokens})
    assert not found.failed


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "TokenClass"])
def test_every_function_has_an_example(name):
    assert ">>> " in getattr(headscope.measures, name).__doc__


def test_public_names_are_sorted_and_there():
    assert headscope.measures.__all__ == sorted(headscope.measures.__all__)
    assert all(hasattr(headscope.measures, name) for name in headscope.measures.__all__)
