"""The examples of norms run, and its public names are there."""

import doctest
import importlib
import pkgutil

import numpy as np
import pytest

import headscope.norms

MODULES = [
    f"headscope.norms.{found.name}" for found in pkgutil.iter_modules(headscope.norms.__path__)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    assert not doctest.testmod(importlib.import_module(name), extraglobs={"np": np}).failed


def test_public_names_are_sorted_and_there():
    assert headscope.norms.__all__ == sorted(headscope.norms.__all__)
    assert all(hasattr(headscope.norms, name) for name in headscope.norms.__all__)
