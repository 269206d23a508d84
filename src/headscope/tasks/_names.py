"""Names of tasks, and what is known of one before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from headscope.errors import TextError

NAMES: Mapping[str, str] = {
    "next-word": "how likely each word is after those before it (texts)",
    "masked-word": "how likely hidden words are (texts)",
    "classification": "whether the class is right (texts or pairs, with a label)",
    "likeness": (
        "whether embeddings distinguish pairs that mean the same (pairs, with a label or score)"
    ),
    "minimal-pairs": (
        "whether the good sentence is the more likely one (sentence_good, sentence_bad)"
    ),
    "translation": "how likely translations or summaries are (source, target)",
    "repeats": "how likely random tokens are when they are repeated (no file)",
}


def check_task(name: str, path: str | Path | None) -> None:
    """Raise where there is no such task, or it has no file of examples.

    Raises:
        TextError: naming the tasks, or what the file holds.
    """
    if name not in NAMES:
        raise TextError(f"There is no task {name!r}; give {', '.join(NAMES)} or file.py:function")
    if path is None and name != "repeats":
        raise TextError(f"The task {name!r} needs a file of examples: {NAMES[name]}")
