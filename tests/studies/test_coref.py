import numpy as np
import pytest

import headscope as hs
from headscope.errors import RecordError
from headscope.linguistics import Mention, Passage, read_coreference
from headscope.linguistics.mentions import RULES, rule_hits
from headscope.record import Tokens
from headscope.studies import Coreference
from headscope.testing import random_weights

from ..close import assert_same_numbers, numbers_before

HEADS, PASSAGES = 3, 24
KINDS = ("pronoun", "proper", "nominal")


def passage_of(number):
    """Words of some letters, mentions that nest and share entities."""
    rng = np.random.default_rng(number)
    size = int(rng.integers(8, 15))
    words = ["abcd"[: rng.integers(1, 5)] for _ in range(size)]
    spans, start = [], 0
    for word in words:
        spans.append((start, start + len(word)))
        start += len(word) + 1
    mentions = {(first, first + 1) for first in rng.choice(size, 5, replace=False).tolist()}
    mentions |= {(first - 1, stop) for first, stop in sorted(mentions)[2:4] if first}
    named = tuple(
        Mention(start=first, stop=stop, entity=f"e{rng.integers(3)}", kind=KINDS[rng.integers(3)])
        for first, stop in sorted(mentions)
    )
    return Passage(
        name=f"p{number}",
        text=" ".join(words),
        spans=tuple(spans),
        mentions=named,
        document=f"d{number // 2}",
        group=("odd" if number % 2 else "even"),
    )


def record_of(passage, *planted):
    offsets = [(place, place + 1) for place, letter in enumerate(passage.text) if letter != " "]
    pieces = ("[CLS]", *(passage.text[start:stop] for start, stop in offsets), "[SEP]")
    tokens = Tokens(pieces=pieces, offsets=(None, *offsets, None), texts=(passage.text,))
    word_of = [
        -1 if span is None else passage.text[: span[0]].count(" ") for span in tokens.offsets
    ]
    rng = np.random.default_rng(len(pieces))
    weights = random_weights(rng, (2, HEADS, len(pieces), len(pieces))).astype(float)
    for place, looked_at in enumerate(planted):
        weights[1, place] = 0
        for row, word in enumerate(word_of):
            weights[1, place, row, (word_of.index(looked_at[word]) if word in looked_at else 0)] = 1
    return hs.from_weights(list(weights), tokens, model="planted")


def by_rule(passage, rule):
    answers = {}
    for question in passage.questions:
        answers[question.mention.head] = question.candidates[rule(passage, question)].head
    return answers


def right(passage):
    """The head word of the last antecedent; where another mention that starts later shares it, none
    is safe.
    """
    return {
        question.mention.head: [
            each.head
            for each, is_right in zip(question.candidates, question.right, strict=True)
            if is_right
        ][-1]
        for question in passage.questions
    }


@pytest.fixture(scope="module")
def passages():
    return [passage_of(number) for number in range(PASSAGES)]


@pytest.fixture(scope="module")
def study(passages):
    found = Coreference(seed=2)
    for passage in passages:
        rules = [by_rule(passage, rule) for rule in RULES.values()]
        found.update(passage, record_of(passage, rules[0], right(passage), rules[1]))
    return found


def test_looking_at_the_nearest_mention_gives_that_baseline(study, passages):
    hits = np.concatenate([rule_hits(passage) for passage in passages], axis=1)
    assert 0.2 < hits[0].mean() < 0.9
    for kind in study.kinds:
        # the heads 1-0 and 1-2 are planted; mentions that share a head word share a row, too
        assert study.accuracy(kind)[HEADS] == study.rule("nearest", kind)
    assert study.rule("nearest") == hits[0].mean()
    assert study.rule("sieves") == hits[2].mean()
    assert study.accuracy()[HEADS + 2] == pytest.approx(study.rule("head match"), abs=0.05)


def test_looking_at_an_antecedent_is_right(study, passages):
    # two mentions that end in one word share a row, and may mean different things
    asked = [(passage, question) for passage in passages for question in passage.questions]
    hits = [
        right(passage)[question.mention.head]
        in {
            each.head
            for each, is_right in zip(question.candidates, question.right, strict=True)
            if is_right
        }
        for passage, question in asked
    ]
    assert study.accuracy("all", "words")[HEADS + 1] == pytest.approx(np.mean(hits))
    assert 0.8 < np.mean(hits) < 1
    best = study.best("all", "words")
    assert best.place == best.held_out_place == "1-1"
    assert best.held_out_accuracy > best.held_out_nearest
    assert best.p <= best.p_corrected < 0.5


def test_all_other_words_compete_when_asked(study):
    random = study.accuracy("all", "mentions")[:HEADS]
    assert (study.accuracy("all", "words")[:HEADS] < random).all()


def test_kinds_and_groups_make_up_all(study):
    assert study.kinds == ("all", *KINDS, "even", "odd")
    count = {kind: study.best(kind).count for kind in study.kinds}
    assert sum(count[kind] for kind in KINDS) == count["even"] + count["odd"] == count["all"]
    total = sum(study.accuracy(kind) * count[kind] for kind in KINDS)
    np.testing.assert_allclose(total / count["all"], study.accuracy())


def test_tables_and_pictures_hold_every_kind(study, tmp_path):
    assert study.columns()["candidates"] == ["mentions"] * 6 + ["words"] * 6
    assert study.to_arrow().num_rows == 12
    assert "among the heads of the candidate mentions:" in str(study)
    assert "among all other words:" in str(study)
    drawn = study.plot(tmp_path / "coref.svg").read_text(encoding="utf-8")
    for said in ("pronoun", "nominal", "nearest mention", "head match", "sieves"):
        assert said in drawn


def test_what_cannot_be_aligned_is_counted_and_named(passages):
    found = Coreference()
    record = record_of(passages[0])
    found.update(passages[0], record)
    with pytest.raises(RecordError, match="'p0' was counted before"):
        found.update(passages[0], record)
    with pytest.raises(RecordError, match="another text than the passage 'p1'"):
        found.update(passages[1], record)
    last = passages[0].spans[-1][0]
    cut = record["self"].query
    cut = cut.take(
        [place for place, span in enumerate(cut.offsets) if span is None or span[0] < last]
    )
    size = len(cut)
    short = hs.from_weights(random_weights(np.random.default_rng(0), (2, HEADS, size, size)), cut)
    other = Coreference()
    other.update(passages[0], short)
    assert other.passages == 0
    assert "1 passages are left out:\n  p0: No token stands for word" in str(other)


def test_what_is_not_there_is_refused(study, passages):
    with pytest.raises(RecordError, match="Two passages are called 'p0'"):
        hs.coref(None, passages=[*passages, passages[0]])
    with pytest.raises(RecordError, match="about 'verb'; there are all, pronoun"):
        study.accuracy("verb")
    with pytest.raises(RecordError, match="candidates is 'letters'"):
        study.heads_of("letters")
    with pytest.raises(RecordError, match="no rule 'last'; there are nearest, head match, sieves"):
        study.rule("last")
    with pytest.raises(RecordError, match="Passages were given as NoneType"):
        hs.coref(None)
    with pytest.raises(RecordError, match="confidence is a number between 0 and 1, not 2.0"):
        Coreference(confidence=2.0)


def test_numbers_of_real_passages_stay_what_they_were(minilm, shared):
    passages = read_coreference(shared / "gap" / "gap-development.tsv")[:60]
    columns = hs.coref(*minilm, passages, seed=1, progress=False).columns()
    assert_same_numbers(columns, numbers_before("coref"))


def test_the_demo_model_finds_antecedents(minilm, shared):
    few = read_coreference(shared / "winobias" / "pro_stereotyped_type1.dev.txt")[:40]
    found = hs.coref(*minilm, few, random_weights=True)
    assert found.passages == 40
    assert len(found.cells) == 72
    assert found.rule("nearest") == found.best().nearest
    assert found.control.best("all", "words").accuracy < found.best("all", "words").accuracy
