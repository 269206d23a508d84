"""Numbers and colours that the browser and print share; TypeScript reads them from the generated
contract.
"""

from __future__ import annotations

from collections.abc import Mapping

SINK_PART = 0.1
"""A key takes most of the attention where it gets this part of all of it,"""
SINK_TIMES = 4.0
"""and this many times what it would get if all keys got the same."""
BEND = 0.62
"""Shape of a line of the head view: 0 is straight, 1 leaves both tokens level."""
SPREAD = 0.62
"""The lines of several heads leave a token over this part of its height."""
MOST_IN_TRAY = 6
"""Pictures beside each other: more are too narrow to be read."""

EACH_TOKEN = 60
"""Tokens of a text up to which each has a column in the way back from an answer."""
BY_LOOKING = 0.5
"""Part of a measured change from which on a line acts through where later heads look."""
LEAST = 1e-3
"""Shares of an answer below are rounding."""
ALONG = (0.58, 0.46, 0.34, 0.7, 0.22, 0.8)
"""Where on a line its number may stand, from its beginning: the first that is free."""

POSITIVE, NEGATIVE = ("#2460be", "#68a6ff"), ("#d96214", "#ff9a4d")
"""Colours of numbers above and below 0, on light and on dark paper."""

LOOKED, NEEDED = ("#8a6d00", "#d9bb4e"), ("#007f7a", "#3aa99f")
"""Of bars of the parts of a prompt: no kind of heads, and no sign, has these hues."""

KIND_COLOURS: Mapping[str, tuple[str, str]] = {
    "next": ("#2c1f9d", "#2da1fd"),
    "previous": ("#69370e", "#f1b58e"),
    "same": ("#960438", "#fe505e"),
    "own": ("#17830b", "#d7f78e"),
    "near": ("#084b6a", "#4bf7e2"),
    "broad": ("#a747ba", "#d255ca"),
    "resting": ("#586474", "#a5b2c4"),
    "none": ("#6f695d", "#989285"),
}
"""Colours of text and lines of each kind of heads, on light and on dark paper. Any two can be
distinguished by normal, protan, deutan and tritan eyes (simulated annealing; smallest distance in
OKLab .048 and .075), and all can be read on the page (contrast at least 4.6).
"""

KIND_NAMES: Mapping[str, str] = {
    "next": "next token",
    "previous": "previous token",
    "same": "same word",
    "own": "own sentence",
    "near": "nearby",
    "broad": "broad",
    "resting": "resting",
    "none": "none of these",
}
"""Words for each kind of heads, beside an icon or a colour."""

KIND_OF_LABEL: Mapping[str, str] = {
    **dict.fromkeys(("next", "positional-next"), "next"),
    **dict.fromkeys(("previous", "positional-previous", "previous-token"), "previous"),
    **dict.fromkeys(("same", "same-other"), "same"),
    **dict.fromkeys(("delimiter", "first-token", "sink", "sink-elsewhere"), "resting"),
    "bag": "broad",
}
"""The kind that a label says; several labels are one kind."""


def valid(text: str) -> str:
    """The text without lone surrogates, which no UTF-8 file can hold."""
    return text.encode("utf-8", "replace").decode()
