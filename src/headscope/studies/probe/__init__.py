"""Probes: what can be learnt of syntax from attention and hidden states, each with its controls.

A probe is trained with torch, in minutes on a processor, and imported at its first use; what it
found is read without torch. What is pure about it is in `headscope.linguistics`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from headscope.studies.probe._result import Probing, Score

if TYPE_CHECKING:
    from headscope.studies.probe._probe import KINDS, ProbeOptions, probe

__all__ = ["KINDS", "ProbeOptions", "Probing", "Score", "probe"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"headscope.studies.probe has no {name!r}")
    return getattr(importlib.import_module("headscope.studies.probe._probe"), name)
