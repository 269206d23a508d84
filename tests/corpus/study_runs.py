"""Every study that runs over a corpus, with texts for it: what the tests of runs are held for."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import headscope as hs
from headscope import tasks
from headscope.linguistics import Mention, Passage, Sentence, Treebank
from headscope.studies import AlignedPair, CounterfactualAttention
from headscope.testing import cipher_pairs, cipher_translator, tiny_model, tiny_tokenizer

WORDS = ["the", "cat", "dog", "sat", "ran", "on", "by", "it", "us", "me", "all"]


def columns_of(result):
    """The table; how many neurons carry a head is a list for each."""
    return {
        name: column for name, column in result.columns().items() if not name.startswith("carrying")
    }


def counts_of(result):
    """What was counted in all sentences."""
    return {name: result.sums.total(name) for name in ("counts", "diagonal")}


def means_of(result):
    """Means of all but what is drawn at random, and what may turn where two words are nearly as
    important as each other.
    """
    return {
        name: mean[0]
        for name, mean in result.means.items()
        if "random" not in name and "shuffled" not in name[0] and name[0] != "kendall"
    }


def table_of(result):
    """The table without what was found with random weights, which is kept beside it."""
    table = result.columns()
    return {name: column for name, column in table.items() if not name.startswith("random_")}


def kept_records(records):
    """What is kept of each text, and which texts have no record."""
    kept = {records.text(at): record["self"].weights() for at, record in enumerate(records)}
    return dict(sorted(kept.items())), sorted(records.left_out.values())


def weights_of(records):
    return {number: record["self"].weights(1, 0) for number, record in enumerate(records)}


@dataclass(frozen=True)
class StudyRun:
    """A study as a run.

    Args:
        texts: makes so many of them.
        call: the study, of model, tokenizer, texts and options.
        options: that it is called with in every test.
        needs: what kind of model.
        bad: a text that cannot be read.
        reason: of that, part of it.
        numbers: of a result, those that are not drawn at random, by name.
        other: an option that numbers depend on.
        refused: what is said of it.
        kept: of a result, what is the same where the texts come in another order.
        written: by the last step of a run.
    """

    texts: Callable[[int], list[Any]]
    call: Callable[..., Any]
    options: dict[str, Any] = field(default_factory=dict)
    needs: str = "bert"
    bad: Any = None
    reason: str = "tokens"
    numbers: Callable[[Any], dict[Any, Any]] = columns_of
    other: dict[str, Any] = field(default_factory=lambda: {"truncate": True})
    refused: str = "truncate false, now true"
    kept: Callable[[Any], Any] = table_of
    written: str = "result.safetensors"


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


def ablate(model, tokenizer, texts, **options):
    """The examples in a task where no run in parts is asked for."""
    if tokenizer is None or options.keys() & {"out", "workers"}:
        return hs.ablate(model, "next-word", texts=texts, **options)
    return hs.ablate(model, tasks.next_word(tokenizer, texts), **options)


def changes_of(result):
    """What does not depend on the order of the examples."""
    return {"change": result.change, "intact": result.baseline} | dict(result.totals)


LONG = ("cat",) * 200
BAD = " ".join(LONG)
STUDIES = {
    "heads by position": StudyRun(
        texts, hs.heads, {"position_mean": True, "random_weights": True}, bad=BAD
    ),
    "atlas with norms": StudyRun(texts, hs.atlas, {"norms": True}, bad=BAD),
    "capture": StudyRun(
        texts,
        hs.capture_many,
        bad=BAD,
        numbers=weights_of,
        kept=kept_records,
        written="records.jsonl",
    ),
    "heads by patterns of the model": StudyRun(
        texts,
        hs.heads,
        {"related": True, "distances": True, "random_weights": True},
        bad=BAD,
        numbers=lambda result: columns_of(result) | {"distances": result.distances},
    ),
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
    "alignment": StudyRun(
        lambda count: cipher_pairs(count // 2, seed=3),
        hs.alignment_study,
        {"random_weights": True},
        needs="translator",
        bad=AlignedPair.of("ba " * 200, "BA", "0-0", name="long"),
        numbers=counts_of,
        other={"special": False},
        refused="special true, now false",
    ),
    "probe": StudyRun(
        lambda count: [sentence(number) for number in range(2 * count)],
        hs.probe,
        {"epochs": 1, "layers": False, "most_words": 300},
        bad=sentence(1000, LONG),
        numbers=lambda result: {"sentences": sum(result.sentences)},
        other={"kind": "structural"},
        refused='reads "maps", now "states"',
    ),
    "ablate after a screen": StudyRun(
        lambda count: texts(count // 2),
        ablate,
        {"screen": "gradient", "top": 2, "layers": False, "random_weights": True},
        needs="writer",
        bad=BAD,
        reason="the model has positions for",
        numbers=lambda result: changes_of(result) | {"estimates": list(result.estimates.values())},
    ),
    "ablate by means": StudyRun(
        lambda count: texts(count // 2),
        ablate,
        {"by": "mean output", "heads": [(0, 1), (2, 3)], "layers": False, "random_weights": True},
        needs="writer",
        bad=BAD,
        reason="the model has positions for",
        numbers=changes_of,
    ),
    "faithfulness": StudyRun(
        lambda count: texts(count // 2),
        hs.faithfulness,
        {"counterfactual": CounterfactualAttention(permutations=3), "random_weights": True},
        needs="classifier",
        bad=BAD,
        numbers=means_of,
    ),
}


def model_of(needs):
    """A model with random weights, and its tokenizer."""
    if needs == "translator":
        return cipher_translator(steps=1)[:2]
    if needs == "writer":
        return tiny_model("gpt2", writes=True), tiny_tokenizer()
    if needs == "classifier":
        import torch
        from transformers import AutoModelForSequenceClassification

        config = tiny_model("bert").config
        config.num_labels = 3
        torch.manual_seed(0)
        return AutoModelForSequenceClassification.from_config(config).eval(), tiny_tokenizer()
    return tiny_model(needs), tiny_tokenizer()
