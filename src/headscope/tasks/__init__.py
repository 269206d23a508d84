"""What a model is to be good at: texts, and a score for each example of which more is better.

Everything here needs torch, which is loaded at the first use of a name.
"""

import importlib
from typing import TYPE_CHECKING, Any

from headscope.tasks._names import NAMES, check_task

if TYPE_CHECKING:
    from headscope.tasks._batches import ReadingOptions
    from headscope.tasks._classification import classification, pictures
    from headscope.tasks._loss import masked_word, next_word, repeats, translation
    from headscope.tasks._minimal_pairs import minimal_pairs
    from headscope.tasks._named import (
        function_of,
        named_task,
        repeated_runs,
        task_of_rows,
        total_counts,
        totals_of_counts,
    )
    from headscope.tasks._similarity import judged_pairs, likeness
    from headscope.tasks._task import Task, parse_task

_MODULES = {
    "_batches": ("ReadingOptions",),
    "_classification": ("classification", "pictures"),
    "_similarity": ("judged_pairs", "likeness"),
    "_loss": ("masked_word", "next_word", "repeats", "translation"),
    "_minimal_pairs": ("minimal_pairs",),
    "_named": (
        "function_of",
        "named_task",
        "repeated_runs",
        "task_of_rows",
        "total_counts",
        "totals_of_counts",
    ),
    "_task": ("Task", "parse_task"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "NAMES",
    "ReadingOptions",
    "Task",
    "check_task",
    "classification",
    "function_of",
    "judged_pairs",
    "likeness",
    "masked_word",
    "minimal_pairs",
    "named_task",
    "next_word",
    "parse_task",
    "pictures",
    "repeated_runs",
    "repeats",
    "task_of_rows",
    "total_counts",
    "totals_of_counts",
    "translation",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"headscope.tasks has no {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(f"headscope.tasks.{_MODULE_OF[name]}"), name)
