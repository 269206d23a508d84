"""What users give for one of many inputs."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headscope.capturing.inputs._early_checks import check_text
from headscope.errors import CaptureError, TextError

Text = str | tuple[str, str]
NAMES = ("text", "text_pair", "image", "sound", "sampling_rate", "target")
"""Arguments of `capture` that may differ from input to input."""
FIRST = ("text", "sentence1", "sentence", "premise", "question", "question1", "content", "prompt")
SECOND = ("text_pair", "text_b", "sentence2", "hypothesis", "question2", "context")
"""What the texts are called in rows of data sets; the first that is there counts."""
MISSPELT = 0.8
"""Likeness (difflib) from which on an unknown name is taken for a slip of one that is missing;
ours.
"""


@dataclass(frozen=True)
class Item:
    """One input.

    Args:
        text: the text, or None.
        text_pair: the second text of a pair, or None.
        more: what else `capture` is to be given.
    """

    text: str | None = None
    text_pair: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that there are."""
        return tuple(text for text in (self.text, self.text_pair) if text is not None)

    @property
    def is_text(self) -> bool:
        """Whether there are texts and nothing else."""
        return self.text is not None and not self.more

    @property
    def is_picture(self) -> bool:
        """Whether there is a picture and nothing else."""
        return self.text is None and set(self.more) == {"image"}


def parse_item(given: Any) -> Item:
    """A text, a pair of texts, or a mapping of arguments of `capture`, what else it holds left
    aside.

    A row of a data set has columns that say nothing to a model (``label``, ``idx``).

    Raises:
        CaptureError: where it is none of these, or holds what there is not.
        TextError: where a text is none, or empty.
    """
    if isinstance(given, str):
        return Item(check_text(given))
    if isinstance(given, Mapping):
        return _from_mapping(given)
    if not isinstance(given, tuple | list):
        raise CaptureError(
            "An input is a text, a pair of texts, or a mapping such as {'image': 'cat.png'}, "
            f"not {type(given).__name__}"
        )
    if len(given) not in (1, 2):
        raise CaptureError(f"A text is a string or a pair of strings, not {len(given)} of them")
    return Item(
        check_text(given[0]), check_text(given[1], "second text") if len(given) == 2 else None
    )


def _renamed(given: Mapping) -> Mapping:
    """The same with texts under our names, whatever a data set calls them; its other columns
    stay.
    """
    # A picture is read without a text too, so a column is its text only where it is called so.
    if {"image", "sound"} & set(given):
        return dict(given)
    renamed = dict(given)
    for ours, names in (("text", FIRST), ("text_pair", SECOND)):
        theirs = next((name for name in names if name in given), None)
        # A second text alone, such as the context of a row without a question, is no pair.
        is_needed = ours == "text" or "text" in renamed
        if theirs is not None and theirs != ours and is_needed:
            renamed[ours] = renamed.pop(theirs)
    return renamed


def _check_spelling(given: Mapping) -> None:
    """Raise where a name looks like a slip; other columns of a data set are left aside."""
    missing = [name for name in NAMES if name not in given]
    for name in given:
        close = difflib.get_close_matches(str(name), missing, n=1, cutoff=MISSPELT)
        if name not in NAMES and close:
            raise CaptureError(f"An input has no {name!r}; did you mean {close[0]!r}")


def _from_mapping(given: Mapping) -> Item:
    given = _renamed(given)
    _check_spelling(given)
    if not {"text", "image", "sound"} & set(given):
        listed = " nor ".join(map(repr, given)) or "text"
        raise CaptureError(f"An input has no {listed}; there are {', '.join(NAMES)}")
    held = {name: given[name] for name in given if name in NAMES and given[name] is not None}
    text, pair = held.pop("text", None), held.pop("text_pair", None)
    if text is None and not {"image", "sound"} & set(held):
        raise TextError("An input holds nothing to read; give a text, an image or a sound")
    if text is not None:
        check_text(text)
    if pair is not None:
        check_text(pair, "second text")
    return Item(text, pair, held)
