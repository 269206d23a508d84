"""A live model in a notebook: the page of `serve` in a widget, answered by the kernel."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from headscope.errors import HeadscopeError
from headscope.live._atlas import atlas_for
from headscope.live._facts import LIMITS
from headscope.live._model import LiveModel
from headscope.live.contract import LiveLimits
from headscope.views.listening import check_server

if TYPE_CHECKING:
    from headscope.atlases import Atlas
    from headscope.live._widget import LiveWidget


def live_widget(
    model: Any,
    tokenizer: Any,
    text: Any = "",
    *,
    max_tokens: int = LIMITS["tokens"],
    seconds: float = LIMITS["seconds"],
    atlas: Atlas | str | os.PathLike[str] | None = None,
) -> LiveWidget:
    """Show a loaded model in a notebook: what is typed there it reads, and heads can be changed.

    The page is that of `serve`. All that it asks goes through the messages of the notebook, so that
    it works wherever the kernel runs, and no port is opened.

    Args:
        model: a loaded transformers model, best with the head that it was trained with.
        tokenizer: its tokenizer, or its processor.
        text: that the page begins with, or a conversation, a list of messages.
        max_tokens: most tokens that are read at a time.
        seconds: most seconds that a run may take.
        atlas: the model's atlas, or the folder of one, to compare drawings with.

    Raises:
        HeadscopeError: without the extras ``notebook`` and ``server``.
        ModelError: where the atlas is of another model.

    Example:
        >>> widget = live_widget(model, tokenizer, "The cat sat on the mat.")
        >>> widget  # shows itself
        >>> widget.record  # what is shown now, as `headscope.capture` gives it
    """
    check_server()
    try:
        from headscope.live._widget import LiveWidget
    except ImportError:
        raise HeadscopeError(
            "A widget needs anywidget: pip install 'headscope[notebook,server]'"
        ) from None
    limits: LiveLimits = {**LIMITS, "tokens": max_tokens, "seconds": seconds}
    live = LiveModel(model, tokenizer, limits=limits, text=text)
    return LiveWidget(live, atlas_for(model, atlas))
