"""The errors that headscope raises on purpose.

```
HeadscopeError
├── RecordError     arrays or tokens that do not fit together, or a layer or head that is not there
│   └── NoSuchStackError   a stack that no text of the model has
├── TextError       a text that is empty, unknown to the tokenizer, or too long for the model
├── ModelError      a model or tokenizer that cannot be loaded, or is unfit for what is asked of it
├── CaptureError    a model whose attention could not be captured exactly
├── InterventionError   a change that attention cannot carry, or of a head that does not exist
├── FileError       a file that cannot be read or written, or is not what it should be
├── RunError        a run over many texts that cannot begin, go on or be merged
├── PageError       a page that cannot be made
└── FigureError     a figure that cannot be drawn
```

Each message names what was given, what was expected and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any


class HeadscopeError(Exception):
    """The root of the tree: ``except hs.errors.HeadscopeError`` catches all of them and nothing
    else.
    """


class RecordError(HeadscopeError, ValueError):
    """Arrays or tokens that do not fit together, or a layer, head or stack that does not exist."""


class NoSuchStackError(RecordError):
    """A stack that does not exist, whatever the text: no other text of the model has it."""


class TextError(HeadscopeError, ValueError):
    """A text that is empty, not known to the tokenizer, or that the model has no positions for."""


class ModelError(HeadscopeError):
    """A model or tokenizer that cannot be loaded, or is not fit for what is asked of it."""


class CaptureError(HeadscopeError):
    """A model whose attention could not be captured exactly; nothing wrong is returned in its
    place.
    """


class InterventionError(HeadscopeError, ValueError):
    """A change that a model's attention cannot carry, or a head or token that does not exist."""


class FileError(HeadscopeError, OSError):
    """A file that cannot be read or written, or is not what it should be."""


class RunError(HeadscopeError):
    """A run over many texts that cannot begin, go on or be merged; what is finished is kept."""


class PageError(HeadscopeError):
    """A page that cannot be made."""


class FigureError(HeadscopeError):
    """A figure that cannot be drawn."""


def is_whole(given: Any, least: int = 0) -> bool:
    """Whether this is a whole number, and not too small; NumPy's integers are."""
    # True is an integer in Python, and would mean layer, head or token 1.
    return isinstance(given, Integral) and not isinstance(given, bool) and bool(given >= least)


def check_count(
    name: str, number: Any, least: int = 1, error: type[HeadscopeError] = RecordError
) -> int:
    """The number, which must be whole and not too small; ``error`` is raised otherwise."""
    if not is_whole(number, least) or number >= 2**63:
        raise error(f"{name} must be a whole number from {least} on, not {number!r:.60}")
    return int(number)


def listed(given: Any, wanted: str, error: type[HeadscopeError] = RecordError) -> list[Any]:
    """Several things as a list; ``error`` is raised where it is one thing, a text or a mapping."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise error(f"Expected {wanted}, got {repr(given)[:60]}")
    return list(given)


def check_option_names(
    what: str,
    options: Iterable[str],
    known: Iterable[str],
    error: type[HeadscopeError] = RecordError,
) -> None:
    """Raise ``error`` where there is an option that is not known."""
    known = tuple(known)
    for name in options:
        if name not in known:
            raise error(f"{what} has no option {name!r}; it has {', '.join(known)}")


def check_reading(options: Mapping[str, Any]) -> None:
    """Raise where an option of reading texts, of those that all studies share, is not what it must
    be.

    Raises:
        RecordError: naming it, with what was given.
    """
    for name in ("batch_size", "batch_tokens"):
        if options.get(name) is not None:
            check_count(name, options[name])
    for name in ("progress", "allow_unfit", "random_weights"):
        if options.get(name) is not None and not isinstance(options[name], bool):
            raise RecordError(f"{name} is True or False, not {options[name]!r}")
    report = options.get("on_error")
    if report is not None and not callable(report):
        raise RecordError(
            f"on_error is called with number and error of what is left out, and was {report!r}"
        )
