"""Text for numbers in figures; the same as in the live viewer (frontend/src/state/words.ts)."""

from __future__ import annotations


def short_weight(weight: float) -> str:
    """``".21"``, ``".004"``, ``"<.001"``: an attention weight in a narrow column."""
    if weight >= 0.995:
        return "1.0"
    if weight >= 0.0095:
        return f"{weight:.2f}"[1:]
    if weight >= 0.0005:
        return f"{weight:.3f}"[1:]
    return "<.001" if weight > 0 else "0"


def two_digits(weight: float) -> str:
    """``".86"``, ``".015"``, ``"1.0"``: the end of a scale."""
    if weight >= 0.995:
        return "1.0"
    return (f"{weight:.2f}" if weight >= 0.095 else f"{weight:.2g}").removeprefix("0")


def times(multiple: float) -> str:
    """``"31 ×"``, ``"1.2 ×"``, ``"<.1 ×"``: how often the even share."""
    if 0 < multiple < 0.05:
        return "<.1 ×"
    text = f"{multiple:,.0f}" if multiple >= 9.95 else f"{multiple:.1f}".removesuffix(".0")
    return f"{text.removeprefix('0') or '0'} ×"


def short_score(score: float) -> str:
    """``"12"``, ``"3.4"``, ``"−0.21"``, with a true minus."""
    size = abs(score)
    if size >= 9.95:
        digits = 0
    else:
        digits = 1 if size >= 0.995 else 2
    text = f"{size:.{digits}f}"
    return f"−{text}" if score < 0 and float(text) else text


def percent(part: float) -> str:
    """``"86 %"``, and never 0 % or 100 % for something in between."""
    if 0 < part < 0.005:
        return "<1 %"
    if 0.995 <= part < 1:
        return "100 %" if part >= 0.9995 else ">99 %"
    return f"{100 * part:.0f} %"


def counted(number: int, noun: str) -> str:
    """``"1 head"``, ``"12 heads"``, ``"1,120 lines"``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def ordinal(number: int) -> str:
    """``"2nd"``, ``"11th"``."""
    ending = (
        "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    )
    return f"{number}{ending}"
