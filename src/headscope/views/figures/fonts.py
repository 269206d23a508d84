"""The fonts of this machine: which characters they can write, and how wide a text is."""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Any

FIRST = ("Arial", "Liberation Sans", "DejaVu Sans")
"""The first two are equally wide; the last one comes with matplotlib."""
FALLBACK = (
    "DejaVu Sans",
    "Noto Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans SC",
    "Noto Sans JP",
    "Noto Sans KR",
    "Source Han Sans SC",
    "WenQuanYi Micro Hei",
    "PingFang SC",
    "Hiragino Sans",
    "Apple SD Gothic Neo",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "Noto Sans Arabic",
    "Noto Sans Hebrew",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
    "Noto Sans Symbols 2",
    "Noto Emoji",
    "Segoe UI",
    "Segoe UI Symbol",
    "Apple Symbols",
    "Arial Unicode MS",
)
STAND_IN = "\u25a1"
INVISIBLE = frozenset("\u200c\u200d") | {chr(code) for code in range(0xFE00, 0xFE10)}
"""Joiners and variation selectors: where a font has no glyph for them, they can be left out."""


def installed(family: str) -> str | None:
    """The file of a font family; None where this machine does not have it."""
    from matplotlib.font_manager import findfont

    try:
        return str(findfont(family, fallback_to_default=False))
    except ValueError:
        return None


def families(wanted: str | None = None) -> tuple[str, ...]:
    """The installed families, in the order in which they are tried for a character."""
    order = dict.fromkeys((*([wanted] if wanted else []), *FIRST, *FALLBACK))
    return tuple(family for family in order if installed(family))


@cache
def _faces(names: tuple[str, ...], *, bold: bool = False) -> tuple[Any, frozenset[int]]:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    weight = "bold" if bold else "normal"
    paths = [
        findfont(FontProperties(family=name, weight=weight)) for name in names if installed(name)
    ]
    known: set[int] = set()
    for path in paths:
        known |= set(get_font(path).get_charmap())
    return get_font(paths), frozenset(known)


@cache
def writable(text: str, names: tuple[str, ...]) -> tuple[str, frozenset[str]]:
    """The text with a square for each character that no font has, and these characters."""
    # A font knows up to 65,000 characters and a text has a few: these are looked up in those.
    _, known = _faces(names)
    shown, missing = "", set()
    for character in text:
        if ord(character) in known:
            shown += character
        elif character not in INVISIBLE:
            shown += STAND_IN
            missing.add(character)
    return shown, frozenset(missing)


SCRIPTS = {
    "CJK ": "Noto Sans CJK SC",
    "HANG": "Noto Sans CJK KR",
    "HIRA": "Noto Sans CJK JP",
    "KATA": "Noto Sans CJK JP",
}
"""The beginning of a character's Unicode name, and a font that can write it."""


def missing_words(missing: str) -> str:
    """A warning about characters that no font can write, and what to do."""
    names = [unicodedata.name(character, "") for character in missing]
    wanted = next(
        (font for name in names for start, font in SCRIPTS.items() if name.startswith(start)), ""
    )
    listed = " ".join(missing[:8]) + (" ..." if len(missing) > 8 else "")
    return (
        f"No installed font can write {len(missing)} of the characters ({listed}); a square "
        f"stands for each. Install one{f', such as {wanted}' if wanted else ''}, or name one with "
        "font= (--font)"
    )


@cache
def em_width(text: str, names: tuple[str, ...], *, bold: bool = False) -> float:
    """Width of a text in units of its font size."""
    face, _ = _faces(names, bold=bold)
    face.set_size(64, 72)
    face.set_text(text, 0.0)
    # At 64 points and 72 dots in an inch one em is 64 pixels, and FreeType counts 64ths of a pixel.
    return face.get_width_height()[0] / 64 / 64
