"""The fonts of this machine: which characters they can write, and how wide a text is."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import Any

FIRST = ("Arial", "Liberation Sans", "DejaVu Sans")
"""The first two are equally wide; the last one comes with matplotlib."""
FALLBACK = (
    "DejaVu Sans;Noto Sans;Noto Sans CJK SC;Noto Sans CJK JP;Noto Sans SC;Noto Sans JP;"
    "Noto Sans KR;Source Han Sans SC;WenQuanYi Micro Hei;PingFang SC;Hiragino Sans;"
    "Apple SD Gothic Neo;Microsoft YaHei;Yu Gothic;Malgun Gothic;Noto Sans Arabic;"
    "Noto Sans Hebrew;Noto Sans Devanagari;Noto Sans Thai;Noto Sans Symbols 2;Noto Emoji;Segoe UI;"
    "Segoe UI Symbol;Apple Symbols;Arial Unicode MS"
)
STAND_IN = "\u25a1"
INVISIBLE = frozenset("\u200c\u200d") | {chr(code) for code in range(0xFE00, 0xFE10)}
"""Joiners and variation selectors: where a font has no glyph for them, they can be left out."""

ISOLATES = frozenset("\u2068\u2069")
"""Around what is written from the right: they set the order, and no glyph is drawn."""


def installed(family: str) -> str | None:
    """The file of a font family; None where this machine does not have it."""
    from matplotlib.font_manager import findfont

    try:
        return str(findfont(family, fallback_to_default=False))
    except ValueError:
        return None


def families(wanted: str | None = None) -> tuple[str, ...]:
    """The installed families, in the order in which they are tried for a character."""
    order = dict.fromkeys((*([wanted] if wanted else []), *FIRST, *FALLBACK.split(";")))
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
        if ord(character) in known or character in ISOLATES:
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


LONGEST = 60
NOTHING = "·"
"""Stands for a token that adds no letter, such as a further byte of the letter before it."""
CONTROLS = {"\n": "↵", "\t": "⇥", " ": "␣"}
MOVES_OTHERS = frozenset(
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\ufeff\ufff9\ufffa\ufffb"
) | {chr(code) for code in range(0x2060, 0x2070)}
"""Characters that change the order of others, or that are invisible. Joiners and variation
selectors are kept.
"""
NO_CHARACTERS = frozenset(map(chr, range(0xFDD0, 0xFDF0))) | {
    chr(plane + end) for plane in range(0, 0x110000, 0x10000) for end in (0xFFFE, 0xFFFF)
}
"""Code points that are no characters by definition; XML forbids some of them."""
EMPTY_LOOKING = frozenset("\u115f\u1160\u3164\uffa0\u2800")


def runs_left(text: str) -> bool:
    """Whether a letter of it is written from right to left."""
    return any(unicodedata.bidirectional(character) in ("R", "AL") for character in text)


def mostly_left(texts: Sequence[str]) -> bool:
    """Whether most letters are written from right to left."""
    letters = list(filter(str.isalpha, "".join(texts)))
    return 2 * sum(map(runs_left, letters)) > len(letters)


def levels_of(texts: Sequence[str], base: int) -> list[int]:
    """The level of each text of a line, as of Unicode (UAX 9): odd ones run from right to left;
    base is 1 where the line does, else 0.
    """
    known, letters = [], base
    for text in texts:
        if any(map(str.isalpha, text)):
            letters = int(runs_left(text))
            known.append(1 if letters else 2 * base)
        else:
            known.append(2 * max(base, letters) if any(map(str.isdigit, text)) else -1)

    def last(one: int, other: int) -> int:
        return one if other < 0 else other

    # A sign, such as a comma, runs as both of its sides do, or else as the line does.
    before = [*accumulate(known, last, initial=base)][1:]
    after = [*accumulate(reversed(known), last, initial=base)][:0:-1]
    return list(map(min, before, after))


def in_quotes(text: str) -> str:
    """In quotation marks; what is written from the right turns nothing around it."""
    if runs_left(text):
        text = f"\u2068{text}\u2069"
    return f"“{text}”"


def readable(token: str, longest: int | None = LONGEST) -> str:
    """The token with a sign for each character that is invisible, or that would change the text
    around it; of a longer one its beginning.
    """
    if token == "":
        return NOTHING
    shown = token if longest is None or len(token) <= longest else token[:longest] + "…"
    if all(_unseen(character) for character in shown):
        return "".join(map(_sign, shown))
    if all(unicodedata.category(character).startswith("M") for character in shown):
        # A mark alone would be drawn over the character before it: the dotted circle carries it.
        return "◌" + shown
    return "".join(_inside(character) for character in shown)


def _unseen(character: str) -> bool:
    is_space = unicodedata.category(character) in ("Zs", "Zl", "Zp", "Cf", "Cc", "Cs")
    return is_space or character in EMPTY_LOOKING | NO_CHARACTERS


def _inside(character: str) -> str:
    is_control = unicodedata.category(character) in ("Cc", "Cs")
    if not is_control and character not in MOVES_OTHERS | NO_CHARACTERS:
        return character
    sign = _sign(character)
    return f"⟨{sign}⟩" if sign.startswith("U+") else sign


def _sign(character: str) -> str:
    return CONTROLS.get(character) or f"U+{ord(character):04X}"
