"""headscope: see what every attention head of a transformer does.

The public names stand in `__init__.pyi`, each once, and are loaded on first use, so that ``import
headscope`` loads neither torch nor transformers.
"""

from __future__ import annotations

import importlib
import sys
import types
import warnings
from typing import Any

import lazy_loader

from headscope._renamed import renamed_name
from headscope._version import __version__ as __version__

_load, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted({*_names, "__version__"})  # noqa: PLE0605 -- the stub is the one list

_MOVED = {
    "headscope.views.figures": (
        "ablation_figure",
        "alignment_figure",
        "faithfulness_figure",
        "heads_figure",
        "mechanism_figure",
    ),
    "headscope.studies": (
        "Ablation",
        "AlignedPair",
        "AlignmentStudy",
        "Coreference",
        "CounterfactualAttention",
        "Explained",
        "Faithfulness",
        "NormStudy",
        "Probing",
        "Relations",
        "Tampering",
        "load_alignment_study",
        "load_coref",
        "load_norm_study",
        "load_relations",
        "read_aligned_pairs",
    ),
    "headscope.patterns": (
        "Mechanism",
        "MechanismTally",
        "Tally",
        "load_mechanism_tally",
        "load_tally",
    ),
    "headscope.record": (
        "Candidate",
        "Contributions",
        "Mask",
        "Rotary",
    ),
}
"""Names that stood here in 0.1 and are in their packages now; from here they come with a warning
until 0.3.
"""
_RENAMED = {"Given": "SetWeights"}
"""Names of 0.1 that are called otherwise now; by their old names they come with a warning until
0.3.
"""
_ALSO_RENAMED = {
    "Explained": "ExplainedText",
    "Tampering": "CounterfactualAttention",
}
"""What is called otherwise in its package."""
_MOVED_TO = {name: module for module, names in _MOVED.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _MOVED_TO:
        module = _MOVED_TO[name]
        now = _ALSO_RENAMED.get(name, name)
        instead = f"{module}.{now}"
        if name.startswith("load_"):
            instead = "headscope.load(path)"
        if name.endswith("_figure"):
            instead = "headscope.figure(result)"
        warnings.warn(
            f"headscope.{name} goes away in 0.3; use {instead}", DeprecationWarning, stacklevel=2
        )
        return getattr(importlib.import_module(module), now)
    if name not in __all__:
        return renamed_name(__name__, name, _RENAMED)
    return _load(name)


class _Package(types.ModuleType):
    """nnsight puts a method ``save`` on every object, modules too, which hides what ``__getattr__``
    would find.
    """

    def __getattribute__(self, name: str) -> Any:
        own = super().__getattribute__("__dict__")
        if name in own.get("__all__", ()) and name != "__version__":
            return own["__getattr__"](name)
        return super().__getattribute__(name)


sys.modules[__name__].__class__ = _Package
