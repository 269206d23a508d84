"""Analyses end to end: from a model and texts, or from records, to a result that prints, plots and
exports.

What changes a model while it runs (ablation, effects, faithfulness) or is trained (probes) is
imported at its first use, since it imports torch; records are studied without it.
"""

from pathlib import Path

import lazy_loader

from headscope.studies import ablate, probe

# Folders have the names of the functions, which are imported at their first use.
del ablate, probe
__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted(_names)  # noqa: PLE0605 -- the stub is the one list
# So have files, in whose place each function stands from here on. Classes of results in other files
# are known to `headscope.load` from here on.
for _name in _names:
    if Path(__file__).with_name(f"{_name}.py").exists():
        __getattr__(_name)
for _name in ("Ablation", "AlignmentStudy", "Probing"):
    __getattr__(_name)
