"""Words of a kind: what could stand in each other's place."""

from __future__ import annotations

import unicodedata
from collections import Counter
from functools import lru_cache

from headscope.measures._pairs import form, whole_words
from headscope.record import Tokens

CLOSED = {
    "determiner": (
        "a an the this that these those each every either neither some any no another such what "
        "which whose both all half"
    ),
    "pronoun": (
        "i me you he him she her it we us they them myself yourself himself herself itself "
        "ourselves yourselves themselves who whom someone somebody anyone anybody everyone "
        "everybody nobody something anything everything nothing one none mine yours hers ours "
        "theirs there"
    ),
    "possessive": "my your his its our their",
    "preposition": (
        "of in on at by for with about against between into through during before after above "
        "below from up down out off over under near among across along around behind beside "
        "beyond despite except inside like onto outside past per since than toward towards until "
        "till upon via within without throughout"
    ),
    "conjunction": "and or but nor yet so plus",
    "subordinator": (
        "if because while although though unless whereas whether as when where why how once"
    ),
    "auxiliary": (
        "am is are was were be been being have has had having do does did doing will would shall "
        "should can could may might must ought"
    ),
    "particle": "to not n't 't 's s t ll 'll re 're ve 've d 'd m 'm",
    "adverb": (
        "very too also just only even still already again then now here never always often ever "
        "well more most much less really quite rather perhaps maybe however"
    ),
    "number": (
        "zero two three four five six seven eight nine ten hundred thousand million first second "
        "third"
    ),
}
"""English words of closed classes, each in the class it is in most often; ours, after the parts of
speech of Universal Dependencies.
"""
CLASS_OF = {word: name for name, words in CLOSED.items() for word in words.split()}


def word_classes(tokens: Tokens) -> list[str]:
    """The kind of word that each token belongs to: words of a kind could stand in each other's
    place.

    English words of closed classes have the name of their class (``"determiner"``,
    ``"preposition"`` ...); so have ``"punctuation"`` and numbers. All other words are classed by
    how often they occur in the text: ``"once"`` or ``"more often"``. Special tokens are
    ``"special"``.

    Source: ours. A head that follows parts of speech alone treats words of a class alike, so that
    exchanging them among themselves changes nothing for it. Parts of speech proper would take a
    tagger; texts of other languages have no closed classes here, and their words are classed by
    how often they occur.

    Example:
        >>> word_classes(Tokens(pieces=("[CLS]", "the", "cat", "saw", "a", "cat", ".")))
        ['special', 'determiner', 'more often', 'once', 'determiner', 'more often', 'punctuation']
    """
    words = whole_words(tokens)
    counts = Counter(form(name.strip()) for name in tokens.whole_words.names)
    classes = []
    for word, special in zip(words, tokens.special, strict=True):
        if special:
            classes.append("special")
        else:
            often = "more often" if counts[form(word)] > 1 else "once"
            classes.append(_class_of(word) or often)
    return classes


@lru_cache(maxsize=2**14)
def _class_of(word: str) -> str:
    """The class of a word by itself; empty for a word of the text's own."""
    plain = word.strip().casefold().replace("\u2019", "'")
    if plain in CLASS_OF:
        return CLASS_OF[plain]
    kinds = {unicodedata.category(letter)[0] for letter in plain}
    if kinds and kinds <= {"P", "S"}:
        return "punctuation"
    if "N" in kinds and "L" not in kinds:
        return "number"
    return ""
