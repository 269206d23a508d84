"""What heads answer, from sums over documents: the numbers of documents that are held, and
intervals near theirs.
"""

import tracemalloc
from collections import Counter

import numpy as np
import pytest

import headscope as hs
from headscope.errors import RecordError
from headscope.evidence import Statistic, StatisticSums
from headscope.linguistics import Sentence, Treebank
from headscope.studies.shared._answer_file import answers_of_kept, kept_of_answers
from headscope.studies.shared._answer_sums import PartAnswers, hashed_halves, summed_answers
from headscope.studies.shared._counted_texts import summed
from headscope.studies.shared._held_out import DocumentHits, measured
from headscope.testing import tiny_model, tiny_tokenizer

from ..close import assert_close

JUDGING = {"seed": 3, "splits": 6, "confidence": 0.95, "correction": "holm"}
NAMES = tuple(f"document {number}" for number in range(400))
KINDS = ("all", "few", "rare")
HEADS, RULES = 5, 2
SHARE = np.array([0.3, 0.5, 0.52, 0.2, 0.1])


def asked_of(seed=0):
    """Of each kind, what heads and rules get right in each document; documents differ."""
    rng = np.random.default_rng(seed)
    asked = {}
    for kind, least in zip(KINDS, (3, 0, -12), strict=True):
        wholes = np.maximum(rng.integers(least, least + 20, len(NAMES)), 0)
        level = rng.normal(0, 0.1, len(NAMES))
        likely = np.clip(SHARE[:, None] + level, 0.01, 0.99)
        hits = rng.binomial(wholes, likely)
        rules = rng.binomial(wholes, np.clip(np.array([[0.4], [0.3]]) + level, 0.01, 0.99))
        asked[kind] = DocumentHits(
            wholes=wholes.astype(float), hits=hits.astype(float), baselines=rules.astype(float)
        )
    return asked


def parts_of(asked, places):
    """The documents in parts, each with the kinds that it has a question of."""
    for part in sorted(set(places)):
        some = np.flatnonzero(np.array(places) == part)
        own = {}
        for kind, each in asked.items():
            hits = DocumentHits(
                wholes=each.wholes[some],
                hits=each.hits[:, some],
                baselines=each.baselines[:, some],
            )
            if hits.wholes.any():
                own["max", kind] = hits
        yield PartAnswers(
            texts=2 * len(some),
            documents=tuple(NAMES[at] for at in some),
            lengths=(4,) * len(some),
            asked=own,
            others={"all": np.array([len(some)])},
            counts={"words": 3 * len(some)},
        )


def summed_of(places, judging=None):
    asked = asked_of()
    return summed_answers(
        lambda: parts_of(asked, places),
        lambda counts: [kind for kind in KINDS if kind in counts],
        judging=judging or JUDGING,
    )


@pytest.fixture(scope="module")
def whole():
    return summed_of([0] * len(NAMES))


def kept_of(summed):
    return kept_of_answers(summed)


@pytest.mark.parametrize("seed", range(4))
def test_parts_change_no_bit(whole, seed):
    places = np.random.default_rng(seed).integers(0, 2 + 20 * seed, len(NAMES)).tolist()
    assert_close(kept_of(summed_of(places)), kept_of(whole))


def test_numbers_are_those_of_documents_that_are_held(whole):
    asked = asked_of()
    halves = hashed_halves(NAMES, JUDGING["seed"], JUDGING["splits"])
    held = measured(list(asked.values()), halves, confidence=0.95, correction="holm")
    ends = ("low", "high")
    for kind, wanted in zip(KINDS, held, strict=True):
        own = whole.numbers["max", kind]
        assert own.keys() == wanted.keys()
        for name, value in wanted.items():
            if not name.endswith(ends):
                assert own[name] == pytest.approx(value, rel=1e-9, nan_ok=True), (kind, name)
        for name in ("", "held_out_", "held_out_above_"):
            width = wanted[f"{name}high"] - wanted[f"{name}low"]
            # Of 400 documents: a few hundredths, of a ratio that is drawn again some more.
            limit = 0.1 if "above" in name else 0.02
            for end in ends:
                apart = abs(own[f"{name}{end}"] - wanted[f"{name}{end}"])
                assert 0 < width < 0.3
                assert apart < limit * width, (kind, name, end)
    assert (whole.texts, whole.documents, whole.lengths) == (800, 400, Counter({4: 400}))
    assert whole.counts == {"words": 1200}
    assert whole.others["all"].tolist() == [400]


def test_halves_depend_on_the_name_alone():
    halves = hashed_halves(NAMES, 0, 600)
    assert halves.shape == (600, 400)
    assert 0.49 < halves.mean() < 0.51
    assert (np.abs(halves.mean(axis=1) - 0.5) < 0.15).all()
    # The next seed begins one split later, as halves of documents that are held do.
    assert (hashed_halves(NAMES[5:9], 1, 599) == halves[1:, 5:9]).all()
    assert len(np.unique(halves[:, :3], axis=1).T) == 3


def test_what_is_asked_once_has_no_held_out_numbers(whole):
    lone = PartAnswers(
        texts=1,
        documents=("a",),
        lengths=(3,),
        asked={
            ("max", "all"): DocumentHits(
                wholes=np.ones(1), hits=np.ones((2, 1)), baselines=np.zeros((1, 1))
            )
        },
    )
    summed = summed_answers(lambda: [lone], list, judging=JUDGING)
    numbers = summed.numbers["max", "all"]
    assert (numbers["best"], numbers["held_best"], numbers["held_out_count"]) == (0, None, 0)
    assert np.isnan([numbers["held_out_accuracy"], numbers["low"], numbers["p"]]).all()
    assert_close(kept_of(answers_of_kept(*kept_of_answers(summed))), kept_of(summed))
    assert_close(kept_of(answers_of_kept(*kept_of_answers(whole))), kept_of(whole))


def treebank(count):
    rng = np.random.default_rng(0)
    sentences = []
    for number in range(count):
        words = tuple(rng.choice(["the", "cat", "sat", "on", "it"], int(rng.integers(2, 6))))
        heads = (0, *(int(rng.integers(1, at + 1)) for at in range(1, len(words))))
        kinds = ("root", *rng.choice(["det", "obj"], len(words) - 1).tolist())
        document = f"d{number // 4}" if number % 3 else ""
        sentences.append(
            Sentence(
                name=f"s{number}", words=words, heads=heads, relations=kinds, document=document
            )
        )
    return Treebank("made up", tuple(sentences))


def test_relations_of_many_sentences_say_what_is_not_known(tmp_path, monkeypatch):
    monkeypatch.setattr("headscope.studies.shared._counted_texts.MANY", 39)
    given = tiny_model("bert"), tiny_tokenizer(), treebank(40)
    summed = hs.relations(*given, out=tmp_path / "run", part_size=15, progress=False)
    held = hs.relations(*given)
    assert (summed.sentences, summed.documents) == (held.sentences, held.documents)
    assert (summed.words, summed.relations) == (held.words, held.relations)
    assert summed.length_text == held.length_text
    own, wanted = summed.best("det"), held.best("det")
    for name in ("count", "layer", "head", "accuracy", "direction", "offset", "baseline"):
        assert getattr(own, name) == pytest.approx(getattr(wanted, name))
    assert (summed.accuracy("det", "tree") == held.accuracy("det", "tree")).all()
    again = hs.load(tmp_path / "run")
    assert str(again) == str(summed)
    assert "Intervals are from sums over documents" in " ".join(str(summed).split())
    assert "from sums" not in str(held)
    assert again.columns() == summed.columns()
    with pytest.raises(RecordError, match="of these 40 sums over documents alone are known"):
        summed.as_heads()
    with pytest.raises(RecordError, match="Of 40 sentences sums alone are known, and the best"):
        summed + held
    with pytest.raises(RecordError, match="Of 40 sentences sums alone are known; count others"):
        summed.update(given[2].sentences[0], hs.capture(*given[:2], given[2].sentences[0].text))
    with pytest.raises(RecordError, match="'amod' was asked; there are all, "):
        summed.best("amod")


def peak_of(parts):
    """Bytes that adding up so many parts of 100 documents takes at most."""

    def made():
        for number in range(parts):
            rng = np.random.default_rng(number)
            hits = DocumentHits(
                wholes=np.full(100, 9.0),
                hits=rng.integers(0, 9, (HEADS, 100)).astype(float),
                baselines=rng.integers(0, 9, (RULES, 100)).astype(float),
            )
            yield PartAnswers(
                texts=100,
                documents=tuple(f"d{number} {at}" for at in range(100)),
                lengths=(3,) * 100,
                asked={("max", kind): hits for kind in KINDS},
            )

    tracemalloc.start()
    answers = summed_answers(made, list, judging=JUDGING)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert answers.documents == 100 * parts
    return peak


def test_memory_does_not_grow_with_the_documents():
    # Before, code that is run first is loaded.
    peak_of(2)
    assert peak_of(40) < 1.05 * peak_of(10)


def test_memory_of_a_statistic_does_not_grow_with_the_texts():
    def peak(parts):
        def studies():
            for part in range(parts):
                statistic = Statistic((40,))
                for number in range(200):
                    values = np.random.default_rng(200 * part + number).random(40)
                    statistic.update(f"{part} {number}", values, length=number % 9)
                yield StatisticSums.of(statistic)

        tracemalloc.start()
        (whole,) = summed(studies())
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert len(whole) == 200 * parts
        return most

    peak(2)
    # Held, the values of 15 parts more would be three times as much.
    assert peak(20) < 1.2 * peak(5)
