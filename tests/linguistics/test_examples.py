"""Every public function of linguistics has one example, and those that need no file run."""

import doctest
import importlib
import pkgutil

import numpy as np
import pytest

import headscope.linguistics
from headscope.record import Tokens

MODULES = [
    f"headscope.linguistics.{found.name}"
    for found in pkgutil.iter_modules(headscope.linguistics.__path__)
]
READERS = {"read_coreference", "read_treebank"}
FUNCTIONS = [
    name for name in headscope.linguistics.__all__ if callable(getattr(headscope.linguistics, name))
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    tests = doctest.DocTestFinder(exclude_empty=True).find(
        importlib.import_module(name), extraglobs={"np": np, "Tokens": Tokens}
    )
    runner = doctest.DocTestRunner()
    for test in tests:
        if test.name.rpartition(".")[2] not in READERS:
            runner.run(test)
    assert not runner.summarize().failed


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name[0].islower()])
def test_every_function_has_an_example(name):
    assert ">>> " in getattr(headscope.linguistics, name).__doc__


def test_public_names_are_there():
    assert all(hasattr(headscope.linguistics, name) for name in headscope.linguistics.__all__)
