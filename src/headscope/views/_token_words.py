"""Positions of tokens that are chosen by their word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headscope.errors import PageError

Words = tuple[Sequence[str], Sequence[bool]]


def token_positions(side: str, wanted: Any, pieces: Sequence[str], words: Words) -> list[int]:
    """Positions of tokens that were given by position or by word.

    A word is one token, as it is shown or as the vocabulary spells it; or several tokens that are
    shown as one word, which then are all chosen. Capitals count only where the text has both
    spellings.

    Args:
        side: ``"query"`` or ``"key"``, for messages.
        wanted: one or several positions or words.
        pieces: the tokens as the vocabulary spells them.
        words: the tokens as they are shown, and whether each continues the word before it.

    Raises:
        PageError: a word that does not exist, or occurs several times.
    """
    given = [wanted] if isinstance(wanted, int | str) else list(wanted)
    positions: list[int] = []
    for each in given:
        positions += _positions_of(side, each, pieces, words) if isinstance(each, str) else [each]
    return positions


def _positions_of(side: str, word: str, pieces: Sequence[str], words: Words) -> list[int]:
    labels, continues = words
    runs = [[position] for position in range(len(labels))] + _whole_words(continues)
    names = [_spellings(run, pieces, labels) for run in runs]
    # The exact spelling first: a text may hold both "It" and "it".
    for same in (str, str.casefold):
        matches = [
            run for run, own in zip(runs, names, strict=True) if same(word) in map(same, own)
        ]
        if len(matches) == 1:
            return matches[0]
        if matches:
            listed = ", ".join(str(run[0]) for run in matches)
            raise PageError(f"{side}={word!r} stands at {listed}; give one of these positions")
    shown = ", ".join(repr(label) for label in dict.fromkeys(labels[:40]))
    more = " ..." if len(labels) > 40 else ""
    raise PageError(
        f"{side}={word!r}: there is no such token; there are {shown}{more}, or positions from 0"
    )


def _spellings(run: Sequence[int], pieces: Sequence[str], labels: Sequence[str]) -> list[str]:
    """The spellings of a token: its label, and the piece of the vocabulary; of a word of several
    tokens its letters.
    """
    if len(run) > 1:
        return ["".join(labels[position].strip() for position in run)]
    return [*dict.fromkeys((labels[run[0]].strip(), pieces[run[0]]))]


def _whole_words(continues: Sequence[bool]) -> list[list[int]]:
    """Positions of each word of several tokens."""
    words: list[list[int]] = []
    for position, goes_on in enumerate(continues):
        if goes_on and words:
            words[-1].append(position)
        else:
            words.append([position])
    return [word for word in words if len(word) > 1]
