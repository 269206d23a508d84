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

Each message says what was given, what was wanted and what to do.
"""

from __future__ import annotations


class HeadscopeError(Exception):
    """The root of the tree: ``except headscope.HeadscopeError`` catches all of them and nothing
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
