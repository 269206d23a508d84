import dataclasses
from functools import lru_cache

import numpy as np
import pytest

import headscope as hs
from headscope.errors import RecordError
from headscope.measures import alignment_error_rate
from headscope.record import Contributions, Layer, ModelFacts, Stack, Tokens
from headscope.studies import AlignedPair, AlignmentStudy
from headscope.studies.word_alignment import BY, STATES, diagonal_links, words_of
from headscope.testing import cipher_pairs, cipher_tokenizer, cipher_translator, random_weights

from ..close import assert_close, assert_same_numbers, numbers_before

HEADS, PAIRS = 3, 6
START = "[CLS]"


@lru_cache
def tokenizer_of():
    return cipher_tokenizer()


@lru_cache
def tokens_of(text, *, reads=False):
    """A side as a capture makes it: with the end, or with the start in its place."""
    encoding = tokenizer_of()(text, return_offsets_mapping=True)
    pieces, offsets = (
        tokenizer_of().convert_ids_to_tokens(encoding["input_ids"]),
        encoding["offset_mapping"],
    )
    placed = [tuple(span) for span in offsets[:-1]]
    pieces, placed = (
        ([START, *pieces[:-1]], [None, *placed]) if reads else (pieces, [*placed, None])
    )
    return Tokens(pieces=tuple(pieces), offsets=tuple(placed), texts=(text,))


def spread(tokens, word_row, rng):
    """A row that gives each word its weight, spread unevenly over its tokens, and the rest to the
    end.
    """
    row = np.zeros(len(tokens))
    words = words_of(tokens)
    for number, positions in enumerate(words.tokens):
        row[list(positions)] = word_row[number] * rng.dirichlet(np.ones(len(positions)))
    row[-1] = max(0.0, 1 - sum(word_row))
    return row


def planted(pair, *, move=0, state="input", to_end=0.0, norms=False, seed=0):
    """A record whose head 1 looks at the word that each target word was made of, ``move`` words to
    the right.

    Heads 0 and 2 are random. ``to_end`` is what goes to the end of the source; its norm is next to
    nothing.
    """
    rng = np.random.default_rng(seed)
    query, key = tokens_of(pair.target, reads=True), tokens_of(pair.source)
    weights = random_weights(rng, (1, HEADS, len(query), len(key))).astype(np.float64)
    words, source = words_of(query), len(pair.source.split())
    origin = {target: (place + move) % source for place, target in pair.sure}
    for number, positions in enumerate(words.tokens):
        wanted = np.full(source, 0.1 / source)
        wanted[origin[number]] += 0.9
        for position in positions:
            row = position if state == "input" else position - 1
            weights[0, 1, row] = spread(key, wanted * (1 - to_end), rng)
    if not norms:
        return hs.from_weights(
            cross=list(weights), encoder_tokens=key, decoder_tokens=query, model="planted"
        )
    lengths = np.full((HEADS, len(key)), 2.0)
    lengths[:, -1] = 0.01
    added = Contributions(attention=weights[0, 1] * lengths[1])
    layer = Layer(layer=0, weights=weights[0], value_norms=lengths, contributions=added)
    stack = Stack(name="cross", query=query, key=key, layers=(layer,))
    return hs.Record(stacks={"cross": stack}, model=ModelFacts(name="planted"))


def study_of(pairs, **how):
    study = AlignmentStudy()
    for number, pair in enumerate(pairs):
        study.update(
            dataclasses.replace(pair, name=f"{number:06}"), planted(pair, seed=number, **how)
        )
    return study


@pytest.fixture(scope="module", params=["swap", "reverse"])
def pairs(request):
    found = cipher_pairs(PAIRS, order=request.param, seed=5)
    assert any(len(tokens_of(pair.source)) > len(pair.source.split()) + 1 for pair in found)
    return found


def test_numbers_of_a_trained_model_stay_what_they_were():
    """As they were before documents had rows of their own."""
    model, tokenizer, _ = cipher_translator(steps=25)
    pairs = [
        dataclasses.replace(pair, name=f"p{number:03}", group=f"d{number // 2:03}")
        for number, pair in enumerate(cipher_pairs(24, seed=7))
    ]
    study = hs.alignment_study(model, tokenizer, pairs, random_weights=True)
    wanted = numbers_before("alignment")
    differences = [study.difference(state).tolist() for state in STATES]
    assert_same_numbers({"columns": study.columns(), "difference": differences}, wanted)


@pytest.mark.parametrize("state", ["input", "output"])
def test_planted_maps_align_every_word(pairs, state):
    for pair in pairs:
        found = hs.word_alignment(planted(pair, state=state), layer=0, head=1, state=state)
        assert found.links == pair.sure
        assert found.error_rate(pair.sure) == 0
        assert (found.source, found.target) == (
            tuple(pair.source.split()),
            tuple(pair.target.split()),
        )
        assert str(found) == " ".join(f"{source}-{target}" for source, target in sorted(pair.sure))
    study = study_of(pairs, state=state)
    assert study.error_rates("weight", state)[0, 1] == 0
    assert study.intervals("weight", state)[0, 1].tolist() == [0, 0]
    assert study.error_rates("weight", "output" if state == "input" else "input")[0, 1] > 0.25


def test_shifted_maps_have_the_known_rate(pairs):
    assert study_of(pairs, move=1).error_rates("weight")[0, 1] == 1
    possible = [
        AlignedPair(
            pair.source, pair.target, pair.sure, frozenset({((place + 1) % len(pair.sure), target)})
        )
        for pair in pairs
        for place, target in [min(pair.sure)]
    ]
    words = sum(len(pair.sure) for pair in pairs)
    assert study_of(possible, move=1).error_rates("weight")[0, 1] == pytest.approx(
        1 - PAIRS / (2 * words)
    )


def test_norms_see_through_weight_on_a_token_that_adds_nothing(pairs):
    study = study_of(pairs, to_end=0.7, norms=True)
    assert study.error_rates("weight")[0, 1] == 1
    assert study.error_rates("norm")[0, 1] == study.error_rates("norm")[0, -1] == 0
    assert study.difference()[0, 1].tolist() == [-1, -1, -1]
    record = planted(pairs[0], to_end=0.7, norms=True)
    assert hs.word_alignment(record, layer=0, head=1).links == frozenset()
    assert hs.word_alignment(record, layer=0, head=1, special=False).links == pairs[0].sure
    assert hs.word_alignment(record, layer=0, by="norm").links == pairs[0].sure


def test_the_best_head_is_chosen_on_either_half_and_measured_on_the_other(pairs):
    study = study_of(pairs)
    best = study.best("weight", of_heads=True)
    assert (best.layer, best.head, best.chosen_at, best.aer, best.interval) == (0, 1, 0, 0, (0, 0))
    assert (best.chosen, best.spread) == (1, 0)
    assert best.sentences == (PAIRS // 2, PAIRS)
    order = np.random.default_rng(4).permutation(PAIRS)
    parts = (order[: PAIRS // 2], order[PAIRS // 2 :])
    halves = [study_of([pairs[number] for number in part]) for part in parts]
    counted = AlignmentStudy()
    for place, number in enumerate(order):
        seed = place if place < PAIRS // 2 else place - PAIRS // 2
        pair = dataclasses.replace(pairs[number], name=f"{number:06}", possible=frozenset())
        counted.update(pair, planted(pair, seed=seed))
    best = counted.best("weight", "output", of_heads=True, seed=4, splits=1)
    right, rates = np.zeros(2), []
    for chosen, other in (halves, halves[::-1]):
        of_heads = chosen.error_rates("weight", "output")[0, :-1]
        head = int(np.argmin(of_heads))
        rates.append(of_heads[head])
        right += other.sums.total("counts")[:, STATES.index("output"), 0, 0, head]
    assert best.chosen_at == pytest.approx(np.mean(rates))
    assert best.aer == pytest.approx(1 - right[0] / right[1])
    assert best.spread == 0
    with pytest.raises(RecordError, match="Nothing was counted by norm: norms were not kept"):
        study.best("norm")
    with pytest.raises(RecordError, match="3 sentences; two halves"):
        study_of(pairs[:3]).best("weight")


def test_sentences_of_one_document_are_drawn_and_split_together(pairs, tmp_path):
    alone, grouped = study_of(pairs), AlignmentStudy()
    for number, pair in enumerate(pairs):
        named = dataclasses.replace(pair, name=f"{number:06}")
        grouped.update(named, planted(pair, seed=number), group=number // 2)
    assert_close(alone.error_rates("weight"), grouped.error_rates("weight"))
    assert (alone.intervals("weight") != grouped.intervals("weight")).any()
    assert grouped.baseline_interval != alone.baseline_interval
    again = AlignmentStudy.load(grouped.save(tmp_path / "kept.safetensors"))
    assert_close(again.intervals("weight"), grouped.intervals("weight"))
    assert again.best("weight", "output") == grouped.best("weight", "output")


def test_sentences_whose_words_cannot_be_told_are_counted_and_named(pairs):
    study = study_of(pairs[:2])
    bare = hs.from_weights(
        cross=random_weights(np.random.default_rng(0), (1, HEADS, 2, 4)),
        decoder_tokens=[START, "a"],
        encoder_tokens=list("abcd"),
        model="planted",
    )
    pair = AlignedPair.of("a b", "a", "0-0", name="bare")
    study.update(pair, bare)
    assert study.sentences == 2
    assert list(study.left_out) == ["bare"]
    assert "1 sentences are left out:\n  bare: It is unknown which of the tokens a b c d" in str(
        study
    )
    with pytest.raises(RecordError, match="'bare' was counted before"):
        study.update(pair, bare)
    with pytest.raises(RecordError, match="'000001' was counted before"):
        study.update(dataclasses.replace(pair, name="000001"), bare)


def test_words_are_told_by_white_space_or_else_by_number():
    text = "don't  stop, déja\u0301"
    offsets = (None, (0, 3), (3, 5), (5, 6), (6, 11), (11, 12), (12, 17), None)
    pieces = ("[CLS]", "don", "'t", " ", " stop", ",", " deja", "[SEP]")
    found = words_of(Tokens(pieces=pieces, texts=(text,), offsets=offsets))
    assert (found.names, found.tokens, found.rest) == (
        ("don't", "stop,", "déja\u0301"),
        ((1, 2), (3, 4, 5), (6,)),
        (0, 7),
    )
    numbered = words_of(Tokens(pieces=("[CLS]", "do", "##n", "it"), words=(None, 4, 4, 7)))
    assert (numbered.names, numbered.tokens, numbered.rest) == (("don", "it"), ((1, 2), (3,)), (0,))


@pytest.mark.parametrize(
    ("offsets", "says"),
    [
        ((None, (0, 1), (1, 2)), "continues after its last token with 'on'"),
        ((None, (0, 5), None), "'to on', is part of several words"),
    ],
)
def test_words_that_are_cut_or_joined_are_refused(offsets, says):
    with pytest.raises(RecordError, match=says):
        words_of(Tokens(pieces=("<s>", "a", "b"), texts=("to on",), offsets=offsets))


def test_what_cannot_be_is_refused(pairs):
    pair, record = dataclasses.replace(pairs[0], name="b"), planted(pairs[0])
    with pytest.raises(RecordError, match="by is 'score'; it may be 'weight' or 'norm'"):
        hs.word_alignment(record, layer=0, by="score")
    with pytest.raises(RecordError, match="no 'score' with 'input'; there are weight, norm"):
        study_of(pairs[:1]).error_rates("score")
    with pytest.raises(RecordError, match="holds no value norms"):
        hs.word_alignment(record, layer=0, head=1, by="norm")
    with pytest.raises(RecordError, match="'0:1' is not a link"):
        AlignedPair.of(pair.source, pair.target, "0-0 0:1")
    with pytest.raises(RecordError, match="link 0-1 leaves the 2 source and 1 target"):
        AlignedPair.of("a b", "c", "0p1")
    study, deeper = study_of(pairs[:1]), record["cross"]
    weights = [np.asarray(deeper.weights(0)), np.asarray(deeper.weights(0))]
    sides = {"encoder_tokens": deeper.key, "decoder_tokens": deeper.query}
    with pytest.raises(RecordError, match=r"2 \(b\) is of other heads than those before it"):
        study.update(pair, hs.from_weights(cross=weights, **sides, model="planted"))
    sides = (
        Tokens(pieces=("a", "b", "c"), words=(0, 1, 1)),
        Tokens(pieces=("a", "b"), words=(0, 1)),
    )
    weights = random_weights(np.random.default_rng(0), (1, HEADS, 2, 3))
    unstarted = hs.from_weights(cross=weights, encoder_tokens=sides[0], decoder_tokens=sides[1])
    with pytest.raises(RecordError, match="first token of the target, 'a'"):
        hs.word_alignment(unstarted, layer=0)


def test_the_diagonal_links_words_at_the_same_relative_place(pairs):
    assert diagonal_links(3, 3) == {(0, 0), (1, 1), (2, 2)}
    assert diagonal_links(2, 5) == {(0, 0), (0, 1), (1, 2), (1, 3), (1, 4)}
    assert diagonal_links(0, 2) == frozenset()
    for source, target in [(7, 3), (4, 9), (1, 6)]:
        for here, there in diagonal_links(source, target):
            apart = [abs((word + 0.5) / source - (there + 0.5) / target) for word in range(source)]
            assert apart[here] == pytest.approx(min(apart))
    study = study_of(pairs)
    stays = sum(len(diagonal_links(len(pair.sure), len(pair.sure)) & pair.sure) for pair in pairs)
    assert study.baseline == pytest.approx(1 - stays / sum(len(pair.sure) for pair in pairs))
    assert study.baseline_interval[0] <= study.baseline <= study.baseline_interval[1]
    assert f"without any attention: {100 * study.baseline:.1f} [" in str(study)
    assert set(study.columns()["baseline"]) == {study.baseline}


def test_a_model_that_was_taught_the_cipher_aligns_it():
    model, tokenizer, loss = cipher_translator(steps=200)
    assert loss < 0.5  # in nats; untaught models have 3.5
    pairs = cipher_pairs(24, seed=10**6)
    pairs.append(AlignedPair("ba " * 40, "BA", frozenset({(0, 0)})))
    study = hs.alignment_study(model, tokenizer, pairs)
    assert study.sentences == 24
    assert "positions for 32" in study.left_out["000024"]
    for by in ("weight", "norm"):
        assert study.best(by, "output").aer < 0.25
        assert study.best(by, "output").layer == 1
        assert study.error_rates(by, "input")[1, -1] > 0.6
    record = hs.capture(
        model, tokenizer, pairs[0].source, target=pairs[0].target, keep=("weights", "norms")
    )
    found = hs.word_alignment(record, layer=1, by="norm", state="output")
    assert alignment_error_rate(pairs[0].sure, frozenset(), found.links) <= 0.5
    with pytest.raises(RecordError, match="No sentence is left: The text has"):
        hs.alignment_study(model, tokenizer, pairs[-1:])


def test_sentences_of_unknown_tokens_are_refused_and_single_ones_left_out():
    model, tokenizer, _ = cipher_translator(steps=1)
    good = cipher_pairs(3, order="swap", seed=5)
    strange = AlignedPair.of("\u4e00 \u4e8c", good[0].target, "0-0")
    with pytest.raises(hs.errors.TextError, match="of the tokens of the texts are"):
        hs.alignment_study(model, tokenizer, [strange])
    found = hs.alignment_study(model, tokenizer, [good[0], strange, good[1]])
    assert found.sentences == 2
    assert "of the tokens of the sentence are" in found.left_out["000001"]
    assert hs.alignment_study(model, tokenizer, [good[0], strange], allow_unfit=True).left_out == {}


def of_chance(seed, *, best=0.2):
    """Heads that link right as often as the diagonal does, but for the first; they link fewer
    words.
    """
    rng = np.random.default_rng(seed)
    study = AlignmentStudy()
    for number in range(40):
        words = rng.integers(6, 20)
        links = rng.integers(words - 3, words + 1, (2, 2, 3, 5))
        right = np.full(links.shape, 0.2)
        right[:, :, 0, 0] = best
        counts = {"counts": np.stack([rng.binomial(links, right), links])}
        counts["diagonal"] = np.array([rng.binomial(words, 0.2), words])
        facts = {"heads": [[layer, head] for layer in range(3) for head in range(4)]}
        study.sums.add(f"{number}", f"sentence {number}", counts, length=int(words), facts=facts)
    return study


def test_heads_that_align_as_the_diagonal_does_are_not_above_it():
    single, family = [], []
    for seed in range(60):
        study = of_chance(seed)
        found = [best for by in BY for state in STATES for best in study.bests(by, state)]
        single.append([best.p < 0.05 for best in found])
        family.append(any(best.p_corrected < 0.05 for best in found))
    # Of 480 rows; tables: 3 in 60 are expected, and 8 have a chance of 1 %.
    assert 0.01 < np.mean(single) < 0.08
    assert np.sum(family) < 8
    planted = of_chance(0, best=0.6).best("norm", "output", of_heads=True)
    assert (planted.layer, planted.head) == (0, 0)
    assert planted.p_corrected < 0.01
    assert "p 0.001" in str(of_chance(0, best=0.6))
