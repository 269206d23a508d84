"""Patterns that users describe: in words, or by painting a map."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import get_args

import numpy as np
from jaxtyping import Bool, Shaped

from headscope.errors import RecordError
from headscope.measures import TokenClass, token_class
from headscope.patterns._maps import QueryKeyTokens
from headscope.patterns._pattern import Pattern
from headscope.record import Tokens

RULE = re.compile(
    r"""\s*(?P<query>".+?"|\S+)\s*->\s*(?P<key>".+?"|\S+)(?:\s+in\s+(?P<where>own|other))?\s*"""
)
TOKENS = ("any", "word", *get_args(TokenClass))
OF_WORDS = ("same", "punctuation", "stop")
PLACES = ("self", "same", "next", "previous")


def sketch(rule: str, *, threshold: float = 0.3, name: str = "") -> Pattern:
    """A pattern from a rule: which queries look at which keys.

    A rule is ``QUERY -> KEY``, followed by ``in own`` or ``in other`` for keys of the same or the
    other sentence. Both sides may be ``any``, ``word``, a class of `token_class` (``sep``,
    ``punctuation`` ...) or a ``"word"`` in quotes, in any case. The key may also be relative to the
    query:
    ``self``, ``same`` (the same form, elsewhere), ``next``, ``previous``, or an offset such as
    ``+2``.

    Args:
        rule: a rule such as ``'word -> sep'``, ``'"it" -> word in other'`` or ``'punctuation ->
            -2'``.
        threshold: smallest mean mass for the label.
        name: name of the pattern; by default the rule.

    Raises:
        RecordError: where the rule cannot be read.

    Example:
        >>> from headscope.record import Tokens
        >>> tokens = Tokens(pieces=("[CLS]", "so", "it", "goes", "[SEP]"))
        >>> sketch("word -> next").wanted(QueryKeyTokens(tokens, tokens)).astype(int).tolist()[1:4]
        [[0, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]]
    """
    read = RULE.fullmatch(rule)
    if read is None:
        raise RecordError(
            f"The rule {rule!r} cannot be read; write QUERY -> KEY, such as 'word -> sep in own'"
        )
    query, key, where = read["query"], read["key"], read["where"]
    for side, text, more in (("query", query, ()), ("key", key, (*PLACES, "+1", "-1"))):
        if not _is_known(text, more):
            raise RecordError(
                f"The {side} {text} is not known; give {', '.join((*TOKENS, *more))} "
                'or a "word" in quotes'
            )

    def pairs(tokens: QueryKeyTokens) -> np.ndarray:
        wanted = _tokens(query, tokens.query)[:, None] & _keys(key, tokens)
        if where is None:
            return wanted
        return wanted & (tokens.own_sentence if where == "own" else tokens.other_sentence)

    return Pattern(
        name=name or rule,
        says=f"looks as in {rule}",
        source="given by the user",
        threshold=threshold,
        pairs=pairs,
        by_place=not any(text.startswith('"') or text in OF_WORDS for text in (query, key)),
    )


def painted(
    cells: Shaped[np.ndarray, "row column"], *, name: str, threshold: float = 0.3
) -> Pattern:
    """A pattern from a painted map, which is stretched to the size of each text's map.

    Args:
        cells: rows are queries, columns are keys; not 0 where a head of this pattern looks. Its
            size is arbitrary.
        name: name of the pattern.
        threshold: smallest mean mass for the label.

    Raises:
        RecordError: where nothing is painted.

    Example:
        >>> from headscope.record import Tokens
        >>> tokens = Tokens(pieces=tuple("abcd"))
        >>> painted(np.eye(2), name="blocks").wanted(QueryKeyTokens(tokens, tokens)).astype(
        ...     int
        ... ).tolist()
        [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]
    """
    cells = np.asarray(cells)
    if cells.ndim != 2 or not cells.any():
        raise RecordError(
            f"Painted was an array of shape {cells.shape} with nothing in it; paint some cells "
            "[row column]"
        )

    def pairs(tokens: QueryKeyTokens) -> np.ndarray:
        rows, columns = (
            np.arange(len(side)) * size // len(side)
            for side, size in zip((tokens.query, tokens.key), cells.shape, strict=True)
        )
        return cells[rows][:, columns] != 0

    return Pattern(
        name=name,
        says="looks as painted",
        source="given by the user",
        threshold=threshold,
        pairs=pairs,
        by_place=True,
    )


def _is_known(text: str, more: tuple[str, ...]) -> bool:
    return (
        text in TOKENS
        or text in more
        or text.startswith('"')
        or (bool(more) and _offset(text) is not None)
    )


def _offset(text: str) -> int | None:
    named = {"self": 0, "next": 1, "previous": -1}
    return named.get(text, int(text) if re.fullmatch(r"[+-]\d+", text) else None)


def _keys(text: str, tokens: QueryKeyTokens) -> Bool[np.ndarray, "query key"]:
    if text == "same":
        return tokens.same_word
    offset = _offset(text)
    shape = len(tokens.query), len(tokens.key)
    if offset is None:
        return np.broadcast_to(_tokens(text, tokens.key), shape)
    return np.eye(*shape, k=offset, dtype=bool) & tokens.is_self


def _tokens(text: str, tokens: Tokens) -> Bool[np.ndarray, " token"]:
    if text.startswith('"'):
        wanted = text.strip('"').casefold()
        return np.array([label.strip().casefold() == wanted for label in tokens.labels], bool)
    simple: dict[str, Callable[[], np.ndarray]] = {
        "any": lambda: np.ones(len(tokens), bool),
        "word": lambda: ~token_class(tokens, "special"),
    }
    return simple[text]() if text in simple else token_class(tokens, text)  # ty: ignore[invalid-argument-type]
