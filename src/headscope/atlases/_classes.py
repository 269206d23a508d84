"""What a token is, and what a key is to a query."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int

from headscope.measures import token_class
from headscope.record import Tokens

CLASSES = ("first", "special", "punctuation", "number", "word", "rest of a word")
"""What a token is, each one thing: the first of the text, another special token, punctuation, a
number, the beginning of a word, or a later piece of one.
"""
RELATIONS = ("itself", "previous", "next", "same word", "own word")
"""What a key may be to a query: the token itself, a neighbour, the same word at another place, or
another piece of the word that the query is a piece of. A key may be several of these.
"""


def class_of_tokens(tokens: Tokens) -> Int[np.ndarray, " token"]:
    """The number in `CLASSES` of each token.

    Example:
        >>> tokens = Tokens(pieces=("[CLS]", "7", "straw", "##berries", ".", "[SEP]"))
        >>> class_of_tokens(tokens).tolist()
        [0, 3, 4, 5, 2, 1]
    """
    classes = np.full(len(tokens), CLASSES.index("word"))
    classes[np.array(tokens.continues, bool)] = CLASSES.index("rest of a word")
    is_number = [label.strip().isnumeric() for label in tokens.labels]
    classes[np.array(is_number, bool)] = CLASSES.index("number")
    classes[token_class(tokens, "punctuation")] = CLASSES.index("punctuation")
    classes[np.array(tokens.special, bool)] = CLASSES.index("special")
    classes[:1] = CLASSES.index("first")
    return classes


def related_pairs(tokens: Tokens) -> Bool[np.ndarray, "relation query key"]:
    """The keys that stand in each of `RELATIONS` to a query."""
    count = len(tokens)
    offset = np.arange(count)[None, :] - np.arange(count)[:, None]
    words = np.array([label.lower() for label in tokens.labels])
    ordinary = ~np.array(tokens.special, bool)
    same = (words[:, None] == words[None, :]) & ordinary[:, None] & ordinary[None, :]
    of_word = np.cumsum(~np.array(tokens.continues, bool))
    own = (of_word[:, None] == of_word[None, :]) & ordinary[:, None] & ordinary[None, :]
    return np.stack(
        [offset == 0, offset == -1, offset == 1, same & (offset != 0), own & (offset != 0)]
    )


def names_of(tokens: Tokens) -> tuple[str, ...]:
    """What each token is called among all texts: its label, marked where it continues a word."""
    named = zip(tokens.labels, tokens.continues, strict=True)
    return tuple(f"##{label}" if continues else label for label, continues in named)
