import math
import re

import numpy as np
import pytest

import headscope as hs
from headscope.comparison import StackComparison, align
from headscope.comparison._grid import epsilon_of, rounding_distance
from headscope.errors import RecordError
from headscope.measures import jensen_shannon
from headscope.record import Layer, ModelFacts, Record, Stack, Tokens
from headscope.testing import random_record, random_weights

LAYERS, HEADS = 2, 3


def record_of(
    pieces, *, seed=0, layers=LAYERS, heads=HEADS, name="model", model_type="bert", **layer
):
    """A record over these pieces with random weights; ``layer`` goes into every layer."""
    rng = np.random.default_rng(seed)
    tokens = pieces if isinstance(pieces, Tokens) else Tokens(pieces=tuple(pieces))
    made = [
        Layer(layer=number, weights=random_weights(rng, (heads, len(tokens), len(tokens))), **layer)
        for number in range(layers)
    ]
    stack = Stack(name="self", query=tokens, key=tokens, layers=tuple(made))
    return Record(
        stacks={"self": stack}, model=ModelFacts(name=name, model_type=model_type, dtype="float32")
    )


def plain_js(p, q):
    m = [(x + y) / 2 for x, y in zip(p, q, strict=True)]
    return (
        sum(
            (x * math.log(x / z) if x else 0) + (y * math.log(y / z) if y else 0)
            for x, y, z in zip(p, q, m, strict=True)
        )
        / 2
    )


def test_a_record_and_itself_are_no_distance_apart():
    record = random_record()
    stack = hs.compare(record, record)["cross"]
    assert (stack.moved == 0).all()
    assert not stack.beyond.any()
    assert all((stack.difference(layer) == 0).all() for layer in range(LAYERS))


def test_distances_are_those_of_clark_and_do_not_depend_on_the_order():
    a, b = random_record(seed=1), random_record(seed=2)
    ours, back = hs.compare(a, b)["cross"], hs.compare(b, a)["cross"]
    for layer in range(LAYERS):
        wanted = jensen_shannon(a["cross"].weights(layer), b["cross"].weights(layer))
        assert ours.rows[layer * HEADS : (layer + 1) * HEADS] == pytest.approx(wanted, abs=1e-12)
        assert ours.parts(layer).sum(-1) == pytest.approx(wanted, abs=1e-12)
        assert (ours.difference(layer) == -back.difference(layer)).all()
    assert ours.moved == pytest.approx(back.moved, abs=1e-15)
    assert ours.moved == pytest.approx(ours.rows.mean(axis=1))
    assert (ours.moved > 0).all()
    assert (ours.rows <= math.log(2)).all()
    assert ours.map().shape == (LAYERS, HEADS)
    assert ours.distance(1, 2) == ours.map()[1, 2]
    assert ours.beyond.all()


def test_a_word_that_was_put_in_takes_its_mass_as_one_key():
    a, b = record_of("uvw", seed=1), record_of("uxvw", seed=2)
    stack = hs.compare(a, b)["self"]
    old, new = a["self"].weights(0).astype(float), b["self"].weights(0).astype(float)
    grid = stack.weights("a", 0)
    assert grid.shape == (HEADS, 4, 4)
    assert (grid[:, 1] == 0).all()
    assert (grid[:, :, 1] == 0).all()
    assert grid[:, [0, 2, 3]][:, :, [0, 2, 3]] == pytest.approx(old)
    assert stack.weights("b", 0) == pytest.approx(new)
    assert (stack.difference(0)[:, 1] == 0).all()
    assert stack.difference(0)[:, 2, 1] == pytest.approx(new[:, 2, 1])
    for head in range(HEADS):
        for row, (i, j) in enumerate([(0, 0), (1, 2), (2, 3)]):
            wanted = plain_js([*old[head, i], 0.0], [*new[head, j, [0, 2, 3]], new[head, j, 1]])
            assert stack.rows[head, row] == pytest.approx(wanted, abs=1e-7)
    assert stack.row_tokens == ("u", "v", "w")


def test_rows_of_replaced_words_are_seen_but_not_counted():
    stack = hs.compare(record_of("uvw", seed=1), record_of("uxw", seed=2))["self"]
    assert stack.rows.shape == (LAYERS * HEADS, 2)
    assert (stack.parts(0)[:, 1] == 0).all()
    assert (stack.difference(0)[:, 1] != 0).any()


def sides(text="abcd ef"):
    a = Tokens(pieces=("ab", "cd", "ef"), texts=(text,), offsets=((0, 2), (2, 4), (5, 7)))
    return a, Tokens(
        pieces=("a", "bcd", " e", "f"), texts=(text,), offsets=((0, 1), (1, 4), (4, 6), (6, 7))
    )


def test_two_tokenizers_sum_over_keys_and_mean_over_queries():
    a, b = (record_of(tokens, seed=n, name=str(n)) for n, tokens in enumerate(sides()))
    stack = hs.compare(a, b)["self"]
    weights = b["self"].weights(1).astype(float)
    keys = np.stack([weights[:, :, :2].sum(-1), weights[:, :, 2:].sum(-1)], axis=-1)
    wanted = np.stack([keys[:, :2].mean(axis=1), keys[:, 2:].mean(axis=1)], axis=1)
    assert stack.weights("b", 1) == pytest.approx(wanted)
    assert stack.weights("a", 1).sum(-1) == pytest.approx(np.ones((HEADS, 2)))


def test_what_is_lost_to_sinks_or_a_replaced_output_is_a_key_of_its_own():
    a = record_of("uvw", seed=1)
    silent = Layer(
        layer=0, weights=np.zeros((HEADS, 3, 3), np.float32), changes=("output set to zero",)
    )
    stack = Stack(
        name="self", query=a["self"].query, key=a["self"].key, layers=(silent, a["self"].layer(1))
    )
    found = hs.compare(a, Record(stacks={"self": stack}, model=a.model))["self"]
    assert found.moved[:HEADS] == pytest.approx(np.full(HEADS, math.log(2)), abs=1e-6)
    assert (found.moved[HEADS:] == 0).all()


def test_models_of_another_shape_are_matched_head_by_head_to_the_nearest():
    a, b = (
        record_of("uvwx", seed=1, heads=2),
        record_of("uvwx", seed=2, layers=3, heads=4, name="other"),
    )
    stack = hs.compare(a, b)["self"]
    assert stack.candidates == 12
    for (layer, head), (other, partner), moved in zip(
        stack.cells, stack.partners, stack.moved, strict=True
    ):
        own = a["self"].weights(layer, head)[None]
        all_of = {
            (n, h): jensen_shannon(own, b["self"].weights(n, h)[None]).mean()
            for n in range(3)
            for h in range(4)
        }
        assert min(all_of, key=all_of.get) == (other, partner)
        assert moved == pytest.approx(all_of[other, partner], abs=1e-12)
    assert stack.weights("b", 1)[1] == pytest.approx(b["self"].weights(*stack.partners[3]))
    assert "nearest of 12 heads of B" in str(hs.compare(a, b))


def test_a_head_that_was_moved_elsewhere_is_found():
    a = record_of("uvwxy", seed=1)
    layers = tuple(
        Layer(layer=n, weights=a["self"].weights(1 - n)[[2, 0, 1]]) for n in range(LAYERS)
    )
    stack = Stack(name="self", query=a["self"].query, key=a["self"].key, layers=layers)
    b = Record(stacks={"self": stack}, model=a.model)
    found = hs.compare(a, b, heads="best")["self"]
    assert (found.moved == 0).all()
    assert found.partners == tuple((1 - layer, (head + 1) % 3) for layer, head in found.cells)
    assert (hs.compare(a, b, heads="number")["self"].moved > 0).all()


def test_numbers_of_heads_are_trusted_only_within_one_type_of_model():
    a = record_of("uvw", seed=1)
    assert hs.compare(a, record_of("uvw", seed=2, name="tuned"))["self"].candidates == 1
    assert (
        hs.compare(a, record_of("uvw", seed=2, name="tuned", model_type="gpt2"))["self"].candidates
        == 6
    )


def test_several_texts_have_an_interval_and_heads_must_lie_above_the_spread():
    pairs = [(record_of("uvw", seed=n), record_of("uvw", seed=100 + n)) for n in range(8)]
    nulls = [(record_of("uvw", seed=n), record_of("uvw", seed=200 + n)) for n in range(5)]
    firsts, seconds = zip(*pairs, strict=True)
    stack = hs.compare(firsts, seconds, spread=nulls)["self"]
    assert stack.values.shape == (8, LAYERS * HEADS)
    assert stack.values[3] == pytest.approx(hs.compare(*pairs[3])["self"].moved)
    assert (stack.interval[:, 0] < stack.moved).all()
    assert (stack.moved < stack.interval[:, 1]).all()
    assert stack.spread == pytest.approx(
        np.max([hs.compare(*pair)["self"].moved for pair in nulls], axis=0)
    )
    assert not stack.beyond.any()
    assert hs.compare(firsts, seconds)["self"].beyond.all()
    place = 1 + sum(hs.compare(*pair)["self"].moved.sum() >= stack.moved.sum() for pair in nulls)
    assert stack.rank == (place, place / 6)
    assert "within the spread" in str(hs.compare(firsts, seconds, spread=nulls))


def test_a_planted_change_is_told_from_the_spread_of_the_others():
    rng = np.random.default_rng(5)

    def seeds(moved, seed):
        base = record_of("uvwxyz", seed=1)
        noise = np.random.default_rng(seed)
        layers = []
        for layer in base["self"]:
            weights = layer.weights * np.exp(
                0.05 * noise.standard_normal(layer.weights.shape)
            ).astype(np.float32)
            if moved and layer.layer == 1:
                weights[2] = weights[2][:, ::-1]
            layers.append(
                Layer(layer=layer.layer, weights=weights / weights.sum(-1, keepdims=True))
            )
        stack = Stack(
            name="self", query=base["self"].query, key=base["self"].key, layers=tuple(layers)
        )
        return Record(stacks={"self": stack}, model=base.model)

    nulls = [(seeds(False, n), seeds(False, n + 50)) for n in rng.integers(1000, size=20)]
    found = hs.compare(seeds(False, 1), seeds(True, 2), spread=nulls)["self"]
    assert [cell for cell, far in zip(found.cells, found.beyond, strict=True) if far] == [(1, 2)]


def test_without_a_spread_heads_are_ranked_and_no_more():
    found = hs.compare(record_of("uvw", seed=1), record_of("uvw", seed=2))
    assert "No baseline given (give spread= (--spread)" in str(found)
    assert "moved by more than" not in str(found)
    assert repr(found).endswith("1 text, ranking only>")
    assert not {"spread", "beyond"} & set(found.columns())
    with pytest.raises(RecordError, match="no baseline to rank"):
        _ = found["self"].rank


def test_rounding_is_within_the_spread():
    a = record_of("uvwxyz", seed=3)
    halves = tuple(
        Layer(
            layer=layer.layer,
            weights=(layer.weights / layer.weights.sum(-1, keepdims=True)).astype(np.float16),
        )
        for layer in a["self"]
    )
    stack = Stack(name="self", query=a["self"].query, key=a["self"].key, layers=halves)
    found = hs.compare(a, Record(stacks={"self": stack}, model=a.model))["self"]
    assert (found.moved > 0).all()
    assert not found.beyond.any()
    assert epsilon_of(halves[0]) == 2.0**-10
    assert epsilon_of(a["self"].layer(0), dtypes=("bfloat16",)) == 2.0**-7


def test_rounding_distance_is_the_divergence_to_first_order():
    p = np.array([[[0.5, 0.25, 0.25]]])
    off = 1e-4 * (1 - np.log(p)) * np.array([1, -1, 1])
    wanted = jensen_shannon(p * (1 + off), p * (1 - off))
    assert rounding_distance(p, 1e-4) == pytest.approx(wanted, rel=0.1)


def test_the_table_has_a_row_for_every_head(tmp_path):
    a, b = random_record(seed=1), random_record(seed=2)
    found = hs.compare(a, b)
    table = found.to_pandas()
    assert list(table["head"]) == [0, 1, 2, 0, 1, 2]
    assert table.distance.to_numpy() == pytest.approx(found["cross"].moved)
    assert table.low.isna().all()
    assert repr(found) == "<Comparison: 6 heads, 1 text, ranking only>"
    assert "A: random: cross 2 layers x 3 heads" in str(found)
    assert "5 tokens, the same in both" in str(found)


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        (("a", "uvw"), {}, "none in common; say which to compare with stack=('cross', 'self')"),
        (("a",), {}, "(hs.load reads files), got 3"),
        (("a", []), {}, "was given 1 and 0 records"),
        (("uvw", "uvw"), {"heads": "all"}, "heads='all': expected one of 'auto', 'number', 'best'"),
        (("uvw", "four"), {"heads": "number"}, "have 6 heads in 2 layers and 8 in 2"),
        (("uvw", "uvw"), {"stack": "cross"}, "has the stacks 'self', not 'cross'"),
        ((["uvw", "uvw"], ["uvw", "xyz"]), {}, "Pair 1: The records have 0% of their tokens in"),
        ((["uvw", "four"], ["uvw", "four"]), {}, "give records of the same two models"),
    ],
)
def test_what_cannot_be_compared_is_refused(arguments, options, said):
    made = {
        "a": random_record(),
        "uvw": record_of("uvw"),
        "xyz": record_of("xyz", seed=4),
        "four": record_of("uvw", heads=4),
    }
    given = [
        [made[each] for each in one] if isinstance(one, list) else made[one] for one in arguments
    ]
    with pytest.raises(RecordError, match=re.escape(said)):
        hs.compare(*given, *([3] if len(given) == 1 else []), **options)


def test_stacks_that_only_one_has_are_named():
    a = random_record()
    both = Record(stacks={"cross": a["cross"], "self": record_of("uvw")["self"]}, model=a.model)
    found = hs.compare(a, both)
    assert found.left_out == ("self",)
    assert "Stack 'self' is only in one of them" in str(found)
    with pytest.raises(
        RecordError, match="this comparison has the stacks 'cross', not 'self'".capitalize()
    ):
        found["self"]


def test_a_stack_may_be_called_otherwise():
    a, b = random_record(seed=1), random_record(seed=2)
    renamed = Stack(
        name="other", query=b["cross"].query, key=b["cross"].key, layers=b["cross"].layers
    )
    assert hs.compare(
        a, Record(stacks={"other": renamed}, model=b.model), stack=("cross", "other")
    )["cross"].moved == pytest.approx(hs.compare(a, b)["cross"].moved)


def test_two_models_that_share_their_text_but_not_their_tokenizer(minilm, shared):
    text = "The quick brown fox jumps over the lazy dog."
    a = hs.capture(str(shared / "models" / "stories260K"), text=text)
    b = hs.capture(*minilm, text)
    found = hs.compare(a, b)["self"]
    assert isinstance(found, StackComparison)
    assert found.query.method == "characters"
    words = [span for span in found.query.spans if span.kind == "both"]
    cut = [
        ("".join(tokens.labels[place] for place in places).strip().lower())
        for span in words[1:]
        for tokens, places in ((a["self"].query, span.a), (b["self"].query, span.b))
    ]
    assert (
        cut[::2]
        == cut[1::2]
        == ["the", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog", "."]
    )
    sums = found.weights("a", 2).sum(-1)[:, found.grid.rows]
    assert sums == pytest.approx(np.ones_like(sums), abs=1e-5)
    assert align(b["self"].query, a["self"].query, same_model=False).shared == found.query.shared
    with pytest.raises(RecordError, match="two models and of two texts"):
        hs.compare(a, hs.capture(*minilm, "The slow fox."))


def test_several_texts_are_printed_with_their_length():
    pairs = [(record_of("abcd"[:size]), record_of("abcd"[:size], seed=1)) for size in (2, 3, 4)]
    several = str(hs.compare([a for a, _ in pairs], [b for _, b in pairs]))
    assert "3 texts, median 3 tokens that both have" in several
    assert "Tokens of the first: 2 tokens, the same in both" in several
    assert "median" not in str(hs.compare(*pairs[0]))
