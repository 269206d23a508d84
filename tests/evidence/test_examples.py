"""Every public function of evidence has one example, and it runs."""

import doctest
import importlib
import pkgutil

import numpy as np
import pytest

import headscope.evidence
from headscope.evidence import MapSum, Statistic
from headscope.record import Tokens

MODULES = [
    f"headscope.evidence.{found.name}"
    for found in pkgutil.iter_modules(headscope.evidence.__path__)
]
FUNCTIONS = [
    name for name in headscope.evidence.__all__ if callable(getattr(headscope.evidence, name))
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    found = doctest.testmod(
        importlib.import_module(name),
        extraglobs={"np": np, "MapSum": MapSum, "Statistic": Statistic, "Tokens": Tokens},
    )
    assert not found.failed


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"load_statistic"}))
def test_every_function_has_an_example(name):
    assert ">>> " in getattr(headscope.evidence, name).__doc__


def test_public_names_are_sorted_and_there():
    assert headscope.evidence.__all__ == sorted(headscope.evidence.__all__)
    assert all(hasattr(headscope.evidence, name) for name in headscope.evidence.__all__)
