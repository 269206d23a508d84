"""``summary`` is the same kind of thing on every object: a property."""

import importlib
import inspect
import pkgutil

import headscope


def test_summary_is_a_property_of_every_class():
    found = {}
    for module in pkgutil.walk_packages(headscope.__path__, "headscope."):
        if module.name.startswith("headscope.views.static"):
            continue
        for name, cls in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if "summary" in vars(cls):
                found[name] = type(vars(cls)["summary"]).__name__
    assert len(found) > 12
    assert set(found.values()) == {"property"}, found
