"""Classes of tokens, and relations between a query and a key."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int

from headscope.measures import token_class
from headscope.record import Tokens

CLASSES = ("first", "special", "punctuation", "number", "word", "rest of a word")
"""The classes of tokens; each token has one: the first of the text, another special token,
punctuation, a number, the beginning of a word, or a later piece of one.
"""
RELATIONS = ("itself", "previous", "next", "same word", "own word")
"""Relations of a key to a query: the token itself, a neighbour, the same word at another position,
or another piece of the query's word. A key may have several of them.
"""


def class_of_tokens(tokens: Tokens) -> Int[np.ndarray, " token"]:
    """The number in `CLASSES` of each token.

    Example:
        >>> tokens = Tokens(pieces=("[CLS]", "7", "straw", "##berries", ".", "[SEP]"))
        >>> class_of_tokens(tokens).tolist()
        [0, 3, 4, 5, 2, 1]
    """
    # From the most general class to the most specific one: later lines replace earlier ones.
    classes = np.full(len(tokens), CLASSES.index("word"))
    classes[np.array(tokens.continues, bool)] = CLASSES.index("rest of a word")
    is_number = [label.strip().isnumeric() for label in tokens.labels]
    classes[np.array(is_number, bool)] = CLASSES.index("number")
    classes[token_class(tokens, "punctuation")] = CLASSES.index("punctuation")
    classes[np.array(tokens.special, bool)] = CLASSES.index("special")
    classes[:1] = CLASSES.index("first")
    return classes


def related_pairs(tokens: Tokens) -> Bool[np.ndarray, "relation query key"]:
    """The pairs of query and key that have each of `RELATIONS`."""
    count = len(tokens)
    offset = np.arange(count)[None, :] - np.arange(count)[:, None]
    words = np.array([label.lower() for label in tokens.labels])
    ordinary = ~np.array(tokens.special, bool)
    same = (words[:, None] == words[None, :]) & ordinary[:, None] & ordinary[None, :]
    # The number of the word that a token belongs to: it grows at each token that begins one.
    of_word = np.cumsum(~np.array(tokens.continues, bool))
    own = (of_word[:, None] == of_word[None, :]) & ordinary[:, None] & ordinary[None, :]
    return np.stack(
        [offset == 0, offset == -1, offset == 1, same & (offset != 0), own & (offset != 0)]
    )


def names_of(tokens: Tokens) -> tuple[str, ...]:
    """The name of each token across texts: its label, marked where it continues a word."""
    # One mark for all tokenizers, so that "s" in "cats" and the word "s" are counted apart.
    named = zip(tokens.labels, tokens.continues, strict=True)
    return tuple(f"##{label}" if continues else label for label, continues in named)
