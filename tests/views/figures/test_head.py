import numpy as np
import pytest
from matplotlib.colors import to_hex

import headscope as hs
from headscope.record import Layer, Stack
from headscope.testing import random_record, random_weights
from headscope.views.constants import KIND_COLOURS
from headscope.views.figures import _head


def test_there_is_one_line_for_each_weight_above_even(see):
    record = random_record(queries=5, keys=7)
    seen = see(hs.figure(record, heads=[0, 2]))
    weights = record["cross"].weights(0)[[0, 2]]
    assert len(seen.curves) == (weights > 1 / 7).sum()
    assert f"{len(seen.curves):,} lines" in seen.said
    assert "lines: above even attention" in seen.said
    focused = see(hs.figure(record, heads=[0, 2], query=1))
    assert len(focused.curves) > (weights[:, 1] > 1 / 7).sum()


def test_lines_run_from_the_query_to_the_key(rng, see):
    weights = np.zeros((1, 1, 4, 6), np.float32)
    for query, key in enumerate((5, 0, 2, 2)):
        weights[0, 0, query, key] = 1
    tokens = {"decoder_tokens": list("abcd"), "encoder_tokens": list("uvwxyz")}
    seen = see(hs.figure(hs.from_weights(cross=weights, **tokens)))
    heights = {name: seen.place(name)[0][1] for name in "abcduvwxyz"}
    shift = heights["a"] - seen.curves[:, 0, 1].min()
    found = {
        (round(curve[0, 1] + shift, 3), round(curve[3, 1] + shift, 3)) for curve in seen.curves
    }
    assert found == {
        (round(heights[q], 3), round(heights[k], 3)) for q, k in zip("abcd", "zuww", strict=True)
    }
    assert (seen.curves[:, 0, 0] > seen.place("a")[0][0]).all()
    assert (seen.curves[:, 3, 0] < seen.place("z")[0][0]).all()
    assert seen.opacities == pytest.approx(seen.opacities[0])


def test_darker_lines_are_larger_weights(see):
    weights = np.array([[[[0.05, 0.1, 0.25, 0.6]]]], np.float32)
    record = hs.from_weights(cross=weights, decoder_tokens=["q"], encoder_tokens=list("abcd"))
    seen = see(hs.figure(record, top_percent=100))
    by_key = seen.opacities[np.argsort(seen.curves[:, 3, 1])]
    assert (np.diff(by_key) > 0).all()


def test_heads_have_the_hue_of_what_they_do_and_a_shade_of_their_own(see):
    size = 12
    maps = [np.eye(size, k=-1), np.eye(size, k=1), 0.9 * np.eye(size, k=-1)]
    weights = np.stack([0.95 * each + 0.05 for each in maps])
    weights /= weights.sum(axis=-1, keepdims=True)
    record = hs.from_weights([weights], list("abcdefghijkl"))
    seen = see(hs.figure(record))
    assert {"previous token", "next token", "0", "1", "2"} <= set(seen.texts)
    colours = {to_hex(path.get_edgecolor()) for path in seen._paths()}
    assert len(colours - {"#15181d"}) == 3
    one = {to_hex(path.get_edgecolor()) for path in see(hs.figure(record, head=1))._paths()}
    assert one == {KIND_COLOURS["next"][0]}
    assert KIND_COLOURS["next"][0] in colours
    assert KIND_COLOURS["previous"][0] not in colours


def test_the_share_that_is_printed_is_the_share_that_is_drawn(see, rng):
    weights = random_weights(rng, (1, 2, 5, 7))
    record = hs.from_weights(
        cross=weights, decoder_tokens=list("abcde"), encoder_tokens=list("tuvwxyz")
    )
    seen = see(hs.figure(record, top_percent=50))
    ordered = -np.sort(-weights[0].astype(float), axis=-1)
    before = np.cumsum(ordered, -1) - ordered
    kept = before < 0.5
    assert len(seen.curves) == kept.sum()
    assert (
        f"{kept.sum()} lines, {100 * ordered[kept].sum() / 10:.0f} % of the attention of 2 heads"
        in seen.said
    )
    assert "strongest 50 % of each row" in seen.said


def test_no_more_lines_than_can_be_printed_unless_asked(see, monkeypatch):
    monkeypatch.setattr(_head, "BUDGET", 12)
    record = random_record(heads=2, queries=5, keys=7)
    few, many = see(hs.figure(record)), see(hs.figure(record, top_percent=100))
    assert len(few.curves) <= 12 < len(many.curves)
    assert "the strongest lines" in few.said
    assert "the strongest lines" not in many.said


@pytest.mark.parametrize(("side", "count"), [("query", 7), ("key", 5)])
def test_one_token_has_its_lines_and_their_numbers(see, side, count):
    record = random_record(heads=2, queries=5, keys=7)
    weights = record["cross"].weights(0).mean(axis=0)
    seen = see(hs.figure(record, **{side: 3}))
    assert len(np.unique(seen.curves[:, 0 if side == "query" else 3, 1])) == 2
    wanted = weights[3] if side == "query" else weights[:, 3]
    printed = [text for text in seen.texts if text.startswith(".")]
    assert {f"{weight:.2f}"[1:] for weight in wanted if weight > 0.01} <= set(printed)
    assert len(seen.curves) <= 2 * count
    assert ("only from “q3”" if side == "query" else "only to “k3”") in seen.said


def test_a_pair_has_its_brackets_filter_and_mute(pair, see):
    assert {"A", "B", "–berries"} <= set(see(hs.figure(pair)).texts)
    weights = pair["self"].weights(0).astype(float)
    seen = see(hs.figure(pair, filter="ab", hide_special=True, top_percent=100))
    drawn = weights[:, 1:3, 4:6]
    drawn = drawn[drawn > 0.0025]
    assert (
        f"{drawn.size} lines, {100 * drawn.sum() / 21:.0f} % of the attention of 3 heads"
        in seen.said
    )
    assert len(seen.curves) == drawn.size
    assert drawn.size > 8
    assert "only from text A to text B" in seen.said
    assert "without special tokens" in seen.said


def test_scores_below_0_are_dashed(grouped, see):
    seen = see(hs.figure(grouped, quantity="score", layer=2, head=1))
    scores = grouped["self"].scores(2, 1)
    finite = scores[np.isfinite(scores)]
    assert seen.dashed == pytest.approx((finite < 0).sum(), abs=1)
    assert len(seen.curves) <= finite.size
    assert "dashed lines are below 0" in seen.said


def test_long_texts_fit_a_page_and_name_what_they_can(see, rng):
    names = [f"w{number}" for number in range(128)]
    record = hs.from_weights(random_weights(rng, (1, 2, 128, 128)), names)
    figure = hs.figure(record)
    assert figure.matplotlib.get_size_inches()[1] * 25.4 < 245
    assert set(names) <= set(see(figure).texts)
    names = [f"w{number}" for number in range(400)]
    figure = see(hs.figure(hs.from_weights(random_weights(rng, (1, 1, 400, 400)), names)))
    assert "one of 3 tokens is named" in figure.said
    assert "w3" in figure.texts
    assert "w4" not in figure.texts


def test_a_learned_sink_is_told(rng, see):
    record = random_record()
    layer = Layer(layer=0, weights=record["cross"].weights(0) * 0.5, sinks=np.zeros(3, np.float32))
    sides = {"query": record["cross"].query, "key": record["cross"].key}
    sunk = hs.Record(stacks={"cross": Stack(name="cross", layers=(layer,), **sides)})
    assert "learned sink" in see(hs.figure(sunk)).said
    assert "learned sink" not in see(hs.figure(record)).said


def test_a_real_head_that_looks_at_the_next_word(shared, see):
    weights = np.load(shared / "attention" / "bert-base-uncased_store-strawberries.npz")["all"]
    text = "[CLS] i went to the store . [SEP] at the store , i bought fresh straw ##berries . [SEP]"
    record = hs.from_weights(weights, text.split(), sentence_b_start=8)
    seen = see(hs.figure(record, layer=2, head=0, hide_special=True, top_percent=90))
    assert len(seen.curves) == 14
    rises = seen.curves[:, 3, 1] - seen.curves[:, 0, 1]
    assert rises == pytest.approx(rises[0])
    assert rises[0] > 0


@pytest.mark.parametrize("heads", [16, 64, 130])
def test_the_squares_of_all_heads_stay_on_the_paper(see, rng, heads):
    record = hs.from_weights(random_weights(rng, (1, heads, 4, 4)), list("abcd"))
    boxes = see(hs.figure(record)).rounded()
    assert len(boxes) == heads
    assert max(box.get_x() + box.get_width() for box in boxes) <= 85 - 1.2


def test_words_of_a_kind_stand_behind_several_of_its_heads(see):
    maps = np.eye(20, k=-1) + 1e-3
    weights = np.repeat((maps / maps.sum(axis=-1, keepdims=True))[None], 64, axis=0)
    seen = see(hs.figure(hs.from_weights([weights], [f"w{at}" for at in range(20)])))
    ((_, line),) = seen.place("previous token")
    assert sum(seen.place(str(head))[0][1] == pytest.approx(line) for head in range(64)) > 1
