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
SCATTER_AXES = ("distance", "entropy")
"""Measures on the x and y axis of the scatter where none are chosen."""

POSITIVE, NEGATIVE = ("#2460be", "#68a6ff"), ("#d96214", "#ff9a4d")
"""Colours of numbers above and below 0, on light and on dark paper."""

# Chosen so that any two can be distinguished with normal and with colour-blind eyes: by simulated
# annealing in OKLCH over normal, protan, deutan and tritan vision.
LIGHT_HEADS: Mapping[int, str] = {
    12: (
        "#3c9ffb #a00b27 #9a973f #2e48b5 #fd99a4 #d665b0 #47cfe4 #a5cc36 #a95c10 #753b79 #008c74 "
        "#7e63da"
    ),
    16: (
        "#1c66d0 #c4c625 #6c4e02 #e95764 #98b2fc #897af6 #355284 #fca195 #a84a53 #389a87 #3fd3c9 "
        "#8069a3 #c97fc3 #a07102 #95045c #df8a0a"
    ),
    32: (
        "#3466ad #ded071 #d92624 #66223b #0bd5fd #9e80f9 #1c17af #eea722 #596d12 #d36b8e #a6dad3 "
        "#3576fd #551a7c #1c44be #9a2743 #f76b2e #92bdd2 #8875bb #644982 #febca7 #8f6264 #d88a6e "
        "#534319 #81a0e8 #6b9f0e #3f3f67 #9051d0 #c7b385 #af578d #b496b4 #96805d #1d5c54"
    ),
}
"""Colours of the heads of a layer on light paper, by the number of colours."""
DARK_HEADS: Mapping[int, str] = {
    12: (
        "#9cc1ff #d56407 #d1e26c #6b7ae5 #d3a500 #b764a5 #1af4fb #73a26e #b68ffe #f47aba #4ccf7d "
        "#ffb2bd"
    ),
    16: (
        "#61abfc #fbde40 #b96923 #24fafa #8db577 #a960b6 #faa3ca #b390c9 #4b9266 #b9eebb #cf9206 "
        "#b2c3ff #6bdf87 #857cf0 #dc6893 #ccbf17"
    ),
    32: (
        "#4e89ec #c6f95d #806613 #dea46f #60e1d4 #b24786 #614ed1 #2ba8cd #75810c #fcba6f #58fee5 "
        "#c2bef8 #636dda #fe899e #95594d #7a9e20 #fae2c1 #4fb7fb #a2cf18 #e551a1 #8fe6ff #b79560 "
        "#d6e097 #dc82dd #af6d57 #7d5eab #6f89a7 #97b52d #a6d6ac #75b79c #96c0cf #4b997b"
    ),
}
"""The same on dark paper."""

KIND_COLOURS: Mapping[str, tuple[str, str]] = {
    "next": ("#2c1f9d", "#0ba3fb"),
    "previous": ("#69370e", "#ec6103"),
    "same": ("#960438", "#d1b068"),
    "own": ("#17830b", "#c5ea90"),
    "near": ("#084b6a", "#79f5f1"),
    "broad": ("#a747ba", "#c66ac1"),
    "resting": ("#586474", "#a5b2c4"),
    "none": ("#6f695d", "#989285"),
}
"""Colours of text and lines of each kind of heads, on light and on dark paper. Any two can be
distinguished by normal, protan, deutan and tritan eyes (simulated annealing; smallest distance in
OKLab .068 and .10), and all can be read on the page (contrast at least 4.6).
"""
