"""Mentions of people and things, and which earlier one each means: what rules that look at no
attention answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int

from headscope.errors import TextError
from headscope.linguistics.words import Span

KINDS = ("pronoun", "proper", "nominal")
SINGULAR, PLURAL = "singular", "plural"
PRONOUNS: Mapping[str, tuple[str | None, str | None, int]] = {
    **dict.fromkeys(("i", "me", "my", "mine", "myself"), (SINGULAR, None, 1)),
    **dict.fromkeys(("we", "us", "our", "ours", "ourselves"), (PLURAL, None, 1)),
    **dict.fromkeys(("you", "your", "yours"), (None, None, 2)),
    **dict.fromkeys(("yourself", "thou", "thee", "thy", "thine"), (SINGULAR, None, 2)),
    **dict.fromkeys(("he", "him", "his", "himself"), (SINGULAR, "male", 3)),
    **dict.fromkeys(("she", "her", "hers", "herself"), (SINGULAR, "female", 3)),
    **dict.fromkeys(("it", "its", "itself"), (SINGULAR, "neuter", 3)),
    **dict.fromkeys(("they", "them", "their", "theirs", "themselves"), (None, None, 3)),
}
"""Number, gender and person; None where a pronoun does not tell. ``they`` may be one or many."""
MALE = (
    "mr sir lord king prince duke count baron uncle father brother son husband man boy "
    "gentleman nephew grandfather widower monsieur"
)
FEMALE = (
    "mrs miss ms lady queen princess duchess countess aunt mother sister daughter wife woman "
    "girl gentlewoman niece grandmother widow madame"
)
GENDERS: Mapping[str, str] = {
    **dict.fromkeys(MALE.split(), "male"),
    **dict.fromkeys(FEMALE.split(), "female"),
}


@dataclass(frozen=True, kw_only=True)
class Mention:
    """A span of words that means somebody or something.

    Args:
        start: its first word, from 0.
        stop: the word after its last.
        entity: what it means; equal for those that mean the same, None where nobody says.
        kind: one of `KINDS`.

    Raises:
        TextError: where the span is empty or the kind is none of these.
    """

    start: int
    stop: int
    entity: str | None
    kind: str

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.stop:
            raise TextError(f"A mention of the words {self.start} to {self.stop} has none")
        if self.kind not in KINDS:
            raise TextError(f"A mention is of the kind {self.kind!r}; there are {', '.join(KINDS)}")

    @property
    def head(self) -> int:
        """Its last word, which stands for the head that English has there more often than not."""
        return self.stop - 1


@dataclass(frozen=True, kw_only=True)
class Question:
    """Which of some candidates does a mention mean?

    Args:
        mention: that which asks.
        candidates: those to choose among; in the order of `order_of`, so that of equal ones the
            last is taken.
        right: which of them are right.
        by_start: whether the nearest is the one that starts the fewest characters away, as in GAP,
            where a candidate may follow; by default it is the one that ends last.
    """

    mention: Mention
    candidates: tuple[Mention, ...]
    right: tuple[bool, ...]
    by_start: bool = False


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A text with mentions.

    Args:
        name: its identifier.
        text: what a model reads.
        spans: where each word is in it, in characters.
        mentions: those that are annotated.
        questions: which mentions are asked for; by default every one that has an antecedent,
            candidates being those that end before it does.
        document: what it is part of; passages of one document are not independent.
        group: of which questions are counted apart, too.

    Raises:
        TextError: where a mention leaves the words.
    """

    name: str
    text: str
    spans: tuple[Span, ...]
    mentions: tuple[Mention, ...]
    questions: tuple[Question, ...] | None = None
    document: str = ""
    group: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "document", self.document or self.name)
        object.__setattr__(self, "mentions", tuple(sorted(self.mentions, key=order_of)))
        for mention in self.mentions:
            if mention.stop > len(self.spans):
                raise TextError(
                    f"Passage {self.name!r} has {len(self.spans)} words, and a mention of words "
                    f"{mention.start} to {mention.stop}"
                )
        if self.questions is None:
            asked = (self._question(mention) for mention in self.mentions)
            object.__setattr__(self, "questions", tuple(each for each in asked if any(each.right)))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words."""
        return tuple(self.text[start:stop] for start, stop in self.spans)

    def words_of(self, mention: Mention) -> tuple[str, ...]:
        """The words of a mention, in small letters."""
        return tuple(word.lower() for word in self.words[mention.start : mention.stop])

    def _question(self, mention: Mention) -> Question:
        before = tuple(each for each in self.mentions if each.head < mention.head)
        right = tuple(mention.entity is not None and one.entity == mention.entity for one in before)
        return Question(mention=mention, candidates=before, right=right)


def order_of(mention: Mention) -> tuple[int, int]:
    """Mentions are in the order of their last word, and of their first where that is the same."""
    return mention.head, mention.start


def nearest(
    passage: Passage, question: Question, among: Bool[np.ndarray, " candidate"] | None = None
) -> int | None:
    """The candidate that ends last, or starts the fewest characters away (``by_start``), of equal
    ones the later.

    Args:
        passage: what they are in.
        question: with its candidates.
        among: which of them may be taken; by default all.

    Returns:
        Its number; None where there is none.

    Example:
        >>> ann, bo, she = (
        ...     Mention(start=n, stop=n + 1, entity=None, kind="proper") for n in (0, 1, 2)
        ... )
        >>> passage = Passage(
        ...     name="p", text="Ann Bo she", spans=((0, 3), (4, 6), (7, 10)), mentions=()
        ... )
        >>> nearest(passage, Question(mention=she, candidates=(ann, bo), right=(True, False)))
        1
    """
    numbers = np.arange(len(question.candidates)) if among is None else np.flatnonzero(among)
    if not len(numbers):
        return None
    if not question.by_start:
        return int(numbers[-1])
    at = passage.spans[question.mention.start][0]
    nearest_number, least = None, None
    for number in numbers:
        distance = abs(passage.spans[question.candidates[number].start][0] - at)
        # Of candidates that are equally far, the later one is taken.
        if least is None or distance <= least:
            nearest_number, least = int(number), distance
    return nearest_number


def head_match(passage: Passage, question: Question) -> int | None:
    """The nearest candidate with the same head word; where none has, the nearest.

    Source: Clark et al. 2019, section 4.2.

    Example:
        >>> ann, bo, she = (
        ...     Mention(start=n, stop=n + 1, entity=None, kind="proper") for n in (0, 1, 2)
        ... )
        >>> passage = Passage(
        ...     name="p", text="Ann Bo she", spans=((0, 3), (4, 6), (7, 10)), mentions=()
        ... )
        >>> head_match(passage, Question(mention=she, candidates=(ann, bo), right=(True, False)))
        1
    """
    same = _where(passage, question, _same_head)
    return nearest(passage, question, same if same.any() else None)


def sieves(passage: Passage, question: Question) -> int | None:
    """The nearest candidate of the first of four sieves that lets any through.

    Same words; same head word; same number, gender and person as far as they are known; any (Clark
    et al. 2019, section 4.2, after Lee et al. 2011). Ours know pronouns, a plural ending and some
    forty words such as "Mrs" and "son"; theirs are not released.

    Example:
        >>> ann, bo, she = (
        ...     Mention(start=n, stop=n + 1, entity=None, kind="proper") for n in (0, 1, 2)
        ... )
        >>> passage = Passage(
        ...     name="p", text="Ann Bo she", spans=((0, 3), (4, 6), (7, 10)), mentions=()
        ... )
        >>> sieves(passage, Question(mention=she, candidates=(ann, bo), right=(True, False)))
        1
    """
    for sieve in (_same_words, _same_head, _agrees):
        let_through = _where(passage, question, sieve)
        if let_through.any():
            return nearest(passage, question, let_through)
    return nearest(passage, question)


RULES: Mapping[str, Callable[[Passage, Question], int | None]] = {
    "nearest": nearest,
    "head match": head_match,
    "sieves": sieves,
}


def rule_hits(passage: Passage) -> Bool[np.ndarray, "rule question"]:
    """Which questions each of `RULES` answers right."""
    questions = passage.questions or ()
    hits = np.zeros((len(RULES), len(questions)), bool)
    for row, rule in enumerate(RULES.values()):
        for column, question in enumerate(questions):
            answer = rule(passage, question)
            hits[row, column] = answer is not None and question.right[answer]
    return hits


def mention_answers(values: np.ndarray, question: Question) -> Int[np.ndarray, " head"]:
    """The candidate whose head word gets the largest value, of equal ones the last; values ``[head
    word]``.
    """
    numbers = [each.head for each in question.candidates]
    # argmax takes the first of equal ones; turned round, that is the last candidate.
    turned = values[:, numbers[::-1]]
    return len(numbers) - 1 - turned.argmax(axis=1)


def _where(passage: Passage, question: Question, sieve: Callable) -> Bool[np.ndarray, " candidate"]:
    return np.array([sieve(passage, question.mention, each) for each in question.candidates], bool)


def _same_words(passage: Passage, mention: Mention, other: Mention) -> bool:
    return passage.words_of(mention) == passage.words_of(other)


def _same_head(passage: Passage, mention: Mention, other: Mention) -> bool:
    return passage.words_of(mention)[-1] == passage.words_of(other)[-1]


def _agrees(passage: Passage, mention: Mention, other: Mention) -> bool:
    # What one of them leaves open, such as the number of "you", contradicts nothing.
    for mine, theirs in zip(_traits(passage, mention), _traits(passage, other), strict=True):
        if mine is not None and theirs is not None and mine != theirs:
            return False
    return True


def _traits(passage: Passage, mention: Mention) -> tuple[str | None, str | None, int]:
    words = passage.words_of(mention)
    if len(words) == 1 and words[0] in PRONOUNS:
        return PRONOUNS[words[0]]
    gender = next((GENDERS[word.strip(".")] for word in words if word.strip(".") in GENDERS), None)
    # A name in -s, such as "James", is one person; a noun in -ss, such as "princess", is singular.
    many = mention.kind == "nominal" and words[-1].endswith("s") and not words[-1].endswith("ss")
    return PLURAL if many else SINGULAR, gender, 3
