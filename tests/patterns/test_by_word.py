"""Heads that heed parts of speech alone are not told to heed words; heads that heed words are."""

import numpy as np
import pytest

from headscope import Record
from headscope.measures import prefix_targets, same_form, word_classes
from headscope.patterns import heads
from headscope.record import Layer, ModelFacts, Stack, Tokens

LEXICON = {
    "DET": ["the", "the", "the", "the", "a", "a", "this"],
    "PREP": ["of", "of", "in", "to", "for", "on"],
    "PRON": ["i", "it", "he", "you", "she", "we", "they"],
    "AUX": ["is", "is", "was", "has", "will", "can"],
    "CONJ": ["and", "and", "or", "but"],
    "PUNCT": [".", ".", ","],
    "NOUN": [f"noun{number}" for number in range(60)],
    "VERB": [f"verb{number}" for number in range(40)],
    "ADJ": [f"adj{number}" for number in range(30)],
}
CLAUSES = (
    "DET NOUN AUX VERB DET ADJ NOUN PUNCT",
    "PRON VERB PREP DET NOUN PUNCT",
    "DET ADJ NOUN PREP DET NOUN AUX VERB PUNCT",
    "PRON AUX VERB DET NOUN CONJ DET NOUN PUNCT",
    "NOUN PREP NOUN VERB PREP PRON PUNCT",
)


def prose(rng):
    """Tokens of twelve clauses, and the part of speech of each; closed classes come back as in
    prose.
    """
    speech = [tag for _ in range(12) for tag in CLAUSES[rng.integers(len(CLAUSES))].split()]
    pieces = [LEXICON[tag][rng.integers(len(LEXICON[tag]))] for tag in speech]
    return Tokens(pieces=tuple(pieces)), np.array(speech)


def even_rows(targets, visible):
    targets = targets & visible
    rows = np.where(targets.any(axis=1, keepdims=True), targets, visible)
    return rows / rows.sum(axis=1, keepdims=True)


def maps(tokens, speech, visible):
    """Two heads of parts of speech, one of what followed them; one of words, one of what followed
    these.
    """
    alike = speech[:, None] == speech
    itself = np.eye(len(tokens), dtype=bool)
    followed = prefix_targets(speech.tolist())
    same, after = same_form(tokens, tokens), prefix_targets(tokens.pieces)
    return [even_rows(each, visible) for each in (alike, alike & ~itself, followed, same, after)]


@pytest.fixture(scope="module", params=["both ways", "causal"])
def found(request):
    rng = np.random.default_rng(4)
    records = []
    for _ in range(30):
        tokens, speech = prose(rng)
        visible = np.ones((len(tokens), len(tokens)), bool)
        visible = np.tril(visible) if request.param == "causal" else visible
        layer = Layer(layer=0, weights=np.stack(maps(tokens, speech, visible)), visible=visible)
        stack = Stack(name="self", query=tokens, key=tokens, layers=(layer,))
        records.append(Record(stacks={"self": stack}, model=ModelFacts(name="planted")))
    found = heads(records)
    batches = []
    for record in records:
        batches.append(found.tally.measured(record)[1])
    values = np.ma.masked_invalid(np.concatenate(batches))
    found.__dict__["values"] = values.mean(axis=0).filled(np.nan)
    return found


def evidence(found, head, pattern):
    return next(
        label for label in found.all_labels if (label.head, label.pattern) == (head, pattern)
    )


def baseline(found, name, pattern):
    return dict(enumerate(found.values[found.tally.rows.index(f"{pattern}:{name}")].tolist()))


def test_heads_of_parts_of_speech_do_not_heed_words(found):
    told = {(label.head, label.pattern) for label in found.labels}
    assert not told & {(head, pattern) for head in (0, 1, 2) for pattern in ("same", "induction")}


def test_against_words_shuffled_through_all_places_they_would(found):
    """What the words of their kind are for: the baselines before them let these heads pass."""
    for head, pattern in ((0, "same"), (2, "induction")):
        label = evidence(found, head, pattern)
        assert label.score > label.threshold
        assert label.score - baseline(found, "shuffled", pattern)[head] > 0.15
        assert label.score - baseline(found, "like words", pattern)[head] < 0.06


def test_heads_of_words_do(found):
    told = {(label.head, label.pattern) for label in found.labels}
    assert (3, "same") in told
    assert (4, "induction") in told


def test_kinds_of_words():
    tokens = Tokens(
        pieces=("[CLS]", "The", "cat", "##s", "of", "3", "and", "cat", ",", "it", "isn't", "[SEP]")
    )
    assert word_classes(tokens) == [
        *(
            "special",
            "determiner",
            "more often",
            "more often",
            "preposition",
            "number",
            "conjunction",
            "more often",
        ),
        *("punctuation", "pronoun", "auxiliary", "special"),
    ]
