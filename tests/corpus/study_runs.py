"""Every study that runs over a corpus, with texts for it: what the tests of runs are held for."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import headscope as hs
from headscope.linguistics import Mention, Passage, Sentence, Treebank

WORDS = ["the", "cat", "dog", "sat", "ran", "on", "by", "it", "us", "me", "all"]


@dataclass(frozen=True)
class StudyRun:
    """A study as a run.

    Args:
        texts: makes so many of them.
        call: the study, of model, tokenizer, texts and options.
        options: that it is called with in every test.
        needs: what kind of model.
        bad: a text that cannot be read.
    """

    texts: Callable[[int], list[Any]]
    call: Callable[..., Any]
    options: dict[str, Any] = field(default_factory=dict)
    needs: str = "bert"
    bad: Any = None


def words_of(number):
    rng = np.random.default_rng(number)
    return tuple(rng.choice(WORDS, int(rng.integers(2, 8))).tolist())


def texts(count):
    return [" ".join(words_of(number)) for number in range(count)]


def sentence(number, words=None):
    words = words or words_of(number)
    rng = np.random.default_rng(number)
    order, heads = rng.permutation(len(words)), np.zeros(len(words), int)
    for place in range(1, len(words)):
        heads[order[place]] = order[rng.integers(place)] + 1
    kinds = [("nsubj", "obj", "det")[at % 3] if head else "root" for at, head in enumerate(heads)]
    document = f"d{number % 5}" if number % 4 else ""
    return Sentence(
        name=f"s{number}",
        words=words,
        heads=tuple(heads.tolist()),
        relations=tuple(kinds),
        document=document,
    )


def passage(number, words=None):
    words = words or words_of(number + 100) + words_of(number)[:4]
    spans, start = [], 0
    for word in words:
        spans.append((start, start + len(word)))
        start += len(word) + 1
    mentions = [
        Mention(start=at, stop=at + 1, entity=f"e{at % 2}", kind=("pronoun", "proper")[at // 2 % 2])
        for at in range(min(len(words), 4))
    ]
    return Passage(
        name=f"p{number}",
        text=" ".join(words),
        spans=tuple(spans),
        mentions=tuple(mentions),
        document=f"d{number // 3}",
    )


def relations(model, tokenizer, sentences, **options):
    return hs.relations(model, tokenizer, Treebank("made up", tuple(sentences)), **options)


LONG = ("cat",) * 200
BAD = " ".join(LONG)
STUDIES = {
    "relations": StudyRun(
        lambda count: [sentence(number) for number in range(count)],
        relations,
        {"splits": 2},
        bad=sentence(1000, LONG),
    ),
    "coref": StudyRun(
        lambda count: [passage(number) for number in range(count)],
        hs.coref,
        {"splits": 2},
        bad=passage(1000, LONG),
    ),
    "norms": StudyRun(texts, hs.norm_study, bad=BAD),
    "mechanism": StudyRun(texts, hs.mechanism, {"at": [(0, 1), (1, 0)], "pattern": "sep"}, bad=BAD),
}
