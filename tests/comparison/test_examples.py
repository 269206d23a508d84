"""The examples of comparison run."""

import doctest
import importlib
import pkgutil

import numpy as np
import pytest

import headscope.comparison
from headscope.record import Tokens

MODULES = [
    f"headscope.comparison.{found.name}"
    for found in pkgutil.iter_modules(headscope.comparison.__path__)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    found = doctest.testmod(importlib.import_module(name), extraglobs={"np": np, "Tokens": Tokens})
    assert not found.failed


def test_public_names_are_sorted_and_there():
    names = headscope.comparison.__all__
    assert names == sorted(names, key=lambda name: (name[0].islower(), name))
    assert all(hasattr(headscope.comparison, name) for name in names)
