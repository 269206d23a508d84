"""Classes of tokens that heads look at."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool

from headscope.errors import RecordError
from headscope.record import Tokens

TokenClass = Literal["cls", "sep", "delimiter", "special", "first", "punctuation", "stop"]
CLASSES: tuple[str, ...] = get_args(TokenClass)
CLASS_ROLES = {
    "cls": ("cls", "bos"),
    "sep": ("sep", "eos"),
    "delimiter": ("cls", "bos", "sep", "eos"),
}
CLS = frozenset({"[cls]", "<cls>", "<s>", "<bos>", "<|begin_of_text|>", "<|startoftext|>"})
SEP = frozenset({"[sep]", "<sep>", "</s>", "<eos>", "<|end_of_text|>", "<|endoftext|>"})


def token_class(tokens: Tokens, name: TokenClass) -> Bool[np.ndarray, " token"]:
    """The tokens of a class.

    ``cls``: what the tokenizer has for classifying or beginning a text (its cls and bos tokens:
    [CLS], <s>, <|begin_of_text|>). ``sep``: what it has for parting or ending texts (sep, eos:
    [SEP], </s>). ``delimiter``: both. ``special``: all that stand for no text. ``first``: the first
    token, whatever it is. ``punctuation``: every character of its label is punctuation or a symbol.
    ``stop``: exactly "." and ",".

    Tokens that do not know their roles (`Tokens.roles`) are recognised by their names: [CLS],
    <cls>, <s>, <bos>, <|begin_of_text|>, <|startoftext|>; [SEP], <sep>, </s>, <eos>,
    <|end_of_text|>, <|endoftext|>.

    Source: Clark et al. 2019, section 3.2: [CLS], [SEP] and, as punctuation, what we call ``stop``.
    The others are ours. In decoders the first is the token a text begins with, which nothing
    classifies.

    Args:
        tokens: of the side that is looked at.
        name: of the class.

    Raises:
        RecordError: a class there is not.

    Example:
        >>> token_class(Tokens(pieces=("[CLS]", "well", ",", "[SEP]")), "stop").tolist()
        [False, False, True, False]
    """
    if name not in CLASSES:
        raise RecordError(f"There is no token class {name!r}; there are {', '.join(CLASSES)}")
    special = np.array(tokens.special, bool)
    if name == "special":
        return special
    if name == "first":
        return np.arange(len(tokens)) == 0
    if name in CLASS_ROLES:
        # What the tokenizer says of its tokens goes before what their names suggest.
        if tokens.roles is not None:
            wanted = CLASS_ROLES[name]
            return np.array([role in wanted for role in tokens.roles], bool)
        pieces = {"cls": CLS, "sep": SEP, "delimiter": CLS | SEP}[name]
        return special & _each(tokens.pieces, lambda piece: piece.lower() in pieces)
    test = _is_punctuation if name == "punctuation" else (lambda label: label in (".", ","))
    return ~special & _each(tokens.labels, test)


def _each(texts: tuple[str, ...], test: Callable[[str], bool]) -> Bool[np.ndarray, " token"]:
    return np.array([test(text) for text in texts], bool)


def _is_punctuation(label: str) -> bool:
    shown = label.strip()
    return bool(shown) and all(unicodedata.category(letter)[0] in "PS" for letter in shown)
