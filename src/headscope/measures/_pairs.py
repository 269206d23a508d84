"""Pairs of query and key that belong together, and classes of tokens and words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool, Float

from headscope.errors import RecordError
from headscope.record import Tokens

VOWELS = "aeiouy"


def same_segment(query: Tokens, key: Tokens) -> Bool[np.ndarray, "query key"]:
    """Pairs of words of the same text of a pair, the word itself included; special tokens belong to
    none.

    Example:
        >>> tokens = Tokens(pieces=("a", "b", "[SEP]", "c"), segments=(0, 0, 0, 1))
        >>> same_segment(tokens, tokens).astype(int).tolist()
        [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
    """
    return words(query, key) & (np.array(query.segments)[:, None] == np.array(key.segments))


def other_segment(query: Tokens, key: Tokens) -> Bool[np.ndarray, "query key"]:
    """Pairs of words of different texts of a pair; special tokens belong to none.

    Example:
        >>> tokens = Tokens(pieces=("a", "b", "[SEP]", "c"), segments=(0, 0, 0, 1))
        >>> other_segment(tokens, tokens).astype(int).tolist()
        [[0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0], [1, 1, 0, 0]]
    """
    return words(query, key) & (np.array(query.segments)[:, None] != np.array(key.segments))


def words(query: Tokens, key: Tokens) -> Bool[np.ndarray, "query key"]:
    """Pairs of tokens that both stand for text.

    Example:
        >>> words(Tokens(pieces=("[CLS]", "a")), Tokens(pieces=("b", "[SEP]", "c"))).astype(
        ...     int
        ... ).tolist()
        [[0, 0, 0], [1, 0, 1]]
    """
    return ~np.array(query.special, bool)[:, None] & ~np.array(key.special, bool)


def same_token(query: Tokens, key: Tokens, *, itself: bool = True) -> Bool[np.ndarray, "query key"]:
    """Pairs of words with the same piece.

    Source: Vig 2019, pattern 3; with `other_segment` pattern 4.

    Args:
        query: tokens that look.
        key: tokens that are looked at.
        itself: whether a token is its own partner; in cross-attention none is.

    Example:
        >>> tokens = Tokens(pieces=("to", "be", "or", "to"))
        >>> same_token(tokens, tokens, itself=False).astype(int).tolist()
        [[0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]]
    """
    pairs = _equal(query, key, query.pieces, key.pieces)
    if not itself and query == key:
        np.fill_diagonal(pairs, False)
    return pairs


def same_form(query: Tokens, key: Tokens, *, itself: bool = True) -> Bool[np.ndarray, "query key"]:
    """Pairs of tokens whose words have the same `form`: store and Stores, carry and carried.

    Pieces count with the whole word they belong to; two pieces of one and the same word are no
    pair. Patches and frames are no words.

    Source: Vig 2019, patterns 3 and 4 ("identical or related words"). The form is ours: a rule, not
    a dictionary.

    Args:
        query: tokens that look.
        key: tokens that are looked at.
        itself: whether a token is its own partner; in cross-attention none is.

    Example:
        >>> tokens = Tokens(pieces=("straw", "##berry", "or", "straw", "##berries"))
        >>> same_form(tokens, tokens, itself=False).astype(int).tolist()[0]
        [0, 0, 0, 1, 1]
    """
    of_query = word_forms(query)
    is_self = query == key
    of_key = of_query if is_self else word_forms(key)
    pairs = _equal(query, key, of_query, of_key)
    if is_self:
        # Numbers of whole words: the pieces of one word all have its form, and these numbers
        # distinguish them.
        occurrences = np.cumsum(~np.array(query.continues, bool))
        pairs &= occurrences[:, None] != occurrences
        if itself:
            np.fill_diagonal(pairs, ~np.array(query.special, bool))
    return pairs & np.array(query.worded, bool)[:, None] & np.array(key.worded, bool)


def related(
    query: Tokens,
    key: Tokens,
    query_vectors: Float[np.ndarray, "query feature"],
    key_vectors: Float[np.ndarray, "key feature"],
    *,
    threshold: float | Float[np.ndarray, " query"],
) -> Bool[np.ndarray, "query key"]:
    """Pairs of different words whose vectors point the same way: cosine of at least a threshold.

    Source: ours, for "related words" of Vig 2019, patterns 3 and 4: vectors are the model's input
    embeddings. No threshold holds for every model or word; `headscope.patterns.related_patterns`
    takes one for each word.

    Args:
        query: tokens that look.
        key: tokens that are looked at.
        query_vectors: one vector for each query.
        key_vectors: one vector for each key.
        threshold: least cosine, from -1 to 1; one for all or for each query.

    Raises:
        RecordError: where vectors and tokens do not fit.

    Example:
        >>> tokens = Tokens(pieces=("cat", "dog", "of"))
        >>> vectors = np.array([[1.0, 0.1], [1.0, 0.0], [0.0, 1.0]])
        >>> related(tokens, tokens, vectors, vectors, threshold=0.9).astype(int).tolist()
        [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    """
    if len(query_vectors) != len(query) or len(key_vectors) != len(key):
        raise RecordError(
            f"{len(query_vectors)} and {len(key_vectors)} vectors were given for {len(query)} "
            f"query and {len(key)} key tokens; give one for each"
        )
    units = [
        each / np.maximum(np.linalg.norm(each, axis=1, keepdims=True), 1e-300)
        for each in (query_vectors, key_vectors)
    ]
    least = np.broadcast_to(threshold, len(query))[:, None]
    return words(query, key) & ~same_token(query, key) & (units[0] @ units[1].T >= least)


@lru_cache(maxsize=2**14)
def form(word: str) -> str:
    """A word without case, accents and its English ending: what stands in for a lemma.

    Rules, the first that leaves three letters with a vowel: -'s; -ies, -ied -> -y; -sses -> -ss;
    -es after s, x, z, ch, sh; -s but not -ss, -us, -is; -ing, -ed, with a doubled last letter made
    single (not l, s, z); a last -e is dropped. Irregular forms stay apart (go, went) and some
    different words meet (pine, pining -> pin).

    Source: ours; the rules are those of the first steps of Porter 1980, shortened.

    Example:
        >>> [
        ...     form(word)
        ...     for word in ("Stores", "store", "carried", "carry", "running", "run", "bus", "Café")
        ... ]
        ['stor', 'stor', 'carry', 'carry', 'run', 'run', 'bus', 'cafe']
    """
    # NFKD parts accents from their letters, so that they can be left out.
    decomposed = unicodedata.normalize("NFKD", word.strip().casefold())
    letters = "".join(each for each in decomposed if not unicodedata.combining(each))
    stem = _without_ending(re.sub("['\u2019]s?$", "", letters))
    return stem[:-1] if len(stem) > 4 and stem.endswith("e") else stem


def _without_ending(word: str) -> str:
    for ending, instead in ENDINGS:
        shorter = re.sub(ending, instead, word)
        # Three letters with a vowel must be left: "bring" and "red" have no ending.
        if shorter == word or len(shorter) < 3 or not set(VOWELS) & set(shorter):
            continue
        if ending in ("ing$", "ed$"):
            # "running" is "run"; but "falling" is "fall", "passing" is "pass".
            shorter = re.sub(r"([^aeiouylsz])\1$", r"\1", shorter)
        return shorter
    return word


ENDINGS = (
    ("ie[sd]$", "y"),
    ("sses$", "ss"),
    ("(?<=[sxz])es$", ""),
    ("(?<=[cs]h)es$", ""),
    ("(?<![sui])s$", ""),
    ("ing$", ""),
    ("ed$", ""),
)


def _equal(
    query: Tokens, key: Tokens, query_names: Sequence[str], key_names: Sequence[str]
) -> Bool[np.ndarray, "query key"]:
    # Compared as numbers: NumPy's arrays of strings would drop zeros at their ends.
    numbers = {name: at for at, name in enumerate(dict.fromkeys([*query_names, *key_names]))}
    rows, columns = (
        np.array([numbers[name] for name in names], int) for names in (query_names, key_names)
    )
    return words(query, key) & (rows[:, None] == columns)


def word_forms(tokens: Tokens) -> list[str]:
    """The `form` of the whole word that each token belongs to.

    Example:
        >>> word_forms(Tokens(pieces=("straw", "##berries", "taste")))
        ['strawberry', 'strawberry', 'tast']
    """
    return [form(word) for word in whole_words(tokens)]


def whole_words(tokens: Tokens) -> list[str]:
    """The whole word of each token, its labels joined."""
    words = tokens.whole_words
    return [name.strip() for name, run in zip(words.names, words.tokens, strict=True) for _ in run]


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
        "should can can't cannot could may might must ought won't shan't"
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
    # "it's" is of the class of "it", and "isn't" of that of "is".
    for known in (plain, plain.removesuffix("n't"), plain.partition("'")[0]):
        if known in CLASS_OF:
            return CLASS_OF[known]
    kinds = {unicodedata.category(letter)[0] for letter in plain}
    if kinds and kinds <= {"P", "S"}:
        return "punctuation"
    return "number" if "N" in kinds and "L" not in kinds else ""
