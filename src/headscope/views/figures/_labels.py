"""Readable text for tokens that may hold any character, as in the live viewer
(frontend/src/state/label.ts).

Control characters differ: their signs are missing from most fonts, so they are code points here.
"""

from __future__ import annotations

import unicodedata

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
    if character in EMPTY_LOOKING or character in NO_CHARACTERS:
        return True
    return unicodedata.category(character) in ("Zs", "Zl", "Zp", "Cf", "Cc", "Cs")


def _inside(character: str) -> str:
    if (
        unicodedata.category(character) not in ("Cc", "Cs")
        and character not in MOVES_OTHERS | NO_CHARACTERS
    ):
        return character
    sign = _sign(character)
    return f"⟨{sign}⟩" if sign.startswith("U+") else sign


def _sign(character: str) -> str:
    return CONTROLS.get(character) or f"U+{ord(character):04X}"
