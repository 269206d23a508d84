import numpy as np
import pytest

from headscope import capture
from headscope.patterns import COLUMNS, KINDS, head_kinds, head_numbers, text_facts
from headscope.record import Layer, Mask, Stack, Tokens
from headscope.testing import random_weights

from .conftest import onto, planted, record_of, sentences

PAIR = Tokens(
    pieces=("[CLS]", "we", "saw", "The", "cat", "[SEP]", "the", "cat", "slept", "[SEP]"),
    segments=(0, 0, 0, 0, 0, 0, 1, 1, 1, 1),
)
TEXT = """
The old keeper of the lighthouse had not spoken to anybody for three winters. When the boat with
the new lamp came round the cape, he put on his best coat, and walked down to the water as if he had
done so every day. "You are late," he said to the boys who rowed it, and they laughed, because
nobody had told them that he could speak at all.
"""
WORDS = [1, 2, 3, 4, 6, 7, 8]


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def stack_of(weights, query=PAIR, key=None, visible=None):
    layer = Layer(layer=3, weights=weights.astype(np.float32), visible=visible)
    return Stack(name="self", query=query, key=query if key is None else key, layers=(layer,))


def numbers_of(weights, tokens=PAIR, visible=None):
    facts = text_facts(stack_of(weights[None], tokens, visible=visible))
    return head_numbers(weights, visible, facts)


def plain(w):
    """The ten numbers by their definitions, with loops, for the pair above."""
    words, size = WORDS, len(w)
    pairs = [
        (i, i + 1) for i in words if i + 1 in words and PAIR.segments[i] == PAIR.segments[i + 1]
    ]
    twice = {3: [6], 6: [3], 4: [7], 7: [4]}
    between = sum(w[i][j] for i in words for j in words)
    columns = [sum(w[i][j] for i in words) / len(words) for j in range(size)]
    entropies = [-sum(p * np.log(p) for p in w[i] if p > 0) for i in words]
    return {
        "next": np.mean([w[i][j] for i, j in pairs]),
        "previous": np.mean([w[j][i] for i, j in pairs]),
        "itself": np.mean([w[i][i] for i in words]),
        "same": np.mean([sum(w[i][j] for j in others) for i, others in twice.items()]),
        "special": sum(columns[j] for j in range(size) if j not in words),
        "top": max(columns),
        "own": sum(w[i][j] for i in words for j in words if PAIR.segments[i] == PAIR.segments[j])
        / between,
        "near": sum(w[i][j] for i in words for j in words if abs(i - j) <= 2) / between,
        "keys": np.mean(np.exp(entropies)),
        "sharpness": np.mean([max(w[i]) for i in words]),
        "top_key": int(np.argmax(columns)),
        "link": max(w[i][j] for i in words for j in words if i != j),
        "same_link": max(w[i][j] for i, others in twice.items() for j in others),
        "leaver": max(max(w[i]) for i in (5, 9)),
        "seen": size,
    }


def test_the_numbers_are_what_their_definitions_say(rng):
    weights = random_weights(rng, (10, 10)).astype(np.float64)
    numbers = numbers_of(weights)
    assert tuple(numbers) == COLUMNS
    for name, value in plain(weights).items():
        assert numbers[name] == pytest.approx(value, abs=1e-12), name
    by_distance = sum(
        weights[i][j]
        * np.mean(
            [PAIR.segments[a] == PAIR.segments[b] for a in WORDS for b in WORDS if abs(a - b) == d]
        )
        for i in WORDS
        for j in WORDS
        for d in [abs(i - j)]
    )
    assert numbers["own_by_distance"] == pytest.approx(
        by_distance / weights[np.ix_(WORDS, WORDS)].sum()
    )


def test_long_texts_are_measured_in_blocks_with_the_same_numbers(rng, monkeypatch):
    weights = random_weights(rng, (10, 10)).astype(np.float64)
    whole = numbers_of(weights)
    monkeypatch.setattr("headscope.patterns._kinds.BLOCK", 3)
    assert numbers_of(weights) == pytest.approx(whole, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("next", "next"),
        ("previous", "previous"),
        ("same", "same"),
        ("uniform", "broad"),
        ("first-token", "resting"),
    ],
)
def test_planted_heads_have_their_kind(name, kind):
    rng = np.random.default_rng(1)
    for _ in range(8):
        tokens = sentences(rng)
        (row,) = record_of([planted(tokens, name)], tokens)["self"].layers
        kinds = head_kinds(Stack(name="self", query=tokens, key=tokens, layers=(row,)))
        assert kinds.kind(0, 0) == kind


def test_a_head_that_stays_in_its_sentence_is_no_local_head():
    tokens = sentences(np.random.default_rng(2))
    same = np.array(tokens.segments)[:, None] == np.array(tokens.segments)
    words = ~np.array(tokens.special)
    at = np.arange(len(tokens))
    far = np.abs(at[:, None] - at) > 1
    kinds = head_kinds(
        record_of([onto(same & words, 0.02), onto((np.abs(at[:, None] - at) == 2) & far)], tokens)[
            "self"
        ]
    )
    assert [kinds.kind(0, head) for head in (0, 1)] == ["own", "near"]


def test_what_a_sentence_names():
    weights = np.full((10, 10), 0.0125)
    weights[:, 0] = 0.6
    weights[:, 5] = 0.3
    weights[4] = 0.0
    weights[4, [0, 2]] = 0.3, 0.7
    numbers = numbers_of(weights)
    assert KINDS[int(numbers["kind"])] == "resting"
    assert (numbers["rest_key"], numbers["rest_other"]) == (0, 5)
    assert (numbers["link_query"], numbers["link_key"], numbers["link"]) == (4, 2, 0.7)


def test_a_causal_text_rests_on_its_first_token_and_has_no_next(rng):
    tokens = Tokens(pieces=tuple("abcdefgh"))
    mask = Mask.causal(8, 8)
    onto_first = np.zeros((8, 8))
    onto_first[:, 0] = 1
    assert text_facts(stack_of(onto_first[None], tokens, visible=mask)).causal
    numbers = numbers_of(onto_first, tokens, mask)
    assert KINDS[int(numbers["kind"])] == "resting"
    assert np.isnan(numbers["next"])
    assert np.isnan(numbers["same"])
    assert numbers["seen"] == pytest.approx(np.mean(range(2, 9)))


def test_bare_causal_weights_are_known_by_what_they_leave_out(rng):
    weights = np.tril(rng.random((3, 6, 6)) + 0.1)
    weights /= weights.sum(axis=-1, keepdims=True)
    assert text_facts(stack_of(weights, Tokens(pieces=tuple("abcdef")))).causal
    weights[2, 1] = 1 / 6
    assert not text_facts(stack_of(weights, Tokens(pieces=tuple("abcdef")))).causal


def test_even_attention_is_broad_however_short_and_however_causal():
    for size in (2, 3, 4, 5, 8, 13):
        for causal in (False, True):
            weights = np.tril(np.ones((size, size))) if causal else np.ones((size, size))
            weights /= weights.sum(axis=1, keepdims=True)
            pieces = (
                tuple("abcdefghijklm"[:size])
                if causal
                else ("[CLS]", *"abcdefghijklm"[: size - 2], "[SEP]")
            )
            mask = Mask.causal(size, size) if causal else None
            kind = KINDS[int(numbers_of(weights, Tokens(pieces=pieces), mask)["kind"])]
            assert kind == "broad", (size, causal)


def test_cross_attention_has_no_positions_but_the_same_words():
    target, source = (
        Tokens(pieces=("le", "chat", "dort", "Paris")),
        Tokens(pieces=("the", "cat", "in", "paris", ".")),
    )
    weights = np.full((4, 5), 0.05)
    weights[3, 3] = 0.8
    weights[:3, 1] = 0.8
    kinds = head_kinds(stack_of(weights[None], target, source))
    assert np.isnan(
        [kinds.number(name)[0, 0] for name in ("next", "previous", "itself", "near", "own")]
    ).all()
    assert kinds.number("same")[0, 0] == pytest.approx(0.8)
    assert kinds.kind(3, 0) == "none"  # one row alone is no evidence of a pattern


def test_counts_and_the_clearest_head(rng):
    tokens = sentences(rng)
    names = ("first-token", "uniform", "next", "previous", "uniform")
    maps = [planted(tokens, name, 0.02 if name == "previous" else 0.2) for name in names]
    kinds = head_kinds(record_of(maps, tokens)["self"])
    assert kinds.counts == dict.fromkeys(KINDS, 0) | {
        "next": 1,
        "previous": 1,
        "broad": 2,
        "resting": 1,
    }
    assert kinds.clearest == (0, 3)
    assert "1 next" in repr(kinds)


@pytest.mark.parametrize("size", [4, 5, 8, 12, 32])
def test_random_softmax_is_no_pattern_and_rests_nowhere(size):
    rng = np.random.default_rng(size)
    pieces = [
        "[CLS]",
        *(f"w{number}" for number in rng.integers(0, max(2, size // 2), size - 2)),
        "[SEP]",
    ]
    tokens = Tokens(pieces=tuple(pieces), segments=(0,) * (size // 2) + (1,) * (size - size // 2))
    for spread in (0.5, 2.0, 4.0):
        scores = rng.normal(size=(100, size, size)) * spread
        weights = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
        counts = head_kinds(stack_of(weights, tokens)).counts
        assert counts["broad"] + counts["none"] >= 99


def test_a_few_rows_are_not_enough_to_name_a_pattern():
    """Three words of which each looks at the next: by chance that happens too often."""
    tokens = Tokens(pieces=("[CLS]", "a", "b", "c", "[SEP]"))
    kinds = head_kinds(
        stack_of(np.eye(5, k=1)[None] + np.eye(1, 5, 0)[None] * np.eye(5)[:, [4]], tokens)
    )
    assert kinds.number("next")[0, 0] == 1
    assert kinds.kind(3, 0) == "none"


def test_a_row_that_sees_one_word_alone_does_not_count():
    """The first word of a causal text can look at itself only: that says nothing of a head."""
    tokens = Tokens(pieces=("a", "b"))
    numbers = numbers_of(np.array([[1.0, 0.0], [0.5, 0.5]]), tokens, Mask.causal(2, 2))
    assert np.isnan(numbers["itself"])


def local_head(size, times, to):
    """A causal head whose scores are the same at every length: one target and even beside it."""
    ratios = np.tril(np.ones((size, size)))
    at = np.arange(size)
    if to == "previous":
        ratios[at[1:], at[:-1]] *= times
    else:
        ratios[:, 0] *= times
    return ratios / ratios.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("to", "kind"), [("previous", "previous"), ("first", "resting")])
def test_a_kind_is_the_same_at_every_length(to, kind):
    found = set()
    for size in (20, 40, 80, 160, 320):
        tokens = Tokens(pieces=tuple(f"w{at}" for at in range(size)))
        weights = local_head(size, 24.0, to)
        found.add(KINDS[int(numbers_of(weights, tokens, Mask.causal(size, size))["kind"])])
    assert found == {kind}


def test_heads_of_a_real_model_keep_their_kind_in_a_longer_text():
    words = " ".join(TEXT.split() * 6).split()
    counts = [
        head_kinds(capture(None, None, " ".join(words[:most]))["self"]).counts
        for most in (30, 120, 300)
    ]
    assert max(count["none"] for count in counts) <= 10
    assert min(count["resting"] for count in counts) >= 15
