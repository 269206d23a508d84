"""Matrix, model, neuron, text and pair: the numbers that their marks show."""

from itertools import pairwise

import numpy as np
import pytest

import headscope as hs
from headscope.record import Layer, ModelFacts, Stack, Tokens
from headscope.testing import random_record, random_weights
from headscope.views.figures import _cells
from headscope.views.figures._style import parse_hex, short_weight, style_of

STYLE = style_of({})


def cells(image, rows, columns):
    """The colour in the middle of each cell."""
    high, wide = image.shape[0] // rows, image.shape[1] // columns
    return image[high // 2 :: high, wide // 2 :: wide]


def check_depth(colours, lifts):
    """Paper up to the even share, and from there on darker for more."""
    depth = 765 - np.asarray(colours, int).sum(axis=-1).ravel()
    lifts = np.asarray(lifts).ravel()
    assert (depth[lifts <= 1] == 0).all()
    assert (np.diff(depth[np.argsort(np.maximum(lifts, 1))]) >= 0).all()
    assert (depth[lifts > 1.1] > 0).all()


def test_each_cell_of_the_matrix_has_the_colour_of_its_weight(see):
    record = random_record(queries=5, keys=7)
    image = see(hs.figure(record, view="matrix", layer=1, head=2)).images[0]
    check_depth(cells(image, 5, 7), 7 * record["cross"].weights(1, 2).astype(float))


def test_the_matrix_of_several_heads_is_their_mean_and_says_so(see):
    record = random_record(queries=5, keys=7)
    seen = see(hs.figure(record, view="matrix", heads=[0, 2]))
    mean = record["cross"].weights(0)[[0, 2]].astype(float).mean(axis=0)
    check_depth(cells(seen.images[0], 5, 7), 7 * mean)
    assert "mean of heads 0, 2" in seen.said


def test_masked_cells_look_otherwise_than_zeros(grouped, see):
    seen = see(hs.figure(grouped, view="matrix", head=0, quantity="score"))
    assert (parse_hex(STYLE.masked) == cells(seen.images[0], 6, 6)[0, 3:]).all(axis=-1).mean() > 0.5
    assert "masked" in seen.texts
    edge = (seen.images[0] == parse_hex(STYLE.edge)).all(axis=-1)
    half = edge.shape[0] // 2
    assert edge[: half // 2, half:].mean() > 0.05
    assert not edge[half:, : half // 2].any()


def test_matrix_names_stand_at_their_cells(see):
    figure = hs.figure(random_record(queries=5, keys=7), view="matrix")
    seen = see(figure)
    left, right, bottom, top = seen.axes.images[0].get_extent()
    for key in range(7):
        assert seen.place(f"k{key}")[0][0] == pytest.approx(
            left + (key + 0.5) * (right - left) / 7, abs=1.2
        )
    for query in range(5):
        assert seen.place(f"q{query}")[0][1] == pytest.approx(
            top + (query + 0.5) * (bottom - top) / 5, abs=1.2
        )


def test_many_tokens_become_positions(rng, see):
    record = hs.from_weights(
        cross=random_weights(rng, (1, 1, 300, 512)),
        decoder_tokens=[f"q{n}" for n in range(300)],
        encoder_tokens=[f"k{n}" for n in range(512)],
    )
    figure = hs.figure(record, view="matrix")
    seen = see(figure)
    assert "positions from 0" in seen.said
    assert {"0", "100", "200"} <= set(seen.texts)
    assert not [text for text in seen.texts if text.startswith("k")]
    assert seen.images[0].shape[1] >= 512
    assert figure.matplotlib.get_size_inches()[1] * 25.4 < _cells.TALLEST + 45


def test_mute_and_filter_cut_rows_and_columns(pair, see):
    seen = see(hs.figure(pair, view="matrix", head=1, hide_special=True, filter="ba"))
    weights = pair["self"].weights(0, 1).astype(float)[4:6, 1:3]
    check_depth(cells(seen.images[0], 2, 2), 7 * weights)
    assert "[CLS]" not in seen.texts


def test_the_model_has_a_thumbnail_for_each_head(grouped, see):
    seen = see(hs.figure(grouped, view="model", layer=3, head=2))
    assert len(seen.images) == 3 * 4 + 2  # the bar and the sign for masked
    assert {"3 layers × 4 heads", "0", "2", "3", "tiny"} <= set(seen.texts)
    assert "without layers 1: not in the record" in seen.said
    assert "heads that share keys and values stand together" in seen.said
    frames = [box for box in seen.boxes() if box.get_linewidth() == 1]
    assert len(frames) == 1
    extent = seen.axes.images[2 * 4 + 2].get_extent()
    assert frames[0].get_x() == pytest.approx(extent[0])
    assert frames[0].get_y() == pytest.approx(extent[3])


def test_thumbnails_are_mean_multiples_of_the_even_share(see, monkeypatch):
    monkeypatch.setattr(_cells, "CELLS", 3)
    record = random_record(layers=2, heads=3, queries=5, keys=7)
    seen = see(hs.figure(record, view="model"))
    weights = 7 * record["cross"].weights(1, 2).astype(float)
    rows, columns = (
        [slice(0, 1), slice(1, 3), slice(3, 5)],
        [slice(0, 2), slice(2, 4), slice(4, 7)],
    )
    wanted = np.array([[weights[row, column].mean() for column in columns] for row in rows])
    check_depth(cells(seen.images[5], 3, 3), wanted)
    assert "5 × 7 weights each cell is the mean of its block" in seen.said


def test_only_the_layers_asked_for(grouped, see):
    seen = see(hs.figure(grouped, view="model", layers=[3]))
    assert "1 layer × 4 heads" in seen.texts
    assert len(seen.images) == 4 + 2


@pytest.mark.parametrize(("layers", "heads"), [(2, 64), (90, 3), (3, 200)])
@pytest.mark.parametrize(("view", "options"), [("overview", {}), ("pair", {"query": 1, "key": 1})])
def test_numbers_of_layers_and_heads_do_not_overlap(see, rng, view, options, layers, heads):
    weights = random_weights(rng, (layers, heads, 3, 3))
    seen = see(hs.figure(hs.from_weights(weights, list("abc")), view=view, **options))
    numbers = {}
    for text in seen.axes.texts:
        if text.get_text().isdigit():
            numbers.setdefault(text.get_ha(), []).append(text.get_window_extent())
    # Those of layers stand on the left, those of heads below.
    assert set(numbers) == {"right", "center"}
    for boxes in numbers.values():
        for one, other in pairwise(boxes):
            assert not one.overlaps(other)


def test_the_pair_has_a_number_for_each_head(see):
    record = random_record(layers=2, heads=3)
    seen = see(hs.figure(record, view="pair", query=3, key=6))
    assert "Cross · “q3” → “k6”" in seen.texts
    weights = [record["cross"].weights(layer, head)[3, 6] for layer in (0, 1) for head in range(3)]
    bar = seen.axes.images[-1].get_extent()[3]
    written = [
        text.get_text()
        for text in seen.axes.texts
        if text.get_text()[0] == "." and text.get_position()[1] < bar
    ]
    assert written == [short_weight(float(weight)) for weight in weights if weight >= 0.0005]
    assert len(written) > 4
    assert {"1 ×", "8 ×", "times the even share"} <= set(seen.texts)


def test_a_masked_pair_has_no_numbers(grouped, see):
    seen = see(hs.figure(grouped, view="pair", query=1, key=4))
    assert "masked" in seen.texts
    assert not [text for text in seen.texts if text.startswith(".")]
    assert "“the” → “down”" in seen.texts


def test_scores_of_a_pair_keep_their_sign(grouped, see):
    seen = see(hs.figure(grouped, view="pair", query=4, key=1, quantity="score"))
    scores = [grouped["self"].scores(layer, head)[4, 1] for layer in (0, 2, 3) for head in range(4)]
    assert any(score < -0.995 for score in scores)
    for score in scores:
        if abs(score) >= 0.995:
            assert f"{score:.1f}".replace("-", "−") in seen.texts


def test_the_neurons_add_up_to_the_score_and_the_weights(grouped, see):
    layer, query, head = grouped["self"].layer(2), 4, 2
    seen = see(hs.figure(grouped, view="neuron", layer=2, head=head, query=query))
    keys = layer.keys[1].astype(float)  # heads 2 and 3 share key/value head 1
    products = layer.queries[head, query].astype(float) * keys
    scores = products.sum(axis=1) * 0.25
    assert scores[:5] == pytest.approx(layer.scores_of(head)[query, :5])
    columns = (products.sum(axis=1), scores, layer.weights_of(head)[query])
    for axes, wanted in zip(seen.axes.child_axes, columns, strict=True):
        # the sixth key is masked
        assert [bar.get_width() for bar in axes.patches] == pytest.approx(wanted[:5], abs=1e-6)
    assert "keys of key/value head 1" in seen.said
    assert "score = q · k × 0.25" in seen.said
    # The query and an empty row stand above.
    image = cells(seen.images[1], 2 + 6, 8)
    scale = STYLE.score_scale(np.abs(products[:5]).max())
    assert np.array_equal(image[2:7], scale.rgb(products[:5]))


def test_neurons_need_queries_and_keys():
    with pytest.raises(hs.errors.RecordError, match="keep='qk'"):
        hs.figure(random_record(), view="neuron", query=0)


def fills(seen):
    return [
        tuple(np.rint(255 * np.array(box.get_facecolor()[:3])).astype(int))
        for box in seen.rounded()
    ]


@pytest.mark.parametrize(
    ("options", "words", "title"),
    [
        ({}, "k", "Attention received"),
        ({"query": 2}, "k", "Where “q2” looks"),
        ({"key": 2}, "q", "What looks at “k2”"),
    ],
    ids=str,
)
def test_the_heat_of_words(see, options, words, title):
    record = random_record(queries=5, keys=7)
    seen = see(hs.figure(record, view="text", heads=[0, 1], **options))
    weights = record["cross"].weights(0)[:2].astype(float).mean(axis=0)
    heat = (
        weights[2]
        if "query" in options
        else weights[:, 2]
        if "key" in options
        else weights.mean(axis=0)
    )
    check_depth(fills(seen), 7 * heat)
    assert title in seen.texts
    assert [text for text in seen.texts if text[0] == words and text[1:].isdigit()] == [
        f"{words}{n}" for n in range(len(heat))
    ]
    assert "mean of heads 0, 1" in seen.said


@pytest.mark.parametrize("view", ["text", "matrix", "model", "overview"])
@pytest.mark.parametrize(("tokens", "window"), [(60, None), (400, 20)])
def test_a_head_that_attends_evenly_has_no_colour(see, view, tokens, window):
    seen_keys = np.tri(tokens) if window is None else np.tri(tokens) - np.tri(tokens, k=-window)
    even = seen_keys / seen_keys.sum(axis=1, keepdims=True)
    labels = [f"w{at}" for at in range(tokens)]
    layer = Layer(layer=0, weights=even[None], visible=seen_keys > 0)
    stack = Stack(
        name="self", query=Tokens(pieces=labels), key=Tokens(pieces=labels), layers=(layer,)
    )
    record = hs.Record(stacks={"self": stack}, model=ModelFacts())
    seen = see(hs.figure(record, view=view, width=180))
    if view == "text":
        assert set(fills(seen)) == {(255, 255, 255)}
        return
    pixels = seen.images[0][..., :3].reshape(-1, 3) @ (1 << 16, 1 << 8, 1)
    # White, and the two colours of what may not be seen.
    masked, edge = (int(colour.lstrip("#"), 16) for colour in (STYLE.masked, STYLE.edge))
    assert set(np.unique(pixels).tolist()) <= {0xFFFFFF, masked, edge}


def test_words_wrap_and_the_second_text_begins_a_line(pair, see):
    seen = see(hs.figure(pair, view="text"))
    assert seen.place("straw")[0][1] > seen.place("berry")[0][1]
    (straw,), (berries,) = seen.place("straw"), seen.place("berries")
    assert straw[1] == berries[1]
    long = hs.from_weights(
        np.full((1, 1, 60, 60), 1 / 60, np.float32), [f"word{n}" for n in range(60)]
    )
    figure = hs.figure(long, view="text")
    edges = [box.get_x() + box.get_width() for box in see(figure).rounded()]
    assert max(edges) <= 85
    assert len({round(box.get_y(), 3) for box in see(figure).rounded()}) > 4


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[CLS] he said ש ##ל ##ו ##ם to me [SEP]", "[CLS] he said ם ו ל ש to me [SEP]"),
        ("he said ש ##ל , ט ##ב 1 ##2 ! to me", "he said 1 2 ב ט , ל ש ! to me"),
        ("[CLS] ש ##ל ##ו ##ם ! it 1 ##2 ? [SEP]", "[SEP] ? it 1 2 ! ם ו ל ש [CLS]"),
    ],
)
def test_words_from_right_to_left_are_read_so(see, text, line):
    pieces = text.split()
    record = hs.from_weights(np.full((1, 1, *[len(pieces)] * 2), 1 / len(pieces)), pieces)
    seen = see(hs.figure(record, view="text", width=180))
    labels = {piece.removeprefix("##") for piece in pieces}
    drawn = [(*each.get_position(), each.get_text()) for each in seen.axes.texts]
    assert [word for *_, word in sorted(drawn) if word in labels] == line.split()


def pictured(rng, places, grid):
    """A record of a class token, patches in this order, and a word."""
    places = (None, *places, None)
    labels = ("[CLS]", *(f"r{row}c{column}" for row, column in places[1:-1]), "owl")
    tokens = Tokens(pieces=labels, grids=(grid,), places=places)
    layer = Layer(layer=0, weights=random_weights(rng, (2, len(labels), len(labels))))
    stack = Stack(name="self", query=tokens, key=tokens, layers=(layer,))
    return hs.Record(stacks={"self": stack}, model=ModelFacts())


def brightness(seen, grid):
    """Of the cell of each row and column of the picture."""
    image = seen.images[0].astype(float).sum(axis=-1)
    rows, columns = (
        np.array_split(np.arange(side), of) for side, of in zip(image.shape, grid, strict=True)
    )
    return np.array([[image[np.ix_(row, column)].mean() for column in columns] for row in rows])


def test_patches_stand_in_the_rows_and_columns_of_their_picture(see, rng):
    places = [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]  # block by block, as some models do
    record = pictured(rng, places, (2, 3))
    seen = see(hs.figure(record, view="text", head=0, query=0))
    left, right, bottom, top = seen.axes.images[0].get_extent()
    assert (right - left) / (bottom - top) == pytest.approx(3 / 2)
    heights = [seen.place("[CLS]")[0][1], (top + bottom) / 2, seen.place("owl")[0][1]]
    assert heights in (sorted(heights), sorted(heights, reverse=True))
    heat = record["self"].weights(0, 0)[0, 1:-1]
    shades = brightness(seen, (2, 3))[*np.transpose(places)]
    assert (np.diff(shades[np.argsort(heat)]) <= 1e-6).all()
    assert len(np.unique(shades)) > 2


def test_many_patches_stay_on_the_paper(see, rng):
    places = [(row, column) for row in range(2) for column in range(30)]
    seen = see(hs.figure(pictured(rng, places, (2, 30)), view="text"))
    assert seen.axes.images[0].get_extent()[1] <= 85
    assert len(np.unique(brightness(seen, (2, 30)))) > 2


def test_muted_words_have_no_heat_and_are_left_out_of_the_mean(pair, see):
    seen = see(hs.figure(pair, view="text", head=0, hide_special=True))
    assert len(seen.rounded()) == 4
    weights = pair["self"].weights(0, 0).astype(float)
    heat = weights[[1, 2, 4, 5]].mean(axis=0)[[1, 2, 4, 5]]
    check_depth(fills(seen), 7 * heat)
    assert "mean over 4 queries" in seen.said
