"""Functions of the packages without a model have an example in their docstring, and it runs."""

import doctest
import importlib
import pkgutil

import numpy as np
import pytest

import headscope.record

NAMES = ("comparison", "evidence", "linguistics", "measures", "norms", "patterns")
PACKAGES = [importlib.import_module(f"headscope.{name}") for name in NAMES]
READERS = {"read_coreference", "read_treebank"}
"""These read files that are not here."""


def public(package):
    return {name: getattr(package, name) for name in package.__all__}


@pytest.mark.parametrize(
    ("package", "module"),
    [(each, name) for each in PACKAGES for _, name, _ in pkgutil.iter_modules(each.__path__)],
    ids=lambda each: getattr(each, "__name__", each),
)
def test_examples_run(package, module):
    names = {"np": np, "Tokens": headscope.record.Tokens} | public(package)
    module = importlib.import_module(f"{package.__name__}.{module}")
    runner = doctest.DocTestRunner()
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, extraglobs=names):
        if test.name.rpartition(".")[2] not in READERS:
            runner.run(test)
    assert not runner.summarize().failed


@pytest.mark.parametrize("package", ["evidence", "linguistics", "measures"])
def test_every_function_has_an_example(package):
    named = public(importlib.import_module(f"headscope.{package}"))
    functions = {name: named[name] for name in set(named) - READERS if name[0].islower()}
    assert not [
        name for name, each in functions.items() if callable(each) and ">>> " not in each.__doc__
    ]
